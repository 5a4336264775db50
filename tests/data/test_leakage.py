"""The ledger of leaks: against a slow reference, against planted leaks, and the figures of the real corpora."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import data
from pcclab.data import leakage, synthetic
from pcclab.data.catalogue import STS_TASKS
from pcclab.data.pairs import ScoredPairs

word = st.sampled_from(["oak", "Oak", "an elm", "an  ELM", " an elm ", "fir", "ash tree", "Ash\ttree", "yew"])
table = st.lists(st.tuples(word, word), min_size=1, max_size=10).map(
    lambda rows: ScoredPairs([a for a, _ in rows], [b for _, b in rows], [1.0] * len(rows))  # type: ignore[arg-type]
)


def same(one: str, other: str) -> bool:
    return one.lower().split() == other.lower().split()


def slow_seen(rows: ScoredPairs, others: list[ScoredPairs], level: str) -> list[bool]:
    """Every row against every other row, word by word."""
    found = []
    for a, b in zip(rows.first, rows.second, strict=True):
        hit = False
        for other in others:
            for c, d in zip(other.first, other.second, strict=True):
                if level == "pair":
                    hit |= (same(a, c) and same(b, d)) or (same(a, d) and same(b, c))
                else:
                    hit |= same(a, c) or same(a, d) or same(b, c) or same(b, d)
        found.append(hit)
    return found


@given(table, st.lists(table, min_size=1, max_size=3), st.sampled_from(["pair", "sentence"]))
def test_seen_is_the_slow_reference(rows: ScoredPairs, others: list[ScoredPairs], level: leakage.Level) -> None:
    assert leakage.seen(rows, others, level=level).tolist() == slow_seen(rows, others, level)


@given(table, table)
def test_order_case_and_spaces_make_no_other_pair(rows: ScoredPairs, tests: ScoredPairs) -> None:
    swapped = replace(rows, first=rows.second, second=rows.first)
    shouted = replace(
        rows, first=tuple(a.upper() for a in rows.first), second=tuple(f" {b}".replace(" ", "  ") for b in rows.second)
    )
    for level in ("pair", "sentence"):
        expected = leakage.seen(rows, tests, level=level)
        for changed in (swapped, shouted):
            np.testing.assert_array_equal(leakage.seen(changed, tests, level=level), expected)


@given(table, table)
def test_a_seen_pair_is_two_seen_sentences(rows: ScoredPairs, tests: ScoredPairs) -> None:
    pair, sentence = leakage.seen(rows, tests), leakage.seen(rows, tests, level="sentence")
    assert (sentence | ~pair).all()


@given(table, table, st.sampled_from(["pair", "sentence"]))
def test_what_drop_seen_leaves_is_unseen(rows: ScoredPairs, tests: ScoredPairs, level: leakage.Level) -> None:
    hit = leakage.seen(rows, tests, level=level)
    if hit.all():
        with pytest.raises(ValueError, match=rf"all {len(rows)} pairs occur in the tests at {level} level"):
            leakage.drop_seen(rows, tests, level=level)
    else:
        left = leakage.drop_seen(rows, {"t": tests}, level=level)
        assert len(left) == (~hit).sum()
        assert not leakage.seen(left, tests, level=level).any()


def test_an_unknown_level_is_refused() -> None:
    pairs = ScoredPairs(("a",), ("b",), np.array([1]))
    with pytest.raises(ValueError, match="level is 'word': take 'pair' or 'sentence'"):
        leakage.seen(pairs, pairs, level="word")  # type: ignore[arg-type]


def test_dropping_is_told_in_the_provenance() -> None:
    rows = data.load("stsb", split="train", source="synthetic")
    left = leakage.drop_seen(rows, data.load("sts12", source="synthetic"))
    assert left.provenance[0].note == "84 of all 700 rows dropped: seen in a test at pair level"


def test_the_ledger_finds_exactly_the_planted_leaks() -> None:
    found = data.leakage.matrix(source="synthetic")
    for (name, split), leaks in synthetic.LEAKED.items():
        for task in STS_TASKS:
            planted = 100.0 * leaks.get(task, 0) / synthetic.ROWS[task, "test"]
            assert found.loc[f"{name} {split}", task] == pytest.approx(planted), (name, split, task)


def test_a_ledger_that_compares_text_as_it_stands_misses_some_planted_leaks() -> None:
    train, test = (
        data.load(name, split=part, source="synthetic") for name, part in (("stsb", "train"), ("sts14", "test"))
    )
    assert isinstance(train, ScoredPairs)
    assert isinstance(test, ScoredPairs)
    naive = set(zip(train.first, train.second, strict=True))
    found = sum(pair in naive for pair in zip(test.first, test.second, strict=True))
    planted = synthetic.LEAKED["stsb", "train"]["sts14"]
    assert 0 < found < 0.75 * planted
    assert leakage.seen(test, train).sum() == planted


@pytest.mark.real_data
def test_the_published_figures_of_the_real_corpora(senteval: Path) -> None:
    began = time.perf_counter()
    found = data.leakage.matrix(source=senteval).round(1)
    assert time.perf_counter() - began < 3.0
    assert found.loc["stsb train"].tolist() == [32.2, 39.8, 49.6, 36.7, 16.6, 0.9, 0.0]
    assert found.loc["sickr train"].tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.6]


@pytest.mark.real_data
def test_how_much_of_the_sts_benchmark_recurs_in_the_older_tests(senteval: Path) -> None:
    tests = data.sts_tests(source=senteval)
    older = [tests[name] for name in STS_TASKS[:5]]
    assert leakage.seen(tests["stsb"], older).sum() == 1007
    assert leakage.seen(data.load("stsb", split="dev", source=senteval), tests.values()).sum() == 1131
