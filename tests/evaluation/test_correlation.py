"""Correlations equal scipy's, and say when they do not exist."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcclab.evaluation import Undefined, cosine, pearson, spearman

scores = st.lists(st.integers(0, 9), min_size=12, max_size=12).filter(lambda v: len(set(v)) > 1)


@given(scores, scores)
def test_equal_scipy_with_ties(similarity, gold):
    similarity, gold = np.array(similarity) / 9.0, np.array(gold) / 2.0
    assert spearman(similarity, gold) == pytest.approx(stats.spearmanr(similarity, gold).statistic, abs=1e-12)
    assert pearson(similarity, gold) == pytest.approx(stats.pearsonr(similarity, gold).statistic, abs=1e-12)


@pytest.mark.parametrize("statistic", [spearman, pearson])
def test_undefined_is_said(statistic):
    ramp = np.arange(4.0)
    with pytest.raises(Undefined, match="all 4 similarities are 0.300000: constant scores rank nothing"):
        statistic(np.full(4, 0.3), ramp)
    with pytest.raises(Undefined, match="constant scores"):  # what float32 leaves of equal cosines
        statistic(0.3 + 1e-7 * ramp, ramp)
    with pytest.raises(Undefined, match="all 4 gold ratings are 2"):
        statistic(ramp, np.full(4, 2.0))
    with pytest.raises(Undefined, match=r"1 pair\(s\) have no correlation"):
        statistic(ramp[:1], ramp[:1])


@pytest.mark.parametrize("statistic", [spearman, pearson])
def test_what_is_wrong_is_refused(statistic):
    with pytest.raises(ValueError, match="gold of pair 1 is not finite"):
        statistic(np.arange(3.0), np.array([1.0, np.nan, 2.0]))
    with pytest.raises(ValueError, match="shapes"):
        statistic(np.arange(3.0), np.arange(4.0))


def test_a_vector_beside_itself_ties_with_every_other_such_pair():
    vectors = np.random.default_rng(0).normal(size=(200, 384)).astype(np.float32)
    exact = [np.dot(v, v) / np.linalg.norm(v) ** 2 for v in vectors.astype(np.float64)]
    assert len(set(exact)) > 1  # what would rank them
    assert set(cosine(vectors, vectors)) == {1.0}


def test_cosine_is_blind_to_length_and_refuses_what_has_no_direction():
    vectors = np.random.default_rng(0).normal(size=(5, 8))
    np.testing.assert_allclose(cosine(vectors, 3 * vectors), 1)
    broken = vectors.copy()
    broken[2] = 0
    with pytest.raises(ValueError, match=r"embedding 2 has length 0\.0"):
        cosine(vectors, broken)
    broken[2, 0] = np.nan
    with pytest.raises(ValueError, match="embedding 2 has length nan"):
        cosine(broken, vectors)
