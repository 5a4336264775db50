"""Templates that put a sentence into a few words of their own, so that a model says it in one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

SLOT = "[X]"
TEMPLATES = {
    "EOL": 'This sentence : "[X]" means in one word:"',
    "SUM": 'This sentence : "[X]" can be summarized as',
    "STH": 'This sentence : "[X]" means something',
}
"""Source: Pcc-tuning, table 3."""


def fill(template: str, sentence: str) -> str:
    """The sentence in the template's slot.

    Args:
        template: a name of `TEMPLATES`, or a text with one slot ``[X]``.
        sentence: goes in as it is, quotes and brackets included.

    Raises: ValueError for a template without just one slot.

    >>> fill("SUM", "A cat sleeps.")
    'This sentence : "A cat sleeps." can be summarized as'
    """
    text = TEMPLATES.get(template, template)
    if text.count(SLOT) != 1:
        raise ValueError(f"template {template!r} has {text.count(SLOT)} slots {SLOT}: give one of "
                         f"{', '.join(TEMPLATES)}, or a text with one slot")  # fmt: skip
    before, after = text.split(SLOT)
    return before + sentence + after


class Prompted:
    """An encoder that reads every sentence inside a template, and pools as it always does.

    For a bidirectional encoder the template is so many words more; a language model that is read at the template's
    last token is another matter.
    """

    def __init__(self, encoder: Any, template: str) -> None:
        fill(template, "")
        self.encoder, self.template = encoder, template

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        """Embeddings of the filled templates."""
        vectors: np.ndarray = self.encoder.encode([fill(self.template, sentence) for sentence in sentences])
        return vectors

    @property
    def fingerprint(self) -> str:
        """sha256 of the encoder's own and the template."""
        return hashlib.sha256(json.dumps([self.encoder.fingerprint, fill(self.template, SLOT)]).encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.encoder} with {self.template}"
