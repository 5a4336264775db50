"""Where a table of texts meets a loss: which texts a step embeds, and what the loss is given of them.

A kind of table offers named quantities, such as the similarities of rated pairs, and a loss takes those its positional
arguments name. So a sum of losses is one objective too: each takes what it needs of the same embeddings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from pcclab import losses
from pcclab.data import NLIPairs, ScoredPairs
from pcclab.training.quantities import COLUMNS, COMPARING, OFFERS, Batch, Trainable, positive_from

if TYPE_CHECKING:
    from pcclab.training.teachers import Teachers

Loss = Callable[..., Tensor]


@dataclass(frozen=True)
class Objective:
    """A loss, or a weighted sum of losses, bound to a table.

    Args:
        name: of the loss, as logs and records show it.
        table: what the rows are taken from.
        least: rows without which the loss is undefined.
        terms: weight, function of the arguments, and the names of these, of each summand.
        head: judges pairs of embeddings for losses that ask for a prediction; trained with the trunk.
        teachers: whose similarities the ranking losses follow.
    """

    name: str
    table: Any
    least: int
    terms: tuple[tuple[float, Loss, tuple[str, ...]], ...]
    head: nn.Module | None = None
    teachers: Teachers | None = None

    @property
    def columns(self) -> tuple[tuple[str, ...], ...]:
        """Texts of each side, all of the table's length."""
        return COLUMNS[type(self.table)](self.table)

    def __len__(self) -> int:
        return len(self.table)

    def loss(self, rows: Sequence[int]) -> Callable[[Tensor], Tensor]:
        """The loss of these rows, as a function of all their embeddings: first side, then second, and so on."""

        def evaluate(embeddings: Tensor) -> Tensor:
            batch = Batch(self.table, rows, embeddings.split(len(rows)), self.head, self.teachers)
            offers = OFFERS[type(self.table)]
            parts = []
            for weight, function, names in self.terms:
                given = [offers[name](batch) for name in names]
                # A batch of rated pairs may hold no two positives: that term has nothing to say then.
                if names[0] == "anchor" and len(given[0]) < self.least:
                    parts.append(embeddings.sum() * 0)
                else:
                    parts.append(weight * function(*given))
            return torch.stack(parts).sum() if len(parts) > 1 else parts[0]

        return evaluate


def bind(
    table: Trainable,
    loss: str | Loss,
    options: Mapping[str, Any] | None = None,
    *,
    head: nn.Module | None = None,
    teachers: Teachers | None = None,
) -> Objective:
    """Bind a loss to the table it can be computed on.

    Args:
        table: `ScoredPairs` for losses on similarities, features, embeddings or a head's judgement of rated pairs (and
            for `info_nce`, which takes those rated 4 of 5 or higher), `Triplets` for `info_nce` with hard negatives,
            `Sentences` for two views of each and for the ranking losses.
        loss: a name of `pcclab.losses.CATALOGUE`, a sum of such names as `pcclab.losses.parse` reads it, or a function
            whose positional arguments are named as in `pcclab.losses`.
        options: keyword arguments of a single loss, such as its temperature; a sum holds its own. A loss that knows the
            ends of the labels (`label_range`, `scale`) is given those of the table.
        head: for losses on ``prediction`` or ``logits``.
        teachers: for losses on ``teacher``.

    Raises: ValueError for an unknown loss or option, a table of the wrong kind, a head or teachers that are missing or
        do not fit, or too few rows.
    """
    if isinstance(table, NLIPairs):
        raise ValueError("NLIPairs hold labels, no ratings: give table.rated(), which maps them to 0, 1 and 2")
    if type(table) not in OFFERS:
        raise ValueError(f"{type(table).__name__} cannot be trained on: give ScoredPairs, Triplets or Sentences")
    if teachers is not None:
        teachers.check(COLUMNS[type(table)](table)[0])
    summands = losses.parse(loss) if isinstance(loss, str) else (losses.Term(_name(loss)),)
    if options and len(summands) > 1:
        raise ValueError(f"options {sorted(options)} beside a sum of losses: write each loss's own in parentheses")
    terms, told, compares = [], [], False
    for term in summands:
        function = losses.by_name(term.name) if isinstance(loss, str) else loss
        given = {**term.options, **(options or {})}
        names, call = _bound(term.name, function, given, table, head, teachers)
        terms.append((term.weight, call, names))
        told.append(str(term))
        comparing = bool(COMPARING & set(names))
        compares = compares or comparing
        if len(table) < 2 and comparing:
            raise ValueError(f"{len(table)} row(s): {term.name} compares the rows of a batch, give at least 2")
        if "gold" in names and comparing and np.ptp(table.gold) == 0:  # type: ignore[union-attr]
            raise ValueError(f"all {len(table)} gold ratings are {table.gold[0]:g}: there is no order to learn")  # type: ignore[union-attr]
        if isinstance(table, ScoredPairs) and "anchor" in names and (table.gold >= positive_from(table)).sum() < 2:
            raise ValueError(
                f"fewer than 2 pairs are rated {positive_from(table):g} or higher: {term.name} has no positives"
            )
    return Objective(" + ".join(told), table, 2 if compares else 1, tuple(terms), head, teachers)


