"""What a batch of a table offers a loss, by the names that losses give their arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from pcclab.data import ScoredPairs, Sentences, Triplets

if TYPE_CHECKING:
    from pcclab.training.teachers import Teachers

Trainable = ScoredPairs | Triplets | Sentences

POSITIVE = 0.8
"""From this share of the scale on (4 of 0..5) InfoNCE takes a rated pair for a positive one. Source: STS-Regression,
section 4.2."""

COMPARING = {"similarity", "features", "first", "student", "anchor"}
"""Quantities whose losses compare the rows of a batch, so that one row alone is nothing to them."""


def positive_from(pairs: ScoredPairs) -> float:
    """The rating from which on a pair is a positive one."""
    low, high = pairs.scale
    return low + POSITIVE * (high - low)


@dataclass(frozen=True)
class Batch:
    """Some rows of a table and their embeddings, from which the quantities a loss asks for are made."""

    table: Any
    rows: Sequence[int]
    sides: Sequence[Tensor]
    head: nn.Module | None = None
    teachers: Teachers | None = None

    @cached_property
    def gold(self) -> Tensor:
        return torch.as_tensor(self.table.gold[list(self.rows)], dtype=self.wide[0].dtype, device=self.wide[0].device)

    @cached_property
    def wide(self) -> list[Tensor]:
        """Cosines of half-precision embeddings are taken in float32: eight bits cannot order them."""
        return [side.float() if side.dtype in (torch.float16, torch.bfloat16) else side for side in self.sides]

    @cached_property
    def units(self) -> list[Tensor]:
        return [functional.normalize(side, dim=-1) for side in self.wide]

    @cached_property
    def positives(self) -> Tensor:
        return self.gold >= positive_from(self.table)

    @cached_property
    def judged(self) -> Tensor:
        assert self.head is not None
        judged: Tensor = self.head(*self.wide)
        return judged

    @cached_property
    def label(self) -> Tensor:
        """Number of the head's level nearest to each rating."""
        levels = torch.as_tensor(getattr(self.head, "levels", None), dtype=self.gold.dtype, device=self.gold.device)
        return (self.gold[:, None] - levels).abs().argmin(1)

    @cached_property
    def lists(self) -> Tensor:
        return self.units[0] @ self.units[1].T


OFFERS: dict[type, dict[str, Callable[[Batch], Tensor]]] = {
    ScoredPairs: {
        "gold": lambda batch: batch.gold,
        "similarity": lambda batch: functional.cosine_similarity(batch.wide[0], batch.wide[1], dim=-1),
        "first": lambda batch: batch.wide[0],
        "second": lambda batch: batch.wide[1],
        "features": lambda batch: batch.units[0] * batch.units[1],
        "prediction": lambda batch: batch.judged,
        "logits": lambda batch: batch.judged,
        "label": lambda batch: batch.label,
        "anchor": lambda batch: batch.wide[0][batch.positives],
        "positive": lambda batch: batch.wide[1][batch.positives],
    },
    Triplets: {
        "anchor": lambda batch: batch.sides[0],
        "positive": lambda batch: batch.sides[1],
        "negative": lambda batch: batch.sides[2],
    },
    # The same text twice: two dropout masks make two views of it.
    Sentences: {
        "anchor": lambda batch: batch.sides[0],
        "positive": lambda batch: batch.sides[1],
        "first": lambda batch: batch.lists,
        "second": lambda batch: batch.lists.T,
        "student": lambda batch: batch.lists,
        "teacher": lambda batch: batch.teachers.similarity(batch.rows).to(batch.lists),  # type: ignore[union-attr]
    },
}
COLUMNS: dict[type, Callable[[Any], tuple[tuple[str, ...], ...]]] = {
    ScoredPairs: lambda table: (table.first, table.second),
    Triplets: lambda table: (table.anchor, table.positive, table.negative),
    Sentences: lambda table: (table.text, table.text),
}
