"""Intervals hold what they promise, on average over many simulated test sets."""

from __future__ import annotations

import zlib
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcclab.evaluation import Undefined, spearman
from pcclab.evaluation.resampling import resampled
from pcclab.evaluation.significance import holm
from pcclab.evaluation.statistics import bootstrap, compare, compare_tasks, seeds


def judged(generator, pairs, *noises):
    """Gold with ties and one model for each level of noise."""
    meaning = generator.normal(size=pairs)
    gold = np.clip(np.round(2.5 + 1.2 * meaning + 0.3 * generator.normal(size=pairs), 1), 0, 5)
    return [meaning + noise * generator.normal(size=pairs) for noise in noises], gold


def test_an_interval_is_the_quantiles_of_the_resampled_scores():
    (model,), gold = judged(np.random.default_rng(0), 300, 0.8)
    drawn = 100 * resampled(model[None], gold, resamples=400, seed=9)[0]
    for level in (0.5, 0.95):
        found = bootstrap(model, gold, resamples=400, seed=9, level=level)
        assert found.value == pytest.approx(100 * stats.spearmanr(model, gold).statistic, abs=1e-10)
        assert (found.low, found.high) == pytest.approx(tuple(np.quantile(drawn, [0.5 - level / 2, 0.5 + level / 2])))
        assert found.low < found.value < found.high and (found.level, found.resamples) == (level, 400)
    with pytest.raises(FrozenInstanceError):
        found.low = 0.0


def test_scipys_bootstrap_gives_the_same_interval_but_for_chance():
    (model,), gold = judged(np.random.default_rng(2), 250, 1.0)
    theirs = stats.bootstrap(
        (model, gold),
        lambda x, y: stats.spearmanr(x, y).statistic,
        paired=True,
        vectorized=False,
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    ours = bootstrap(model, gold, resamples=20_000)
    # An end of 2,000 resamples has a standard error of 0.2.
    assert (ours.low, ours.high) == pytest.approx((100 * theirs.low, 100 * theirs.high), abs=0.8)


def test_the_interval_covers_the_populations_value_as_often_as_it_says():
    generator = np.random.default_rng(7)
    (model,), gold = judged(generator, 400_000, 0.7)
    truth = 100 * spearman(model, gold)
    covered, sets = 0, 400
    for number in range(sets):
        (model,), gold = judged(generator, 120, 0.7)
        interval = bootstrap(model, gold, resamples=300, seed=number, level=0.9)
        covered += interval.low <= truth <= interval.high
    # 0.9 with a standard error of 0.015; the percentile interval is known to cover a little less on small sets.
    assert 0.85 <= covered / sets <= 0.94


def test_the_difference_covers_its_truth_and_says_none_where_there_is_none():
    generator = np.random.default_rng(8)
    (better, worse), gold = judged(generator, 400_000, 0.6, 1.1)
    truth = 100 * (spearman(better, gold) - spearman(worse, gold))
    covered = told = detected = 0
    sets = 300
    for number in range(sets):
        (better, worse, other), gold = judged(generator, 120, 0.6, 1.1, 0.6)
        found = compare(better, worse, gold, resamples=300, seed=number, level=0.9)
        covered += found.low <= truth <= found.high
        detected += found.differs
        told += compare(better, other, gold, resamples=300, seed=number, level=0.9).differs
    assert 0.85 <= covered / sets <= 0.95
    assert told / sets <= 0.15
    assert detected / sets >= 0.9


def test_a_difference_is_paired():
    (first, second), gold = judged(np.random.default_rng(3), 300, 0.7, 0.8)
    drawn = 100 * resampled(np.stack([first, second]), gold, resamples=500, seed=2)
    found = compare(first, second, gold, resamples=500, seed=2)
    change = drawn[0] - drawn[1]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(change, [0.025, 0.975])))
    assert found.value == pytest.approx(found.first - found.second)
    assert found.p == pytest.approx(2 * (1 + (change <= 0).sum()) / 501)
    turned = compare(second, first, gold, resamples=500, seed=2)
    assert (turned.value, turned.low, turned.high, turned.p) == pytest.approx(
        (-found.value, -found.high, -found.low, found.p)
    )
    # "Fails without the treatment": from resamples of its own for each model the interval is wider.
    apart = drawn[0] - 100 * resampled(second[None], gold, resamples=500, seed=3)[0]
    assert np.ptp(np.quantile(apart, [0.025, 0.975])) > 1.1 * (found.high - found.low)


