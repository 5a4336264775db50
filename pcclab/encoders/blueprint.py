"""An encoder without its weights: what its config alone tells of its size, built where tensors have shapes only."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import (
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoTokenizer,
    BertConfig,
    LlamaConfig,
    MistralConfig,
    OPTConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from pcclab.encoders import adapters, causal, masked, templates, tiny, tiny_causal
from pcclab.encoders.adapters import LoRA, Quantization
from pcclab.encoders.base import Encoder, Settings, read_settings
from pcclab.encoders.prompts import fill

_SEVEN = {"hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32}
_LLAMA = {**_SEVEN, "vocab_size": 32000, "intermediate_size": 11008, "max_position_embeddings": 2048}
BACKBONES: dict[str, tuple[Any, dict[str, Any]]] = {
    "facebook/opt-6.7b": (
        OPTConfig,
        {**_SEVEN, "vocab_size": 50272, "ffn_dim": 16384, "word_embed_proj_dim": 4096, "max_position_embeddings": 2048},
    ),
    "huggyllama/llama-7b": (LlamaConfig, _LLAMA),
    "meta-llama/Llama-2-7b-hf": (LlamaConfig, {**_LLAMA, "max_position_embeddings": 4096}),
    "mistralai/Mistral-7B-v0.1": (
        MistralConfig,
        {**_LLAMA, "intermediate_size": 14336, "num_key_value_heads": 8, "max_position_embeddings": 32768},
    ),
}
"""The sizes of the paper's four backbones as their authors publish them, so that a plan needs no hub."""

BYTES = {"nf4": 0.5 + 1 / 64 + 4 / (64 * 256), "int8": 1.0}
"""Of one quantised weight: four bits, a byte for each 64, a float32 for each 256 of those; int8's, its scales apart."""


@dataclass(frozen=True)
class Sizes:
    """How many weights there are, and the bytes they take.

    Args:
        trained, frozen: numbers of weights.
        trained_bytes, frozen_bytes: what they take where they are kept, quantised where they are.
    """

    trained: int
    frozen: int
    trained_bytes: int
    frozen_bytes: int


@dataclass(frozen=True, eq=False)
class Blueprint:
    """What an encoder will be, from its config; no weight of it is read.

    Args:
        name: as `encoders.load` takes it.
        origin: where its sizes come from, for people.
        config: of the trunk, and the number format of its weights in `dtype`.
        reads_on: whether it is a language model.
        tokenizer: None where none is at hand.
        template, quantization, adapter: as `encoders.load` takes them.
    """

    name: str
    origin: str
    config: PreTrainedConfig
    dtype: torch.dtype
    reads_on: bool
    tokenizer: Any
    template: str
    quantization: Quantization
    adapter: LoRA | None

    def trunk(self, depth: int | None = None) -> PreTrainedModel:
        """The model with its adapter, of shapes alone (device meta); of its lowest layers where `depth` says so."""
        config = type(self.config).from_dict(self.config.to_dict())
        if depth is not None:
            config.num_hidden_layers = depth
            if getattr(config, "layer_types", None):
                config.layer_types = list(config.layer_types)[:depth]
        kind: Any = MODEL_MAPPING.get(type(config), None)
        pooler = {"add_pooling_layer": False} if kind and "add_pooling_layer" in signature(kind).parameters else {}
        with torch.device("meta"):
            model: PreTrainedModel = AutoModel.from_config(config, dtype=self.dtype, **pooler)
            if self.adapter is not None:
                adapters.attach(model, self.adapter, base=self.name, revision="", seed=0)
        return model

    @property
    def depth(self) -> int:
        """Layers of the trunk."""
        return int(self.config.num_hidden_layers)

    @property
    def width(self) -> int:
        """Dimensions of an embedding, projections behind the trunk left aside."""
        return int(self.config.hidden_size)

    def sizes(self) -> Sizes:
        """Count the weights of the whole model, which is built for it without any."""
        trunk = self.trunk()
        trained = adapters.trained(trunk)
        packed = {id(module.weight) for module in stored(trunk)} if self.quantization != "none" else set()
        frozen = [weights for weights in trunk.parameters() if not weights.requires_grad]
        taken = sum(
            weights.numel() * (BYTES[self.quantization] if id(weights) in packed else weights.element_size())
            for weights in frozen
        )
        return Sizes(
            trained=sum(weights.numel() for weights in trained.values()),
            frozen=sum(weights.numel() for weights in frozen),
            trained_bytes=sum(weights.numel() * weights.element_size() for weights in trained.values()),
            frozen_bytes=round(taken),
        )

    def overhead(self) -> int:
        """Tokens of the template and of what begins a text; guessed by its words where no tokenizer is at hand."""
        if self.tokenizer is None:
            return 1 + len(re.findall(r"\w+|[^\w\s]", fill(self.template, ""))) if self.template else 2
        if self.reads_on:
            return templates.overhead(self.tokenizer, self.template)
        return len(self.tokenizer("")["input_ids"])

    def lengths(self, texts: Sequence[str], max_tokens: int) -> np.ndarray | None:
        """Tokens of each text as training reads it, or None without a tokenizer."""
        if self.tokenizer is None:
            return None
        limit = min(max_tokens, masked.positions(self.config) - (self.overhead() if self.reads_on else 0))
        if self.reads_on:
            rows, _ = templates.rows(self.tokenizer, texts, self.template, limit)
        else:
            encoder = Encoder(self.trunk(1), self.tokenizer, Settings(self.name, "", "mean", limit))
            rows, _ = encoder._rows(texts, limit)
        return np.fromiter(map(len, rows), np.int64, len(rows))


