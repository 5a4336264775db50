"""Figures under the sliders: small tables a moved value makes anew, drawn at a printed width."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from pcclab.plots.ceilings import _FORMULAS
from pcclab.plots.objectives import error_curves
from pcclab.plots.style import GREY, HALO, LOOKS, PALE, TEXT, checked, named, spread, styled


def _panels(
    height: float, edges: Sequence[tuple[float, float]], *, bottom: float = 0.42, top: float = 0.2
) -> list[Axes]:
    """Axes side by side on a page as wide as the text, at fixed places: they stand still while a value moves.

    Args:
        height: of the page in inches; bottom and top are what it leaves below and above the axes.
        edges: left and right edge of each, in inches.
    """
    page = Figure(figsize=(TEXT, height))
    low, tall = bottom / height, (height - bottom - top) / height
    return [page.add_axes((left / TEXT, low, (right - left) / TEXT, tall)) for left, right in edges]


@styled
def scorer_ceilings(curve: pd.DataFrame, points: pd.DataFrame) -> Axes:
    """A scorer of two levels as it hardens, beside what it and the best scorers of few levels reach.

    Args:
        curve: columns gold and score, one row a pair.
        points: columns scorer, formula ("midrank" or "paper") and spearman, from above.

    Returns: the left one of two Axes.
    """
    left, right = _panels(1.9, [(0.42, 2.3), (3.75, TEXT - 0.05)])
    curve = checked(curve, "gold", "score").sort_values("gold", kind="stable")
    look = LOOKS[0]
    left.plot(curve["gold"], curve["score"], linestyle="none", marker=look.marker, color=look.color, markersize=2.5,
              markeredgewidth=0, markevery=max(1, len(curve) // 400))  # fmt: skip
    left.set(xlabel="gold", ylabel="score", ylim=(-0.05, 1.05))
    points = checked(points, "scorer", "formula", "spearman")
    scorers = list(points["scorer"].unique())
    lowest = np.floor(10 * min(0.85, points["spearman"].min())) / 10
    for formula, part in points.groupby("formula", sort=False):
        look, name = _FORMULAS[str(formula)]
        paper = formula == "paper"
        rows = [scorers.index(scorer) for scorer in part["scorer"]]
        right.plot(part["spearman"], rows, look.marker, color=look.color, markerfacecolor="white" if paper else None,
                   markersize=4.5, label=name, zorder=2 - paper)  # fmt: skip
        for row, value in zip(rows, part["spearman"], strict=True):
            # Equation 2 never gives the smaller one, so its label has the right side to itself.
            right.annotate(f"{value:.4f}", (value, row), (5 if paper else -5, 0), textcoords="offset points",
                           ha="left" if paper else "right", va="center_baseline", fontsize=7, color=look.color,
                           path_effects=HALO)  # fmt: skip
    right.hlines(range(len(scorers)), lowest - 0.16 * (1 - lowest), 1, color=PALE, linewidth=0.6, zorder=0)
    right.axvline(1, color=GREY, linewidth=0.6, zorder=0)
    right.set_yticks(range(len(scorers)), scorers)
    right.tick_params(axis="y", length=0)
    right.spines["left"].set_visible(False)
    right.set(
        xlabel=r"Spearman's $\rho$",
        xlim=(lowest - 0.16 * (1 - lowest), 1 + 0.2 * (1 - lowest)),
        ylim=(len(scorers) - 0.4, -0.6),
    )
    right.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2)
    return left


@styled
def error_panels(frame: pd.DataFrame, *, gold: float, threshold: float, labels: Sequence[float]) -> Axes:
    """`error_curves` as two panels side by side: the loss and its gradient.

    Args: as `error_curves`.
    Returns: the left one of two Axes.
    """
    left, right = _panels(2.0, [(0.6, 3.05), (3.8, TEXT - 0.05)], top=0.22)
    error_curves(frame, left, value="loss", gold=gold, threshold=threshold, labels=labels)
    error_curves(frame, right, value="gradient", gold=gold, threshold=threshold, labels=labels)
    legend = right.get_legend()
    assert legend is not None
    legend.remove()
    return left


@styled
def list_pulls(frame: pd.DataFrame) -> Axes:
    """One list of similarities as student and teacher have it, and beside it how each objective pulls on its items.

    Args:
        frame: columns loss_name, loss, item (0 is the positive), student, teacher (NaN where it has none) and pull.

    Returns: the first of the Axes.
    """
    frame = checked(frame, "loss_name", "loss", "item", "student", "pull")
    names = list(frame["loss_name"].unique())
    wide = (TEXT - 0.45 - 0.05) / (len(names) + 1)
    lefts = [0.42 + place * wide + (0.12 if place else 0) for place in range(len(names) + 1)]
    first, *panels = _panels(2.0, [(left, left + wide - 0.42) for left in lefts], top=0.32)
    part = frame[frame["loss_name"] == names[0]]
    for name, look in (("student", LOOKS[0]), ("teacher", LOOKS[1])):
        known = part.dropna(subset=[name])
        first.plot(known["item"], known[name], look.marker, color=look.color, label=name,
                   markerfacecolor="white" if name == "teacher" else None)  # fmt: skip
    first.set_title("similarity", pad=14)
    first.set_ylim(min(0.0, part["student"].min(), part["teacher"].min()) - 0.05, 1.05)
    first.legend(loc="lower left", bbox_to_anchor=(-0.2, 1), ncols=2, borderaxespad=0, columnspacing=0.8,
                 handletextpad=0, handlelength=1.4)  # fmt: skip
    for panel, name in zip(panels, names, strict=True):
        part, look = frame[frame["loss_name"] == name], LOOKS[0]
        panel.axhline(0, color=GREY, linewidth=0.5, zorder=0)
        panel.vlines(part["item"], 0, part["pull"], color=look.color, linewidth=1.4)
        panel.plot(part["item"], part["pull"], look.marker, color=look.color, markersize=2.5)
        panel.set_title(f"pull of {name}", pad=14)
        panel.annotate(f"loss {part['loss'].iloc[0]:.3f}", (0, 1), (0, 3), xycoords="axes fraction", fontsize=7,
                       textcoords="offset points", color=GREY)  # fmt: skip
        panel.margins(y=0.12)
    for panel in (first, *panels):
        panel.set(xlabel="item, as the teacher ranks")
        panel.set_xticks([0, 5, 10, 15], ["+", "5", "10", "15"])
        panel.set_xlim(-1, max(15, int(frame["item"].max())) + 1)
    return first


@styled
def bent_scatter(scatter: pd.DataFrame, shares: pd.DataFrame, *, loss: str) -> Axes:
    """Similarities over ratings with the pulls of one loss, and of every loss the share that one pair takes.

    Args:
        scatter: columns gold, similarity, outlier and the pulls of `loss`.
        shares: columns loss_name, loss and share (0 to 1), from above.
        loss: whose pulls are drawn.

    Returns: the left one of two Axes.
    """
    left, right = _panels(2.3, [(0.45, 3.05), (4.25, TEXT - 0.55)], top=0.12)
    scatter = checked(scatter, "gold", "similarity", loss)
    strongest = float(scatter[loss].abs().max())
    reach = 0.35 * scatter[loss] / strongest if strongest else 0 * scatter[loss]
    left.quiver(scatter["gold"], scatter["similarity"], 0 * reach, reach, angles="xy", scale_units="xy", scale=1,
                color=GREY, width=0.004, headwidth=4, headlength=4, headaxislength=4, zorder=1)  # fmt: skip
    for astray, look in ((False, LOOKS[0]), (True, LOOKS[1])):
        part = scatter[scatter["outlier"] == astray]
        left.plot(part["gold"], part["similarity"], look.marker, color=look.color, zorder=2)
    left.yaxis.set_major_locator(MultipleLocator(0.5))
    ends = scatter["similarity"].min(), scatter["similarity"].max()
    left.set(xlabel="gold", ylabel="similarity", ylim=(min(-0.5, ends[0] - 0.4), max(1.5, ends[1] + 0.4)))
    shares = checked(shares, "loss_name", "loss", "share")
    rows = np.arange(len(shares))
    right.axvline(100 / len(scatter), color=GREY, linewidth=0.6, linestyle=(0, (4, 2)), zorder=0)
    right.annotate("an even share", (100 / len(scatter), 1), (2, 0), xycoords=("data", "axes fraction"), fontsize=7,
                   textcoords="offset points", va="top", color=GREY)  # fmt: skip
    right.hlines(rows, 0, 100 * shares["share"], color=PALE, linewidth=0.8, zorder=0)
    for row, name, cost, share in zip(rows, shares["loss_name"], shares["loss"], 100 * shares["share"], strict=True):
        right.plot(share, row, LOOKS[1].marker, color=LOOKS[1].color, markerfacecolor=None if name == loss else "white")
        right.annotate(f"{cost:.3g}", (1, row), (4, 0), xycoords=("axes fraction", "data"), fontsize=7,
                       textcoords="offset points", va="center_baseline", annotation_clip=False)  # fmt: skip
    right.annotate("loss", (1, 0), (4, 12), xycoords=("axes fraction", "data"), textcoords="offset points", color=GREY,
                   annotation_clip=False)  # fmt: skip
    right.set_yticks(rows, [name.replace("_", " ") for name in shares["loss_name"]])
    right.tick_params(axis="y", length=0)
    right.spines["left"].set_visible(False)
    right.set(xlabel="% of its pull on the one pair", xlim=(-1, max(30.0, 110 * shares["share"].max())))
    right.set_ylim(len(shares) - 0.5, -1.2)
    return left


@styled
def seen_shares(frame: pd.DataFrame) -> Axes:
    """What share of one test stands in each set, as whole pairs and by at least one sentence.

    Args:
        frame: columns train, level ("pair" or "sentence") and percent, the sets from above.
    """
    frame = checked(frame, "train", "level", "percent")
    sets = list(frame["train"].unique())
    (ax,) = _panels(0.65 + 0.19 * len(sets), [(1.2, TEXT - 0.45)])
    kinds = (("sentence", "at least one sentence", LOOKS[1]), ("pair", "the same pair", LOOKS[0]))
    for level, name, look in kinds:
        part = frame[frame["level"] == level].set_index("train")["percent"].reindex(sets)
        ax.plot(part, range(len(sets)), look.marker, color=look.color, label=name, zorder=2 if level == "pair" else 1,
                markerfacecolor=None if level == "pair" else "white", markersize=4.5)  # fmt: skip
        for row, value in enumerate(part):
            left = level == "pair"
            ax.annotate(f"{value:.1f}", (value, row), (-5 if left else 5, 0), textcoords="offset points", fontsize=7,
                        ha="right" if left else "left", va="center_baseline", color=look.color,
                        path_effects=HALO, annotation_clip=False)  # fmt: skip
    ax.hlines(range(len(sets)), 0, 100, color=PALE, linewidth=0.6, zorder=0)
    ax.set_yticks(range(len(sets)), [named(name) for name in sets])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set(xlabel="% of the test's pairs", xlim=(-6, 101), ylim=(len(sets) - 0.5, -0.5))
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0)
    return ax


@styled
def live_curves(frame: pd.DataFrame, *, steps: int) -> Axes:
    """A training on its way: the loss of each step, and the scores at each look.

    Args:
        frame: columns step, loss, dev and tests (Spearman x 100), NaN where one was not taken.
        steps: how many there will be.

    Returns: the left one of two Axes.
    """
    left, right = _panels(2.0, [(0.5, 3.0), (3.65, TEXT - 0.75)])
    look = LOOKS[0]
    part = frame.dropna(subset=["loss"])
    left.plot(part["step"], part["loss"], linestyle=look.line, color=look.color)
    left.set(xlabel="step", ylabel="training loss", xlim=(0, steps))
    ends: dict[tuple[str, str], float] = {}
    for name, text, look in (("dev", "clean pairs", LOOKS[0]), ("tests", "tests", LOOKS[1])):
        part = frame.dropna(subset=[name])
        right.plot(part["step"], part[name], linestyle=look.line, marker=look.marker, color=look.color)
        if len(part):
            ends[text, look.color] = float(part[name].iloc[-1])
    right.margins(y=0.15)
    low, high = right.get_ylim()
    places = spread(list(ends.values()), 9 * (high - low) / (72 * 1.38))
    for (text, color), value, place in zip(ends, ends.values(), places, strict=True):
        right.annotate(f"{text} {value:.1f}", (1, place), (4, 0), xycoords=("axes fraction", "data"), fontsize=7,
                       textcoords="offset points", va="center", color=color, annotation_clip=False)  # fmt: skip
    right.set(
        xlabel="step", ylabel=r"Spearman's $\rho \times 100$", ylim=(low, high), xlim=(-0.02 * steps, 1.02 * steps)
    )
    return left