def test_models_that_rank_alike_do_not_differ():
    (model,), gold = judged(np.random.default_rng(3), 100, 0.7)
    found = compare(model, np.exp(model), gold, resamples=50)
    assert (found.value, found.low, found.high, found.p, found.differs) == (0, 0, 0, 1, False)
    assert str(found) == "+0.00 [+0.00, +0.00], p = 1"


def tasks_of(seed=0):
    generator = np.random.default_rng(seed)
    found = {}
    for name, pairs, worse in (("one", 200, 1.2), ("two", 350, 0.7), ("three", 150, 2.0)):
        (first, second), gold = judged(generator, pairs, 0.7, worse)
        found[name] = (first, second, gold)
    return found


def test_the_table_is_compare_on_each_task_and_the_mean_of_independent_resamples():
    tasks = tasks_of()
    frame = compare_tasks(tasks, resamples=600, seed=11, level=0.9)
    assert list(frame.index) == ["one", "two", "three", "average"] and frame.index.name == "task"
    assert list(frame.columns) == [
        *("pairs", "first", "second", "difference", "low", "high", "p", "p_holm", "differs"),
    ]
    drawn = []
    for name, (first, second, gold) in tasks.items():
        seed = (11, zlib.crc32(name.encode()))
        alone = compare(first, second, gold, resamples=600, seed=seed, level=0.9)
        row = frame.loc[name]
        assert (row.pairs, row.first, row.second) == (len(gold), alone.first, alone.second)
        assert (row.difference, row.low, row.high, row.p) == (alone.value, alone.low, alone.high, alone.p)
        drawn.append(100 * np.diff(resampled(np.stack([second, first]), gold, resamples=600, seed=seed), axis=0)[0])
    average = frame.loc["average"]
    assert average.pairs == 700
    assert average.difference == pytest.approx(frame.difference[:3].mean())
    assert (average.low, average.high) == pytest.approx(tuple(np.quantile(np.mean(drawn, axis=0), [0.05, 0.95])))
    assert average.p == average.p_holm
    assert abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 0.15
    assert frame.p_holm[:3].to_list() == holm(frame.p[:3].to_list()).tolist()
    assert (frame.p_holm[:3] > frame.p[:3]).any()
    assert (frame.differs == (frame.p_holm < 0.1)).all()
    assert frame.differs["three"] and not frame.differs["two"]


def test_a_tasks_row_is_its_own():
    tasks = tasks_of()
    alone = compare_tasks({"two": tasks["two"]}, resamples=100)
    assert list(alone.index) == ["two"] and (alone.p == alone.p_holm).all()
    columns = ["difference", "low", "high", "p"]
    assert (compare_tasks(tasks, resamples=100).loc["two", columns] == alone.loc["two", columns]).all()


def test_wrong_input_is_refused_with_the_tasks_name():
    (model,), gold = judged(np.random.default_rng(3), 50, 0.7)
    with pytest.raises(Undefined, match="stsb: all 50 similarities are 1"):
        compare_tasks({"stsb": (model, np.ones(50), gold)})
    with pytest.raises(ValueError, match="give at least one"):
        compare_tasks({})
    with pytest.raises(ValueError, match='none named "average"'):
        compare_tasks({"average": (model, model, gold)})
    for level in (0, 1, 95):
        with pytest.raises(ValueError, match=f"level={level}: give a probability"):
            bootstrap(model, gold, level=level)
    with pytest.raises(ValueError, match="shapes"):
        compare(model, model[:9], gold)


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=12), st.sampled_from([0.5, 0.95]))
def test_seeds_give_students_interval(values, level):
    found = seeds(values, level=level)
    assert (found.mean, found.sd, found.n) == pytest.approx((np.mean(values), np.std(values, ddof=1), len(values)))
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    expected = np.mean(values) + error * np.array(stats.t.interval(level, len(values) - 1))
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-9)


def test_the_seed_interval_covers_as_often_as_it_says():
    samples = np.random.default_rng(4).normal(80, 0.3, size=(2000, 3))
    intervals = [seeds(row) for row in samples]
    covered = np.mean([found.low <= 80 <= found.high for found in intervals])
    assert covered == pytest.approx(0.95, abs=0.015)


def test_one_seed_has_no_interval_and_none_no_mean():
    found = seeds([80.83])
    assert (found.mean, found.low, found.high, found.sd, found.n) == (80.83, None, None, None, 1)
    assert str(found) == "80.83 (n = 1, no interval)"
    with pytest.raises(Undefined, match="no seeds have no mean"):
        seeds([])
    with pytest.raises(ValueError, match="give one finite score a seed"):
        seeds([80.0, np.nan])