def _bound(
    name: str, function: Loss, options: dict[str, Any], table: Any, head: Any, teachers: Any
) -> tuple[tuple[str, ...], Loss]:
    """The quantities a loss takes from this table, and the loss with its options."""
    arguments = inspect.signature(function).parameters.values()
    taken = [a.name for a in arguments if a.kind is a.KEYWORD_ONLY]
    if unknown := [option for option in options if option not in taken]:
        raise ValueError(f"{name} has no option {unknown[0]!r}: it takes {', '.join(taken) or 'none'}")
    places = [a for a in arguments if a.kind in (a.POSITIONAL_ONLY, a.POSITIONAL_OR_KEYWORD)]
    offered = OFFERS[type(table)]
    given = tuple(a.name for a in places if a.name in offered or a.default is a.empty)
    if not _holds(type(table), given):
        asked = ", ".join(a.name for a in places)
        fits = [kind.__name__ for kind in OFFERS if _holds(kind, given)]
        mend = f"give {' or '.join(fits)}" if fits else "name its arguments as pcclab.losses does"
        raise ValueError(f"{name} takes ({asked}), which {type(table).__name__} does not hold: {mend}")
    if {"prediction", "logits"} & set(given):
        _check_head(name, "logits" in given, head)
    if "teacher" in given and teachers is None:
        raise ValueError(f"{name} follows a teacher: give teachers=, as pcclab.training.teachers.gather makes them")
    known: dict[str, Any] = {}
    if isinstance(table, ScoredPairs):
        known = {"label_range": table.scale, "positive_from": positive_from(table)}
        known |= {"scale": table.scale[1]} if table.scale[0] == 0 else {}
    fixed = getattr(function, "keywords", {})  # what a functools.partial has settled already
    found = {name: value for name, value in known.items() if name in taken and name not in fixed}
    return given, partial(function, **{**found, **options})


def _holds(kind: type, asked: tuple[str, ...]) -> bool:
    """Whether a table of that kind offers all that is asked; without ratings, first and second are lists."""
    lists_of_pairs = kind is ScoredPairs and set(asked) == {"first", "second"}
    return bool(asked) and set(asked) <= set(OFFERS[kind]) and not lists_of_pairs


def _check_head(name: str, classifies: bool, head: Any) -> None:
    outputs = 1 if head is None else int(getattr(head, "outputs", 1))
    if head is None or (classifies and outputs < 2) or (not classifies and outputs != 1):
        asked = "one output a class and its levels" if classifies else "one output"
        told = "no head was given" if head is None else f"this head has {outputs} output(s)"
        raise ValueError(f"{name} judges pairs by a head with {asked}, and {told}: give head=SiameseHead(...)")


def _name(function: Any) -> str:
    function = getattr(function, "func", function)  # what a functools.partial wraps
    return getattr(function, "__name__", type(function).__name__)
