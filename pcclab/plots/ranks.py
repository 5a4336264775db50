"""Figures of the rank tasks: how well each model orders the partners of one sentence."""

from __future__ import annotations

from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pcclab.plots.style import GREY, LOOKS, PALE, TEXT, axes, checked, marks, named, styled

_MEASURES = {"kendall": r"Kendall's $\tau_b \times 100$", "ndcg": r"NDCG $\times 100$"}


@styled
def rank_scores(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    measure: Literal["kendall", "ndcg"] | None = None,
    average: str = "average",
) -> Axes:
    """Kendall and NDCG by set and model, each with its interval, and the number of lists below the set's name.

    A grey line marks what a scorer to which all partners are alike would get: 0 by Kendall, but by NDCG most of the
    scale.

    Args:
        frame: as `pcclab.evaluation.rank_intervals` gives it, without the rows that are undefined: columns task,
            model, measure ("kendall" or "ndcg"), value, low, high, lists and, where known, constant. A model named
            "paper: SimCSE" is drawn hollow; it has no interval, so its low and high are its value.
        ax: where to draw one of the two; without it and without `measure` a figure with both, Kendall above NDCG, is
            made and the upper Axes returned.
        measure: which one to draw; on a given Axes Kendall.
        average: the task that stands apart at the right.

    Raises: ValueError as every plot for a frame it cannot draw.
    """
    frame = checked(frame, "task", "model", "measure", "value", "low", "high", "lists")
    tasks = [task for task in frame["task"].unique() if task != average]
    places: dict[Any, float] = {task: float(place) for place, task in enumerate(tasks)}
    if average in set(frame["task"]):
        places[average] = len(tasks) + 0.2
    if ax is None and measure is None:
        page = Figure(figsize=(TEXT, 3.5), layout="constrained")
        panels = dict(zip(_MEASURES, page.subplots(2, 1, sharex=True), strict=True))
    else:
        panels = {measure or "kendall": axes(ax, TEXT, 2.0)}
    for name, panel in panels.items():
        _panel(panel, frame[frame["measure"] == name], places, list(frame["model"].unique()), name == "kendall")
        panel.set_ylabel(_MEASURES[name])
        if average in places:
            panel.axvline(len(tasks) - 0.4, color=PALE, linewidth=0.6)
    upper, lower = next(iter(panels.values())), list(panels.values())[-1]
    lists = frame.groupby("task", sort=False)["lists"].max()
    lower.set_xticks(list(places.values()), [f"{named(task)}\n{lists[task]:,} lists" for task in places])
    lower.set_xlim(-0.5, max(places.values()) + 0.5)
    names = len(frame["model"].unique()) + 1
    upper.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=min(names, 4), borderaxespad=0.2)
    return upper


def _panel(panel: Axes, part: pd.DataFrame, places: dict[Any, float], models: list[str], from_zero: bool) -> None:
    gap = min(0.16, 0.7 / len(models))
    for place, model in enumerate(models):
        mine, look = part[part["model"] == model], LOOKS[place % len(LOOKS)]
        x = mine["task"].map(places) + gap * (place - (len(models) - 1) / 2)
        panel.vlines(x, mine["low"], mine["high"], color=look.color, linewidth=0.8)
        panel.plot(x, mine["value"], look.marker, label=model, **marks(model, look))
    for task, value in (dict.fromkeys(places, 0.0) if from_zero else _constants(part)).items():
        ends = [places[task] - 0.38, places[task] + 0.38]
        label = "no order" if task == next(iter(places)) else None
        panel.plot(ends, [value] * 2, color=GREY, linewidth=0.8, linestyle=(0, (2, 1)), label=label, zorder=0)
    panel.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    panel.margins(y=0.08)
    panel.tick_params(axis="x", length=0)


def _constants(part: pd.DataFrame) -> dict[Any, float]:
    """NDCG without any order, of each set that has it."""
    if "constant" not in part:
        return {}
    known = part.dropna(subset=["constant"]).groupby("task", sort=False)["constant"].first()
    return {task: float(value) for task, value in known.items()}
