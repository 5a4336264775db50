"""Figures of what methods cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pcclab.plots.style import LOOKS, PALE, TEXT, checked, styled


@styled
def cost_pairs(
    frame: pd.DataFrame,
    ax: Axes | None = None,
    *,
    memory: str = "peak memory (GB)",
    time: str = "minutes an epoch",
) -> Axes:
    """Peak memory and time of each method on each path, side by side on logarithmic axes, a line joining the paths.

    Args:
        frame: columns method, path, memory and minutes, one row a method and path; methods and paths in their order.
        ax: where to draw the memory alone; without it a figure as wide as the text with both is made.
        memory: what the left axis says.
        time: what the right one does.

    Returns: the Axes of the memory, the left one of both.

    Raises: ValueError as every plot for a frame it cannot draw, for figures that are not positive, or for a method with
        two rows of one path.
    """
    frame = checked(frame, "method", "path", "memory", "minutes")
    if (frame[["memory", "minutes"]] <= 0).any(axis=None):
        raise ValueError("a memory or time of 0 or less has no place on a logarithmic axis: leave that row out")
    if frame.duplicated(["method", "path"]).any():
        raise ValueError("a method has several rows of one path: give one kind of texts at a time")
    methods, paths = list(frame["method"].unique()), list(frame["path"].unique())
    rows = frame["method"].map({method: row for row, method in enumerate(methods)})
    if ax is None:
        page = Figure(figsize=(TEXT, 0.55 + 0.19 * len(methods)), layout="constrained")
        panels = list(page.subplots(1, 2, sharey=True))
    else:
        panels = [ax]
    for panel, column, label in zip(panels, ("memory", "minutes"), (memory, time), strict=False):
        ends = frame.assign(row=rows).groupby("row")[column].agg(["min", "max"])
        panel.hlines(ends.index, ends["min"], ends["max"], color=PALE, linewidth=2.5, zorder=0)
        for look, path in zip(LOOKS, paths, strict=False):
            part = frame["path"] == path
            panel.plot(frame[column][part], rows[part], look.marker, color=look.color, label=path)
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(subs=_subs(frame[column])))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set_xlabel(label)
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.margins(x=0.08)
    panels[0].set_yticks(range(len(methods)), methods)
    panels[0].set_ylim(len(methods) - 0.5, -0.5)
    if ax is None:
        page.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(paths))
    else:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=len(paths))
    return panels[0]


def _subs(values: pd.Series) -> tuple[int, ...]:
    """Which multiples of a power of ten get a number: the fewer, the more powers there are."""
    decades = float(np.log10(values.max() / values.min()))
    return (1, 2, 5) if decades < 1.5 else (1, 3) if decades < 2.5 else (1,)
