"""Williams' test meets examples from the literature and keeps its size; Holm's correction is closed testing."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcclab.evaluation import Undefined, pearson, spearman
from pcclab.evaluation.significance import holm, williams, williams_from


def test_steigers_case_a():
    """Steiger 1980, case A; the R package psych prints "t value -0.89 with probability < 0.37" for it."""
    found = williams_from(0.4, 0.5, 0.1, 103)
    assert (round(found.t, 2), found.df) == (-0.89, 100)
    # The square of t in exact fractions, from the formula as a determinant of the 3 x 3 matrix.
    a, b, c = Fraction(4, 10), Fraction(5, 10), Fraction(1, 10)
    determinant = (1 - c * c) - a * (a - b * c) + b * (a * c - b)
    square = (a - b) ** 2 * 102 * (1 + c) / (2 * Fraction(102, 100) * determinant + ((a + b) / 2) ** 2 * (1 - c) ** 3)
    assert found.t**2 == pytest.approx(float(square), rel=1e-14)
    assert found.p == pytest.approx(2 * stats.t.cdf(found.t, 100), rel=1e-12)


def test_the_example_of_r_test_to_seven_digits():
    """The help page of psych's `r.test` gives this p as 0.1000759."""
    found = williams_from(0.693458895410494, 0.695966022434845, 0.988475791500198, 5105)
    assert found.p == pytest.approx(0.1000759, abs=5e-8)


def test_an_example_of_cocor():
    """The R packages cocor and rmcorr print t = 9.3823 on 174 degrees of freedom for these rounded correlations."""
    found = williams_from(0.8066, 0.2383, 0.2255, 177)
    assert found.df == 174 and found.t == pytest.approx(9.3823, abs=0.003)


@pytest.mark.parametrize("correlation", ["pearson", "spearman"])
def test_scores_give_what_their_correlations_give(correlation):
    generator = np.random.default_rng(0)
    gold = generator.normal(size=60)
    first, second = gold + generator.normal(size=60), gold + 2 * generator.normal(size=60)
    measure = {"pearson": pearson, "spearman": spearman}[correlation]
    expected = williams_from(measure(first, gold), measure(second, gold), measure(first, second), 60)
    assert williams(first, second, gold, correlation=correlation) == expected
    turned = williams(second, first, gold, correlation=correlation)
    assert (turned.t, turned.p) == pytest.approx((-expected.t, expected.p))


def told_apart(correlation, *, sets, pairs, shared):
    """How often two equally good models, with noise of their own and noise they share, are told apart at 5 %."""
    generator = np.random.default_rng(5)
    wrong = 0
    for _ in range(sets):
        gold, common, *own = generator.normal(size=(4, pairs))
        first, second = gold + shared * common + 0.6 * np.array(own)
        wrong += williams(first, second, gold, correlation=correlation).p < 0.05
    return wrong / sets


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_on_pearsons_correlation_it_errs_as_often_as_it_says(shared):
    assert told_apart("pearson", sets=4000, pairs=50, shared=shared) == pytest.approx(0.05, abs=0.011)


def test_on_ranks_it_errs_more_often_as_the_docstring_says():
    assert 0.065 < told_apart("spearman", sets=2000, pairs=50, shared=0.0) < 0.1
    assert 0.06 < told_apart("spearman", sets=1200, pairs=300, shared=0.0) < 0.1


def test_it_finds_a_difference_that_is_there():
    generator = np.random.default_rng(6)
    gold = generator.normal(size=400)
    first, second = gold + 0.6 * generator.normal(size=400), gold + generator.normal(size=400)
    found = williams(first, second, gold)
    assert found.p < 1e-6 and found.t > 0 and found == williams(first, second, gold, correlation="pearson")


def test_models_that_rank_alike_do_not_differ():
    gold = np.arange(20.0)
    model = gold + 5 * np.sin(gold)
    found = williams(model, np.exp(model / 9), gold, correlation="spearman")
    assert (found.t, found.df, found.p) == (0, 17, 1)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="r12=80.8: a correlation lies in -1..1"):
        williams_from(80.8, 0.7, 0.9, 100)
    with pytest.raises(ValueError, match="r13=nan"):
        williams_from(0.8, float("nan"), 0.9, 100)
    with pytest.raises(ValueError, match="no data have these three"):
        williams_from(0.9, -0.9, 0.9, 100)
    with pytest.raises(Undefined, match="n=3: the test has n - 3 degrees"):
        williams_from(0.5, 0.4, 0.3, 3)
    with pytest.raises(Undefined, match="one model is the other turned round"):
        williams_from(0.5, -0.5, -1.0, 20)
    with pytest.raises(ValueError, match="'kendall' is unknown: use 'spearman' or 'pearson'"):
        williams(np.arange(9.0), np.arange(9.0), np.arange(9.0), correlation="kendall")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_is_closed_testing_with_bonferroni(p_values):
    adjusted = holm(p_values)
    tests = range(len(p_values))
    for test in tests:
        families = [set(f) for size in tests for f in combinations(tests, size + 1) if test in f]
        expected = max(min(1, len(family) * min(p_values[i] for i in family)) for family in families)
        assert adjusted[test] == pytest.approx(expected, abs=1e-15)
    assert (adjusted >= np.array(p_values)).all()


def test_holm_bounds_the_chance_of_any_error():
    p_values = np.random.default_rng(9).uniform(size=(4000, 7))
    assert np.mean([holm(row).min() <= 0.05 for row in p_values]) == pytest.approx(0.05, abs=0.011)
    assert np.mean((p_values <= 0.05).any(axis=1)) > 0.25  # what no correction does


def test_holm_refuses_what_is_no_probability():
    for wrong in ([], [0.2, 1.2], [-0.1], [np.nan]):
        with pytest.raises(ValueError, match="give one or more, each from 0 to 1"):
            holm(wrong)
