"""The pages under the sliders: at their width, whole, the same bytes again, and refusing what they cannot draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from pcclab import figures, plots
from pcclab.plots import explorations


def curve() -> pd.DataFrame:
    return pd.DataFrame({"gold": np.linspace(0, 5, 30), "score": np.linspace(0, 1, 30)})


def points() -> pd.DataFrame:
    rows = [("two levels, 3,000 of 10,000", "midrank", 0.24), ("12 levels at best", "midrank", 1.0)]
    rows += [("12 levels at best", "paper", 1.0)]
    return pd.DataFrame(rows, columns=["scorer", "formula", "spearman"])


def errors() -> pd.DataFrame:
    x = np.linspace(-1.25, 6.25, 30)
    return pd.concat(pd.DataFrame({"loss_name": name, "prediction": x, "loss": k * x**2, "gradient": 2 * k * x})
                     for name, k in (("Translated ReLU", 50.0), ("Smooth K2", 500.0)))  # fmt: skip


def lists() -> pd.DataFrame:
    item = np.arange(16)
    told = {"item": item, "student": 1 - item / 10, "teacher": [math.nan, *(1 - item[1:] / 20)]}
    return pd.concat(pd.DataFrame({"loss_name": name, "loss": 12.345, **told, "pull": 1000.0 * np.cos(item)})
                     for name in ("InfoNCE", "ListNet", "ListMLE"))  # fmt: skip


def scatter() -> pd.DataFrame:
    gold = np.linspace(0, 5, 20)
    return pd.DataFrame({"gold": gold, "similarity": gold / 5, "outlier": gold == gold[17], "pearson": -gold})


def shares() -> pd.DataFrame:
    return pd.DataFrame({"loss_name": ["pearson", "soft_spearman"], "loss": [0.0123, 123.4], "share": [0.0, 0.9]})


def leaked() -> pd.DataFrame:
    sets = ["stsb train", "sickr dev", "stage 2, filter"]
    rows = [(name, level, percent) for level in ("pair", "sentence") for name, percent in zip(sets, (0, 49.6, 100))]  # noqa: B905
    return pd.DataFrame(rows, columns=["train", "level", "percent"])


def steps() -> pd.DataFrame:
    dev = [46.8, math.nan, 50.04]
    return pd.DataFrame({"step": [0, 1, 2], "loss": [math.nan, 0.6, 0.5], "dev": dev, "tests": dev})


PAGES: dict[str, tuple[Callable[[pd.DataFrame], Axes], Callable[[], pd.DataFrame]]] = {
    "scorer_ceilings": (lambda frame: explorations.scorer_ceilings(curve(), frame), points),
    "error_panels": (lambda frame: explorations.error_panels(frame, gold=0, threshold=0.25, labels=[0, 1, 2]), errors),
    "list_pulls": (explorations.list_pulls, lists),
    "bent_scatter": (lambda frame: explorations.bent_scatter(scatter(), frame, loss="pearson"), shares),
    "seen_shares": (explorations.seen_shares, leaked),
    "live_curves": (lambda frame: explorations.live_curves(frame, steps=2), steps),
}
every = pytest.mark.parametrize("name", PAGES)


def page(ax: Axes) -> Figure:
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


@every
def test_a_page_is_as_wide_as_the_text_and_holds_all_its_words(name: str) -> None:
    draw, frame = PAGES[name]
    made = page(draw(frame()))
    assert made.get_figwidth() == plots.TEXT
    figures.png(made)
    inside = made.get_window_extent().padded(2)
    ticks = {label for ax in made.axes for label in [*ax.get_xticklabels(), *ax.get_yticklabels()]}
    shown = [text for text in made.findobj(Text) if isinstance(text, Text) and text.get_visible() and text.get_text()]
    assert len(shown) > 5
    for text in shown:
        box: Any = text.get_window_extent()
        beyond = text in ticks and not any(_within(ax, text) for ax in made.axes)
        assert beyond or (inside.containsx(box.x0) and inside.containsx(box.x1)), text.get_text()
        assert beyond or (inside.containsy(box.y0) and inside.containsy(box.y1)), text.get_text()


def _within(ax: Axes, tick: Text) -> bool:
    """Whether a tick's label is of a tick that is drawn: those beyond the limits are kept, unseen."""
    low, high = sorted(ax.get_xlim()) if tick in ax.get_xticklabels() else sorted(ax.get_ylim())
    at = tick.get_position()[0 if tick in ax.get_xticklabels() else 1]
    return tick in [*ax.get_xticklabels(), *ax.get_yticklabels()] and low <= at <= high


@every
def test_the_same_numbers_give_the_same_bytes_and_leave_no_trace(name: str) -> None:
    draw, frame = PAGES[name]
    settings, given = dict(matplotlib.rcParams), frame()
    assert figures.png(page(draw(given))) == figures.png(page(draw(frame())))
    assert dict(matplotlib.rcParams) == settings
    pd.testing.assert_frame_equal(given, frame())


@every
def test_the_axes_stand_still_while_numbers_move(name: str) -> None:
    draw, frame = PAGES[name]
    moved = frame()
    for column in moved.select_dtypes("float"):
        moved[column] = moved[column] * 0.9
    before, after = page(draw(frame())), page(draw(moved))
    for made in (before, after):
        figures.png(made)
    assert [ax.get_position().bounds for ax in before.axes] == [ax.get_position().bounds for ax in after.axes]


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"live_curves"}))
def test_what_cannot_be_drawn_is_told(name: str) -> None:
    draw, frame = PAGES[name]
    with pytest.raises(ValueError, match=r"with \['other'\]: this plot needs"):
        draw(pd.DataFrame({"other": [1, 2]}))
    column = {"scorer_ceilings": "spearman", "bent_scatter": "share", "seen_shares": "percent"}.get(name, "loss")
    damaged = frame().reset_index(drop=True)
    damaged[column] = damaged[column].astype(float)
    damaged.loc[1, column] = math.nan
    with pytest.raises(ValueError, match=f"{column} of row 1 is undefined"):
        draw(damaged)


def test_a_training_that_has_just_begun_is_drawn() -> None:
    made = page(explorations.live_curves(steps().head(1), steps=200))
    assert "clean pairs 46.8" in [text.get_text() for text in made.findobj(Text)]  # type: ignore[union-attr]


def test_marks_stand_in_the_panels_of_their_models() -> None:
    frame = pd.DataFrame({"model": ["a"] * 4 + ["b"] * 4, "group": ["0-1", "1-2"] * 4, "similarity": np.arange(8) / 8})
    panels = page(plots.cosine_groups(frame, marks={"b": 0.3})).axes
    dashed = [[line.get_xdata()[0] for line in panel.lines if line.get_linestyle() == "--"] for panel in panels]  # type: ignore[index]
    assert dashed == [[], [0.3]]
