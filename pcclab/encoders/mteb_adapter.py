"""Any encoder of this lab as a model that `mteb.evaluate` takes; mteb itself is imported when it is first needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from pcclab.encoders.base import Encoder

BLANK = "."
"""What stands for a text without words, as SentEval has it; mteb's retrieval corpora hold such texts."""


class MTEBEncoder:
    """An encoder behind mteb's `EncoderProtocol`: text in batches in, embeddings out, compared by cosine.

    Args:
        encoder: of this lab; it is used as it is, with its own batching.
        name: for mteb's records, as "organisation/model"; None makes one of the encoder's own name.

    mteb's prompts are for models that follow instructions and are left out: an encoder with a prompt of its own adds
    that one to every text.

    Source: mteb 2 (package `mteb`, an optional extra of this lab: ``pip install 'pcclab[mteb]'``).
    Relations: `Encoder.to_sentence_transformer` writes a folder that mteb reads without this lab.
    """

    def __init__(self, encoder: Encoder, name: str | None = None) -> None:
        word = re.sub(r"[^\w.-]+", "-", encoder.settings.name.rstrip("/").rsplit("/", 1)[-1]).strip("-")
        self.encoder, self.name = encoder, name or f"pcclab/{word}"
        if self.name.count("/") != 1:
            raise ValueError(f"name={self.name!r}: mteb wants 'organisation/model', such as 'pcclab/stage-2'")

    @cached_property
    def mteb_model_meta(self) -> Any:
        """mteb's record of the model; its revision is the weights' fingerprint: no result is taken for another's.

        Raises: ModuleNotFoundError where mteb is not installed.
        """
        from mteb.models.model_meta import ModelMeta, ScoringFunction

        facts = {
            "name": self.name,
            "revision": self.encoder.fingerprint[:16],
            "n_parameters": sum(weights.numel() for weights in self.encoder.trunk.parameters()),
            "max_tokens": self.encoder.settings.max_tokens,
            "embed_dim": self.encoder.dim,
            "similarity_fn_name": ScoringFunction.COSINE,
            "framework": ["PyTorch"],
            "use_instructions": False,
        }
        return ModelMeta.create_empty(overwrites=facts)

    def encode(self, inputs: Iterable[Mapping[str, Sequence[str]]], **rest: Any) -> np.ndarray:
        """Embeddings of all texts of the batches, (texts, dim), in order.

        Args:
            inputs: batches that hold `text`, as mteb's loaders give them.
            **rest: the task, split and prompt type that mteb names, and its own batching: none changes an embedding.

        Raises: ValueError for a batch without text, such as one of images.
        """
        texts: list[str] = []
        for batch in inputs:
            if "text" not in batch:
                raise ValueError(f"a batch holds {', '.join(batch)} and no text: this encoder reads text alone")
            texts += [text if text.strip() else BLANK for text in batch["text"]]
        return self.encoder.encode(texts, progress=None if rest.get("show_progress_bar") is False else "encoding")

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines of every embedding of the first with every one of the second."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Cosines of embeddings pair by pair."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(embeddings1, embeddings2)
