"""Language models that read left to right (OPT, LLaMA, Mistral, Qwen, Gemma): a prompt's last token is the embedding.

The base model alone, without its head over the vocabulary, whose logits nobody here reads; of all hidden states the
last layer's alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    PreTrainedConfig,
    PreTrainedTokenizerBase,
)

from pcclab.encoders import adapters, masked, reading, templates, tiny_causal
from pcclab.encoders.adapters import LoRA, Quantization
from pcclab.encoders.base import Encoder, Settings, read_settings
from pcclab.encoders.pooling import Pooling, pool
from pcclab.encoders.prompts import SLOT, fill

Attention = Literal["causal", "bidirectional"]
POOLED = ("last", "mean")


@dataclass(frozen=True)
class CausalSettings(Settings):
    """What a language model's encoder is beside its weights; `max_tokens` counts the sentence, not the template.

    Args:
        template: around each sentence, a name of `prompts.TEMPLATES` or a text with one slot; empty for none.
        attention: causal as trained, or both ways where the library offers it for the family.
        quantization: storage of the weights under the adapter.
        adapter: fields of its `LoRA`; None without one.
        base: what the weights under the adapter were loaded as.
    """

    template: str
    attention: Attention
    quantization: Quantization
    adapter: dict[str, Any] | None
    base: str


class CausalEncoder(Encoder):
    """A language model with tokenizer, template and adapter; the same interface as every `Encoder`."""

    settings: CausalSettings

    def __repr__(self) -> str:
        s = self.settings
        rank = f", LoRA of rank {s.adapter['rank']}" if s.adapter else ""
        stored = "" if s.quantization == "none" else f", {s.quantization}"
        return f"{super().__repr__()[:-1]}, template {s.template or 'none'}{rank}{stored})"

    def _rows(self, texts: Sequence[str], limit: int) -> tuple[list[list[int]], list[int]]:
        return templates.rows(self.tokenizer, texts, self.settings.template, limit)

    def embed(self, ids: Int[Tensor, "texts tokens"], mask: Int[Tensor, "texts tokens"]) -> Float[Tensor, "texts dim"]:
        """Embeddings of one padded batch, differentiable; padding may lie on either side."""
        if self.settings.attention == "causal" and bool(mask[:, 0].all()):
            # What is padded on the right no token before it can see: no mask, and the attention's fastest kernel.
            told = {}
        else:
            told = {"attention_mask": mask, "position_ids": (mask.cumsum(1) - 1).clamp(min=0)}
        hidden = self.trunk(input_ids=ids, use_cache=False, **told).last_hidden_state
        return pool(self.settings.pooling, (hidden,), mask)

    @property
    def _identity(self) -> list[Any]:
        s = self.settings
        template = fill(s.template, SLOT) if s.template else ""
        stored = [] if s.quantization == "none" else [s.base, s.revision, s.quantization]
        return [*super()._identity, template, s.attention, *stored]

    def _tensors(self) -> Mapping[str, Tensor]:
        # Quantised weights are packed anew at their first use on a CPU: they are known by name, not by their bytes.
        return super()._tensors() if self.settings.quantization == "none" else adapters.trained(self.trunk)

    def merged(self) -> CausalEncoder:
        """The encoder with its adapter added into the weights: one model, to be saved whole.

        Raises: ValueError without an adapter, or on quantised weights, which would round the sum once more.
        """
        if self.settings.adapter is None or self.settings.quantization != "none":
            raise ValueError(
                f"{self}: only an adapter on weights that are not quantised can be merged; load it with "
                "quantization='none' first"
            )
        adapters.merge(self.trunk)
        return CausalEncoder(self.trunk, self.tokenizer, replace(self.settings, adapter=None))

    def write_weights(self, folder: Path) -> None:
        """The adapter alone where there is one."""
        if self.settings.adapter is None and self.settings.quantization != "none":
            raise ValueError(f"{self} has nothing that was trained: keep its name instead of saving it")
        if self.settings.adapter is None:
            super().write_weights(folder)
        else:
            adapters.save(self.trunk, folder)

    def _for_others(self) -> tuple[PreTrainedTokenizerBase, int]:
        # Others cut what the tokenizer gives at its end, where the template ends: no text is to be cut before the
        # model's last position. Without a template they cut as this lab does.
        room, template = masked.positions(self.trunk.config), self.settings.template
        begin = templates.overhead(self.tokenizer, template)
        return templates.carrying(self.tokenizer, template), room if template else self.settings.max_tokens + begin

    def read_weights(self, folder: Path) -> None:
        if self.settings.adapter is None:
            super().read_weights(folder)
        else:
            adapters.restore(self.trunk, folder)


def is_causal(name: str, revision: str | None) -> bool:
    """Whether a name is a language model's that reads left to right; False where nothing can be told from it."""
    if name in tiny_causal.FAMILIES:
        return True
    if Path(name).is_dir() and read_settings(Path(name)):
        return "template" in read_settings(Path(name))
    try:
        config = AutoConfig.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, KeyError):
        return False
    return reads_on(config)


