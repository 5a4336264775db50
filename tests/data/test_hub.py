"""The hub through `datasets`, without a network: pinned revisions, column maps, counts, and one clear error offline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import datasets
import huggingface_hub
import pytest

from pcclab import data
from pcclab.data import catalogue, hub
from pcclab.data.pairs import ScoredPairs, Sentences, Triplets


class Hub:
    """Stands in for `datasets.load_dataset` and remembers how it was called."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns = columns
        self.calls: list[dict[str, Any]] = []

    def __call__(self, path: str, **options: Any) -> datasets.Dataset:
        self.calls.append({"path": path, **options})
        return datasets.Dataset.from_dict(self.columns)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to the hub\nsecond line")

    monkeypatch.setattr(datasets, "load_dataset", refuse)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", refuse)
    hub.newest.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, columns: dict[str, list[Any]], split: str = "test") -> Hub:
    """Let the hub hold these columns, and the catalogue expect as many rows."""
    fake = Hub(columns)
    monkeypatch.setattr(datasets, "load_dataset", fake)
    rows = len(next(iter(columns.values())))
    declared = replace(catalogue.get(name), counts={**catalogue.get(name).counts, split: rows})
    monkeypatch.setattr(catalogue, "CORPORA", {**catalogue.CORPORA, name: declared})
    return fake


COLUMNS: dict[str, list[Any]] = {
    "sentence1": [" a kite", "a boat"],
    "sentence2": ["the kite", "a tree "],
    "score": [4.5, 0.0],
}


def test_pairs_come_from_the_pinned_revision_with_the_columns_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, "sts12", COLUMNS)
    pairs = data.load("sts12", source="hub")
    assert (pairs.first, pairs.second, pairs.gold.tolist()) == (
        ("a kite", "a boat"),
        ("the kite", "a tree"),
        [4.5, 0.0],
    )
    pin = "a0d554a64d88156834ff5ae9920b964011b16384"
    assert fake.calls == [{"path": "mteb/sts12-sts", "revision": pin, "split": "test"}]
    assert pairs.provenance[0].source == "hub"
    assert pairs.provenance[0].revision == pin
    assert pairs.provenance[0].note == "the hub does not tell subsets apart"


def test_the_dev_part_has_the_hubs_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, "stsb", COLUMNS, "dev")
    assert data.load("stsb", split="dev", source="hub").provenance[0].split == "dev"
    assert fake.calls[0]["split"] == "validation"


def test_every_declared_pin_is_a_commit() -> None:
    for corpus in catalogue.CORPORA.values():
        if corpus.hub is None:
            assert corpus.no_hub, corpus.name
        elif corpus.hub.repo == catalogue.SIMCSE_REPO:
            assert corpus.hub.revision == ""
        else:
            assert len(corpus.hub.revision) == 40
            assert set(corpus.hub.revision) <= set("0123456789abcdef")
            assert set(corpus.hub.splits) == set(corpus.counts)


def test_a_revision_given_beats_the_pin(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = pretend(monkeypatch, "sts13", COLUMNS)
    assert data.load("sts13", source="hub", revision="f00").provenance[0].revision == "f00"
    assert fake.calls[0]["revision"] == "f00"


def test_without_a_pin_the_newest_commit_is_taken_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = {"sent0": ["a kite flies"], "sent1": ["it flies"], "hard_neg": ["it sinks"]}
    fake = pretend(monkeypatch, "nli_for_simcse", columns, "train")
    asked = []

    def newest(_: Any, repo: str) -> SimpleNamespace:
        asked.append(repo)
        return SimpleNamespace(sha="c0ffee")

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", newest)
    triplets = data.nli_triplets(source="hub")
    assert isinstance(triplets, Triplets)
    assert (triplets.anchor, triplets.negative) == (("a kite flies",), ("it sinks",))
    assert triplets.provenance[0].revision == "c0ffee"
    assert fake.calls[0]["data_files"] == {"train": "nli_for_simcse.csv"}
    assert fake.calls[0]["revision"] == "c0ffee"
    data.nli_triplets(source="hub")
    assert asked == [catalogue.SIMCSE_REPO]
    assert data.nli_triplets(source="hub", revision="beef").provenance[0].revision == "beef"


def test_plain_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "wiki1m", {"text": ["a kite", " a boat"]}, "train")
    table = data.load("wiki1m", source="hub", revision="f00")
    assert isinstance(table, Sentences)
    assert table.text == ("a kite", "a boat")


