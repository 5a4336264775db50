"""Inference pairs as ratings, and plain sentences that no test holds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import data
from pcclab.data import catalogue, unrated
from pcclab.data.leakage import fold
from pcclab.data.pairs import NLI_LABELS, NLI_RATINGS, NLIPairs, Provenance, ScoredPairs, Sentences

numbers = st.floats(-100, 100).map(lambda x: round(x, 3))
maps = st.tuples(numbers, numbers, numbers).filter(lambda xs: len(set(xs)) > 1)


@pytest.fixture
def pairs() -> NLIPairs:
    told = (Provenance("nli", "dev", "memory", "r1"),)
    return NLIPairs(("a", "b", "c", "d"), ("e", "f", "g", "h"), (*NLI_LABELS, "neutral"), provenance=told)


def test_the_papers_map_is_the_default(pairs: NLIPairs) -> None:
    rated = pairs.rated()
    assert isinstance(rated, ScoredPairs)
    assert (rated.first, rated.second) == (pairs.premise, pairs.hypothesis)
    assert rated.gold.tolist() == [2, 1, 0, 1] and rated.scale == (0, 2)
    assert rated.provenance[0].note == "rated contradiction 0, neutral 1, entailment 2"
    assert dict(NLI_RATINGS) == {"contradiction": 0, "neutral": 1, "entailment": 2} == dict(data.NLI_RATINGS)
    with pytest.raises(TypeError):
        NLI_RATINGS["neutral"] = 3  # type: ignore[index]


@given(maps, st.floats(0.1, 10))
def test_every_row_gets_its_classs_number_times_the_spacing(xs: tuple[float, ...], spacing: float) -> None:
    labels = dict(zip(NLI_LABELS, xs, strict=True))
    pairs = NLIPairs(("a", "b", "c", "d"), ("e", "f", "g", "h"), ("neutral", *NLI_LABELS))
    rated = pairs.rated(labels, spacing=spacing)
    np.testing.assert_allclose(rated.gold, [spacing * labels[label] for label in pairs.label])
    np.testing.assert_allclose(rated.scale, (spacing * min(xs), spacing * max(xs)))


def test_the_scale_is_the_maps_whatever_classes_the_rows_have(pairs: NLIPairs) -> None:
    assert pairs.select([1]).rated().scale == (0, 2)
    assert pairs.rated(spacing=2.5).rescaled(0, 5).gold.tolist() == pairs.rated(spacing=2.5).gold.tolist()
    assert pairs.rated(spacing=2.5).provenance[0].note == "rated contradiction 0, neutral 2.5, entailment 5"


@pytest.mark.parametrize(
    ("labels", "spacing", "message"),
    [
        ({"contradiction": 0, "entailment": 1}, 1, "labels: missing class 'neutral': give each of entailment, neutral"),
        ({**NLI_RATINGS, "maybe": 3}, 1, "labels: unknown class 'maybe'"),
        ({}, 1, "labels: missing class 'contradiction'"),
        ({**NLI_RATINGS, "neutral": math.nan}, 1, "give finite numbers that are not all the same"),
        (dict.fromkeys(NLI_LABELS, 1), 1, "give finite numbers that are not all the same"),
        (NLI_RATINGS, 0, "spacing is 0: give a finite number above 0"),
        (NLI_RATINGS, -1, "spacing is -1"),
        (NLI_RATINGS, math.inf, "spacing is inf"),
    ],
)
def test_a_map_that_does_not_rate_every_class_is_refused(
    pairs: NLIPairs, labels: dict[str, float], spacing: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        pairs.rated(labels, spacing=spacing)


def test_a_limit_draws_rows_with_the_seed_in_the_corpuss_order() -> None:
    whole = data.nli_pairs(source="synthetic")
    assert whole.fingerprint == data.load("nli", source="synthetic").fingerprint
    some, again, other = (data.nli_pairs(source="synthetic", limit=200, seed=seed) for seed in (1, 1, 2))
    assert len(some) == 200 and some.fingerprint == again.fingerprint != other.fingerprint
    rows = {row: at for at, row in enumerate(zip(whole.premise, whole.hypothesis, whole.label, strict=True))}
    positions = [rows[row] for row in zip(some.premise, some.hypothesis, some.label, strict=True)]
    assert positions == sorted(set(positions))
    assert some.provenance[0].note == f"200 of {len(whole):,} rows drawn with seed 1"
    assert data.nli_pairs(source="synthetic", limit=10**9).fingerprint == whole.fingerprint
    for table in (data.nli_pairs, data.sentences):
        with pytest.raises(ValueError, match="limit is 0: give at least 1, or None for all"):
            table(source="synthetic", limit=0)


def test_the_hub_says_what_it_lacks() -> None:
    with pytest.raises(ValueError, match=r"no labelled inference pairs: its nli_for_simcse are triplets.*data fetch"):
        data.nli_pairs(source="hub")


def slow_sentences(source: Path | str) -> list[str]:
    """Each sentence against every test sentence and every earlier one, without the ledger's sets of pairs."""
    nli = data.load("nli", source=source)
    assert isinstance(nli, NLIPairs)
    barred = set()
    for name, split in [*((task, "test") for task in data.STS_TASKS)]:
        table = data.load(name, split=split, source=source)
        assert isinstance(table, ScoredPairs)
        barred |= {tuple(text.lower().split()) for column in (table.first, table.second) for text in column}
    clean = data.leakage.drop_seen(data.dev_pairs(leakage="keep", source=source), data.sts_tests(source=source))
    barred |= {tuple(text.lower().split()) for column in (clean.first, clean.second) for text in column}
    kept = []
    for text in (*nli.premise, *nli.hypothesis):
        words = tuple(text.lower().split())
        if words not in barred:
            barred.add(words)
            kept.append(text)
    return kept


