"""Small random language models of the families people use, which need no file: for tests and for trying a recipe."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from transformers import (
    AutoModel,
    Gemma3TextConfig,
    LlamaConfig,
    MistralConfig,
    OPTConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

TOKENS = 512
WIDTH = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": TOKENS}
GATED = {**WIDTH, "intermediate_size": 128, "num_key_value_heads": 2}
FAMILIES: dict[str, tuple[Callable[..., Any], dict[str, Any], str, str]] = {
    # config, its sizes, the token a text begins with, the padding token; as in the family's own tokenizers
    "tiny-llama": (LlamaConfig, GATED, "<s>", ""),
    "tiny-mistral": (MistralConfig, {**GATED, "sliding_window": 256}, "<s>", ""),
    "tiny-qwen": (Qwen2Config, GATED, "", "<|endoftext|>"),
    "tiny-gemma": (Gemma3TextConfig, {**GATED, "head_dim": 16}, "<bos>", "<pad>"),
    "tiny-opt": (OPTConfig, {**WIDTH, "ffn_dim": 128, "word_embed_proj_dim": 64}, "</s>", "<pad>"),
}


def tokenizer(family: str) -> PreTrainedTokenizerFast:
    """A byte-level tokenizer in the family's manner; its id 0 is a real token, an exclamation mark."""
    _, _, begin, padding = FAMILIES[family]
    letters = string.ascii_lowercase
    single = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [(a, b) for a in letters for b in letters] + [("Ġ", a) for a in letters] + [(".", '"'), (":", '"')]
    pieces = [*single, *(a + b for a, b in merges)]
    core = Tokenizer(BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=merges))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = list(dict.fromkeys(token for token in (begin, "</s>", padding) if token))
    core.add_special_tokens([AddedToken(token, special=True) for token in special])
    if begin:
        at = core.token_to_id(begin)
        core.post_processor = processors.TemplateProcessing(single=f"{begin} $A", special_tokens=[(begin, at)])
    names = {"bos_token": begin, "eos_token": "</s>", "pad_token": padding}
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=TOKENS, **{name: token for name, token in names.items() if token}
    )


def trunk(family: str, vocabulary: int, seed: int) -> PreTrainedModel:
    """Two layers of 64 dimensions with random weights; the caller's random state is left alone."""
    config, sizes, *_ = FAMILIES[family]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: PreTrainedModel = AutoModel.from_config(config(vocab_size=vocabulary, **sizes))
    return model
