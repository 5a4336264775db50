"""The typed tables every corpus becomes: columns of text and numbers that know where they came from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pcclab.data.table import Provenance, Source, Table

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

__all__ = [
    "NLI_LABELS",
    "NLI_RATINGS",
    "LabelledTexts",
    "NLIPairs",
    "Provenance",
    "ScoredPairs",
    "Sentences",
    "Source",
    "Table",
    "Triplets",
]

NLI_LABELS = ("entailment", "neutral", "contradiction")

NLI_RATINGS: Mapping[str, float] = MappingProxyType({"contradiction": 0.0, "neutral": 1.0, "entailment": 2.0})
"""The rating that STS-Regression gives each class: how much of the premise the hypothesis keeps."""


@dataclass(frozen=True, eq=False)
class ScoredPairs(Table):
    """Sentence pairs with a human rating of their similarity.

    Args:
        first: left sentences.
        second: right sentences.
        gold: ratings, float64 of shape (pairs,), finite and inside `scale`.
        subset: name of each row's subset, "" where there is none; empty means "" for all.
        scale: lowest and highest rating possible.

    Raises:
        ValueError: lengths differ, no rows, a text is empty, or a rating is not finite or outside the scale.

    Example:
        >>> pairs = ScoredPairs(("a cat", "a dog"), ("a kitten", "a stone"), [4.2, 0.4])
        >>> len(pairs), pairs.select(pairs.gold >= 4).second
        (2, ('a kitten',))
    """

    _texts: ClassVar[tuple[str, ...]] = ("first", "second")
    _others: ClassVar[tuple[str, ...]] = ("gold", "subset")

    first: tuple[str, ...]
    second: tuple[str, ...]
    gold: NDArray[np.float64]
    subset: tuple[str, ...] = ()
    scale: tuple[float, float] = (0.0, 5.0)

    def _finish(self) -> None:
        gold = np.array(self.gold, dtype=np.float64)
        gold.setflags(write=False)
        low, high = self.scale
        object.__setattr__(self, "gold", gold)
        object.__setattr__(self, "subset", tuple(self.subset) or ("",) * len(self.first))
        object.__setattr__(self, "scale", (float(low), float(high)))
        if gold.ndim != 1:
            raise ValueError(f"{self._title()}: gold has shape {gold.shape}, and one number a row is needed")
        for wrong, why in ((~np.isfinite(gold), "not finite"), ((gold < low) | (gold > high), "outside the scale")):
            if wrong.any():
                row = int(np.argmax(wrong))
                raise ValueError(
                    f"{self._title()}: gold of row {row} is {gold[row]:g}, {why} {low:g}..{high:g} "
                    f"({int(wrong.sum()):,} such rows): mend or drop them, or give the right scale"
                )

    @classmethod
    def _joined(cls, tables: Sequence[ScoredPairs]) -> dict[str, Any]:
        scales = {table.scale for table in tables}
        if len(scales) > 1:
            raise ValueError(f"ScoredPairs.concat: scales {sorted(scales)} differ: bring them to one with rescaled()")
        return {}

    def subsets(self) -> dict[str, ScoredPairs]:
        """The rows of each subset, in the order in which the subsets first occur."""
        names = np.array(self.subset, dtype=object)
        return {name: self.select(names == name) for name in dict.fromkeys(self.subset)}

    def rescaled(self, low: float, high: float) -> ScoredPairs:
        """The same pairs with the scale mapped linearly onto low..high."""
        old_low, old_high = self.scale
        gold = low + (high - low) * (self.gold - old_low) / (old_high - old_low)
        told = replace(self, gold=gold, scale=(low, high))
        return told.with_note(f"{old_low:g}..{old_high:g} mapped to {low:g}..{high:g}")

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        *,
        first: str = "first",
        second: str = "second",
        gold: str = "gold",
        subset: str | None = None,
        scale: tuple[float, float] = (0.0, 5.0),
        provenance: tuple[Provenance, ...] = (),
    ) -> ScoredPairs:
        """Pairs from the named columns of a frame; a missing column is an error that lists the columns there are."""
        wanted = [first, second, gold] + ([subset] if subset is not None else [])
        if missing := [name for name in wanted if name not in frame.columns]:
            there = ", ".join(map(str, frame.columns))
            raise ValueError(
                f"no column {missing[0]!r} in the frame: it has {there}; name yours with first=, second=, gold="
            )
        try:
            values = frame[gold].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {gold!r} is not numeric: {error}") from error
        names = tuple(map(str, frame[subset])) if subset is not None else ()
        return cls(tuple(frame[first]), tuple(frame[second]), values, names, scale, provenance=provenance)


@dataclass(frozen=True, eq=False)
class Triplets(Table):
    """An anchor, a sentence that means the same or less, and one that contradicts it: one of each a row."""

    _texts: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")

    anchor: tuple[str, ...]
    positive: tuple[str, ...]
    negative: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NLIPairs(Table):
    """Premise and hypothesis, and "entailment", "neutral" or "contradiction" as the label of each row."""

    _texts: ClassVar[tuple[str, ...]] = ("premise", "hypothesis")
    _others: ClassVar[tuple[str, ...]] = ("label",)

    premise: tuple[str, ...]
    hypothesis: tuple[str, ...]
    label: tuple[str, ...]

    def _finish(self) -> None:
        object.__setattr__(self, "label", tuple(self.label))
        for row, label in enumerate(self.label):
            if label not in NLI_LABELS:
                raise ValueError(
                    f"{self._title()}: label of row {row} is {label!r}, not one of {', '.join(NLI_LABELS)}"
                )

    def rated(self, labels: Mapping[str, float] = NLI_RATINGS, *, spacing: float = 1.0) -> ScoredPairs:
        """The same pairs with a number in place of each class, so that a regression can train on them.

        Args:
            labels: the number of each of the three classes; their least and greatest become the scale.
            spacing: distance between two classes whose numbers differ by 1; every number is multiplied by it.

        Raises:
            ValueError: a class is missing or unknown, a number or the spacing is not finite, the spacing is not above
                0, or all numbers are the same.

        Source: STS-Regression, section 4.1: contradiction 0, neutral 1, entailment 2.

        Example:
            >>> pairs = NLIPairs(("a dog", "a dog"), ("an animal", "no dog"), ("entailment", "contradiction"))
            >>> pairs.rated(spacing=2.5).gold.tolist(), pairs.rated(spacing=2.5).scale
            ([5.0, 0.0], (0.0, 5.0))
        """
        for names, told in ((set(labels) - set(NLI_LABELS), "unknown"), (set(NLI_LABELS) - set(labels), "missing")):
            if names:
                raise ValueError(
                    f"labels: {told} class {min(names, key=str)!r}: give each of {', '.join(NLI_LABELS)} a number"
                )
        if not (math.isfinite(spacing) and spacing > 0):
            raise ValueError(f"spacing is {spacing}: give a finite number above 0")
        ratings = {name: spacing * float(labels[name]) for name in NLI_LABELS}
        if not all(map(math.isfinite, ratings.values())) or len(set(ratings.values())) == 1:
            raise ValueError(f"labels are {dict(labels)}: give finite numbers that are not all the same")
        told = ", ".join(f"{name} {ratings[name]:g}" for name in sorted(ratings, key=ratings.__getitem__))
        scale = (min(ratings.values()), max(ratings.values()))
        gold = np.array([ratings[label] for label in self.label])
        pairs = ScoredPairs(self.premise, self.hypothesis, gold, scale=scale, provenance=self.provenance)
        return pairs.with_note(f"rated {told}")


@dataclass(frozen=True, eq=False)
class Sentences(Table):
    """Plain sentences, one a row."""

    _texts: ClassVar[tuple[str, ...]] = ("text",)

    text: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LabelledTexts(Table):
    """Texts, or pairs of texts where `second` is given, with a class each; `classes` names them by number."""

    _texts: ClassVar[tuple[str, ...]] = ("text", "second")
    _others: ClassVar[tuple[str, ...]] = ("label",)

    text: tuple[str, ...]
    second: tuple[str, ...] | None
    label: NDArray[np.int64]
    classes: tuple[str, ...]

    def _finish(self) -> None:
        label = np.array(self.label)
        if label.ndim != 1 or (label.size and not np.issubdtype(label.dtype, np.integer)):
            raise ValueError(
                f"{self._title()}: label is {label.dtype} of shape {label.shape}, and one integer a row is needed"
            )
        label = label.astype(np.int64)
        label.setflags(write=False)
        object.__setattr__(self, "label", label)
        object.__setattr__(self, "classes", tuple(self.classes))
        wrong = (label < 0) | (label >= len(self.classes))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{self._title()}: label of row {row} is {label[row]}, and classes go 0..{len(self.classes) - 1}"
            )