def reads_on(config: PreTrainedConfig) -> bool:
    """Whether a config is a language model's that reads left to right."""
    return type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and type(config) not in MODEL_FOR_MASKED_LM_MAPPING


def load(
    name: str,
    *,
    pooling: Pooling | None,
    prompt: str | None,
    max_tokens: int | None,
    adapter: LoRA | Mapping[str, Any] | None,
    quantization: Quantization | None,
    attention: Attention | None,
    dtype: torch.dtype | None,
    device: torch.device,
    seed: int,
    revision: str | None,
) -> CausalEncoder:
    """Load a language model as an encoder; the public door is `pcclab.encoders.load`, which documents the arguments."""
    folder = Path(name) if Path(name).is_dir() else None
    saved = masked.declared(folder, pooling) if folder else {}
    lora, before = LoRA.of(adapter), LoRA.saved(folder) if folder else None
    if lora and before and lora != before:
        raise ValueError(
            f"{name} holds {before} and adapter={lora} was asked for: go on with its own, or load its base"
        )
    chosen = CausalSettings(
        name=name,
        revision=revision or saved.get("revision", ""),
        pooling=pooling or saved.get("pooling", "last"),
        max_tokens=max_tokens or saved.get("max_tokens", 0),
        template=saved.get("template", "") if prompt is None else prompt,
        attention=attention or saved.get("attention", "causal"),
        quantization=quantization or saved.get("quantization", "none"),
        adapter=adapters.told(lora or before),
        base=saved.get("base", name) if before else name,
    )
    _check(chosen)
    if saved.get("dense"):
        raise ValueError(f"{name} has dense layers behind a language model, which are not read: export it without them")
    compute = dtype or (torch.bfloat16 if device.type == "cuda" or chosen.quantization != "none" else torch.float32)
    trunk, tokenizer, found = reading.base(chosen, seed, compute, device)
    tokenizer, inside = templates.carried(tokenizer)
    if inside and prompt is None:
        chosen = replace(chosen, template=inside)
    around = templates.overhead(tokenizer, chosen.template)
    room = masked.positions(trunk.config) - around
    if "name" not in saved and chosen.max_tokens:  # another tool's folder, whose limit counts all tokens
        chosen = replace(chosen, max_tokens=max(chosen.max_tokens - around, 1))
    # What was asked for is held to the limit; what a folder says was said of its own template.
    limit = masked.within(max_tokens, room, name) if max_tokens else min(chosen.max_tokens or 512, room)
    chosen = replace(chosen, revision=found, max_tokens=limit)
    if made := lora or before:
        adapters.attach(trunk, made, base=chosen.base, revision=found, seed=seed)
    encoder = CausalEncoder(trunk.eval(), tokenizer, chosen)
    if before and folder:
        encoder.read_weights(folder)
    return encoder


def _check(chosen: CausalSettings) -> None:
    if chosen.pooling not in POOLED:
        raise ValueError(
            f"pooling={chosen.pooling!r} says nothing of a model that reads left to right: take last, mean"
        )
    if chosen.template:
        fill(chosen.template, "")
    if chosen.attention not in ("causal", "bidirectional"):
        raise ValueError(f"attention={chosen.attention!r}: choose causal or bidirectional")
    adapters.quantized(chosen.quantization, torch.float32)
