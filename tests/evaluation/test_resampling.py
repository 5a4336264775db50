"""Resampled correlations are scipy's on the pairs actually drawn, however the work is cut."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pcclab.evaluation import Undefined, resampling
from pcclab.evaluation.resampling import resampled


def drawn_pairs(pairs, resamples, seed):
    return np.random.default_rng(seed).integers(0, pairs, (resamples, pairs), dtype=np.uint32)


@st.composite
def models_and_gold(draw):
    """Two models and gold over 30 to 60 pairs, from no ties at all to few distinct values."""
    pairs, seed = draw(st.integers(30, 60)), draw(st.integers(0, 2**32))
    generator = np.random.default_rng(seed)
    sides = []
    for _ in range(3):
        distinct = draw(st.sampled_from([4, 12, 10**9]))
        sides.append(generator.integers(0, distinct, pairs) / 7)
    return np.stack(sides[:2]), sides[2]


@given(models_and_gold(), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_every_resample_is_scipys_spearman_of_the_pairs_drawn(data, seed):
    similarities, gold = data
    values = resampled(similarities, gold, resamples=8, seed=seed)
    for rows, found in zip(drawn_pairs(len(gold), 8, seed), values.T, strict=True):
        for similarity, value in zip(similarities, found, strict=True):
            expected = stats.spearmanr(similarity[rows], gold[rows]).statistic
            assert value == pytest.approx(expected, abs=1e-12)


def test_a_set_of_full_size_is_scipys_too():
    generator = np.random.default_rng(3)
    gold = np.round(generator.uniform(0, 5, 4000), 1)
    similarity = (gold + generator.normal(size=4000)).astype(np.float32)
    values = resampled(similarity[None], gold, resamples=20, seed=(5, 6))[0]
    expected = [stats.spearmanr(similarity[r], gold[r]).statistic for r in drawn_pairs(4000, 20, (5, 6))]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cells", [1, 100, 1000, 10**6])
def test_the_size_of_a_block_changes_nothing(monkeypatch, cells):
    generator = np.random.default_rng(0)
    gold, similarities = generator.normal(size=70), generator.normal(size=(2, 70))
    whole = resampled(similarities, gold, resamples=51)
    monkeypatch.setattr(resampling, "_CELLS", cells)
    np.testing.assert_array_equal(resampled(similarities, gold, resamples=51), whole)


def test_only_the_order_of_values_counts_and_inputs_are_untouched():
    generator = np.random.default_rng(1)
    gold, similarity = generator.integers(0, 6, 90) / 1.0, generator.normal(size=90)
    kept = similarity.copy(), gold.copy()
    values = resampled(np.stack([similarity, np.exp(similarity), -similarity]), gold, resamples=30)
    np.testing.assert_array_equal(values[0], values[1])
    np.testing.assert_allclose(values[0], -values[2], atol=1e-15)
    np.testing.assert_array_equal(similarity, kept[0])
    np.testing.assert_array_equal(gold, kept[1])


def test_a_model_does_not_depend_on_those_beside_it():
    generator = np.random.default_rng(1)
    gold, similarities = generator.normal(size=40), generator.normal(size=(3, 40))
    together = resampled(similarities, gold, resamples=25, seed=4)
    for similarity, values in zip(similarities, together, strict=True):
        np.testing.assert_array_equal(resampled(similarity[None], gold, resamples=25, seed=4)[0], values)


def test_a_constant_resample_is_undefined_and_wrong_input_refused():
    ramp = np.arange(40.0)
    rare = (ramp == 7).astype(float)
    with pytest.raises(Undefined, match=r"gold is constant on \d+ of 50 resamples: a bootstrap needs more pairs"):
        resampled(ramp[None], rare, resamples=50)
    with pytest.raises(Undefined, match=r"similarity is constant on \d+ of 50 resamples"):
        resampled(np.stack([ramp, rare]), ramp, resamples=50)
    with pytest.raises(ValueError, match="resamples=0: draw at least 1"):
        resampled(ramp[None], ramp, resamples=0)
    with pytest.raises(ValueError, match="similarity of pair 3 is not finite"):
        resampled(np.where(ramp == 3, np.nan, ramp)[None], ramp)
    with pytest.raises(ValueError, match="shapes"):
        resampled(ramp[None, :9], ramp)
