"""Figures of what was measured: scores by task, training, cosines, and what leaked."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pcclab.plots.ceilings import ceiling_lines
from pcclab.plots.style import (
    COLUMN,
    GREY,
    INK,
    LOOKS,
    PALE,
    PUBLISHED,
    TEXT,
    Look,
    axes,
    checked,
    marks,
    named,
    spread,
    styled,
)

RUNS = {"baseline": Look(INK, "D", ":"), "strict": LOOKS[2], "filter": LOOKS[0], "keep": LOOKS[1]}
"""How the levels of leakage look in every figure, also those that a paper printed."""
RUNS |= {f"{PUBLISHED}{run}": look for run, look in RUNS.items()}


@styled
def stage_levels(frame: pd.DataFrame, ax: Axes | None = None, *, average: str = "Avg.") -> Axes:
    """Spearman x 100 of each run on each task and on average, against the two ceilings.

    Args:
        frame: columns task, run ("baseline", "strict", "filter", "keep" or others) and spearman (times 100), in the
            order to draw; optionally low and high, the ends of an interval.
        average: the task that stands apart at the right; where no row has it, the mean over the tasks is drawn. A run
            named "paper: keep" is drawn hollow, and may have an average alone.
    """
    frame = checked(frame, "task", "run", "spearman")
    if average not in set(frame["task"]):
        means = frame.groupby("run", sort=False, as_index=False)["spearman"].mean().assign(task=average)
        frame = pd.concat([frame, means], ignore_index=True)
    ax = axes(ax, TEXT, 2.5)
    tasks = [task for task in frame["task"].unique() if task != average]
    runs = list(frame["run"].unique())
    places = {**{task: float(place) for place, task in enumerate(tasks)}, average: len(tasks) + 0.4}
    looks = {run: RUNS.get(run, LOOKS[place % len(LOOKS)]) for place, run in enumerate(runs)}
    for place, run in enumerate(runs):
        part, look = frame[frame["run"] == run], looks[run]
        x = part["task"].map(places) + min(0.16, 0.72 / len(runs)) * (place - (len(runs) - 1) / 2)
        if {"low", "high"} <= set(frame):
            ax.vlines(x, part["low"], part["high"], color=look.color, linewidth=0.8)
        ax.plot(x, part["spearman"], look.marker, **marks(run, look))
    ceiling_lines(ax, 100, names="above")
    ax.axvline(len(tasks) - 0.3, color=PALE, linewidth=0.6)
    ax.set_xticks(list(places.values()), [named(task) for task in places])
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel=r"Spearman's $\rho \times 100$", xlim=(-0.5, len(tasks) + 0.85))
    ax.margins(y=0.08)
    ends = frame[frame["task"] == average].set_index("run")["spearman"]
    low, high = ax.get_ylim()
    points = 72 * ax.get_window_extent().height / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    gap = 9 * (high - low) / points
    for run, height in zip(runs, spread([ends[run] for run in runs], gap), strict=True):
        text, end = f"{run} {ends[run]:.2f}", (len(tasks) + 0.88, height)
        ax.annotate(text, end, color=looks[run].color, va="center", annotation_clip=False)
    return ax


@styled
def task_differences(
    frame: pd.DataFrame, ax: Axes | None = None, *, by: str, label: str, average: str = "average"
) -> Axes:
    """A difference with its interval on each task, one mark a group; hollow where the data cannot tell it from none.

    Args:
        frame: columns task, `by`, difference, low, high and differs, in the order to draw.
        by: the groups' column.
        label: what the difference is of, for the axis.
        average: the task that stands apart at the right, where there is one.
    """
    frame = checked(frame, "task", by, "difference", "low", "high", "differs")
    groups = list(frame[by].unique())
    tasks = [task for task in frame["task"].unique() if task != average]
    places = {task: float(place) for place, task in enumerate(tasks)}
    if average in set(frame["task"]):
        places[average] = len(tasks) + 0.3
    ax = axes(ax, TEXT, 1.9)
    ax.axhline(0, color=GREY, linewidth=0.5)
    for place, group in enumerate(groups):
        part, look = frame[frame[by] == group], LOOKS[place % len(LOOKS)]
        x = part["task"].map(places) + 0.15 * (place - (len(groups) - 1) / 2)
        ax.vlines(x, part["low"], part["high"], color=look.color, linewidth=0.8)
        for shown, face in ((part["differs"], look.color), (~part["differs"].astype(bool), "white")):
            kept = shown.astype(bool)
            ax.plot(x[kept], part["difference"][kept], look.marker, color=look.color, markerfacecolor=face)
        ax.plot([], [], look.marker, color=look.color, label=group)
    if average in places:
        ax.axvline(len(tasks) - 0.35, color=PALE, linewidth=0.6)
    ax.set_xticks(list(places.values()), [named(task) for task in places])
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel=label, xlim=(-0.5, max(places.values()) + 0.5))
    if len(groups) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=len(groups), borderaxespad=0.2, handletextpad=0.2)
    return ax


@styled
def training_curve(frame: pd.DataFrame, ax: Axes | None = None, *, score: str = "dev Spearman") -> Axes:
    """The loss over the steps and, on the axis at the right, the score on the development set.

    Args:
        frame: columns step and loss, and dev where it was taken; a step may lack either one.
        score: what dev is, as the axis says it.
    """
    ax = axes(ax, COLUMN, 1.9)
    for name, look, label in (("loss", LOOKS[0], "training loss"), ("dev", LOOKS[1], score)):
        if name not in frame and name == "dev":
            break
        part = frame.dropna(subset=[name]) if name in frame else frame
        part = checked(part, "step", name).sort_values("step")
        side = ax if name == "loss" else ax.twinx()
        marker = "" if name == "loss" else look.marker
        side.plot(part["step"], part[name], linestyle=look.line, color=look.color, marker=marker)
        side.set_ylabel(label, color=look.color)
        side.tick_params(axis="y", colors=look.color)
        side.spines["right"].set_visible(name == "dev")
    ax.set_xlabel("step")
    return ax


@styled
def similarity_by_gold(frame: pd.DataFrame, ax: Axes | None = None, *, bins: int = 50) -> Axes:
    """How an encoder's cosines lie in each group of gold ratings: one outline a whole rating, a tick at its median.

    Two-valued scores would stand as two spikes; what is between them is what the ceiling does not speak of.

    Args:
        frame: columns gold and similarity, one row a pair; gold is rounded to the nearest whole rating.
        bins: steps of each outline.
    """
    frame = checked(frame, "gold", "similarity")
    groups = np.floor(frame["gold"] + 0.5).astype(int)
    ax = axes(ax, COLUMN, 0.55 + 0.3 * groups.nunique())
    edges = np.histogram_bin_edges(frame["similarity"], bins)
    for row, (_, values) in enumerate(frame["similarity"].groupby(groups)):
        counts = np.histogram(values, edges)[0]
        ax.stairs(
            row + 0.85 * counts / counts.max(),
            edges,
            baseline=row,
            fill=True,
            color=LOOKS[0].color,
            alpha=0.3,
            zorder=-row,
        )
        ax.stairs(
            row + 0.85 * counts / counts.max(), edges, baseline=row, color=LOOKS[0].color, linewidth=0.6, zorder=-row
        )
        ax.plot([values.median()] * 2, [row, row + 0.4], color=INK, linewidth=1.0)
        ax.annotate(f"{len(values):,}", (1, row), (2, 1), xycoords=("axes fraction", "data"), fontsize=6, color=GREY,
                    textcoords="offset points", annotation_clip=False)  # fmt: skip
    ax.set_yticks(range(groups.nunique()), [str(group) for group in sorted(groups.unique())])
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="cosine similarity", ylabel="gold, rounded")
    return ax


@styled
def leakage_matrix(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Percent of each test set's pairs that a training set holds already.

    Args:
        frame: rows training sets, columns test sets, values percent, as `pcclab.data.leakage.matrix` returns it; or
            several of them, joined by `pandas.concat` of a mapping: each is drawn below its key.
    """
    values = checked(frame, *frame.columns).to_numpy(dtype=float)
    parts = dict(list(frame.groupby(level=0, sort=False))) if frame.index.nlevels > 1 else {"": frame}
    heads = 0.8 if len(parts) > 1 else 0.0
    ax = axes(ax, TEXT, 0.45 + 0.24 * (len(frame) + heads * len(parts)))
    highest = max(100.0, values.max())
    places: list[float] = []
    for title, part in parts.items():
        top = places[-1] + 0.5 + heads if places else heads
        part_values = part.to_numpy(dtype=float)
        rows = top + np.arange(len(part) + 1)
        ax.pcolormesh(np.arange(values.shape[1] + 1), rows, part_values, cmap="Greys", vmin=0, vmax=highest,
                      edgecolors="white", linewidth=1)  # fmt: skip
        ax.annotate(str(title), (0, top), (0, 2), textcoords="offset points", va="bottom", annotation_clip=False)
        for (row, column), value in np.ndenumerate(part_values):
            ax.text(column + 0.5, top + row + 0.5, f"{value:.1f}" if value else "0", ha="center", va="center",
                    fontsize=7, color="white" if value > 60 else INK)  # fmt: skip
        places += list(rows[:-1] + 0.5)
    ax.set_xticks(np.arange(values.shape[1]) + 0.5, [named(name) for name in frame.columns])
    ax.set_yticks(places, [named(name) for name in frame.index.get_level_values(-1)])
    ax.set_ylim(places[-1] + 0.5, 0)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax
