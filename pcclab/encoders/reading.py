"""A language model's weights and tokenizer as they are read: quantised, with attention both ways, or made at random."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from transformers import AutoConfig, AutoTokenizer, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from pcclab.encoders import adapters, interchange, masked, tiny_causal

if TYPE_CHECKING:
    from pcclab.encoders.causal import CausalSettings

BOTH_WAYS = "use_bidirectional_attention"


def base(
    chosen: CausalSettings, seed: int, compute: torch.dtype, device: torch.device
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    """The weights under the adapter, quantised where that is asked for, their tokenizer, and their revision."""
    if chosen.base in tiny_causal.FAMILIES:
        number = int(chosen.revision.removeprefix("seed ")) if chosen.revision.startswith("seed ") else seed
        with tempfile.TemporaryDirectory() as scratch:
            letters = tiny_causal.tokenizer(chosen.base)
            tiny_causal.trunk(chosen.base, len(letters), number).save_pretrained(scratch)
            letters.save_pretrained(scratch)
            trunk, tokenizer, _ = _read(scratch, chosen, compute, device)
        return trunk, tokenizer, f"seed {number}"
    return _read(chosen.base, chosen, compute, device)


def _read(
    place: str, chosen: CausalSettings, compute: torch.dtype, device: torch.device
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase, str]:
    revision = None if Path(place).is_dir() else chosen.revision or None
    try:
        config = AutoConfig.from_pretrained(place, revision=revision, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(place, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(masked.unknown(chosen.base, error)) from error
    _both_ways(config, chosen)
    if not tokenizer.is_fast:
        raise ValueError(f"{chosen.base} has no fast tokenizer, which tells where a token lies: convert it first")
    # Masks here come from lengths, never from ids, so any token will do; one that no text gives is the least surprise.
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.unk_token or tokenizer.eos_token or tokenizer.bos_token
    tokenizer.padding_side = "right"
    stored = adapters.quantized(chosen.quantization, compute)
    more: dict[str, Any] = {"quantization_config": stored, "device_map": {"": device}} if stored else {}
    trunk = masked.weights(place, chosen.base, revision, config, compute, **more)
    if stored:
        adapters.keep_unpacked(trunk)
    else:
        torch.nn.Module.to(trunk, device=device)
    return trunk, tokenizer, interchange.commit(place, revision)


def _both_ways(config: PreTrainedConfig, chosen: CausalSettings) -> None:
    if chosen.attention == "bidirectional" and not hasattr(config, BOTH_WAYS):
        raise ValueError(
            f"attention='bidirectional' is not offered for {config.model_type} by this version of transformers: "
            "Gemma 3 has it; leave attention causal"
        )
    if hasattr(config, BOTH_WAYS):
        setattr(config, BOTH_WAYS, chosen.attention == "bidirectional")
