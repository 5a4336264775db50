"""The models that notebooks compare: spoken of as on the command line, trained where they are missing, told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pcclab import batch, encoders, files, runs, workflows
from pcclab.parameters import load_spoken, places
from pcclab.runs import Run
from pcclab.workflows import models


def leaving_weights(run: Run, **options: Any) -> None:
    """Stands for a notebook that trains: the encoder as it is, in the run's folder."""
    run.begin()
    encoders.load("tiny", seed=run.parameters.seed).save(run.checkpoints / models.WEIGHTS)
    run.finish({"tests": {"average": 1.0}})


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "execute", leaving_weights)


def test_a_run_is_spoken_of_as_the_command_line_takes_it(checkout: Path) -> None:
    notebook, parameters = load_spoken(checkout, "03 real leakage=keep seed=1")
    assert notebook == "03_stage2_pcc_tuning"
    assert (parameters.source, parameters.seed, parameters.leakage) == ("senteval", 1, "keep")  # type: ignore[attr-defined]
    assert load_spoken(checkout, "03 parameters/03_stage2_pcc_tuning/real.yaml leakage=keep seed=1")[1] == parameters


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("03 leakage=keep", "names no set of notebook 03"),
        ("03 real 'leakage=keep", "names no run .*No closing quotation"),
        ("99 real", "names 0 notebooks"),
        ("01 reel", "no parameter file .*holds paper.yaml, real.yaml, smoke.yaml"),
        ("03 smoke leakage=kept", "leakage"),
        ("03 smoke leakage", "write NAME=VALUE"),
    ],
)
def test_a_place_that_names_no_run_is_told(checkout: Path, place: str, said: str) -> None:
    assert places.speaks_of_a_run(place)
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        load_spoken(checkout, place)


def test_models_are_loaded_by_name_and_missing_runs_run_first(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["tiny", "02 smoke", "03 smoke leakage=keep", "03 smoke leakage=filter"]
    found = workflows.load_models(asked)
    assert list(found) == ["tiny", "stage 1", "stage 2 keep", "stage 2 filter"]
    assert capsys.readouterr().out.count("first") == 3
    stage1 = found["stage 1"]
    assert stage1.run == runs.spoken("02 smoke") and stage1.seed == 0
    assert stage1.load().fingerprint == encoders.load("tiny", seed=0).fingerprint
    assert found["tiny"].run is None and found["tiny"].load().dim == stage1.load().dim
    assert list(workflows.load_models(asked)) == list(found)
    assert capsys.readouterr().out == ""


def test_models_of_one_name_are_told_apart_by_seed_and_then_by_run() -> None:
    by_seed = workflows.load_models(["03 smoke", "03 smoke seed=1"])
    assert list(by_seed) == ["stage 2 filter, seed 0", "stage 2 filter, seed 1"]
    by_run = workflows.load_models(["02 smoke", "02 smoke learning_rate=0.001"])
    assert list(by_run) == [f"stage 1, seed 0, run {model.run.id}" for model in by_run.values() if model.run]


def test_what_trains_no_encoder_is_refused_before_anything_runs(own_root: Path) -> None:
    with pytest.raises(ValueError, match="'01 smoke' trains no encoder: name a run of 02_stage1_contrastive"):
        workflows.load_models(["02 smoke", "01 smoke"])
    assert not (own_root / "runs").exists()
    with pytest.raises(ValueError, match="models name 'tiny' twice"):
        workflows.load_models(["tiny", "tiny"])


def test_a_finished_run_without_its_weights_is_told() -> None:
    run = runs.spoken("02 smoke")
    run.begin()
    run.finish({"a": 1})
    with pytest.raises(FileNotFoundError, match="its weights are gone .*pcclab run 02 --again"):
        workflows.load_models(["02 smoke"])


def test_everything_trained_here_is_found(own_root: Path) -> None:
    assert workflows.trained(own_root) == {}
    workflows.load_models(["02 smoke", "03 smoke leakage=keep"])
    cell = runs.spoken("07 smoke methods=listnet seeds=3")
    leaving_weights(cell)
    begun = runs.spoken("02 smoke seed=5")
    begun.begin()
    (begun.checkpoints / "final").mkdir()
    strange = own_root / "runs" / "02_stage1_contrastive" / "0" / "checkpoints"
    (strange / "final").mkdir(parents=True)
    files.write_text(strange.parent / "parameters.yaml", "of: another version\n")
    found = workflows.trained(own_root)
    assert list(found) == ["stage 1", "stage 2 keep", "RankCSE listnet"]
    assert found["RankCSE listnet"].seed == 3
    assert workflows.trained(own_root, source="synthetic") == found
    assert workflows.trained(own_root, source="senteval") == {}
