"""One `load` over three sources, never falling from one to another; and the tables made of several corpora."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from pcclab import data
from pcclab.data import catalogue, loading, synthetic
from pcclab.data.pairs import NLIPairs, ScoredPairs

REAL = [(c.name, split) for c in catalogue.CORPORA.values() if c.layout != "none" for split in c.counts]


@pytest.mark.real_data
@pytest.mark.parametrize(("name", "split"), REAL)
def test_every_corpus_has_the_declared_rows(senteval: Path, name: str, split: str) -> None:
    table = data.load(name, split=split, source=senteval)
    assert len(table) == catalogue.get(name).counts[split]
    assert table.provenance[0].source == "senteval"
    assert len(table.provenance[0].revision) == 16


@pytest.mark.real_data
def test_the_real_tables_are_what_the_papers_use(senteval: Path) -> None:
    sick = data.load("sickr", source=senteval)
    assert (sick.gold.min(), sick.gold.max()) == (0.0, 5.0)
    sts16 = data.load("sts16", source=senteval)
    assert sts16.provenance[0].note == "7,997 lines without a rating skipped"
    assert {name: len(part) for name, part in sts16.subsets().items()} == {
        "answer-answer": 254,
        "headlines": 249,
        "plagiarism": 230,
        "postediting": 244,
        "question-question": 209,
    }


@pytest.mark.real_data
def test_the_pairs_of_stage_two_at_each_leakage_level(senteval: Path) -> None:
    assert len(data.stage2_pairs(leakage="keep", source=senteval)) == 10_249
    filtered = data.stage2_pairs(source=senteval)
    assert len(filtered) == 5_398
    assert (filtered.gold >= 4).sum() == 1_543
    clean = [
        data.leakage.drop_seen(_train(name, senteval), data.sts_tests(source=senteval)) for name in ("stsb", "sickr")
    ]
    assert [len(table) for table in clean] == [991, 4_407]
    strict = data.stage2_pairs(leakage="strict", source=senteval)
    assert len(strict) == 834
    # STS-B's rows name a genre and SICK's do not
    assert sum(name != "" for name in strict.subset) == 767


@pytest.mark.real_data
def test_the_clean_pairs_to_select_on(senteval: Path) -> None:
    clean = data.dev_pairs(source=senteval)
    assert (sum(name != "" for name in clean.subset), sum(name == "" for name in clean.subset)) == (369, 491)
    assert len(data.dev_pairs(leakage="keep", source=senteval)) == 2_000


@pytest.mark.real_data
def test_the_real_triplets_are_one_for_each_premise_with_both_labels(senteval: Path) -> None:
    pairs = data.load("nli", source=senteval)
    assert isinstance(pairs, NLIPairs)
    labels: dict[str, set[str]] = {}
    for premise, label in zip(pairs.premise, pairs.label, strict=True):
        labels.setdefault(premise, set()).add(label)
    expected = [premise for premise, found in labels.items() if {"entailment", "contradiction"} <= found]
    triplets = data.nli_triplets(source=senteval)
    assert list(triplets.anchor) == expected
    assert len(triplets) == 5_863
    assert triplets.fingerprint == data.nli_triplets(source=senteval).fingerprint
    assert triplets.fingerprint != data.nli_triplets(source=senteval, seed=1).fingerprint


def _train(name: str, source: Path | str) -> ScoredPairs:
    table = data.load(name, split="train", source=source)
    assert isinstance(table, ScoredPairs)
    return table


def test_triplets_are_formed_of_their_own_premise_and_drawn_with_the_seed() -> None:
    rows = [
        ("a kite", "it flies", "entailment"),
        ("a boat", "it floats", "entailment"),
        ("a kite", "no kite", "contradiction"),
        ("a tree", "no tree", "contradiction"),
        ("a kite", "a toy", "entailment"),
        ("a kite", "a red kite", "neutral"),
    ]
    pairs = NLIPairs(*zip(*rows, strict=True))
    drawn = Counter(loading.form_triplets(pairs, seed=seed).positive for seed in range(20))
    assert set(drawn) == {("it flies",), ("a toy",)}
    triplets = loading.form_triplets(pairs)
    assert (triplets.anchor, triplets.negative) == (("a kite",), ("no kite",))
    with pytest.raises(ValueError, match="none of 1 premises has both an entailment and a contradiction"):
        loading.form_triplets(pairs.select([1]))


def test_another_number_of_rows_than_declared_names_both(tmp_path: Path) -> None:
    folder = tmp_path / "STS" / "STSBenchmark"
    folder.mkdir(parents=True)
    (folder / "sts-test.csv").write_text("g\tf\ty\ti\t2.0\tmy kite\tyour kite\n")
    with pytest.raises(ValueError, match=r"stsb test has 1 rows in SentEval folder .*, and 1,379 are declared"):
        data.load("stsb", source=tmp_path)


def test_no_source_is_an_error_that_names_the_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PCCLAB_DATA", raising=False)
    for source in (None, "senteval"):
        with pytest.raises(
            ValueError, match=r"set PCCLAB_DATA .*source= that folder.*source='hub'.*source='synthetic'"
        ):
            data.load("stsb", source=source)


def test_a_folder_that_is_not_there_or_not_sentevals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCLAB_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match=r"no folder '.*gone' \(from PCCLAB_DATA\)"):
        data.load("stsb")
    with pytest.raises(FileNotFoundError, match="no folder 'sentevil': a source is 'senteval', 'hub', 'synthetic' or"):
        data.load("stsb", source="sentevil")
    with pytest.raises(FileNotFoundError, match=r"holds none of STS, SICK, .*pcclab data fetch FOLDER"):
        data.load("stsb", source=tmp_path)
    (tmp_path / "inner" / "STS").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match=r"holds none of STS, SICK, .*: point at .*inner"):
        data.load("stsb", source=tmp_path)


def test_the_environment_variable_is_the_folder_of_senteval(senteval: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCLAB_DATA", str(senteval))
    assert data.describe() == data.describe("senteval") == f"SentEval folder {senteval}"
    assert data.load("stsb").fingerprint == data.load("stsb", source=senteval).fingerprint


def test_an_explicit_source_beats_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCLAB_DATA", "nowhere")
    assert data.load("stsb", source="synthetic").provenance[0].source == "synthetic"
    assert data.load("synthetic-stsb").fingerprint == data.load("stsb", source="synthetic").fingerprint


def test_names_splits_and_options_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="unknown corpus 'sts17': there are sts12, sts13"):
        data.load("sts17", source="synthetic")
    with pytest.raises(ValueError, match="sts12 has no split 'train': take one of test"):
        data.load("sts12", split="train", source="synthetic")
    with pytest.raises(ValueError, match="synthetic-stsb comes from source='synthetic' and not 'hub'"):
        data.load("synthetic-stsb", source="hub")
    with pytest.raises(ValueError, match="revision='abc' is for source='hub'"):
        data.load("stsb", source="synthetic", revision="abc")
    with pytest.raises(ValueError, match="leakage is 'none': take 'keep', 'filter' or 'strict'"):
        data.stage2_pairs(leakage="none", source="synthetic")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leakage is 'strict': take 'keep' or 'filter'"):
        data.dev_pairs(leakage="strict", source="synthetic")  # type: ignore[arg-type]


def test_the_default_split_is_the_test_for_tasks() -> None:
    for name in data.STS_TASKS:
        assert data.load(name, source="synthetic").provenance[0].split == "test"
    for name, split in (
        ("nli", "all"),
        ("mr", "all"),
        ("sst2", "train"),
        ("wiki1m", "train"),
        ("nli_for_simcse", "train"),
    ):
        assert data.load(name, source="synthetic").provenance[0].split == split
    trial, dev = (data.load("sickr", split=split, source="synthetic") for split in ("trial", "dev"))
    assert trial.fingerprint == dev.fingerprint


def test_the_synthetic_leakage_levels_have_the_planted_sizes() -> None:
    parts = [("stsb", "train"), ("sickr", "train")]
    total = sum(synthetic.ROWS[part] for part in parts)
    leaked = sum(sum(synthetic.LEAKED[part].values()) for part in parts)
    shared = sum(synthetic.SHARED[part] for part in parts)
    sizes = {level: len(data.stage2_pairs(leakage=level, source="synthetic")) for level in ("keep", "filter", "strict")}
    assert sizes == {"keep": total, "filter": total - leaked, "strict": total - leaked - shared}
    dev = [("stsb", "dev"), ("sickr", "dev")]
    clean = sum(synthetic.ROWS[part] - sum(synthetic.LEAKED[part].values()) for part in dev)
    assert len(data.dev_pairs(source="synthetic")) == clean
    assert len(data.dev_pairs(leakage="keep", source="synthetic")) == sum(synthetic.ROWS[part] for part in dev)


def test_the_default_of_stage_two_is_the_filter() -> None:
    default = data.stage2_pairs(source="synthetic")
    assert default.fingerprint == data.stage2_pairs(leakage="filter", source="synthetic").fingerprint
    assert not data.leakage.seen(default, data.sts_tests(source="synthetic").values()).any()
    kept = data.stage2_pairs(leakage="keep", source="synthetic")
    assert data.leakage.seen(kept, data.sts_tests(source="synthetic").values()).any()
    assert np.isfinite(kept.gold).all()


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = (
        "import sys, pcclab.data as d; heavy = {'torch', 'pandas', 'datasets', 'numpy'} & set(sys.modules); "
        "assert not heavy, heavy; d.load('stsb', source='synthetic'); "
        "heavy = {'torch', 'datasets', 'transformers'} & set(sys.modules); assert not heavy, heavy; print('light')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "light", done.stderr


def test_every_public_name_is_there() -> None:
    for name in data.__all__:
        assert getattr(data, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = data.lode
