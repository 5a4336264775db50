"""Where a table of texts meets a loss: which texts a step embeds, and how the loss is given their embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from pcclab import losses
from pcclab.data import ScoredPairs, Triplets

Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class Objective:
    """A loss bound to a table.

    Args:
        name: of the loss, as logs show it.
        columns: texts of each side, all of the table's length.
        gold: rating of each row in the table's scale, or None.
        least: rows without which the loss is undefined.
        call: from the embeddings of each side (rows, dim) and the rows' ratings to the loss.
    """

    name: str
    columns: tuple[tuple[str, ...], ...]
    gold: np.ndarray | None
    least: int
    call: Callable[[Sequence[Tensor], Tensor | None], Tensor]

    def __len__(self) -> int:
        return len(self.columns[0])

    def loss(self, rows: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The loss of these rows, as a function of all their embeddings: first side, then second, and so on."""

        def evaluate(embeddings: Tensor) -> Tensor:
            gold = None
            if self.gold is not None:
                wide = torch.promote_types(embeddings.dtype, torch.float32)
                gold = torch.as_tensor(self.gold[list(rows)], dtype=wide, device=embeddings.device)
            return self.call(embeddings.split(len(rows)), gold)

        return evaluate


def bind(table: ScoredPairs | Triplets, loss: str | Loss, options: Mapping[str, Any] | None = None) -> Objective:
    """Bind a loss to the table it can be computed on.

    Args:
        table: rated pairs for a loss on ``(similarity, gold)``, triplets for one on ``(anchor, positive, negative)``.
        loss: a name of `pcclab.losses.CATALOGUE`, or a function with such arguments.
        options: keyword arguments of the loss, such as its temperature.

    Raises: ValueError for an unknown loss or option, a table of the wrong kind, or fewer than two rows.
    """
    function = losses.by_name(loss) if isinstance(loss, str) else loss
    name = loss if isinstance(loss, str) else _name(function)
    arguments = inspect.signature(function).parameters.values()
    taken = [a.name for a in arguments if a.kind is a.KEYWORD_ONLY]
    if unknown := [option for option in options or {} if option not in taken]:
        raise ValueError(f"{name} has no option {unknown[0]!r}: it takes {', '.join(taken) or 'none'}")
    given = tuple(a.name for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD))
    if given not in _KINDS:
        raise ValueError(
            f"{name} takes {given}: a loss takes " + " or ".join(f"({', '.join(kind)})" for kind in _KINDS)
        )
    kind, build = _KINDS[given]
    if not isinstance(table, kind):
        raise ValueError(
            f"{name} takes ({', '.join(given)}), which {type(table).__name__} does not hold: give {kind.__name__}"
        )
    if len(table) < 2:
        raise ValueError(f"{len(table)} row(s): {name} compares the rows of a batch, give at least 2")
    return build(table, partial(function, **options or {}), name)


def _scored(table: ScoredPairs, loss: Loss, name: str) -> Objective:
    def call(sides: Sequence[Tensor], gold: Tensor | None) -> Tensor:
        first, second = _wide(sides)
        return loss(functional.cosine_similarity(first, second, dim=-1), gold)

    if np.ptp(table.gold) == 0:
        raise ValueError(f"all {len(table)} gold ratings are {table.gold[0]:g}: there is no order to learn")
    return Objective(name, (table.first, table.second), table.gold, 2, call)


def _triplets(table: Triplets, loss: Loss, name: str) -> Objective:
    def call(sides: Sequence[Tensor], gold: Tensor | None) -> Tensor:
        return loss(*sides)

    return Objective(name, (table.anchor, table.positive, table.negative), None, 2, call)


def _wide(sides: Sequence[Tensor]) -> list[Tensor]:
    """Cosines of half-precision embeddings are taken in float32: eight bits cannot order them."""
    return [side.float() if side.dtype in (torch.float16, torch.bfloat16) else side for side in sides]


def _name(function: Loss) -> str:
    function = getattr(function, "func", function)  # what a functools.partial wraps
    return getattr(function, "__name__", type(function).__name__)


_KINDS: dict[tuple[str, ...], tuple[type, Callable[[Any, Loss, str], Objective]]] = {
    ("similarity", "gold"): (ScoredPairs, _scored),
    ("anchor", "positive", "negative"): (Triplets, _triplets),
}
