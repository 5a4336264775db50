r"""A data frame as a table of a paper (LaTeX, booktabs) or of a page (Markdown): rounded, escaped, the best marked.

A cell without a finite value prints `undefined`: a NaN or an empty cell could be read as a score.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from pcclab.cells import Asked, Bold, Marks, escaping, printed

if TYPE_CHECKING:
    import pandas as pd

UNDEFINED = "undefined"

_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}"}
_LATEX |= {"±": r"$\pm$", "–": "--", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"} | {
    mark: f"\\{mark}" for mark in "&%$#_{}"
}
_MARKDOWN = {mark: f"\\{mark}" for mark in r"\`*_|<[]"}


def markdown(
    frame: pd.DataFrame,
    *,
    decimals: int = 2,
    bold: Bold = "none",
    second: bool = False,
    columns: Iterable[Hashable] | None = None,
    missing: str = UNDEFINED,
    grey: pd.DataFrame | None = None,
    beside: pd.DataFrame | None = None,
    within: str | None = None,
) -> str:
    """The frame as a Markdown table: index at the left, numbers aligned right.

    Args:
        frame: text and numbers; several levels of an index or of columns are joined with " / ".
        decimals: places of every number that is not an integer by its type.
        bold: which number of a column stands out, the largest, the smallest or none; equal ones (as printed) all do.
        second: whether the next best is underlined too.
        columns: the columns `bold` looks at; None for all numeric ones.
        missing: what a cell without a finite value prints, such as "not given" where a paper has no figure.
        grey: true where a cell is printed in grey, such as a difference that the data cannot tell from none; rows and
            columns as in `frame`, those it leaves out stay black.
        beside: what stands small after a number, such as its interval; rows and columns as in `frame`.
        within: the outermost level of the index, whose parts each have a heading and a best of their own.

    Raises: ValueError for a column or level that is not there, negative decimals, an empty frame, or a row or column of
        `grey` or `beside` that the frame has not.

    >>> import pandas as pd
    >>> scores = pd.DataFrame({"STS12": [72.371, 73.2], "SICK-R": [77.2, float("nan")]}, index=["before", "after"])
    >>> print(markdown(scores, bold="max"))
    |  | STS12 | SICK-R |
    |:---|---:|---:|
    | before | 72.37 | **77.20** |
    | after | **73.20** | undefined |
    """
    marks = Marks("**{}**", "<u>{}</u>", '<span style="color:gray">{}</span>', "<small>{}</small>", escaping(_MARKDOWN))
    asked = Asked(decimals, bold, second, columns, missing, grey, beside, within)
    head, parts, numeric = printed(frame, asked, marks)
    rule = "|".join(["", ":---", *("---:" if number else ":---" for number in numeric), ""])
    lines = []
    for heading, body in parts:
        titled = [[f"*{heading}*", *[""] * len(numeric)]] if heading else []
        lines += [f"| {' | '.join(cells)} |" for cells in [*titled, *body]]
    return "\n".join([f"| {' | '.join(head)} |", rule, *lines])


def latex(
    frame: pd.DataFrame,
    *,
    decimals: int = 2,
    bold: Bold = "none",
    second: bool = False,
    columns: Iterable[Hashable] | None = None,
    missing: str = UNDEFINED,
    grey: pd.DataFrame | None = None,
    beside: pd.DataFrame | None = None,
    within: str | None = None,
    caption: str | None = None,
    label: str | None = None,
    wide: bool = False,
) -> str:
    r"""The frame as a booktabs `tabular`, cells, index and columns escaped; needs \usepackage{booktabs} and T1 fonts.

    A table with grey cells needs \usepackage{xcolor} too.

    Args:
        frame, decimals, bold, second, columns, missing, grey, beside, within: as in `markdown`.
        caption: wraps the tabular into a table float with this caption, taken as it is so that it may hold LaTeX.
        label: the float's label; only with a caption.
        wide: whether the float takes both columns of the page; its type is smaller then.

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
    small, grey_text = r"{{\tiny {}}}", r"\textcolor{{gray}}{{{}}}"
    marks = Marks(r"\textbf{{{}}}", r"\underline{{{}}}", grey_text, small, escaping(_LATEX))
    asked = Asked(decimals, bold, second, columns, missing, grey, beside, within)
    head, parts, numeric = printed(frame, asked, marks)
    align = "l" + "".join("r" if number else "l" for number in numeric)
    rows = [rf"\begin{{tabular}}{{{align}}}", r"\toprule", " & ".join(head) + r" \\"]
    for heading, body in parts:
        rows += [r"\midrule", *([rf"\multicolumn{{{len(head)}}}{{l}}{{\textit{{{heading}}}}} \\"] if heading else [])]
        rows += [" & ".join(cells) + r" \\" for cells in body]
    rows += [r"\bottomrule", r"\end{tabular}"]
    if caption is not None:
        kind = "table*" if wide else "table"
        end = [rf"\caption{{{caption}}}", *([rf"\label{{{label}}}"] if label else []), rf"\end{{{kind}}}"]
        # As small as it takes eight columns of scores with their intervals to fit into the text.
        size = [r"\footnotesize\setlength{\tabcolsep}{2pt}"] if wide else [r"\small\setlength{\tabcolsep}{3pt}"]
        rows = [rf"\begin{{{kind}}}", r"\centering", *size, *rows, *end]
    return "\n".join(rows)


def escaped(text: str) -> str:
    r"""Plain text as LaTeX, for a caption.

    Args:
        text: of any signs.

    >>> escaped("50 % & 80.05 ± 0.13")
    '50 \\% \\& 80.05 $\\pm$ 0.13'
    """
    return escaping(_LATEX)(text)


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
