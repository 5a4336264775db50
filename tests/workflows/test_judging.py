"""Everything judged once: kept by what it depends on, read again, computed anew where that changed or is damaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pcclab import encoders, evaluation, workflows
from pcclab.workflows import judging, judging_units


@pytest.fixture
def told() -> list[str]:
    return []


def judge(encoder: Any, root: Path, told: list[str], **options: Any) -> dict[str, workflows.Judged]:
    options = {"source": "synthetic", "only": ("sts", "geometry"), **options}
    return workflows.judge(encoder, root, tell=told.append, **options)


def test_what_is_kept_is_read_and_nothing_is_embedded(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoders.load("tiny")
    first = judge(encoder, tmp_path, told)
    assert [line.split(": ")[0] for line in told] == ["[1/2] sts", "[1/2] sts", "[2/2] geometry", "[2/2] geometry"]
    monkeypatch.setattr(encoders.Encoder, "encode", None)
    second = judge(encoder, tmp_path, told)
    assert all(judged.reused for judged in second.values()) and not any(judged.reused for judged in first.values())
    assert {name: judged.rows for name, judged in first.items()} == {name: j.rows for name, j in second.items()}
    assert all("kept from" in line for line in told[-2:])


def test_the_rows_are_what_the_evaluators_say(tmp_path: Path, told: list[str]) -> None:
    encoder = encoders.load("tiny")
    found = judge(encoder, tmp_path, told, only=("sts", "rank", "transfer"))
    tables = workflows.by_part(found)
    results = evaluation.sts(encoder, source="synthetic")
    for task, score in results.to_dict().items():
        if task != "average_without_sickr":
            assert tables["sts"][task]["spearman"][0] == pytest.approx(score, abs=1e-4)
    ranks = evaluation.rank_tasks(encoder, source="synthetic")
    assert tables["rank"]["average"]["kendall"][0] == pytest.approx(ranks.kendall, abs=1e-6)
    assert tables["rank"]["stsb"]["ndcg"][0] == pytest.approx(ranks.tasks["stsb"].ndcg, abs=1e-6)
    transfer = evaluation.transfer(encoder, source="synthetic")
    assert tables["transfer"]["average"]["accuracy"][0] == pytest.approx(transfer.average, abs=1e-6)
    for part, column in (("sts", "spearman"), ("rank", "kendall"), ("transfer", "accuracy")):
        for value, low, high in (row[column] for row in tables[part].values()):
            assert low <= value + 1e-9 and value <= high + 1e-9


def test_each_unit_says_what_it_stands_on(tmp_path: Path, told: list[str]) -> None:
    encoder = encoders.load("tiny")
    found = judge(encoder, tmp_path, told, only=("geometry",))
    kept = json.loads(found["geometry"].file.read_text(encoding="utf8"))
    assert kept["fingerprint"] == encoder.fingerprint and kept["source"].startswith("synthetic")
    assert list(kept["data"]) == ["stsb dev"] and kept["options"]["positive_from"] == 4.0
    assert kept["seconds"] > 0 and kept["load"] >= 0 and kept["provenance"]["versions"]["numpy"]


def test_another_encoder_seed_code_or_data_is_computed_anew(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoders.load("tiny")
    judge(encoder, tmp_path, told, only=("geometry",))
    assert judge(encoder, tmp_path, told, only=("geometry",))["geometry"].reused
    changed = [judge(encoders.load("tiny", seed=1), tmp_path, told, only=("geometry",))]
    changed += [judge(encoder, tmp_path, told, only=("geometry",), seed=1)]
    changed += [judge(encoder, tmp_path, told, only=("geometry",), again=True)]
    monkeypatch.setattr(judging, "_code", lambda: "another version")
    changed += [judge(encoder, tmp_path, told, only=("geometry",))]
    assert not any(found["geometry"].reused for found in changed)


def test_a_stopped_judgement_goes_on_and_a_damaged_unit_is_said(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = encoders.load("tiny")

    def broken(*arguments: Any, **options: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(judging_units, "geometry_intervals", broken)
        with pytest.raises(KeyboardInterrupt):
            judge(encoder, tmp_path, told)
    found = judge(encoder, tmp_path, told)
    assert found["sts"].reused and not found["geometry"].reused
    found["sts"].file.write_text('{"rows": ', encoding="utf8")
    assert not judge(encoder, tmp_path, told)["sts"].reused
    assert any("is damaged: computed anew" in line for line in told)


def test_an_undefined_task_leaves_the_average_undefined() -> None:
    rows = {"mr": {"train": 5, "test": 5, "accuracy": [80.0, 60.0, 100.0]}}
    assert judging_units.accuracies(rows, 0) == rows
    both = {**rows, "cr": {"train": 5, "test": 5, "accuracy": "undefined"}}
    assert judging_units.accuracies(both, 0)["average"] == {"train": 10, "test": 10, "accuracy": "undefined"}


def test_missing_data_are_told_before_anything_is_embedded(tmp_path: Path, told: list[str]) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        judge(encoders.load("tiny"), tmp_path, told, source=str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="unknown part 'stss'"):
        judge(encoders.load("tiny"), tmp_path, told, only=("stss",))
    assert told == [] and not (tmp_path / "runs").exists()
