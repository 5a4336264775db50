"""The ceiling's tests are its theorems: each equation of Pcc-tuning's section 2.3 and appendix C, then ours on ties."""

from __future__ import annotations

import itertools
import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pcclab import ceiling, data

FORMULAS: tuple[ceiling.Formula, ...] = ("midrank", "paper")
sizes = st.integers(2, 60)


@st.composite
def sized_cuts(draw: st.DrawFn) -> tuple[int, int]:
    n = draw(sizes)
    return n, draw(st.integers(1, n - 1))


def differences(n: int, k: int) -> list[Fraction]:
    """Equation 3, exactly: the rank differences of a scorer that calls the top k of n pairs similar."""
    return [i - Fraction(k + 1, 2) if i <= k else i - Fraction(k + n + 1, 2) for i in range(1, n + 1)]


def squares(n: int, k: int) -> Fraction:
    return sum((d**2 for d in differences(n, k)), Fraction(0))


def closed_form(n: int, k: Fraction | int) -> Fraction:
    """Equation 5's last line."""
    return Fraction(n * (n + 1) * (2 * n + 1), 6) + Fraction(n, 4) * (k**2 - n * k - (n + 1) ** 2)


def equation_2(n: int, total: Fraction) -> Fraction:
    return 1 - 6 * total / (n * (n**2 - 1))


def best_of_all(gold: np.ndarray, levels: int) -> float:
    """The best Spearman over every assignment of scores 0..levels-1, by trying them all."""
    scores = np.array([s for s in itertools.product(range(levels), repeat=gold.size) if len(set(s)) > 1], dtype=float)
    ranks = stats.rankdata(scores, axis=1) - (gold.size + 1) / 2
    target = stats.rankdata(gold) - (gold.size + 1) / 2
    return float((ranks @ target / np.sqrt((ranks**2).sum(1) * (target @ target))).max())


# The paper's equations


@given(sized_cuts())
def test_equation_3_is_the_difference_of_descending_midranks(sized: tuple[int, int]) -> None:
    n, k = sized
    gold, scores = np.arange(n, 0, -1), np.r_[np.ones(k), np.zeros(n - k)]
    expected = stats.rankdata(-gold) - stats.rankdata(-scores)
    assert [float(d) for d in differences(n, k)] == expected.tolist()


@given(sized_cuts())
def test_equations_4_and_5_agree_line_by_line(sized: tuple[int, int]) -> None:
    n, k = sized
    middle, top, low = Fraction(k + 1, 2), range(1, k + 1), range(k + 1, n + 1)
    first = sum((i - middle) ** 2 for i in top) + sum((i - Fraction(k + n + 1, 2)) ** 2 for i in low)
    second = sum((i - middle) ** 2 for i in top) + sum((i - middle - Fraction(n, 2)) ** 2 for i in low)
    shift = (n - k) * Fraction(n**2, 4) - n * sum(i - middle for i in low)
    third = sum((i - middle) ** 2 for i in range(1, n + 1)) + shift
    fourth = sum(i**2 for i in range(1, n + 1)) + n * middle**2 - n * (n + 1) * middle - Fraction(n**2 * (n - k), 4)
    assert squares(n, k) == first == second == third == fourth == closed_form(n, k)


@given(sized_cuts())
def test_third_line_of_equation_5_as_printed_sums_too_little(sized: tuple[int, int]) -> None:
    n, k = sized
    middle = Fraction(k + 1, 2)
    shift = (n - k) * Fraction(n**2, 4) - n * sum(i - middle for i in range(k + 1, n + 1))
    printed = sum((i - middle) ** 2 for i in range(1, k + 1)) + shift
    assert squares(n, k) - printed == sum((i - middle) ** 2 for i in range(k + 1, n + 1)) > 0


@given(sized_cuts())
def test_appendix_c_line_by_line(sized: tuple[int, int]) -> None:
    n, k = sized
    whole = sum((i - Fraction(k + 1, 2)) ** 2 for i in range(1, n + 1))
    low = sum(i - Fraction(k + 1, 2) for i in range(k + 1, n + 1))
    assert low == Fraction((n - k) * (n + k + 1), 2) - Fraction((n - k) * (k + 1), 2) == Fraction(n * (n - k), 2)
    assert squares(n, k) == whole + (n - k) * Fraction(n**2, 4) - n * low == whole - Fraction(n**2 * (n - k), 4)
    assert whole == sum(i**2 + Fraction((k + 1) ** 2, 4) - (k + 1) * i for i in range(1, n + 1))
    inside = (k + 1) ** 2 - 2 * (k + 1) * (n + 1) - n * (n - k)
    assert inside == k**2 + 2 * k + 1 - 2 * (n + 1) - 2 * (n + 1) * k - n**2 + n * k == k**2 - n * k - (n + 1) ** 2