def test_the_sentences_are_distinct_and_in_no_test() -> None:
    table = data.sentences(source="synthetic")
    assert isinstance(table, Sentences)
    assert list(table.text) == slow_sentences("synthetic")
    assert len({fold(text) for text in table.text}) == len(table)
    some = data.sentences(source="synthetic", limit=50, seed=3)
    assert len(some) == 50 and set(some.text) < set(table.text)
    assert some.provenance[0].note.endswith(f"; 50 of {len(table):,} rows drawn with seed 3")


def test_a_planted_leak_is_dropped_whatever_its_case_and_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    test = data.load("sickr", source="synthetic").first[0]
    dev = data.dev_pairs(source="synthetic").second[0]
    rows = (test.upper(), "a new one", "A  new one ", dev.replace(" ", "  "))
    planted = NLIPairs(rows, ("another", *rows[1:]), ("neutral",) * 4, provenance=(Provenance("nli", "all"),))
    load = unrated.load
    monkeypatch.setattr(unrated, "load", lambda name, **k: planted if name == "nli" else load(name, **k))
    table = data.sentences(source="synthetic")
    assert table.text == ("a new one", "another")
    assert table.provenance[0].note == (
        "4 distinct sentences of 8; 2 of them dropped: seen in a test or in the clean development pairs"
    )
    planted = planted.select([0])
    planted = NLIPairs(planted.premise, planted.premise, planted.label)
    with pytest.raises(ValueError, match="all 1 sentences occur in the tests: nothing is left"):
        data.sentences(source="synthetic")


def test_the_hubs_sentences_are_wikipedias_made_distinct(monkeypatch: pytest.MonkeyPatch) -> None:
    wiki = Sentences(("One .", "Two .", "one  ."), provenance=(Provenance("wiki1m", "train", "hub", "abc"),))
    monkeypatch.setattr(unrated, "load", lambda name, **k: {"wiki1m": wiki}[name])
    table = data.sentences(source="hub")
    assert table.text == ("One .", "Two .")
    assert str(table.provenance[0]) == (
        "wiki1m train from hub@abc "
        "(2 distinct sentences of 3; not held against the tests, of which the hub lacks SICK-R)"
    )
    assert catalogue.get("sickr").hub is None  # or the note would be wrong


@pytest.mark.real_data
def test_the_real_inference_pairs_as_ratings(senteval: Path) -> None:
    rated = data.nli_pairs(source=senteval).rated()
    assert [int((rated.gold == value).sum()) for value in (0, 1, 2)] == [6_515, 6_454, 6_697]
    assert len(data.nli_pairs(source=senteval, limit=3_000)) == 3_000


@pytest.mark.real_data
def test_the_real_sentences(senteval: Path) -> None:
    table = data.sentences(source=senteval)
    assert len(table) == 25_585
    assert "25,712 distinct sentences of 39,332; 127 of them dropped" in table.provenance[0].note
    assert list(table.text) == slow_sentences(senteval)
