"""Figures of objectives: the shape of a loss, the race between losses, and a score over a hyper-parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import offset_copy

from pcclab.plots.style import COLUMN, GREY, INK, LOOKS, PALE, axes, checked, named, styled


@styled
def error_curves(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    value: Literal["loss", "gradient"] | None = None,
    gold: float | None = None,
    threshold: float | None = None,
    labels: Sequence[float] = (),
) -> Axes:
    """What a regression objective costs, and how hard it pulls, over the prediction for a pair.

    Args:
        frame: columns loss_name, prediction, loss and gradient, the losses in the order to draw.
        ax: where to draw one of the two; without it and without `value` a figure with both, the loss above the
            gradient, is made and the upper Axes returned.
        value: which one to draw; on a given Axes the loss.
        gold: the pair's label, marked by a full line.
        threshold: half the width of the buffer around gold, shaded.
        labels: the other labels, marked by pale lines.

    Raises: ValueError for a threshold without gold, and as every plot for a frame it cannot draw.
    """
    if threshold is not None and gold is None:
        raise ValueError(f"threshold is {threshold:g} but gold is not given: the buffer lies around gold, give both")
    both = ax is None and value is None
    kinds: list[Literal["loss", "gradient"]] = ["loss", "gradient"] if both else [value or "loss"]
    frame = checked(frame, "loss_name", "prediction", *kinds)
    losses = list(frame["loss_name"].unique())
    if both:
        page = Figure(figsize=(COLUMN, 2.75 + 0.13 * _rows(losses)), layout="constrained")
        panels = list(page.subplots(2, 1, sharex=True))
    else:
        panels = [axes(ax, COLUMN, 1.75 + 0.13 * _rows(losses))]
    for panel, kind in zip(panels, kinds, strict=True):
        if kind == "gradient":
            panel.axhline(0, color=PALE, linewidth=0.6, zorder=0)
        for label in labels:
            panel.axvline(label, color=PALE, linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
        if gold is not None:
            panel.axvline(gold, color=GREY, linewidth=0.6, zorder=0)
            if threshold:
                panel.axvspan(gold - threshold, gold + threshold, color=PALE, alpha=0.6, linewidth=0, zorder=-1)
        for place, name in enumerate(losses):
            part, look = frame[frame["loss_name"] == name].sort_values("prediction"), LOOKS[place % len(LOOKS)]
            panel.plot(part["prediction"], part[kind], linestyle=look.line, color=look.color, label=named(name))
        panel.set_ylabel(kind)
        panel.margins(x=0)
    panels[-1].set_xlabel("prediction")
    _legend(panels[0], losses)
    return panels[0]


@styled
def race_intervals(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    by: str = "loss",
    score: str = "score",
    baseline: float | None = None,
    label: str = r"Spearman's $\rho \times 100$",
    published: Mapping[str, Mapping[str, float]] | None = None,
) -> Axes:
    """Methods by their mean score, best on top: the mean, its 95 % interval, and each seed as a small dot below.

    Args:
        frame: either tidy, columns `by` and `score` with one row a seed: the mean and Student's t interval are taken
            here, and a method with one seed has no interval; or columns `by`, mean, low and high as they are.
        by: the column that names the methods, such as "loss" or "method".
        score: the column of scores in a tidy frame.
        baseline: a score to hold the methods against, such as the untrained encoder's.
        label: what the score is, as the axis says it.
        published: for a heading such as "BERT-base", the scores a paper prints for some of the methods. They stand
            beside ours as figures, not on our axis: another encoder's heights would only squeeze it.
    """
    tidy = score in frame or "mean" not in frame
    frame = checked(frame, by, score) if tidy else checked(frame, by, "mean", "low", "high")
    ends = _means(frame, [by], score) if tidy else frame
    ends = ends.sort_values("mean", kind="stable", ascending=False).reset_index(drop=True)
    # An option in parentheses goes below the name it belongs to, rather than being cut somewhere.
    whole = (named(name) for name in ends[by])
    names = ["\n".join(fill(part, 28) for part in _broken(name)) for name in whole]
    lines = max(name.count("\n") + 1 for name in names)
    ax = axes(ax, COLUMN, 0.6 + (0.17 if lines == 1 else 0.02 + 0.1 * lines) * len(ends))
    rows = np.arange(len(ends))
    if baseline is not None:
        ax.axvline(baseline, color=GREY, linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
        place: Any = ("data", "axes fraction")
        ax.annotate(f"baseline {baseline:.2f}", (baseline, 1), (0, 2), xycoords=place, textcoords="offset points",
                    ha="center", va="bottom", fontsize=7, color=GREY, annotation_clip=False)  # fmt: skip
    if tidy:
        below = frame[by].map({name: row + 0.3 for row, name in enumerate(ends[by])})
        ax.plot(frame[score], below, "o", color=GREY, markersize=1.4, markeredgewidth=0, zorder=1)
    ax.hlines(rows, ends["low"], ends["high"], color=LOOKS[0].color, linewidth=0.8)
    ax.plot(ends["mean"], rows, LOOKS[0].marker, color=LOOKS[0].color, markersize=3)
    for row, mean in enumerate(ends["mean"]):
        edge: Any = ("axes fraction", "data")
        ax.annotate(f"{mean:.2f}", (1, row), (3, 0), xycoords=edge, textcoords="offset points", va="center_baseline",
                    fontsize=7, color=INK, annotation_clip=False)  # fmt: skip
    _columns_beside(ax, list(ends[by]), published or {})
    ax.set_yticks(rows, names)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.set_ylim(len(ends) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(label, loc="right")  # to the left there is room: long names leave a narrow axis
    return ax


@styled
def ablation_lines(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    x: str,
    y: str = "score",
    by: str | None = None,
    log: bool = False,
    xlabel: str | None = None,
    ylabel: str | None = None,
) -> Axes:
    """A score over a hyper-parameter, one line a group; with several seeds the mean and its 95 % interval.

    Args:
        frame: columns x and y, and `by` where there are groups; rows that share both are seeds. An x of words, such as
            templates, is drawn in its order with the groups side by side.
        x: the hyper-parameter's column.
        y: the score's column.
        by: the groups' column; None for one line.
        log: a logarithmic x axis.
        xlabel: what the axis says instead of the column's name.
        ylabel: likewise.

    Raises: ValueError for a logarithmic axis of words or of values that are not positive.
    """
    frame = checked(frame, x, y, *([by] if by else []))
    words = not pd.api.types.is_numeric_dtype(frame[x])
    if log and (words or (frame[x] <= 0).any()):
        worst = repr(frame[x].iloc[0]) if words else f"{frame[x].min():g}"
        raise ValueError(f"{x} holds {worst}: a logarithmic axis takes positive numbers, leave log=False")
    groups = list(frame[by].unique()) if by else [None]
    ends = _means(frame, [by, x] if by else [x], y)
    apart = bool((ends["high"] > ends["low"]).any())
    values = list(frame[x].unique()) if words else sorted(frame[x].unique())
    ax = axes(ax, COLUMN, 1.8 + (0.13 * _rows(groups) if by else 0))
    ax.set_xscale("log" if log else "linear")
    for place, group in enumerate(groups):
        look = LOOKS[place % len(LOOKS)]
        part = ends if group is None else ends[ends[by] == group]
        at = part[x].map({value: row for row, value in enumerate(values)}) if words else part[x]
        part = part.assign(at=at.astype(float)).sort_values("at")
        bars = ax.vlines(part["at"], part["low"], part["high"], color=look.color, linewidth=0.8, alpha=0.7)
        line = ax.plot(part["at"], part["mean"], linestyle=look.line, color=look.color, marker=look.marker, label=group)
        if apart:  # set apart by points on the page, so that intervals stand side by side
            aside = offset_copy(
                ax.transData, ax.get_figure(root=True), 2.5 * (place - (len(groups) - 1) / 2), 0, "points"
            )
            for artist in (bars, *line):
                artist.set_transform(aside)
    if words:
        ax.set_xticks(range(len(values)), [named(value) for value in values])
        ax.set_xlim(-0.4, len(values) - 0.6)
    elif len(values) <= 6:
        ax.set_xticks(values, [f"{value:g}" for value in values])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set(xlabel=xlabel or named(x), ylabel=ylabel or named(y))
    if by:
        _legend(ax, groups)
    return ax


def _columns_beside(ax: Axes, methods: Sequence[str], published: Mapping[str, Mapping[str, float]]) -> None:
    """Published figures in columns at the right of ours, each below its heading."""
    right, edge = 27.0, ("axes fraction", "data")
    told: Any = {"textcoords": "offset points", "ha": "right", "fontsize": 7, "color": GREY, "annotation_clip": False}
    if published:
        ax.annotate("ours", (1, 1), (right - 3, 2), xycoords="axes fraction", va="bottom", **{**told, "color": INK})
    for heading, scores in published.items():
        right += max(24.0, TextPath((0, 0), heading, size=7).get_extents().width + 7)
        ax.annotate(heading, (1, 1), (right - 3, 2), xycoords="axes fraction", va="bottom", **told)
        for row, method in enumerate(methods):
            text = f"{scores[method]:.2f}" if method in scores else "–"
            ax.annotate(text, (1, row), (right - 3, 0), xycoords=edge, va="center_baseline", **told)


def _broken(name: str) -> list[str]:
    before, opening, after = name.partition("(")
    return [name] if len(name) <= 28 or not opening else [before, opening + after]


def _means(frame: pd.DataFrame, by: list[str], score: str) -> pd.DataFrame:
    """Mean of each group and Student's 95 % interval of it, which is the mean itself where there is one row."""
    from scipy import stats

    grouped = frame.groupby(by, sort=False)[score]
    ends = pd.DataFrame({"mean": grouped.mean(), "deviation": grouped.std(), "rows": grouped.count()})
    several = ends["rows"].clip(lower=2)  # a quantile with no degrees of freedom is undefined
    half = (stats.t.ppf(0.975, several - 1) * ends["deviation"] / np.sqrt(several)).fillna(0.0)
    return ends.assign(low=ends["mean"] - half, high=ends["mean"] + half).reset_index()


def _columns(names: Sequence[object]) -> int:
    """Legend columns that give the fewest rows within the width of one text column, and of those the fewest."""
    widths = [_width(str(name)) + 29 for name in names]  # with line and gaps

    def fits(columns: int) -> bool:
        return sum(part.max() for part in np.array_split(widths, columns)) <= 72 * COLUMN - 30

    free = [columns for columns in range(1, min(3, len(names)) + 1) if columns == 1 or fits(columns)]
    return min(free, key=lambda columns: (-(-len(names) // columns), columns))


@cache
def _width(name: str) -> float:
    """Points a name takes; kept, because a slider asks for the same again and again."""
    return float(TextPath((0, 0), name, size=7).get_extents().width)


def _rows(names: Sequence[object]) -> int:
    return -(-len(names) // _columns(names))


def _legend(ax: Axes, names: Sequence[object]) -> None:
    """The names above the plot, where they hide no curve."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=_columns(names), borderaxespad=0.2, columnspacing=1.2,
              handletextpad=0.6, labelspacing=0.2)  # fmt: skip