@given(sizes)
def test_equations_6_and_7_are_the_minimum_at_half(n: int) -> None:
    half = Fraction(n, 2)
    least = Fraction(n * (n + 1) * (2 * n + 1), 6) - Fraction(n, 4) * (Fraction(5 * n**2, 4) + 2 * n + 1)
    assert closed_form(n, half) == least == min(closed_form(n, half + Fraction(step, 7)) for step in range(-9, 10))
    best = equation_2(n, least)
    assert best == 1 - Fraction(n**2 - 4, 8 * (n**2 - 1)) == Fraction(7 * n**2 - 4, 8 * (n**2 - 1))
    if n % 2 == 0:
        assert ceiling.binary(n, formula="paper") == pytest.approx(float(best), abs=1e-15)
    else:
        assert ceiling.binary(n, formula="paper") == ceiling.PAPER_LIMIT < best
        assert ceiling.binary(n) == ceiling.MIDRANK_LIMIT


# The two formulas


@given(sized_cuts())
def test_paper_formula_is_equation_2_on_the_closed_form(sized: tuple[int, int]) -> None:
    n, k = sized
    assert ceiling.binary(n, k, formula="paper") == pytest.approx(float(equation_2(n, squares(n, k))), abs=1e-14)


@given(sized_cuts())
def test_midrank_formula_is_scipys_spearman_of_zeros_and_ones(sized: tuple[int, int]) -> None:
    n, k = sized
    gold, scores = np.arange(n), (np.arange(n) >= n - k).astype(float)
    assert ceiling.binary(n, k) == pytest.approx(stats.spearmanr(scores, gold).statistic, abs=1e-12)
    assert ceiling.spearman(scores, gold) == pytest.approx(ceiling.binary(n, k), abs=1e-12)


@given(sized_cuts())
def test_paper_formula_never_reads_below_the_midranks(sized: tuple[int, int]) -> None:
    midrank, paper = ceiling.binary(*sized), ceiling.binary(*sized, formula="paper")
    assert paper == pytest.approx((1 + midrank**2) / 2, abs=1e-14)
    assert paper >= midrank


@pytest.mark.parametrize("n", [4, 7, 30, 501])
def test_equation_2_gives_half_to_a_scorer_that_says_nothing(n: int) -> None:
    assert equation_2(n, squares(n, 0)) == equation_2(n, squares(n, n)) == Fraction(1, 2)
    with pytest.raises(ValueError, match="constant"):
        ceiling.spearman(np.ones(n), np.arange(n))


@given(st.integers(2, 400))
def test_best_k_is_half(n: int) -> None:
    for formula in FORMULAS:
        tried = max(ceiling.binary(n, k, formula=formula) for k in range(1, n))
        assert ceiling.binary(n, formula=formula) == tried


@pytest.mark.parametrize(
    ("n", "paper", "midrank"), [(4, 0.9, 0.894427191), (10, 0.878787879, 0.870388280), (2, 1.0, 1.0)]
)
def test_small_counts(n: int, paper: float, midrank: float) -> None:
    assert ceiling.binary(n, formula="paper") == pytest.approx(paper, abs=1e-9)
    assert ceiling.binary(n) == pytest.approx(midrank, abs=1e-9)


def test_limits() -> None:
    assert ceiling.binary(math.inf, formula="paper") == ceiling.PAPER_LIMIT == 0.875
    assert ceiling.binary(math.inf) == pytest.approx(ceiling.MIDRANK_LIMIT, abs=1e-15) == 0.8660254037844386
    for formula in FORMULAS:
        limit = ceiling.binary(math.inf, formula=formula)
        assert ceiling.binary(10**6, formula=formula) == pytest.approx(limit, abs=1e-9)
        assert all(np.diff([ceiling.binary(n, formula=formula) - limit for n in range(2, 99, 2)]) < 0)


def test_levels_by_both_formulas() -> None:
    assert [round(ceiling.levels(m), 4) for m in (2, 3, 5)] == [0.8660, 0.9428, 0.9798]
    for m in range(2, 40):
        assert ceiling.levels(m) == pytest.approx(math.sqrt(1 - 1 / m**2), abs=1e-15)
        assert ceiling.levels(m, formula="paper") == pytest.approx(1 - 1 / (2 * m**2), abs=1e-15)


@given(st.integers(2, 6), st.integers(1, 40))
def test_levels_is_the_limit_of_equal_groups(m: int, each: int) -> None:
    n = m * each
    found = stats.spearmanr(np.repeat(np.arange(m), each), np.arange(n)).statistic
    assert found == pytest.approx(ceiling.levels(m) / math.sqrt(1 - 1 / n**2), abs=1e-12)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=6))
