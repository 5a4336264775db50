"""Figures of leakage: where a gain comes from, and what choosing on the tests promises."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pcclab.plots.scores import RUNS
from pcclab.plots.style import COLUMN, GREY, LOOKS, PALE, TEXT, Look, axes, checked, named, styled

AVERAGE = "average"
_RULES = {
    "dev": ("chosen on clean pairs", Look(LOOKS[0].color, "o", "-"), LOOKS[0].color),
    "last": ("last step", Look(GREY, "|", "-"), GREY),
    "test": ("chosen on the tests", Look(LOOKS[1].color, "s", "-"), LOOKS[1].color),
    "task": ("on each test by itself", Look(LOOKS[1].color, "D", "-"), "white"),
}


@styled
def part_gains(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    part: str = "part",
    parts: Mapping[str, str] | None = None,
    by: str = "leakage",
    label: str = r"gain over the encoder before stage 2, Spearman's $\rho \times 100$",
) -> Axes:
    """What each training gains, a row a test and a panel a part of it, all panels on one scale.

    A thin line is the interval over test pairs, a thick one that over seeds where there are several; the figures are
    those of the average. A part that is undefined says why.

    Args:
        frame: columns task, gain, low, high, `part` and `by`, tests in the order to draw and "average" as one of them;
            optionally seed_low and seed_high, pairs (told at the right), and reason, without which no gain may be NaN.
        ax: where to draw the first part alone; without it a figure with a panel for each is made.
        part: the column that names the panels.
        parts: its values in the order of the panels, each with the panel's title; None takes all as they come.
        by: the column that names the trainings.
        label: of the horizontal axis.

    Returns: the first panel's Axes.
    """
    checked(frame, "task", part, by)
    parts = parts or {str(name): str(name) for name in frame[part].unique()}
    frame = frame[frame[part].isin(list(parts))]
    said = frame["reason"].astype(bool) if "reason" in frame else pd.Series(False, index=frame.index)
    known = checked(frame[~said], "gain", "low", "high")
    tasks = sorted(frame["task"].unique(), key=lambda task: task == AVERAGE)
    places = {task: place + (0.5 if task == AVERAGE else 0) for place, task in enumerate(tasks)}
    runs = list(frame[by].unique())
    looks = {run: RUNS.get(run, LOOKS[place % len(LOOKS)]) for place, run in enumerate(runs)}
    panels, foot, key = _page(ax, 0.75 + (0.13 + 0.075 * len(runs)) * len(tasks), len(parts))
    for panel, (name, title) in zip(panels, parts.items(), strict=False):
        panel.axvline(0, color=GREY, linewidth=0.6, zorder=0)
        if AVERAGE in places:
            panel.axhline(places[AVERAGE] - 0.77, color=PALE, linewidth=0.6, zorder=0)
        for place, run in enumerate(runs):
            shift = place - (len(runs) - 1) / 2
            _run(panel, known[(known[part] == name) & (known[by] == run)], places, shift, looks[run])
        _margins(panel, frame[frame[part] == name].drop_duplicates("task"), places)
        panel.set_title(title, pad=4)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    low, high = min(known["low"].min(), 0), max(known["high"].max(), 0)
    panels[0].set_xlim(low - 0.04 * (high - low), high + 0.22 * (high - low))
    panels[0].set_yticks(list(places.values()), [named(task) for task in places])
    panels[0].set_ylim(max(places.values()) + 0.65, -0.55)
    foot(label, fontsize=8)
    key(handles=[Line2D([], [], color=look.color, marker=look.marker, linewidth=0.8, label=run)
                 for run, look in looks.items()], ncols=len(runs), borderaxespad=0.1)  # fmt: skip
    return panels[0]


@styled
def chosen_steps(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """What each rule of choosing a step reports beside what a choice on clean pairs does, a row a training.

    Args:
        frame: columns leakage, seed, dev, last, test and task, as `pcclab.workflows.choices` returns it; the score of
            the step chosen on clean pairs is told at the right.
    """
    frame = checked(frame, "leakage", "seed", *_RULES)
    ax = axes(ax, COLUMN, 0.95 + 0.16 * len(frame))
    groups = frame["leakage"].ne(frame["leakage"].shift()).cumsum() - 1
    rows = np.arange(len(frame)) + 0.4 * groups.to_numpy()
    ax.axvline(0, color=GREY, linewidth=0.6, zorder=0)
    for rule, (text, look, face) in _RULES.items():
        size = {"last": 7.0, "dev": 4.5}.get(rule, 3.8)
        ax.plot(frame[rule] - frame["dev"], rows, look.marker, color=look.color, markerfacecolor=face, markersize=size,
                label=text, markeredgewidth=0.8, zorder=2 + list(_RULES).index(rule))  # fmt: skip
    ax.hlines(rows, 0, frame["task"] - frame["dev"], color=PALE, linewidth=1.2, zorder=0)
    edge: Any = ("axes fraction", "data")
    for row, score in zip(rows, frame["dev"], strict=True):
        ax.annotate(f"{score:.2f}", (1, row), (4, 0), xycoords=edge, textcoords="offset points", va="center_baseline",
                    fontsize=7, color=LOOKS[0].color, annotation_clip=False)  # fmt: skip
    ax.set_yticks(rows, [f"{level}, seed {seed}" for level, seed in zip(frame["leakage"], frame["seed"], strict=True)])
    ax.set_ylim(rows[-1] + 0.5, -0.5)
    ax.margins(x=0.06)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.set_xlabel(r"average of the tests, Spearman's $\rho \times 100$," + "\nabove the step chosen on clean pairs")
    ax.legend(loc="lower right", bbox_to_anchor=(1.15, 1), ncols=2, borderaxespad=0.2, handletextpad=0.2,
              columnspacing=1.0)  # fmt: skip
    return ax


def _page(ax: Axes | None, height: float, count: int) -> tuple[list[Axes], Any, Any]:
    """The panels, what labels the axis below them, and what draws their legend."""
    if ax is not None:
        return [ax], ax.set_xlabel, partial(ax.legend, loc="lower right", bbox_to_anchor=(1, 1))
    page = Figure(figsize=(TEXT, height), layout="constrained")
    panels = page.subplots(1, count, squeeze=False, sharex=True, sharey=True)[0]
    return list(panels), page.supxlabel, partial(page.legend, loc="outside upper right")


def _run(panel: Axes, part: pd.DataFrame, places: Mapping[str, float], shift: float, look: Look) -> None:
    # The averages stand further apart: their figures are beside them.
    rows = part["task"].map(places) + shift * np.where(part["task"] == AVERAGE, 0.36, 0.22)
    panel.hlines(rows, part["low"], part["high"], color=look.color, linewidth=0.7)
    if {"seed_low", "seed_high"} <= set(part):
        panel.hlines(rows, part["seed_low"], part["seed_high"], color=look.color, linewidth=2.4, alpha=0.4)
    edge: Any = {"markeredgecolor": "white", "markeredgewidth": 0.3}
    panel.plot(part["gain"], rows, look.marker, color=look.color, markersize=3.8, **edge)
    for row, entry in zip(rows, part.to_dict("records"), strict=True):
        if entry["task"] == AVERAGE:
            panel.annotate(f"{entry['gain']:+.1f}", (entry["high"], row), (3, 0), textcoords="offset points",
                           va="center_baseline", fontsize=6.5, color=look.color)  # fmt: skip


def _margins(panel: Axes, rows: pd.DataFrame, places: Mapping[str, float]) -> None:
    """How many pairs each row stands for, at the right; and why a row is empty."""
    if "pairs" in rows:
        panel.annotate("pairs", (1, 1), (-1, 2), xycoords="axes fraction", textcoords="offset points", ha="right",
                       fontsize=6, color=GREY)  # fmt: skip
    for entry in rows.to_dict("records"):
        place = places[entry["task"]]
        if "pairs" in entry and entry["task"] != AVERAGE:
            edge: Any = ("axes fraction", "data")
            panel.annotate(f"{entry['pairs']:,}", (1, place), (-1, 0), xycoords=edge, textcoords="offset points",
                           ha="right", va="center_baseline", fontsize=6, color=GREY)  # fmt: skip
        if pd.isna(entry["gain"]):
            panel.annotate(str(entry.get("reason", "undefined")).split(":")[-1].strip(), (0, place), (4, 0),
                           textcoords="offset points", va="center_baseline", fontsize=6, color=GREY)  # fmt: skip
