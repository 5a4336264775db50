"""Effective levels count what a scorer tells apart, and the split adds up to the Spearman."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from pcclab import ceiling
from pcclab.evaluation import Undefined, bootstrap, levels_interval, untied_ceiling
from pcclab.evaluation.levels import effective_levels


@st.composite
def judged(draw, distinct=(2, 5, 10**9)):
    """Scores that follow the gold loosely, from few to many distinct values on both sides."""
    pairs, seed = draw(st.integers(8, 60)), draw(st.integers(0, 2**32))
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, draw(st.sampled_from([3, 10, 10**9])), pairs) / 1.0
    scores = stats.rankdata(gold) / pairs + draw(st.floats(0, 2)) * generator.normal(size=pairs)
    levels = draw(st.sampled_from(distinct))
    scores = np.floor(levels * (stats.rankdata(scores) - 0.5) / pairs) if levels < pairs else scores
    assume(np.ptp(gold) > 0 and np.ptp(scores) > 0)
    return scores, gold


@given(judged())
@settings(max_examples=60, deadline=None)
def test_the_first_m_that_reaches_the_spearman_is_the_levels_rounded_up(data):
    scores, gold = data
    found = effective_levels(scores, gold)
    value = stats.spearmanr(scores, gold).statistic
    assert found.spearman == pytest.approx(100 * value, abs=1e-9)
    best = {m: ceiling.on_gold(gold, levels=m).value for m in range(2, len(set(gold)) + 1)}
    if value <= 0:
        assert found.levels == 1
    else:
        # Slow: every m in turn.
        assert math.ceil(found.levels) == next(m for m, reached in best.items() if reached >= value - 1e-12)


@given(judged(distinct=(2,)))
@settings(max_examples=40, deadline=None)
def test_a_scorer_of_two_values_has_two_levels_at_most_and_nothing_within(data):
    found = effective_levels(*data)
    assert found.levels <= 2
    assert found.share_within is None or found.share_within == pytest.approx(0, abs=1e-9)
    assert found.within_low is None and found.within_high is None
    assert found.between == pytest.approx(found.spearman, abs=1e-9)
    assert found.upper == np.mean(data[0] == data[0].max())


@pytest.mark.parametrize("m", [2, 3, 7, 12])
def test_the_best_scorer_of_m_levels_has_m_levels(m):
    gold = np.round(np.random.default_rng(m).uniform(0, 5, 500), 1)
    scores = np.digitize(gold, ceiling.on_gold(gold, levels=m).cuts).astype(float)
    assert effective_levels(scores, gold).levels == m


def test_the_gold_itself_has_all_its_values_and_no_scorer_has_more():
    generator = np.random.default_rng(0)
    gold = generator.integers(0, 21, 400) / 4
    top = effective_levels(gold, gold)
    assert top.levels == len(set(gold)) == 21 and top.spearman == pytest.approx(100)
    previous = top.levels
    for noise in (0.05, 0.2, 0.5, 1.0, 3.0):
        found = effective_levels(gold + noise * generator.normal(size=400), gold).levels
        assert found < previous
        previous = found
    assert effective_levels(gold, gold, limit=21).levels == 21
    assert effective_levels(gold, gold, limit=20).levels == math.inf
    assert effective_levels(gold, gold, limit=np.int64(5)).levels == math.inf


def test_on_many_untied_ratings_the_levels_are_a_closed_form():
    generator = np.random.default_rng(1)
    gold = generator.normal(size=4000)
    for noise in (0.1, 0.5, 1.0, 3.0):
        scores = gold + noise * generator.normal(size=4000)
        found = effective_levels(scores, gold)
        assert found.levels == pytest.approx(1 / math.sqrt(1 - (found.spearman / 100) ** 2), rel=2e-3)


def test_the_levels_rise_without_a_gap_as_the_spearman_does():
    gold = np.round(np.random.default_rng(2).uniform(0, 5, 300) * 2) / 2
    noise = np.random.default_rng(3).normal(size=300)
    found = [effective_levels(gold + s * noise, gold) for s in np.geomspace(0.02, 20, 200)]
    pairs = sorted((one.spearman, one.levels) for one in found if one.spearman > 0)
    levels = [level for _, level in pairs]
    assert levels == sorted(levels) and levels[0] < 1.1 and levels[-1] > 7


@given(judged())
@settings(max_examples=60, deadline=None)
def test_the_split_is_the_best_cut_and_adds_up(data):
    scores, gold = data
    found = effective_levels(scores, gold)
    cuts = np.unique(scores)[1:]
    # Slow: scipy on each binary version of the scores.
    binary = [100 * stats.spearmanr(scores >= cut, gold).statistic for cut in cuts]
    assert found.between == pytest.approx(max(binary), abs=1e-9)
    assert 100 * stats.spearmanr(scores >= found.cut, gold).statistic == pytest.approx(found.between, abs=1e-9)
    high = scores >= found.cut
    assert found.upper == high.mean()
    for value, rows in ((found.within_low, ~high), (found.within_high, high)):
        if value is None:
            assert np.ptp(scores[rows]) <= 1e-6 or np.ptp(gold[rows]) == 0
        else:
            assert value == pytest.approx(100 * stats.spearmanr(scores[rows], gold[rows]).statistic, abs=1e-9)
    if found.spearman > 1:
        spread = np.std(stats.rankdata(high)) / np.std(stats.rankdata(scores))
        assert found.between * spread == pytest.approx((1 - found.share_within) * found.spearman, abs=1e-8)


@given(judged())
@settings(max_examples=40, deadline=None)
def test_monotone_maps_of_either_side_change_nothing_but_the_cut(data):
    scores, gold = data
    found = effective_levels(scores, gold)
    mapped = effective_levels(stats.rankdata(scores) ** 3, np.exp(stats.rankdata(gold) / len(gold)))
    fixed = ("levels", "spearman", "upper", "between", "within_low", "within_high", "share_within")
    for name in fixed:
        before, after = getattr(found, name), getattr(mapped, name)
        assert after == (None if before is None else pytest.approx(before, rel=1e-9, abs=1e-9))
    assert mapped.cut == pytest.approx(stats.rankdata(scores)[scores == found.cut][0] ** 3)


def test_a_quarter_lies_within_where_there_is_no_binary_trait():
    generator = np.random.default_rng(5)
    gold = np.arange(2000.0)
    perfect = effective_levels(gold, gold, limit=2)
    assert perfect.share_within == pytest.approx(0.25, abs=1e-6) and perfect.upper == 0.5
    assert perfect.between == pytest.approx(100 * ceiling.binary(2000))
    meaning = generator.normal(size=20_000)
    for noise in (0.5, 1.0, 3.0):
        found = effective_levels(meaning + noise * generator.normal(size=20_000), meaning, limit=2)
        assert 0.24 < found.share_within < 1 - 1 / math.sqrt(2) + 0.01
    even = generator.uniform(-1.7, 1.7, size=20_000)
    for noise in (0.3, 0.6, 1.0):
        found = effective_levels(even + noise * generator.normal(size=20_000), even, limit=2)
        assert 0.225 < found.share_within < 0.26


def test_two_groups_without_order_inside_are_seen_though_every_score_differs():
    generator = np.random.default_rng(6)
    gold = generator.permutation(3000) / 600
    scores = (gold > 2.5) + 0.01 * generator.normal(size=3000)
    found = effective_levels(scores, gold)
    assert len(set(scores)) == 3000
    assert abs(found.share_within) < 0.03 and abs(found.within_low) < 6 and abs(found.within_high) < 6
    assert found.between > found.spearman and found.levels < 2
    # With order inside one group only, the shares tell which.
    found = effective_levels(np.where(gold > 2.5, scores, 0.005 * gold - 0.4), gold)
    assert found.within_low == pytest.approx(100) and abs(found.within_high) < 6 and found.share_within > 0.08


@given(st.integers(0, 2**32), st.sampled_from([4, 30, 10**9]), st.integers(2, 4))
@settings(max_examples=25, deadline=None)
def test_jitter_inside_the_classes_takes_the_ceiling_down_to_its_untied_one(seed, ratings, classes):
    generator = np.random.default_rng(seed)
    gold = generator.integers(0, ratings, 60) / 1.0
    assume(len(set(gold)) >= classes)
    groups = np.digitize(gold, ceiling.on_gold(gold, levels=classes).cuts)
    found = [stats.spearmanr(groups + 0.5 * generator.uniform(size=60), gold).statistic for _ in range(200)]
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(untied_ceiling(gold, classes=classes), abs=5 * error + 1e-9)


def test_no_two_classes_under_any_noise_pass_their_ceiling_and_graded_scores_do():
    generator = np.random.default_rng(7)
    gold = np.round(generator.uniform(0, 5, 20_000), 1)
    limit = 100 * untied_ceiling(gold)
    assert limit == pytest.approx(75, abs=0.1)
    shares = {}
    for cut in (1.5, 2.5, 3.5):
        for noise in (0.01, 0.2, 0.3, 0.4, 1.0):
            found = effective_levels((gold > cut) + noise * generator.normal(size=20_000), gold, limit=2)
            assert found.two_classes == limit and found.spearman < limit + 0.5
            shares[cut, noise] = found.share_within
    # What the docstring says of the share under noise.
    assert [shares[2.5, noise] for noise in (0.01, 0.3, 0.4)] == pytest.approx([0, 0.08, 0.14], abs=0.015)
    assert shares[2.5, 1.0] > 0.25
    graded = effective_levels(gold + generator.normal(size=20_000), gold, limit=2)
    assert graded.spearman > graded.two_classes and graded.share_within > 0.22


def test_a_value_reads_as_the_docstring_says():
    gold = np.arange(10_000.0)
    for share, levels in ((0.245, 1.5), (0.5, 2.0)):
        found = effective_levels((gold >= 10_000 * share).astype(float), gold)
        assert found.levels == pytest.approx(levels, abs=0.02)
        assert found.spearman == pytest.approx(100 * math.sqrt(1 - 1 / levels**2), abs=0.2)


def test_intervals_are_those_of_the_resamples_of_the_bootstrap():
    generator = np.random.default_rng(8)
    gold = np.round(generator.uniform(0, 5, 80) * 2) / 2
    scores = gold + generator.normal(size=80)
    found = levels_interval(scores, gold, resamples=60, seed=3, level=0.9)
    # Slow: the whole statistic on each resample.
    rows = np.random.default_rng(3).integers(0, 80, (60, 80), dtype=np.uint32)
    every = [effective_levels(scores[drawn], gold[drawn]) for drawn in rows]
    ends = [0.05, 0.95]
    assert found.share_within == pytest.approx(np.quantile([one.share_within for one in every], ends))
    assert found.spearman == pytest.approx(np.quantile([one.spearman for one in every], ends))
    whole = bootstrap(scores, gold, resamples=60, seed=3, level=0.9)
    assert found.spearman == (whole.low, whole.high) and (found.level, found.resamples) == (0.9, 60)
    one = effective_levels(scores, gold)
    assert found.levels[0] < one.levels < found.levels[1]
    assert found.share_within[0] < one.share_within < found.share_within[1]


def test_an_interval_without_a_share_says_so():
    generator = np.random.default_rng(9)
    found = levels_interval(generator.normal(size=60), np.arange(60.0), resamples=50)
    assert found.share_within is None and found.levels[0] == 1.0
    with pytest.raises(Undefined, match="constant scores rank nothing"):
        levels_interval(np.ones(9), np.arange(9.0))


def test_scores_that_mislead_have_no_share_and_one_level():
    gold = np.arange(50.0)
    found = effective_levels(-gold, gold)
    assert (found.levels, found.share_within) == (1.0, None) and found.spearman == pytest.approx(-100)


def test_undefined_and_wrong_input_are_said():
    ramp = np.arange(9.0)
    with pytest.raises(Undefined, match="constant scores rank nothing"):
        effective_levels(np.ones(9), ramp)
    with pytest.raises(ValueError, match="gold of pair 0 is not finite"):
        effective_levels(ramp, np.where(ramp, ramp, np.nan))
    with pytest.raises(ValueError, match="limit=1: allow at least 2 levels"):
        effective_levels(ramp, ramp, limit=1)
