"""The cells of a table before they are one: rounded, escaped, the best of each part and the second marked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

Bold = Literal["none", "max", "min"]


class Marks(NamedTuple):
    """How a cell is marked, as templates: the best, the second, one in grey, small text; and what escapes signs."""

    strong: str
    under: str
    grey: str
    small: str
    escape: Callable[[str], str]


class Asked(NamedTuple):
    """What is asked of a table: the options of `tables.markdown`."""

    decimals: int
    bold: Bold
    second: bool
    columns: Iterable[Hashable] | None
    missing: str
    grey: pd.DataFrame | None
    beside: pd.DataFrame | None
    within: str | None


def printed(
    frame: pd.DataFrame, asked: Asked, marks: Marks
) -> tuple[list[str], list[tuple[str, list[list[str]]]], list[bool]]:
    """Head, parts (heading and body) and which columns hold numbers, every cell rounded, escaped and marked."""
    if frame.empty:
        raise ValueError(
            f"a table of {len(frame)} rows and {frame.shape[1]} columns says nothing: give at least one of each"
        )
    decimals, bold, within = asked.decimals, asked.bold, asked.within
    if decimals < 0 or bold not in ("none", "max", "min"):
        raise ValueError(f"decimals={decimals}, bold={bold!r}: decimals from 0, bold one of 'none', 'max', 'min'")
    if within is not None and (frame.index.nlevels < 2 or frame.index.names[0] != within):
        raise ValueError(
            f"within={within!r}: the index has {list(frame.index.names)}, its first of two levels parts it"
        )
    numeric = [all(map(_counts, frame.iloc[:, place])) for place in range(frame.shape[1])]
    known = {name for name, number in zip(frame.columns, numeric, strict=True) if number}
    chosen = known if asked.columns is None else set(asked.columns)
    if absent := chosen - set(frame.columns):
        raise ValueError(
            f"no column {sorted(map(str, absent))} to look for the best in: there are {list(frame.columns)}"
        )
    pale, small = _at(frame, asked.grey, "grey"), _at(frame, asked.beside, "beside")
    labels = [label if isinstance(label, tuple) else (label,) for label in frame.index]
    parts: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        parts.setdefault(label[0] if within else "", []).append(row)
    printed = {(row, -1): marks.escape(_joined(label[1:] if within else label)) for row, label in enumerate(labels)}
    for place, name in enumerate(frame.columns):
        values = frame.iloc[:, place].tolist()
        for rows in parts.values():
            marked = bold if name in chosen else "none"
            texts = _best([values[row] for row in rows], asked._replace(bold=marked), marks)
            for row, text in zip(rows, texts, strict=True):
                if (row, place) in small:
                    text += " " + marks.small.format(marks.escape(str(small[row, place])))
                printed[row, place] = marks.grey.format(text) if (row, place) in pale else text
    names = frame.index.names[1:] if within else frame.index.names
    head = [marks.escape(_joined(names)), *(marks.escape(_joined(name)) for name in frame.columns)]
    cells = range(-1, frame.shape[1])
    bodies = [
        (marks.escape(str(part)), [[printed[row, at] for at in cells] for row in rows]) for part, rows in parts.items()
    ]
    return head, bodies, numeric


def _best(values: list[Any], asked: Asked, marks: Marks) -> list[str]:
    """The values as they are printed, the best and the second marked; equal ones, as printed, share a mark."""
    texts = [asked.missing if _missing(value) else _text(value, asked.decimals) for value in values]
    known = [(value, text) for value, text in zip(values, texts, strict=True) if not _missing(value)]
    ranked: list[str] = []
    if asked.bold != "none":
        ordered = sorted(known, key=lambda pair: pair[0], reverse=asked.bold == "max")
        ranked = list(dict.fromkeys(text for _, text in ordered))
    shown = dict(zip(ranked, (marks.strong, marks.under), strict=False))
    if not asked.second:
        shown.pop(ranked[1] if len(ranked) > 1 else "", None)
    return [shown.get(text, "{}").format(marks.escape(text)) for text in texts]


def _at(frame: pd.DataFrame, marked: pd.DataFrame | None, name: str) -> dict[tuple[int, int], Any]:
    """Places of the cells that another frame of the same rows and columns speaks of, and what it says."""
    if marked is None:
        return {}
    strange = [label for ours, theirs in ((frame.index, marked.index), (frame.columns, marked.columns))
               for label in theirs if label not in ours]  # fmt: skip
    if strange:
        raise ValueError(f"{name} has {strange[0]!r}, the table has not: give it the table's rows and columns")
    whole = marked.astype(object).reindex(index=frame.index, columns=frame.columns).to_numpy()
    return {
        (row, place): cell
        for row, line in enumerate(whole.tolist())
        for place, cell in enumerate(line)
        if not _missing(cell) and cell not in (False, "")
    }


def _text(value: Any, decimals: int) -> str:
    if isinstance(value, Real) and not isinstance(value, Integral):
        # Adding 0 turns the -0 that rounding leaves into 0.
        return f"{round(float(value), decimals) + 0.0:.{decimals}f}"
    return str(value)


def _missing(value: Any) -> bool:
    if isinstance(value, Real):
        return not math.isfinite(value)
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def _counts(value: Any) -> bool:
    return _missing(value) or (isinstance(value, Real) and not isinstance(value, bool))


def _joined(label: Any) -> str:
    parts = label if isinstance(label, tuple | list) else [label]
    return " / ".join(str(part) for part in parts if not _missing(part) and str(part))


def escaping(marks: dict[str, str]) -> Callable[[str], str]:
    """A function that puts for each sign what stands for it, and one space for any white space."""
    pattern = re.compile("|".join(map(re.escape, marks)))
    return lambda text: pattern.sub(lambda hit: marks[hit[0]], " ".join(text.split()))
