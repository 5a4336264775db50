"""Intervals of accuracies against their definition, and the paired bootstrap against resampling row by row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcclab.evaluation import accuracy_interval, compare_answers
from pcclab.evaluation.correlation import Undefined


@given(st.integers(1, 400), st.floats(0, 1))
def test_wilsons_ends_are_scipys(rows, share):
    right = np.arange(rows) < round(share * rows)
    theirs = stats.binomtest(int(right.sum()), rows).proportion_ci(method="wilson")
    np.testing.assert_allclose(accuracy_interval(right), [100 * theirs.low, 100 * theirs.high], atol=1e-9)


def answers(rows=400, seed=0):
    draw = np.random.default_rng(seed)
    first = draw.random(rows) < 0.8
    return first, np.where(draw.random(rows) < 0.9, first, draw.random(rows) < 0.6)


def test_the_multinomial_is_resampling_of_rows():
    first, second = answers()
    told = compare_answers({"mr": (first, second)}, resamples=40_000).loc["mr"]
    rows = np.random.default_rng(1).integers(0, 400, (4000, 400))
    drawn = 100 * (first[rows].mean(1) - second[rows].mean(1))
    assert told.difference == pytest.approx(100 * (first.mean() - second.mean())) == told["first"] - told["second"]
    np.testing.assert_allclose([told.low, told.high], np.quantile(drawn, [0.025, 0.975]), atol=0.26)  # one row: 0.25
    swapped = compare_answers({"mr": (second, first)}, resamples=40_000).loc["mr"]
    assert swapped.difference == -told.difference and swapped.p == pytest.approx(told.p, abs=0.01)


def test_the_average_is_one_question_and_tasks_stand_alone():
    same, other = answers(), answers(300, 1)
    frame = compare_answers({"mr": same, "cr": other})
    assert frame.loc["average", "difference"] == pytest.approx(frame.loc[["mr", "cr"], "difference"].mean())
    assert frame.loc["average", "rows"] == 700 and frame.loc["average", "p_holm"] == frame.loc["average", "p"]
    # The average of independent tasks is surer than either.
    widths = frame.high - frame.low
    assert widths["average"] < widths[["mr", "cr"]].min()
    alone = compare_answers({"cr": other})
    assert alone.index.tolist() == ["cr"] and alone.loc["cr", "low"] == frame.loc["cr", "low"]


def test_equal_answers_do_not_differ_and_one_sided_ones_do():
    first, _ = answers()
    frame = compare_answers({"mr": (first, first), "cr": (np.ones(400, bool), first)})
    assert frame.loc["mr", ["difference", "low", "high"]].tolist() == [0, 0, 0] and frame.loc["mr", "p"] == 1
    assert not frame.loc["mr", "differs"] and frame.loc["cr", "differs"]


def test_what_cannot_be_compared_is_refused():
    right = np.ones(3, bool)
    for options, told in (
        ({"tasks": {}}, "give at least one"),
        ({"tasks": {"average": (right, right)}}, 'none named "average"'),
        ({"tasks": {"mr": (right, right[:2])}}, "mr: 3 and 2 rows"),
        ({"tasks": {"mr": (right, right)}, "resamples": 0}, "resamples=0: draw at least 1"),
        ({"tasks": {"mr": (right, right)}, "level": 1.0}, "level=1.0"),
    ):
        with pytest.raises(ValueError, match=told):
            compare_answers(**options)
    with pytest.raises(Undefined, match="no test rows"):
        accuracy_interval(right[:0])
    with pytest.raises(Undefined, match="mr: no test rows"):
        compare_answers({"mr": (right[:0], right[:0])})