def test_equal_shares_are_best(weights: list[int]) -> None:
    shares = np.array(weights) / sum(weights)
    assert ceiling.from_shares(shares) <= ceiling.levels(len(weights)) + 1e-12
    groups = np.repeat(np.arange(len(weights)), 400 * np.array(weights))
    found = stats.spearmanr(groups, np.arange(groups.size)).statistic
    assert ceiling.from_shares(shares) == pytest.approx(found, abs=1e-5)


# Tied gold

ties = st.lists(st.integers(0, 4), min_size=2, max_size=8).filter(lambda gold: len(set(gold)) > 1)


@given(ties)
def test_no_two_level_scorer_beats_on_gold(gold: list[int]) -> None:
    assert ceiling.on_gold(gold).value == pytest.approx(best_of_all(np.array(gold), 2), abs=1e-12)


@given(st.lists(st.integers(0, 4), min_size=3, max_size=8).filter(lambda gold: len(set(gold)) > 2))
def test_no_three_level_scorer_beats_on_gold(gold: list[int]) -> None:
    assert ceiling.on_gold(gold, 3).value == pytest.approx(best_of_all(np.array(gold), 3), abs=1e-12)


long_ties = st.lists(st.integers(0, 9), min_size=8, max_size=200).filter(lambda gold: len(set(gold)) > 4)


@given(long_ties, st.integers(2, 5))
def test_no_other_set_of_cuts_is_better(gold: list[int], count: int) -> None:
    values, found = np.array(gold), ceiling.on_gold(gold, count)
    cuts = itertools.combinations(np.unique(values)[1:], count - 1)
    assert found.value >= max(ceiling.spearman(np.digitize(values, cut), values) for cut in cuts) - 1e-12


def test_cutting_through_a_tie_only_lowers() -> None:
    gold, ranks = np.repeat([0.0, 1.0, 2.0], [3, 6, 2]), np.arange(11)
    whole = {int(k): stats.spearmanr(ranks >= k, gold).statistic for k in range(1, 11)}
    assert max(whole, key=whole.__getitem__) in (3, 9)
    assert all(whole[k] < max(whole[3], whole[9]) for k in range(4, 9))
    assert ceiling.on_gold(gold).value == pytest.approx(max(whole.values()), abs=1e-12)


def test_ties_move_the_ceiling_either_way() -> None:
    assert ceiling.on_gold([0, 1, 1, 2]).value == pytest.approx(math.sqrt(2 / 3))
    assert ceiling.on_gold([0, 1, 1, 2]).value < ceiling.binary(4) < ceiling.on_gold([0, 0, 1, 2]).value


@given(st.lists(st.integers(0, 60), min_size=3, max_size=300).filter(lambda gold: len(set(gold)) > 2), st.data())
def test_the_scorer_it_describes_reaches_it(gold: list[int], source: st.DataObject) -> None:
    values = np.array(gold) / 7
    count = source.draw(st.integers(2, min(9, np.unique(values).size)))
    found = ceiling.on_gold(values, count)
    scores = np.digitize(values, found.cuts)
    assert found.value == pytest.approx(stats.spearmanr(scores, values).statistic, abs=1e-9)
    assert found.shares == pytest.approx(np.bincount(scores) / values.size)
    assert len(found.shares) == count == len(found.cuts) + 1
    assert set(found.cuts) <= set(values)


@given(ties)
def test_more_levels_reach_higher_until_all_is_told(gold: list[int]) -> None:
    reached = [ceiling.on_gold(gold, m).value for m in range(2, len(set(gold)) + 1)]
    assert all(np.diff(reached) > 0)
    assert reached[-1] == 1


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=60).filter(lambda gold: len(set(gold)) > 1))
def test_only_the_order_of_the_gold_counts(gold: list[int]) -> None:
    values = np.array(gold, dtype=float)
    plain, mapped = ceiling.on_gold(values), ceiling.on_gold(np.exp(values / 9) * 3 - 8)
    assert (plain.value, plain.shares) == (mapped.value, mapped.shares)
    assert mapped.cuts == pytest.approx(np.exp(np.array(plain.cuts) / 9) * 3 - 8)
    assert ceiling.on_gold(values[::-1]) == plain
    assert ceiling.on_gold(-values).value == plain.value


@given(st.integers(2, 300), st.integers(2, 8))
def test_on_distinct_gold_it_is_the_closed_form(n: int, m: int) -> None:
    gold = np.random.default_rng(n).permutation(n)
    assert ceiling.on_gold(gold).value == pytest.approx(ceiling.binary(n), abs=1e-12)
    if n % m == 0:
        assert ceiling.on_gold(gold, m).value == pytest.approx(ceiling.levels(m) / math.sqrt(1 - 1 / n**2), abs=1e-12)


