"""One look for every figure: ACL widths, 8-point serif, colours that also differ in shape and read in grey."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, ParamSpec
from weakref import WeakKeyDictionary

import matplotlib
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

COLUMN, TEXT = 3.03, 6.30  # inches: one ACL column, the whole text
INK, GREY, PALE = "#000000", "#767676", "#d9d9d9"
HALO = [withStroke(linewidth=1.5, foreground="white")]
NAMES = {"stsb": "STS-B", "sickr": "SICK-R", **{f"sts{year}": f"STS{year}" for year in range(12, 17)}}
NAMES |= {task: task.upper() for task in ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")}
NAMES |= {
    "info_nce": "InfoNCE",
    "simcse": "SimCSE",
    "listnet": "ListNet",
    "listmle": "ListMLE",
    "mse": "MSE",
    "l1": "L1",
}
NAMES |= {"translated_relu": "Translated ReLU", "smooth_k2": "Smooth K2", "cross_entropy": "cross entropy"}
NAMES |= {"cosine_mse": "cosine MSE", "soft_spearman": "soft Spearman", "pearson_ranks": "Pearson on ranks"}
NAMES |= {"pearson": "Pearson", "cosent": "CoSENT", "angle": "AnglE", "kendall": "Kendall", "ccc": "CCC"}
NAMES |= {"rank_n_contrast": "Rank-N-Contrast"}


class Look(NamedTuple):
    """Colour, marker and line of one series: no two series differ by colour alone."""

    color: str
    marker: str
    line: str | tuple[int, tuple[float, ...]]


PUBLISHED = "paper: "
"""A series whose name begins so was printed by somebody else: its markers are hollow."""


# Okabe and Ito's palette, dark and light in turn so that neighbours differ in grey too.
LOOKS = (
    Look("#0072B2", "o", "-"),
    Look("#D55E00", "s", "--"),
    Look("#009E73", "^", "-."),
    Look("#E69F00", "D", ":"),
    Look("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
    Look("#56B4E9", "P", (0, (1, 1))),
)

_RC: Any = {
    "font.family": ["STIXGeneral"],
    "mathtext.fontset": "stix",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "figure.dpi": 200,
    "savefig.dpi": 200,
    "savefig.bbox": None,
    "axes.linewidth": 0.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "axes.titlelocation": "left",
    "axes.prop_cycle": cycler(color=[look.color for look in LOOKS]),
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
}

_SETTINGS = threading.RLock()

P = ParamSpec("P")


class Drawing(NamedTuple):
    """What a figure was drawn from, so that it can be drawn again: the plot's name, its table and its options."""

    plot: str
    frame: pd.DataFrame
    options: Mapping[str, Any]


DRAWINGS: WeakKeyDictionary[Figure, Drawing] = WeakKeyDictionary()
"""Of every figure that one plot made by itself."""


@contextmanager
def paper_style() -> Iterator[None]:
    """The lab's matplotlib settings inside the block, the caller's again after it.

    What the lab does not set is matplotlib's own default, whatever a notebook or a matplotlibrc says: a figure's bytes
    depend on its numbers alone.

    >>> with paper_style():
    ...     matplotlib.rcParams["pdf.fonttype"]
    42
    """
    # matplotlib's settings are one for all threads, and a live training draws beside the sliders.
    with _SETTINGS, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)
        yield


def styled(draw: Callable[P, Axes]) -> Callable[P, Axes]:
    """A plot that draws in `paper_style` wherever it is called, and whose own figure can be drawn again."""

    @functools.wraps(draw)
    def inside(*args: P.args, **options: P.kwargs) -> Axes:
        with paper_style():
            ax = draw(*args, **options)
        page = ax.get_figure(root=True)
        if page is not None and len(args) == 1 and isinstance(args[0], pd.DataFrame) and options.get("ax") is None:
            given = {name: value for name, value in options.items() if name != "ax"}
            DRAWINGS[page] = Drawing(draw.__name__, args[0].copy(), given)
        return ax

    return inside


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The given Axes, else those of a new figure of this size in inches, which pyplot knows nothing of."""
    return ax if ax is not None else Figure(figsize=(width, height), layout="constrained").add_subplot()


def checked(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The frame, once it has rows, these columns, and no undefined number in them.

    Raises: ValueError that names what is missing, or the row and column of the first undefined number.
    """
    missing = [name for name in columns if name not in frame]
    if missing or frame.empty:
        raise ValueError(f"a frame of {len(frame)} rows with {list(frame)}: this plot needs rows and {list(columns)}")
    for name in columns:
        if pd.api.types.is_numeric_dtype(frame[name]):
            for row in frame.index[~np.isfinite(frame[name].astype(float))]:
                raise ValueError(f"{name} of row {row!r} is undefined: leave that row out and say so in the text")
    return frame


def marks(series: Hashable, look: Look) -> dict[str, Any]:
    """How a series' markers are filled and edged: hollow where somebody else printed it.

    >>> marks("paper: SimCSE", LOOKS[0])["markerfacecolor"], marks("minilm", LOOKS[0])["markerfacecolor"]
    ('white', '#0072B2')
    """
    if str(series).startswith(PUBLISHED):
        return {"markerfacecolor": "white", "markeredgecolor": look.color, "markeredgewidth": 0.7, "markersize": 3.8}
    return {"markerfacecolor": look.color, "markeredgecolor": "white", "markeredgewidth": 0.3, "markersize": 4.5}


def named(label: Hashable) -> str:
    """A label as a paper prints it.

    >>> named("stsb train")
    'STS-B train'
    """
    return " ".join(NAMES.get(word, word) for word in str(label).split())


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The places, moved apart as little as it takes to lie `gap` from each other, in the same order.

    >>> spread([1.0, 1.0, 5.0], 2.0)
    [0.0, 2.0, 5.0]
    """
    order = np.argsort(places, kind="stable")
    free = np.asarray(places, dtype=float)[order] - gap * np.arange(len(places))
    # Pool neighbours that would cross: isotonic regression by pool-adjacent-violators.
    pools: list[list[float]] = []
    for value in free:
        pools.append([value, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            value, count = pools.pop()
            before = pools[-1]
            before[:] = [(before[0] * before[1] + value * count) / (before[1] + count), before[1] + count]
    moved = np.concatenate([np.full(int(count), value) for value, count in pools]) + gap * np.arange(len(places))
    result = np.empty(len(places))
    result[order] = moved
    return [float(place) for place in result]
