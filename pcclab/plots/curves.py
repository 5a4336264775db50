"""Many trainings on one pair of axes."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pcclab.plots.style import COLUMN, LOOKS, axes, checked, named, styled


@styled
def learning_curves(
    frame: pd.DataFrame, ax: Axes | None = None, *, by: str = "setting", value: str = "value", label: str = "loss"
) -> Axes:
    """A logged value over the steps: one line a seed, settings told apart by colour and by line or mark.

    Args:
        frame: columns `by`, seed, step and `value`, one row a logged step; a curve of 12 points or fewer has marks.
        by: the column that names the settings; at most six of them, or looks would come twice.
        value: the column of the logged value.
        label: what it is, as the axis says it.

    Raises: ValueError for more settings than there are looks, or as `checked`.
    """
    frame = checked(frame, by, "seed", "step", value)
    settings = list(frame[by].unique())
    if len(settings) > len(LOOKS):
        raise ValueError(f"{len(settings)} settings and {len(LOOKS)} looks: draw them in several figures")
    ax = axes(ax, COLUMN, 1.9 + 0.12 * len(settings))
    for setting, look in zip(settings, LOOKS, strict=False):
        for _, part in frame[frame[by] == setting].groupby("seed", sort=False, dropna=False):
            part = part.sort_values("step")
            marker = look.marker if len(part) <= 12 else ""
            ax.plot(part["step"], part[value], linestyle=look.line, color=look.color, marker=marker, markersize=2.5,
                    linewidth=0.8, alpha=0.85)  # fmt: skip
        ax.plot([], [], linestyle=look.line, color=look.color, marker=look.marker, markersize=2.5, label=named(setting))
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.set(xlabel="step", ylabel=label)
    if len(settings) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=1, borderaxespad=0.2, labelspacing=0.2)
    return ax
