"""The generated corpora keep their promises: a stated gold, planted leaks, and the same bytes everywhere."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.stats import spearmanr

from pcclab import data
from pcclab.data import catalogue, synthetic, synthetic_texts
from pcclab.data.leakage import fold
from pcclab.data.pairs import LabelledTexts, NLIPairs, ScoredPairs, Triplets
from pcclab.data.scenes import entails, excludes, similarity

PARTS = sorted(synthetic.ROWS)


def table(name: str, split: str) -> ScoredPairs:
    found = data.load(name, split=split, source="synthetic")
    assert isinstance(found, ScoredPairs)
    return found


@pytest.mark.parametrize(
    ("name", "split"), [(corpus.name, split) for corpus in catalogue.CORPORA.values() for split in corpus.counts]
)
def test_every_corpus_has_a_synthetic_stand_in(name: str, split: str) -> None:
    found = data.load(name, split=split, source="synthetic")
    assert len(found) == synthetic.declared(name, split)
    told = found.provenance[0]
    assert (told.source, told.corpus, told.split) == ("synthetic", name, split)
    assert told.revision == "generator 1, seed 0"


def test_a_corpus_is_made_in_under_a_second() -> None:
    synthetic._world.cache_clear()
    synthetic_texts.inferences.cache_clear()
    for load in (lambda: data.stage2_pairs(source="synthetic"), lambda: data.nli_triplets(source="synthetic")):
        began = time.perf_counter()
        load()
        assert time.perf_counter() - began < 2.0


@pytest.mark.parametrize(("name", "split"), PARTS)
def test_gold_is_the_mean_of_five_whole_ratings_near_the_truth(name: str, split: str) -> None:
    pairs, truth = table(name, split), synthetic.oracle(name, split)
    assert pairs.scale == (0.0, 5.0)
    step = 0.2 if name == "stsb" or (split == "test" and name != "sickr") else 0.25
    np.testing.assert_allclose(pairs.gold / step, np.round(pairs.gold / step), atol=1e-9)
    assert np.abs(pairs.gold - truth).mean() < 0.35
    assert np.abs(pairs.gold - truth).max() < 1.6
    if split == "test":
        assert 0.93 < spearmanr(truth, pairs.gold)[0] < 0.995


@pytest.mark.parametrize(("name", "split"), PARTS)
def test_the_rows_of_the_table_are_the_generated_pairs(name: str, split: str) -> None:
    pairs = table(name, split)
    rows = synthetic.pairs(name, split)
    assert tuple((row.first.strip(), row.second.strip()) for row in rows) == tuple(
        (a.strip(), b.strip()) for a, b in zip(pairs.first, pairs.second, strict=True)
    )
    assert [5 * similarity(*row.scenes) for row in rows] == pytest.approx(synthetic.oracle(name, split).tolist())
    assert all(fold(row.first) != fold(row.second) for row in rows)


def test_the_gold_spreads_over_the_scale() -> None:
    for name in data.STS_TASKS:
        shares = np.histogram(table(name, "test").gold, bins=5, range=(0, 5))[0] / synthetic.ROWS[name, "test"]
        assert shares.min() > 0.03, name


def test_seven_tests_have_their_own_subsets_and_styles() -> None:
    for name, (subsets, _) in synthetic.DOMAINS.items():
        assert list(table(name, "test").subsets()) == list(subsets)
    assert len({style for subsets, _ in synthetic.DOMAINS.values() for style in subsets.values()}) >= 9


def test_no_pair_stands_twice_in_the_tests() -> None:
    keys = [row.key for name in data.STS_TASKS for row in synthetic.pairs(name, "test")]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("part", sorted(synthetic.LEAKED))
def test_leaked_shared_and_clean_rows_are_as_many_as_stated(part: tuple[str, str]) -> None:
    tests = [table(name, "test") for name in data.STS_TASKS]
    rows = table(*part)
    leaked = data.leakage.seen(rows, tests)
    touched = data.leakage.seen(rows, tests, level="sentence")
    assert leaked.sum() == sum(synthetic.LEAKED[part].values())
    assert (touched & ~leaked).sum() == synthetic.SHARED[part]


def test_planted_copies_are_disguised_and_keep_their_gold() -> None:
    tests = {row.key: row for name in data.STS_TASKS for row in synthetic.pairs(name, "test")}
    copies = [(row, tests[row.key]) for row in synthetic.pairs("stsb", "train") if row.key in tests]
    assert all(copy.gold == test.gold and copy.truth == pytest.approx(test.truth) for copy, test in copies)
    as_it_is = sum((copy.first, copy.second) == (test.first, test.second) for copy, test in copies)
    swapped = sum(fold(copy.first) == fold(test.second) for copy, test in copies)
    assert swapped == pytest.approx(len(copies) / synthetic.SWAPPED, abs=1)
    assert as_it_is == pytest.approx(len(copies) / 2, abs=3)


def test_another_seed_is_another_corpus_and_the_same_seed_the_same() -> None:
    first = synthetic.load("sts13", "test", seed=1)
    synthetic._world.cache_clear()
    assert synthetic.load("sts13", "test", seed=1).fingerprint == first.fingerprint
    assert synthetic.load("sts13", "test").fingerprint != first.fingerprint
    assert first.provenance[0].revision == "generator 1, seed 1"


def test_the_bytes_do_not_depend_on_the_process() -> None:
    names = ["stsb", "nli", "mr", "wiki1m", "sickr"]
    code = f"from pcclab import data; print(*(data.load(n, source='synthetic').fingerprint for n in {names}))"
    other = {**os.environ, "PYTHONHASHSEED": "12345"}
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=other).stdout
    assert told.split() == [data.load(name, source="synthetic").fingerprint for name in names]


def test_labels_of_the_inference_corpus_follow_from_the_meanings() -> None:
    rows = synthetic_texts.inferences("all", f"{synthetic.GENERATOR}/0")
    pairs = data.load("nli", source="synthetic")
    assert isinstance(pairs, NLIPairs)
    assert pairs.premise == tuple(row.premise for row in rows)
    for row in rows:
        holds, fails = entails(*row.scenes), excludes(*row.scenes)
        expected = "entailment" if holds else "contradiction" if fails else "neutral"
        assert row.label == expected, row


def test_triplets_are_an_entailment_and_a_contradiction_of_their_anchor() -> None:
    meaning = {
        (row.premise, row.hypothesis): row.scenes
        for row in synthetic_texts.inferences("all", f"{synthetic.GENERATOR}/0")
    }
    triplets = data.nli_triplets(source="synthetic")
    assert isinstance(triplets, Triplets)
    assert len(triplets) == len(set(triplets.anchor)) == 1_500
    for anchor, positive, negative in zip(triplets.anchor, triplets.positive, triplets.negative, strict=True):
        assert entails(*meaning[anchor, positive])
        assert excludes(*meaning[anchor, negative])
        assert anchor not in (positive, negative)


@pytest.mark.parametrize(("name", "split"), sorted(synthetic_texts.ROWS))
def test_labelled_texts_have_equal_classes(name: str, split: str) -> None:
    found = data.load(name, split=split, source="synthetic")
    assert isinstance(found, LabelledTexts)
    assert found.classes == catalogue.get(name).classes
    counts = np.bincount(found.label, minlength=len(found.classes))
    assert counts.max() - counts.min() <= 1
    assert (found.second is not None) == (name == "mrpc")


def test_labels_follow_from_the_words() -> None:
    reviews = data.load("mr", source="synthetic")
    assert isinstance(reviews, LabelledTexts)
    praised = [any(word in text for word in synthetic_texts._GOOD) for text in reviews.text]
    assert praised == reviews.label.astype(bool).tolist()
