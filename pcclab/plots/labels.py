"""Names beside points, moved until none covers another or a point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.textpath import TextPath
from matplotlib.transforms import Bbox

from pcclab.plots.style import GREY, HALO, INK

SIZE = 7.0
RADII = (5.0, 8.0, 12.0, 17.0, 23.0, 30.0, 38.0, 48.0, 60.0)
"""Points from a point to its name, tried in turn; beyond the second a thin line joins them."""
TURNS = (0, 180, 45, 135, 315, 225, 90, 270, 22, 158, 338, 202, 67, 113, 293, 247)
"""Directions tried at each radius, in degrees: first beside the point, then above and below."""


def beside(ax: Axes, points: Sequence[tuple[float, float]], names: Mapping[int, str]) -> None:
    """Write names beside some of the points; the axes' limits and the figure's size must be final.

    Args:
        ax: where the points are drawn.
        points: (x, y) of every point, also of those without a name, which no name may cover.
        names: name of a point by its place in `points`.
    """
    page = ax.get_figure(root=True)
    assert page is not None
    page.draw_without_rendering()  # the layout decides where the axes lie
    dot = page.dpi / 72
    at = ax.transData.transform(np.asarray(points, dtype=float)) / dot
    inside = Bbox(ax.get_window_extent().get_points() / dot)
    taken = [Bbox.from_bounds(x - 2.5, y - 2.5, 5, 5) for x, y in at]
    # The most crowded first: they have the least choice.
    near = {place: sum(math.dist(at[place], other) < 40 for other in at) for place in names}
    for place in sorted(names, key=lambda place: (-near[place], place)):
        extent = TextPath((0, 0), names[place], size=SIZE).get_extents()
        width, height = extent.width + 1, 0.95 * SIZE
        best, shift = math.inf, (0.0, 0.0)
        for (tried, radius), turn in itertools.product(enumerate(RADII), TURNS):
            x, y = radius * math.cos(math.radians(turn)), radius * math.sin(math.radians(turn))
            # The nearest edge of the name lies at the radius, not its middle.
            x, y = x + width / 2 * np.sign(round(x, 6)), y + height / 2 * np.sign(round(y, 6))
            box = Bbox.from_bounds(at[place][0] + x - width / 2, at[place][1] + y - height / 2, width, height)
            cost = sum(_shared(box, other) for other in taken) + 4 * _outside(box, inside) + 0.01 * tried
            if cost < best:
                best, shift = cost, (x, y)
            if cost < 0.01 * (tried + 1):
                break
        x, y = at[place][0] + shift[0], at[place][1] + shift[1]
        taken.append(Bbox.from_bounds(x - width / 2, y - height / 2, width, height))
        far = math.hypot(max(0, abs(shift[0]) - width / 2), max(0, abs(shift[1]) - height / 2)) > RADII[1]
        line = {"arrowstyle": "-", "linewidth": 0.4, "color": GREY, "shrinkA": 0, "shrinkB": 2}
        text = ax.annotate(
            names[place], points[place], shift, textcoords="offset points", ha="center", va="center", fontsize=SIZE,
            color=INK, path_effects=HALO, annotation_clip=False,
            arrowprops=line if far else None,
        )  # fmt: skip
        text.set_in_layout(False)


def _shared(one: Bbox, other: Bbox) -> float:
    """The area both boxes cover."""
    both = Bbox.intersection(one, other)
    return 0.0 if both is None else float(both.width * both.height)


def _outside(box: Bbox, frame: Bbox) -> float:
    """The area of a box that lies outside the frame."""
    return float(box.width * box.height) - _shared(box, frame)
