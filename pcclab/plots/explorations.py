"""Figures under the sliders: small tables a moved value makes anew, drawn at a printed width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcclab.plots.ceilings import _FORMULAS
from pcclab.plots.style import GREY, HALO, LOOKS, PALE, TEXT, checked, styled


def _panels(
    height: float, edges: Sequence[tuple[float, float]], *, bottom: float = 0.42, top: float = 0.2
) -> list[Axes]:
    """Axes side by side on a page as wide as the text, at fixed places: they stand still while a value moves.

    Args:
        height: of the page in inches; bottom and top are what it leaves below and above the axes.
        edges: left and right edge of each, in inches.
    """
    page = Figure(figsize=(TEXT, height))
    low, tall = bottom / height, (height - bottom - top) / height
    return [page.add_axes((left / TEXT, low, (right - left) / TEXT, tall)) for left, right in edges]


@styled
def scorer_ceilings(curve: pd.DataFrame, points: pd.DataFrame) -> Axes:
    """A scorer of two levels as it hardens, beside what it and the best scorers of few levels reach.

    Args:
        curve: columns gold and score, one row a pair.
        points: columns scorer, formula ("midrank" or "paper") and spearman, from above.

    Returns: the left one of two Axes.
    """
    left, right = _panels(1.9, [(0.42, 2.3), (3.75, TEXT - 0.05)])
    curve = checked(curve, "gold", "score").sort_values("gold", kind="stable")
    look = LOOKS[0]
    left.plot(curve["gold"], curve["score"], linestyle="none", marker=look.marker, color=look.color, markersize=2.5,
              markeredgewidth=0, markevery=max(1, len(curve) // 400))  # fmt: skip
    left.set(xlabel="gold", ylabel="score", ylim=(-0.05, 1.05))
    points = checked(points, "scorer", "formula", "spearman")
    scorers = list(points["scorer"].unique())
    lowest = np.floor(10 * min(0.85, points["spearman"].min())) / 10
    for formula, part in points.groupby("formula", sort=False):
        look, name = _FORMULAS[str(formula)]
        paper = formula == "paper"
        rows = [scorers.index(scorer) for scorer in part["scorer"]]
        right.plot(part["spearman"], rows, look.marker, color=look.color, markerfacecolor="white" if paper else None,
                   markersize=4.5, label=name, zorder=2 - paper)  # fmt: skip
        for row, value in zip(rows, part["spearman"], strict=True):
            # Equation 2 never gives the smaller one, so its label has the right side to itself.
            right.annotate(f"{value:.4f}", (value, row), (5 if paper else -5, 0), textcoords="offset points",
                           ha="left" if paper else "right", va="center_baseline", fontsize=7, color=look.color,
                           path_effects=HALO)  # fmt: skip
    right.hlines(range(len(scorers)), lowest - 0.16 * (1 - lowest), 1, color=PALE, linewidth=0.6, zorder=0)
    right.axvline(1, color=GREY, linewidth=0.6, zorder=0)
    right.set_yticks(range(len(scorers)), scorers)
    right.tick_params(axis="y", length=0)
    right.spines["left"].set_visible(False)
    right.set(
        xlabel=r"Spearman's $\rho$",
        xlim=(lowest - 0.16 * (1 - lowest), 1 + 0.12 * (1 - lowest)),
        ylim=(len(scorers) - 0.4, -0.6),
    )
    right.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return left  # type: ignore[no-any-return]
