"""Bootstrap over lists: a slow resampling is the reference, and what cannot be told is told so."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

from pcclab.evaluation.list_intervals import compare_ranks, rank_intervals, widest
from pcclab.evaluation.rank_tasks import RankResults, RankScore


def score(taus, *, groups=None, gains=None, names=None):
    """A set whose lists have these values."""
    known = [tau for tau in taus if tau is not None]
    gains = gains or [90.0 + at for at in range(len(taus))]
    return RankScore(
        len(taus),
        5 * len(taus),
        float(np.mean(known)) if known else None,
        float(np.mean(gains)) if gains else None,
        constant=85.0,
        queries=tuple(names or (f"q{at}" for at in range(len(taus)))),
        groups=tuple(groups or range(len(taus))),
        taus=tuple(taus),
        gains=tuple(gains),
    )


ONE = RankResults({"a": score([10.0, 40.0, None, 70.0, 20.0]), "b": score([50.0, 60.0])})
TWO = RankResults({"a": score([15.0, 10.0, 5.0, 60.0, None]), "b": score([20.0, 30.0])})


def row(frame, task, model=None, measure="kendall"):
    chosen = frame[(frame["task"] == task) & (frame["measure"] == measure)]
    return (chosen if model is None else chosen[chosen["model"] == model]).iloc[0]


def test_the_interval_is_that_of_resampled_lists_one_by_one():
    frame = rank_intervals({"one": ONE}, resamples=400, seed=7)
    draws = np.random.default_rng((7, zlib.crc32(b"a"))).multinomial(5, [0.2] * 5, size=400)
    values = [10.0, 40.0, None, 70.0, 20.0]
    means = []
    for counts in draws:
        drawn = [value for value, count in zip(values, counts, strict=True) for _ in range(count) if value is not None]
        means.append(np.mean(drawn))
    found = row(frame, "a", "one")
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])))
    assert found.value == pytest.approx(35.0)
    assert (found.lists, found.groups) == (4, 4)
    assert np.isnan(found.constant) and row(frame, "a", "one", "ndcg").constant == 85.0


def test_the_average_is_that_of_the_sets_resample_by_resample():
    frame = rank_intervals({"one": ONE}, resamples=500)
    found, parts = row(frame, "average", "one"), [row(frame, task, "one") for task in "ab"]
    assert found.value == pytest.approx(ONE.kendall) == np.mean([part.value for part in parts])
    # Sets are independent: their average varies less than either, and is no plain average of the ends.
    assert found.high - found.low < max(part.high - part.low for part in parts)
    assert found.lists == sum(part.lists for part in parts)
    assert list(frame["task"])[-2:] == ["average"] * 2


def test_groups_of_linked_lists_vary_more_than_lists_taken_as_independent():
    taus = [10.0] * 10 + [60.0] * 10
    apart = RankResults({"a": score(taus, groups=[at // 10 for at in range(20)])})
    width = {over: row(rank_intervals({"x": apart}, over=over, resamples=2000), "a") for over in ("lists", "groups")}
    assert width["groups"].high - width["groups"].low > 2 * (width["lists"].high - width["lists"].low)
    assert (width["groups"].low, width["groups"].high) == pytest.approx((10, 60))
    # Where each list is a group of its own both are the same.
    own = RankResults({"a": score(taus)})
    assert rank_intervals({"x": own}, over="groups").equals(rank_intervals({"x": own}, over="lists"))


def test_two_models_are_compared_on_the_lists_that_both_have():
    frame = compare_ranks(ONE, TWO, resamples=1000)
    found = row(frame, "a")
    assert found.difference == pytest.approx(np.mean([-5.0, 30.0, 10.0])) and found.lists == 3
    assert found.low < 0 < found.high and not found.differs
    assert row(frame, "b").difference == pytest.approx(30) and row(frame, "b").low > 0
    assert row(frame, "b").differs
    assert (frame["p_holm"] >= frame["p"]).all()
    same = compare_ranks(ONE, ONE, resamples=200)
    assert (same["difference"] == 0).all() and (same["p"] == 1).all() and not same["differs"].any()


def test_a_set_without_a_value_stays_undefined_and_so_does_the_average():
    empty = RankResults({"a": score([]), "b": score([50.0, 60.0])})
    frame = rank_intervals({"one": empty}, resamples=50)
    assert row(frame, "a", "one")[["value", "low", "high"]].isna().all()
    assert row(frame, "average", "one")[["value", "low", "high"]].isna().all()
    assert row(frame, "b", "one").low >= 50
    told = compare_ranks(empty, empty, resamples=50)
    assert row(told, "a")[["difference", "p", "p_holm"]].isna().all() and not told["differs"].any()


def test_the_widest_lists_are_those_two_models_order_most_unlike():
    frame = widest({"one": ONE, "two": TWO}, count=2)
    assert list(frame.itertuples(index=False, name=None)) == [("a", "q1", 40.0, 10.0), ("b", "q0", 50.0, 20.0)]
    assert list(widest({"one": ONE}, count=1)["query"]) == ["q0"]  # of one model the worst
    assert len(widest({"one": ONE, "two": TWO}, count=99)) == 5  # a list without both values is none to compare


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: rank_intervals({}), "no models"),
        (lambda: rank_intervals({"x": ONE}, level=1.0), "level=1.0"),
        (lambda: rank_intervals({"x": ONE}, resamples=0), "resamples=0"),
        (lambda: rank_intervals({"x": ONE}, over="pairs"), "over is 'pairs'"),
        (lambda: compare_ranks(ONE, RankResults({"a": score([1.0])})), "judge alike"),
        (
            lambda: compare_ranks(ONE, RankResults({"a": score([1.0] * 5, names="vwxyz"), "b": ONE.tasks["b"]})),
            "second and first have other lists in a",
        ),
        (lambda: widest({"x": ONE}, count=0), "count is 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
