"""Figures of the theory: where the ceiling comes from, and how a scorer falls onto it."""

from __future__ import annotations

from itertools import cycle
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullLocator

from pcclab.ceiling import MIDRANK_LIMIT, PAPER_LIMIT
from pcclab.plots.style import COLUMN, GREY, HALO, LOOKS, PALE, axes, checked, named, styled

_FORMULAS = {"paper": (LOOKS[1], "equation 2"), "midrank": (LOOKS[0], "mid-ranks")}


@styled
def ceiling_over_share(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Spearman of the optimal two-level scorer over the share of pairs it calls similar; the maxima are marked.

    Args:
        frame: columns share (0 to 1), formula ("paper" or "midrank") and spearman.
    """
    ax = axes(ax, COLUMN, 2.0)
    for formula, part in checked(frame, "share", "spearman").groupby("formula", sort=False):
        look, name = _FORMULAS[str(formula)]
        part = part.sort_values("share")
        ax.plot(part["share"], part["spearman"], linestyle=look.line, color=look.color)
        best = part.loc[part["spearman"].idxmax()]
        ax.plot(best["share"], best["spearman"], look.marker, color=look.color)
        above = formula == "paper"
        place, shift = ("bottom", (0, 5)) if above else ("top", (0, -6))
        text = f"{name}: {best['spearman']:.4g}"
        ax.annotate(text, (best["share"], best["spearman"]), shift, textcoords="offset points", ha="center", va=place,
                    color=look.color)  # fmt: skip
    ax.set(xlabel="share of pairs called similar", ylabel=r"Spearman's $\rho$", xlim=(0, 1), ylim=(0, 1))
    return ax


@styled
def ceiling_levels(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Spearman of m equal levels over m.

    Args:
        frame: columns levels, formula ("paper" or "midrank") and spearman.
    """
    ax = axes(ax, COLUMN, 2.0)
    for formula, part in checked(frame, "levels", "spearman").groupby("formula", sort=False):
        look, name = _FORMULAS[str(formula)]
        hollow: Any = {"markerfacecolor": "white", "markersize": 5.5, "zorder": 1} if formula == "paper" else {}
        ax.plot(part["levels"], part["spearman"], linestyle=look.line, marker=look.marker, color=look.color, label=name,
                **hollow)  # fmt: skip
    ax.axhline(1, color=PALE, linewidth=0.6, zorder=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="equal levels $m$", ylabel=r"Spearman's $\rho$")
    ax.legend(loc="lower right")
    return ax


@styled
def gold_ceilings(frame: pd.DataFrame, ax: Axes | None = None, *, title: str = "") -> Axes:
    """The exact two-level ceiling of each task's own gold values against the two limits.

    Args:
        frame: columns task and spearman.
        title: whose gold it is, above the axes.
    """
    frame = checked(frame, "task", "spearman")
    ax = axes(ax, COLUMN, 0.55 + 0.17 * len(frame) + (0.2 if title else 0))
    ax.set_title(title, pad=13)
    rows = np.arange(len(frame))
    ax.plot(frame["spearman"], rows, LOOKS[0].marker, color=LOOKS[0].color)
    for row, value in zip(rows, frame["spearman"], strict=True):
        ax.annotate(
            f"{value:.4f}",
            (value, row),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7,
            path_effects=HALO,
        )
    for value, formula in ((MIDRANK_LIMIT, "midrank"), (PAPER_LIMIT, "paper")):
        look, name = _FORMULAS[formula]
        ax.axvline(value, color=look.color, linestyle=look.line, linewidth=0.8, zorder=0)
        ax.annotate(f"{name} {value:.3f}", (value, 1), (0, 2), xycoords=("data", "axes fraction"), fontsize=7,
                    textcoords="offset points", ha="center", va="bottom", color=look.color)  # fmt: skip
    low, high = min(frame["spearman"].min(), MIDRANK_LIMIT), max(frame["spearman"].max(), PAPER_LIMIT)
    ax.set(xlabel=r"best Spearman $\rho$ of two levels", xlim=(low - 0.15 * (high - low), high + 0.3 * (high - low)))
    ax.set_yticks(rows, [named(task) for task in frame["task"]])
    ax.set_ylim(len(frame) - 0.5, -0.5)
    return ax


@styled
def hardening(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Spearman of a sigmoid over the gold as it hardens to a step, against the two ceilings.

    Args:
        frame: columns hardness, spearman and, for several curves, decimals (places the scores were rounded to).
    """
    ax = axes(ax, COLUMN, 2.0)
    frame = checked(frame, "hardness", "spearman")
    parts = frame.groupby("decimals", sort=False) if "decimals" in frame else [("", frame)]
    for look, (decimals, part) in zip(cycle(LOOKS[::2]), parts, strict=False):
        ax.plot(part["hardness"], part["spearman"], linestyle=look.line, color=look.color, label=f"{decimals} decimals")
    ceiling_lines(ax, 1)
    ax.set(xlabel="hardness of the sigmoid", ylabel=r"Spearman's $\rho$", xscale="log")
    ax.set_ylim(min(0.84, frame["spearman"].min() - 0.02), 1.005)
    ax.xaxis.set_minor_locator(NullLocator())
    if "decimals" in frame:
        ax.legend(loc="upper right", title="scores rounded to", title_fontsize=7)
    return ax


@styled
def scorer_scatter(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Scores against the gold for scorers of several hardnesses.

    Args:
        frame: columns gold, score and hardness; about ten markers a curve are drawn, the line through all pairs.
    """
    ax = axes(ax, COLUMN, 2.0)
    parts = checked(frame, "gold", "score", "hardness").groupby("hardness")
    for look, (hardness, part) in zip(cycle(LOOKS), parts, strict=False):
        part = part.sort_values("gold")
        ax.plot(part["gold"], part["score"], linestyle=look.line, color=look.color, marker=look.marker, markersize=3,
                markevery=max(len(part) // 10, 1), label=f"$h = {hardness:g}$")  # fmt: skip
    ax.set(xlabel="gold", ylabel="score", ylim=(-0.04, 1.04))
    ax.legend(loc="upper left")
    return ax


def ceiling_lines(ax: Axes, scale: float, *, names: Literal["at the lines", "above"] = "at the lines") -> None:
    """The two limits as horizontal lines, named beside them, or above the axes where points may cover a name."""
    for formula, value, below in (("paper", PAPER_LIMIT, False), ("midrank", MIDRANK_LIMIT, True)):
        look, name = _FORMULAS[formula]
        text = f"ceiling by {name}: " + (f"{scale * value:.1f}" if scale > 1 else f"{value:.3f}")
        ax.axhline(scale * value, color=GREY, linestyle=look.line, linewidth=0.7, zorder=0, label=text)
        if names == "at the lines":
            ax.annotate(text, (0, scale * value), (2, -2 if below else 2), fontsize=7, path_effects=HALO, color=GREY,
                        xycoords=("axes fraction", "data"), textcoords="offset points",
                        va="top" if below else "bottom")  # fmt: skip
    if names == "above":
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=7, frameon=False, labelcolor=GREY,
                  borderpad=0, borderaxespad=0.3)  # fmt: skip