def test_five_thousand_distinct_values_in_ten_levels_are_quick() -> None:
    gold = np.random.default_rng(0).permutation(5000)
    began = time.process_time()
    found = ceiling.on_gold(gold, 10)
    assert time.process_time() - began < 1.5
    assert found.shares == pytest.approx([0.1] * 10)


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("task", "value"),
    [("sts12", 0.8679), ("sts13", 0.8668), ("sts14", 0.8667), ("sts15", 0.8668), ("sts16", 0.8772), ("stsb", 0.8668),
     ("sickr", 0.8665)],
)  # fmt: skip
def test_ceiling_on_real_gold(senteval: object, task: str, value: float) -> None:
    table = data.load(task, source=str(senteval))
    assert isinstance(table, data.ScoredPairs)
    gold = table.gold
    found = ceiling.on_gold(gold)
    assert round(found.value, 4) == value
    assert found.value == pytest.approx(stats.spearmanr(gold >= found.cuts[0], gold).statistic, abs=1e-12)


# Scorers


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=50))
def test_midranks_are_scipys(values: list[float]) -> None:
    assert ceiling.midranks(values).tolist() == stats.rankdata(values).tolist()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=50))
def test_spearman_is_scipys(pairs: list[tuple[int, int]]) -> None:
    scores, gold = zip(*pairs, strict=True)
    if len(set(scores)) > 1 and len(set(gold)) > 1:
        assert ceiling.spearman(scores, gold) == pytest.approx(stats.spearmanr(scores, gold).statistic, abs=1e-12)


def test_a_hardening_sigmoid_falls_from_one_onto_the_ceiling() -> None:
    gold = np.random.default_rng(3).permutation(200)
    curve = [ceiling.spearman(ceiling.sigmoid_scorer(gold, h), gold) for h in np.geomspace(1, 1e4, 30)]
    assert curve[0] == pytest.approx(1)
    assert all(np.diff(curve) <= 1e-12)
    assert curve[-1] == pytest.approx(ceiling.binary(200), abs=1e-12)
    assert np.unique(ceiling.sigmoid_scorer(gold, 1e4)).tolist() == [0, 1]


def test_without_rounding_the_same_sigmoid_stays_above() -> None:
    gold = np.arange(200)
    rounded, kept = (ceiling.sigmoid_scorer(gold, 60, decimals=places) for places in (3, 16))
    assert ceiling.spearman(rounded, gold) < 0.95 < 0.9999 < ceiling.spearman(kept, gold)


@pytest.mark.parametrize("share", [0.1, 0.35, 0.5])
def test_share_places_the_step(share: float) -> None:
    scores = ceiling.sigmoid_scorer(np.arange(1000), 1e5, share=share)
    assert scores.mean() == pytest.approx(share)
    assert ceiling.spearman(scores, np.arange(1000)) == pytest.approx(ceiling.from_shares([share, 1 - share]), abs=1e-6)


# Bad input


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: ceiling.binary(1), "n=1 must be an integer at least 2"),
        (lambda: ceiling.binary(10.5), "n=10.5"),
        (lambda: ceiling.binary(math.inf, 3), "n=inf"),
        (lambda: ceiling.binary(10, 0), "k=0 must be an integer from 1 to 9"),
        (lambda: ceiling.binary(10, 10), "k=10"),
        (lambda: ceiling.binary(10, formula="ties"), "formula='ties'"),  # type: ignore[arg-type]
        (lambda: ceiling.levels(1), "m=1"),
        (lambda: ceiling.from_shares([0.5, 0.4]), "sum is 1"),
        (lambda: ceiling.from_shares([1.5, -0.5]), "positive"),
        (lambda: ceiling.on_gold([3, 3, 3]), "all 3 values of gold are 3"),
        (lambda: ceiling.on_gold([3]), "shape"),
        (lambda: ceiling.on_gold([[1, 2], [3, 4]]), "shape"),
        (lambda: ceiling.on_gold([1, math.nan, 2]), r"gold\[1\] is nan"),
        (lambda: ceiling.on_gold([1, 2, math.inf]), r"gold\[2\] is inf"),
        (lambda: ceiling.on_gold([1, 2, 3], 1), "levels=1 must be an integer from 2 to 3"),
        (lambda: ceiling.on_gold([1, 2, 2, 3], 4), "levels=4 must be an integer from 2 to 3"),
        (lambda: ceiling.spearman([1, 2], [1, 2, 3]), "2 similarities against 3"),
        (lambda: ceiling.spearman([1, 1], [1, 2]), "similarity are 1"),
        (lambda: ceiling.sigmoid_scorer([1, 2], 0), "hardness=0"),
        (lambda: ceiling.sigmoid_scorer([1, 2], 1, share=1), "share=1"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_error(call: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        call()  # type: ignore[operator]