def test_files_on_disk_are_read_by_the_library_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    (tmp_path / "triplets.csv").write_text('sent0,sent1,hard_neg\n"a kite, red",a kite,no kite\nNA,null,None\n')
    columns = {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"}
    address = catalogue.HubAddress(str(tmp_path), "f00", columns, {"train": "train"}, "triplets.csv")
    corpus = replace(catalogue.get("nli_for_simcse"), counts={"train": 2}, hub=address)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    table = hub.load(corpus, "train")
    assert isinstance(table, Triplets)
    assert table.anchor == ("a kite, red", "NA")
    assert table.positive[1] == "null"


def test_blank_texts_to_train_on_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "wiki1m", {"text": ["a kite", " ", "a boat"]}, "train")
    table = data.load("wiki1m", source="hub", revision="f00")
    assert isinstance(table, Sentences)
    assert table.text == ("a kite", "a boat")
    assert table.provenance[0].note == "1 rows with a blank text left out"


def test_offline_is_one_error_that_names_repo_revision_and_the_other_ways() -> None:
    pin = "7e90230a92c190f1bf69ae9002b8cea547a64cca"
    with pytest.raises(
        OSError, match=rf"could not get mteb/sts13-sts at {pin} .*PCCLAB_DATA.*source='synthetic'"
    ) as raised:
        data.load("sts13", source="hub")
    assert "\n" not in str(raised.value)
    with pytest.raises(OSError, match="could not get princeton-nlp/datasets-for-simcse at its newest commit"):
        data.nli_triplets(source="hub")


def test_a_wrong_column_a_wrong_count_and_an_empty_rating(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "sts14", {"sentence1": ["a"], "sentence2": ["b"], "label": [1.0]})
    with pytest.raises(
        ValueError, match=r"mteb/sts14-sts at 6031580\w+ has no column 'score': it has sentence1, sentence2, label"
    ):
        data.load("sts14", source="hub")
    pretend(monkeypatch, "sts14", {**COLUMNS, "score": [1.0, None]})
    with pytest.raises(ValueError, match=r"ScoredPairs \(sts14 test\): gold of row 1 is nan"):
        data.load("sts14", source="hub")
    pretend(monkeypatch, "sts14", {**COLUMNS, "sentence1": ["a kite", None]})
    with pytest.raises(ValueError, match="first of row 1 is None"):
        data.load("sts14", source="hub")
    monkeypatch.undo()
    monkeypatch.setattr(datasets, "load_dataset", Hub(COLUMNS))
    with pytest.raises(
        ValueError, match=r"sts14 test has 2 rows in mteb/sts14-sts at 6031580\w+, and 3,750 are declared"
    ):
        data.load("sts14", source="hub")


def test_mtebs_sick_is_refused_and_says_why() -> None:
    with pytest.raises(
        ValueError, match=r"9,927 rows .* not the 4,927 .* senteval\.tar of princeton-nlp/datasets-for-simcse"
    ):
        data.load("sickr", source="hub")
    with pytest.raises(ValueError, match=r"mr is not taken from the hub: .*pcclab data fetch"):
        data.load("mr", source="hub")


def test_no_remote_code_is_ever_allowed() -> None:
    for file in Path(hub.__file__).parent.glob("*.py"):
        assert "trust_remote_code" not in file.read_text(encoding="utf8")


def test_the_hub_returns_pairs_with_the_types_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, "sts15", COLUMNS)
    assert isinstance(data.load("sts15", source="hub"), ScoredPairs)
    assert data.describe("hub") == "the hub, pinned revisions"
