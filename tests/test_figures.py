"""A saved figure is its own source: what is drawn from its JSON is the same file again."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import figures, plots

ROWS = pd.DataFrame({"loss": ["a", "a", "b", "b"], "score": [78.1, 78.5, 79.0, 79.3]})
cells = st.one_of(st.floats(allow_infinity=False), st.integers(-9, 9), st.text(max_size=5), st.booleans(), st.none())


def test_a_figure_is_drawn_again_from_its_json_alone(tmp_path: Path) -> None:
    ax = plots.race_intervals(ROWS, baseline=78.0)
    paths = figures.save(ax.figure, tmp_path, "race", numbers={"before": 78.0}, run="04_ablations/abc")  # type: ignore[arg-type]
    before = {path: path.read_bytes() for path in paths}
    sheet = json.loads(paths[-1].read_bytes())
    assert sheet["drawing"]["options"] == {"baseline": 78.0}
    again = figures.save(figures.redraw(sheet), tmp_path, "race", numbers=sheet["numbers"], run=sheet["run"])
    assert {path: path.read_bytes() for path in again} == before


def test_the_table_is_that_of_the_drawing_whatever_becomes_of_the_frame(tmp_path: Path) -> None:
    frame = ROWS.copy()
    ax = plots.race_intervals(frame)
    frame["score"] = 0.0
    figures.save(ax.figure, tmp_path, "race", numbers={}, run="r")  # type: ignore[arg-type]
    assert json.loads((tmp_path / "race.json").read_bytes())["drawing"]["rows"][0] == ["a", 78.1]


def test_a_figure_of_several_plots_holds_no_table(tmp_path: Path) -> None:
    from matplotlib.figure import Figure

    page = Figure()
    plots.race_intervals(ROWS, page.add_subplot())
    figures.save(page, tmp_path, "two", numbers={}, run="07_rankcse/abc")
    with pytest.raises(ValueError, match="07_rankcse/abc holds no table"):
        figures.redraw(json.loads((tmp_path / "two.json").read_bytes()))


def test_a_plot_that_is_gone_is_named() -> None:
    sheet = {"run": "r", "drawing": {"plot": "pie", "options": {}, "columns": [], "rows": []}}
    with pytest.raises(ValueError, match="no plot 'pie'"):
        figures.redraw(sheet)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=6))
def test_a_frame_comes_back_with_its_values(rows: list[tuple[Any, Any]]) -> None:
    frame = pd.DataFrame(rows, columns=["x", "y"])
    kept = json.loads(figures.to_json(figures.to_plain(frame)))
    back = figures.from_plain(kept)
    for (_, mine), (_, theirs) in zip(frame.items(), back.items(), strict=True):
        for one, other in zip(mine, theirs, strict=True):
            assert (pd.isna(one) and pd.isna(other)) or one == other


def test_rows_with_names_and_categories_come_back() -> None:
    index = pd.MultiIndex.from_tuples([("pair", "stsb train"), ("pair", "sickr train"), ("sentence", "stsb train")])
    frame = pd.DataFrame({"sts12": [32.2, math.nan, 1]}, index=index)
    pd.testing.assert_frame_equal(figures.from_plain(figures.to_plain(frame)), frame)
    groups = pd.Categorical(["4-5", "0-1", "4-5"], ["0-1", "2-3", "4-5"], ordered=True)
    frame = pd.DataFrame({"group": groups, "similarity": np.float32([0.5, 0.25, 1])})
    back = figures.from_plain(json.loads(figures.to_json(figures.to_plain(frame))))
    assert list(back["group"].cat.categories) == ["0-1", "2-3", "4-5"] and back["group"].cat.ordered
    assert back["similarity"].tolist() == [0.5, 0.25, 1]


def test_infinity_is_refused_as_no_json() -> None:
    with pytest.raises(ValueError, match="JSON"):
        figures.to_json(figures.to_plain(pd.DataFrame({"x": [math.inf]})))
