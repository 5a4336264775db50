r"""A data frame as a table of a paper (LaTeX, booktabs) or of a page (Markdown): rounded, escaped, the best in bold.

A cell without a finite value prints `undefined`: a NaN or an empty cell could be read as a score.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

Bold = Literal["none", "max", "min"]
UNDEFINED = "undefined"

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"}
_LATEX |= {">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"} | {
    mark: f"\\{mark}" for mark in "&%$#_{}"
}
_MARKDOWN = {mark: f"\\{mark}" for mark in r"\`*_|<[]"}


def markdown(
    frame: pd.DataFrame,
    *,
    decimals: int = 2,
    bold: Bold = "none",
    columns: Iterable[Hashable] | None = None,
    missing: str = UNDEFINED,
    grey: pd.DataFrame | None = None,
) -> str:
    """The frame as a Markdown table: index at the left, numbers aligned right.

    Args:
        frame: text and numbers; several levels of an index or of columns are joined with " / ".
        decimals: places of every number that is not an integer by its type.
        bold: which number of a column stands out, the largest, the smallest or none; equal ones (as printed) all do.
        columns: the columns `bold` looks at; None for all numeric ones.
        missing: what a cell without a finite value prints, such as "not given" where a paper has no figure.
        grey: true where a cell is printed in grey, such as a difference that the data cannot tell from none; rows and
            columns as in `frame`, those it leaves out stay black.

    Raises: ValueError for a column that is not there, negative decimals, an empty frame, or a row or column of `grey`
        that the frame has not.

    >>> import pandas as pd
    >>> scores = pd.DataFrame({"STS12": [72.371, 73.2], "SICK-R": [77.2, float("nan")]}, index=["before", "after"])
    >>> print(markdown(scores, bold="max"))
    |  | STS12 | SICK-R |
    |:---|---:|---:|
    | before | 72.37 | **77.20** |
    | after | **73.20** | undefined |
    """
    marks = _Marks(lambda text: f"**{text}**", '<span style="color:gray">{}</span>'.format, _escape(_MARKDOWN))
    head, body, numeric = _printed(frame, decimals, bold, columns, missing, grey, marks)
    rule = "|".join(["", ":---", *("---:" if number else ":---" for number in numeric), ""])
    lines = (f"| {' | '.join(cells)} |" for cells in body)
    return "\n".join([f"| {' | '.join(head)} |", rule, *lines])


def latex(
    frame: pd.DataFrame,
    *,
    decimals: int = 2,
    bold: Bold = "none",
    columns: Iterable[Hashable] | None = None,
    missing: str = UNDEFINED,
    grey: pd.DataFrame | None = None,
    caption: str | None = None,
    label: str | None = None,
) -> str:
    r"""The frame as a booktabs `tabular`, cells, index and columns escaped; needs \usepackage{booktabs} and T1 fonts.

    A table with grey cells needs \usepackage{xcolor} too.

    Args:
        frame, decimals, bold, columns, missing, grey: as in `markdown`.
        caption: wraps the tabular into a table float with this caption, taken as it is so that it may hold LaTeX.
        label: the float's label; only with a caption.

    Raises: ValueError as `markdown`, and for a label without a caption.

    >>> import pandas as pd
    >>> print(latex(pd.DataFrame({"R_s": [86.61, 87.5]}, index=["mid-rank", "50 % of n"]), decimals=1, bold="max"))
    \begin{tabular}{lr}
    \toprule
     & R\_s \\
    \midrule
    mid-rank & 86.6 \\
    50 \% of n & \textbf{87.5} \\
    \bottomrule
    \end{tabular}
    """
    if label is not None and caption is None:
        raise ValueError(f"label={label!r} without a caption: a bare tabular carries no label, give a caption too")
    marks = _Marks(r"\textbf{{{}}}".format, r"\textcolor{{gray}}{{{}}}".format, _escape(_LATEX))
    head, body, numeric = _printed(frame, decimals, bold, columns, missing, grey, marks)
    lines = [" & ".join(cells) + r" \\" for cells in [head, *body]]
    align = "l" + "".join("r" if number else "l" for number in numeric)
    rows = [
        rf"\begin{{tabular}}{{{align}}}",
        r"\toprule",
        lines[0],
        r"\midrule",
        *lines[1:],
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if caption is not None:
        end = [rf"\caption{{{caption}}}", *([rf"\label{{{label}}}"] if label else []), r"\end{table}"]
        rows = [r"\begin{table}", r"\centering", *rows, *end]
    return "\n".join(rows)


class _Marks(NamedTuple):
    """How a cell is marked: the best one, one in grey, and what stands for signs that mean something."""

    strong: Callable[[str], str]
    grey: Callable[[str], str]
    escape: Callable[[str], str]


def interval(value: float, low: float, high: float, *, decimals: int = 2) -> str:
    """A difference with the ends of its interval, as a cell; without an end the difference alone.

    Args:
        value: the difference.
        low: one end; NaN where there is none.
        high: the other.
        decimals: places after the point.

    >>> interval(5.137, 4.9, 5.377), interval(-0.2, math.nan, math.nan), interval(math.nan, 0, 1)
    ('+5.14 [+4.90, +5.38]', '-0.20', 'undefined')
    """
    if not math.isfinite(value):
        return UNDEFINED
    ends = f" [{low:+.{decimals}f}, {high:+.{decimals}f}]" if math.isfinite(low) and math.isfinite(high) else ""
    return f"{value:+.{decimals}f}{ends}"


def _printed(
    frame: pd.DataFrame,
    decimals: int,
    bold: Bold,
    columns: Iterable[Hashable] | None,
    missing: str,
    grey: pd.DataFrame | None,
    marks: _Marks,
) -> tuple[list[str], list[list[str]], list[bool]]:
    """Head, body and which columns hold numbers, every cell rounded, escaped and marked."""
    if frame.empty:
        raise ValueError(
            f"a table of {len(frame)} rows and {frame.shape[1]} columns says nothing: give at least one of each"
        )
    if decimals < 0 or bold not in ("none", "max", "min"):
        raise ValueError(f"decimals={decimals}, bold={bold!r}: decimals from 0, bold one of 'none', 'max', 'min'")
    numeric = [all(map(_counts, frame.iloc[:, place])) for place in range(frame.shape[1])]
    chosen = (
        {name for name, number in zip(frame.columns, numeric, strict=True) if number}
        if columns is None
        else set(columns)
    )
    if absent := chosen - set(frame.columns):
        raise ValueError(
            f"no column {sorted(map(str, absent))} to look for the best in: there are {list(frame.columns)}"
        )

    pale = _pale(frame, grey)
    printed = []
    for place, name in enumerate(frame.columns):
        values = frame.iloc[:, place].tolist()
        texts = [missing if _missing(value) else _text(value, decimals) for value in values]
        known = [value for value in values if not _missing(value)]
        best = None
        if bold != "none" and name in chosen and known:
            best = _text(max(known) if bold == "max" else min(known), decimals)
        marked = [marks.strong(marks.escape(text)) if text == best else marks.escape(text) for text in texts]
        printed.append([marks.grey(text) if (row, place) in pale else text for row, text in enumerate(marked)])
    index = [marks.escape(_joined(label)) for label in frame.index]
    head = [marks.escape(_joined(frame.index.names)), *(marks.escape(_joined(name)) for name in frame.columns)]
    return head, [list(cells) for cells in zip(index, *printed, strict=True)], numeric


def _pale(frame: pd.DataFrame, grey: pd.DataFrame | None) -> set[tuple[int, int]]:
    """Places of the grey cells."""
    if grey is None:
        return set()
    strange = [label for ours, theirs in ((frame.index, grey.index), (frame.columns, grey.columns))
               for label in theirs if label not in ours]  # fmt: skip
    if strange:
        raise ValueError(f"grey has {strange[0]!r}, the table has not: give it the table's rows and columns")
    whole = grey.reindex(index=frame.index, columns=frame.columns, fill_value=False).to_numpy(dtype=bool)
    return {(int(row), int(place)) for row, place in zip(*whole.nonzero(), strict=True)}


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


def _escape(marks: dict[str, str]) -> Callable[[str], str]:
    pattern = re.compile("|".join(map(re.escape, marks)))
    return lambda text: pattern.sub(lambda hit: marks[hit[0]], " ".join(text.split()))
