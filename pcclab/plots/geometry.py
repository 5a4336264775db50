"""Figures of where embeddings lie, how their cosines follow the ratings, and how binary the scores are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from pcclab.ceiling import MIDRANK_LIMIT, PAPER_LIMIT
from pcclab.plots.labels import beside
from pcclab.plots.style import COLUMN, GREY, INK, LOOKS, PALE, TEXT, axes, checked, named, spread, styled

UNTIED_LIMIT = 3 / 4
"""Spearman of scores without ties that know two classes of untied gold (`evaluation.untied_ceiling`)."""
GRADED = (0.23, 0.29)
"""Share within of graded scores under normal noise, by how meaning and noise are spread (`evaluation.levels`)."""
_PANELS = {"levels": "effective levels", "share_within": "share within"}


@styled
def plane(frame: pd.DataFrame, ax: Axes | None = None, *, labels: Sequence[str] | None = None) -> Axes:
    """The alignment-uniformity plane: a point a model, its colour the average STS score, its marker the family.

    Args:
        frame: columns model, alignment and uniformity; optionally family, and average (Spearman x 100), where a model
            without one (NaN) is drawn hollow.
        labels: models whose names are written; None for all.

    Raises: ValueError for a label that is no model, and as every plot for a frame it cannot draw.
    Source: RankCSE, figure 4.
    """
    frame = checked(frame, "model", "alignment", "uniformity").reset_index(drop=True)
    if strange := set(labels or ()) - set(frame["model"]):
        raise ValueError(f"labels name {min(strange)!r}, which is no model here: choose among {list(frame['model'])}")
    families = list(frame["family"].unique()) if "family" in frame else [""]
    family = frame["family"] if "family" in frame else pd.Series("", index=frame.index)
    average = frame["average"].astype(float) if "average" in frame else pd.Series(np.nan, index=frame.index)
    alone = ax is None
    ax = axes(ax, COLUMN, 2.3 + (0.13 * -(-len(families) // 3) if families != [""] else 0))
    page = ax.get_figure(root=True)
    assert page is not None
    low, high = (float(average.min()), float(average.max())) if average.notna().any() else (0.0, 1.0)
    # One score alone has no scale: it stands in the middle of a narrow one.
    ends: Any = {"vmin": low - 0.5 * (low == high), "vmax": high + 0.5 * (low == high), "cmap": "viridis"}
    painted = None
    for place, name in enumerate(families):
        marker = LOOKS[place % len(LOOKS)].marker
        for known in (False, True):
            part = frame[(family == name) & (average.notna() == known)]
            if part.empty:
                continue
            paint: Any = {"c": average[part.index], **ends} if known else {"facecolors": "white"}
            drawn = ax.scatter(part["uniformity"], part["alignment"], s=22, marker=marker, edgecolors=INK,
                               linewidths=0.5, zorder=2 + known, **paint)  # fmt: skip
            painted = drawn if known else painted
    if painted is not None:
        bar = page.colorbar(painted, ax=ax, pad=0.02, fraction=0.05, aspect=28)
        bar.set_label(r"average STS, $\rho \times 100$")
        bar.outline.set_linewidth(0.4)
        bar.locator = MaxNLocator(5)
        bar.update_ticks()
    handles = [_handle(LOOKS[place % len(LOOKS)].marker, str(name)) for place, name in enumerate(families) if name]
    if average.isna().any() and average.notna().any():
        handles.append(_handle("o", "no recorded score", "white"))
    if len(handles) > 1:
        # Beside the axes a legend would make them narrow: on a page of its own it stands above the whole.
        where: Any = {"loc": "outside upper center", "ncols": min(3, len(handles))} if alone else {"loc": "best"}
        (page if alone else ax).legend(handles=handles, handletextpad=0.2, columnspacing=0.8, **where)
    ax.margins(0.12)
    ax.set(xlabel="uniformity (lower is better)", ylabel="alignment (lower is better)")
    names = {row: str(model) for row, model in enumerate(frame["model"]) if labels is None or model in labels}
    beside(ax, list(zip(frame["uniformity"], frame["alignment"], strict=True)), names)
    return ax


@styled
def cosine_groups(
    frame: pd.DataFrame, ax: Axes | None = None, *, bins: int = 60, marks: Mapping[str, float] | None = None
) -> Axes:
    """How the cosines lie in each group of ratings, a panel a model on the same axes: outline, median, quartiles.

    Every outline holds the same area, so a narrow group stands high. Scores of two values would be two spikes.

    Args:
        frame: columns model, group (an ordered category, or in the order to draw from below) and similarity.
        ax: where to draw a single model; without it a figure is made and the Axes of its first panel returned.
        bins: steps of each outline.
        marks: a cosine of each model that is drawn across all groups, such as that of one pair.

    Raises: ValueError for several models on one Axes, and as every plot for a frame it cannot draw.
    Source: RankCSE, appendix E, figure 5.
    """
    frame = checked(frame, "model", "group", "similarity")
    models = list(frame["model"].unique())
    groups = list(frame["group"].cat.categories) if hasattr(frame["group"], "cat") else list(frame["group"].unique())
    if ax is not None and len(models) > 1:
        raise ValueError(f"one Axes holds one model, there are {len(models)}: leave ax out, or give one model's rows")
    if ax is None:
        across = min(len(models), 4)
        down = -(-len(models) // across)
        size = (COLUMN if across == 1 else TEXT, (0.5 + 0.24 * len(groups)) * down)
        grid = Figure(figsize=size, layout="constrained").subplots(
            down, across, sharex=True, sharey=True, squeeze=False
        )
        panels = list(grid.flat)
    else:
        panels, across = [ax], 1
    edges = np.histogram_bin_edges(frame["similarity"], bins)
    heights = frame.groupby(["model", "group"], observed=True)["similarity"].apply(
        lambda values: np.histogram(values, edges)[0] / len(values)
    )
    top = max(float(np.max(height)) for height in heights)
    for panel, model in zip(panels, models, strict=False):
        for row, group in enumerate(groups):
            values = frame.loc[(frame["model"] == model) & (frame["group"] == group), "similarity"]
            if values.empty:
                continue
            outline = row + 1.25 * heights[model, group] / top
            look: Any = {"baseline": row, "color": LOOKS[0].color, "zorder": 1 - row / 100}
            panel.stairs(outline, edges, fill=True, alpha=0.3, **look)
            panel.stairs(outline, edges, linewidth=0.5, **look)
            first, middle, third = values.quantile([0.25, 0.5, 0.75])
            panel.plot([first, third], [row, row], color=INK, linewidth=1.6, solid_capstyle="butt", zorder=2)
            panel.plot(middle, row, "|", color=INK, markersize=6, markeredgewidth=1.2, zorder=2)
        if marks is not None and model in marks:
            panel.axvline(marks[model], color=LOOKS[1].color, linestyle=LOOKS[1].line, linewidth=1.2, zorder=3)
        panel.set_title(str(model), pad=2)
        panel.set_yticks(range(len(groups)), [str(group).replace("-", "–") for group in groups])
        panel.spines["left"].set_visible(False)
        panel.tick_params(axis="y", length=0)
        panel.set_ylim(-0.25, len(groups) + 0.3)
    for panel in panels[len(models) :]:
        panel.set_visible(False)
    for place, panel in enumerate(panels[: len(models)]):
        if place % across == 0:
            panel.set_ylabel("gold rating")
        if place + across >= len(models):
            panel.set_xlabel("cosine")
            panel.tick_params(labelbottom=True)
    return panels[0]


@styled
def effective_levels(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    value: Literal["levels", "share_within"] | None = None,
    models: Sequence[str] | None = None,
) -> Axes:
    """Effective levels of each model on each task, and the share of its ranking within two groups of its scores.

    The lines are scorers of two levels, and of two classes whose scores do not tie; in the band lie scores without any
    binary trait lie.

    Args:
        frame: columns model, task, levels and share_within; optionally levels_low and levels_high, share_within_low and
            share_within_high, the ends of intervals.
        ax: where to draw one of the two; without it and without `value` a figure with both, the levels above the share,
            is made and the upper Axes returned.
        value: which one to draw; on a given Axes the levels.
        models: at most six to tell apart, in the order to draw; the others are grey dots. None for the first six.

    Raises: ValueError for models that are not there or more than six, and as every plot for a frame it cannot draw.
    Source: new; the lines are Pcc-tuning, equation 2, and `pcclab.ceiling`, on untied gold.
    """
    both = ax is None and value is None
    kinds: list[str] = ["levels", "share_within"] if both else [value or "levels"]
    frame = checked(frame, "model", "task", *kinds)
    there = list(frame["model"].unique())
    shown = there[: len(LOOKS)] if models is None else list(models)
    if len(shown) > len(LOOKS) or set(shown) - set(there):
        raise ValueError(f"models={shown}: tell at most {len(LOOKS)} apart, of {there}")
    if both:
        page = Figure(figsize=(TEXT, 3.5), layout="constrained")
        panels = list(page.subplots(2, 1, sharex=True, height_ratios=[1.25, 1]))
    else:
        panels = [axes(ax, TEXT, 2.0)]
    tasks = list(frame["task"].unique())
    for panel, kind in zip(panels, kinds, strict=True):
        for place, model in enumerate(shown):
            part, look = frame[frame["model"] == model], LOOKS[place]
            at = part["task"].map(tasks.index) + min(0.16, 0.7 / len(shown)) * (place - (len(shown) - 1) / 2)
            if {f"{kind}_low", f"{kind}_high"} <= set(part):
                panel.vlines(at, part[f"{kind}_low"], part[f"{kind}_high"], color=look.color, linewidth=0.7, zorder=2)
            panel.plot(at, part[kind], look.marker, color=look.color, markersize=4, markeredgecolor="white",
                       markeredgewidth=0.3, label=model, zorder=3)  # fmt: skip
        others = frame[~frame["model"].isin(shown)]
        if not others.empty:
            at = others["task"].map(tasks.index) + 0.42
            panel.plot(at, others[kind], "o", color=GREY, markersize=1.6, markeredgewidth=0, zorder=1,
                       label=f"{others['model'].nunique()} other models")  # fmt: skip
        panel.margins(y=0.08)
        _lines(panel, kind)
        panel.set_ylabel(_PANELS[kind])
        panel.tick_params(axis="x", length=0)
        panel.set_xlim(-0.5, len(tasks) - 0.5)
    panels[-1].set_xticks(range(len(tasks)), [named(task) for task in tasks])
    panels[0].legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=5, borderaxespad=0.2,
                     handletextpad=0.3, columnspacing=1.2)  # fmt: skip
    whole = panels[0].get_figure(root=True)
    assert whole is not None
    whole.draw_without_rendering()  # the names at the right take a second layout to find their room
    return panels[0]


def _lines(ax: Axes, kind: str) -> None:
    """What scorers of two levels reach and what those of two classes whose scores do not tie, named at the right."""
    if kind == "levels":
        limits = {"equation 2": PAPER_LIMIT, "two levels": MIDRANK_LIMIT, "two classes": UNTIED_LIMIT}
        marks = {rf"{name}, $\rho$ {100 * rho:.1f}": (1 - rho**2) ** -0.5 for name, rho in limits.items()}
        lines = list(marks.values())
    else:
        marks = {"no binary trait": sum(GRADED) / 2, "two values": 0.0}
        lines = [0.0]
        ax.axhspan(*GRADED, color=PALE, alpha=0.6, linewidth=0, zorder=-1)
    for place, height in enumerate(lines):
        ax.axhline(height, color=GREY, linestyle=("--", "-", ":")[place], linewidth=0.7, zorder=0)
    low, high = ax.get_ylim()
    points = 72 * ax.get_window_extent().height / ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    heights = spread(list(marks.values()), 8.5 * (high - low) / points)
    for name, height in zip(marks, heights, strict=True):
        ax.annotate(name, (1, height), (3, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                    va="center", fontsize=7, color=GREY, annotation_clip=False)  # fmt: skip


def _handle(marker: str, label: str, face: str = GREY) -> Line2D:
    return Line2D([], [], linestyle="", marker=marker, markerfacecolor=face, markeredgecolor=INK,
                  markeredgewidth=0.4, markersize=4, label=label)  # fmt: skip