def stored(trunk: nn.Module) -> list[nn.Linear]:
    """The linear layers whose weights stay as they are: those that quantisation packs."""
    return [module for module in trunk.modules() if isinstance(module, nn.Linear) and not module.weight.requires_grad]


def blueprint(
    name: str,
    *,
    prompt: str | None = None,
    adapter: LoRA | Mapping[str, Any] | None = None,
    quantization: Quantization | None = None,
    cuda: bool = False,
    **other: Any,
) -> Blueprint:
    """What `encoders.load` would load, without its weights.

    Args:
        name, prompt, adapter, quantization: as `encoders.load` takes them; what else it takes changes no size.
        cuda: whether it goes to a GPU, where a language model's weights are bfloat16.

    Raises: ValueError for a name whose config is neither embedded nor in a folder, a package, a cache or on the hub.
    """
    folder = Path(name) if Path(name).is_dir() else None
    saved = read_settings(folder) if folder else {}
    lora = LoRA.of(adapter) or (LoRA.saved(folder) if folder else None)
    config, tokenizer, origin = _found(saved.get("base", name) if lora else name)
    reads_on = name in tiny_causal.FAMILIES or name in BACKBONES or causal.reads_on(config)
    stored_as = quantization or saved.get("quantization", "none")
    half = reads_on and (cuda or stored_as != "none")
    return Blueprint(
        name=name,
        origin=origin,
        config=config,
        dtype=torch.bfloat16 if half else torch.float32,
        reads_on=reads_on,
        tokenizer=tokenizer,
        template=saved.get("template", "") if prompt is None else prompt,
        quantization=stored_as,
        adapter=lora,
    )


def _found(name: str) -> tuple[PreTrainedConfig, Any, str]:
    """Config, tokenizer where one is at hand, and where the config was found."""
    if name in tiny_causal.FAMILIES:
        kind, sizes, *_ = tiny_causal.FAMILIES[name]
        letters = tiny_causal.tokenizer(name)
        return kind(vocab_size=len(letters), **sizes), letters, "random weights of this lab"
    if name == "tiny":
        letters = tiny.tokenizer(masked.TINY_TOKENS)
        with torch.device("meta"):
            config: BertConfig = tiny.trunk(len(letters), masked.TINY_TOKENS, 0).config
        return config, letters, "random weights of this lab"
    if name in BACKBONES:
        kind, sizes = BACKBONES[name]
        return kind(**sizes), _tokenizer(name), "published sizes, embedded here"
    place = masked._package_folder() if name == "minilm" else name
    try:
        config = AutoConfig.from_pretrained(place, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(masked.unknown(name, error)) from error
    origin = "its package" if name == "minilm" else "its folder" if Path(place).is_dir() else "the hub or its cache"
    return config, _tokenizer(place), origin


def _tokenizer(place: str) -> Any:
    try:
        return AutoTokenizer.from_pretrained(place, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError):
        return None
