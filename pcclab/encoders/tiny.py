"""A small random encoder that needs no file: for tests and for trying a workflow."""

from __future__ import annotations

import string

import torch
from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import WordPiece
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer(max_tokens: int) -> PreTrainedTokenizerFast:
    """A lower-casing tokenizer whose pieces are all pairs and singles of letters and digits, and punctuation."""
    letters = string.ascii_lowercase + string.digits
    pieces = [*letters, *(a + b for a in letters for b in letters)]
    vocabulary = SPECIAL + pieces + ["##" + piece for piece in pieces] + list(string.punctuation)
    core = Tokenizer(WordPiece({piece: i for i, piece in enumerate(vocabulary)}, unk_token="[UNK]"))
    core.normalizer = normalizers.BertNormalizer(lowercase=True)
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", SPECIAL.index("[CLS]")), ("[SEP]", SPECIAL.index("[SEP]"))]
    )
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    return PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=max_tokens, **names)


def trunk(vocabulary: int, max_tokens: int, seed: int) -> BertModel:
    """A two-layer BERT of 64 dimensions with random weights; the caller's random state is left alone."""
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=max_tokens,
        pad_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return BertModel(config, add_pooling_layer=False)
