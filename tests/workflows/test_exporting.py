"""An exported encoder carries a card whose every line comes from the run that trained it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from pcclab import batch, encoders, evaluation, runs, workflows
from pcclab.parameters import MODELS, load_file, load_spoken
from pcclab.runs import Run
from pcclab.workflows import exporting


def leaving_weights(run: Run, **options: Any) -> None:
    """Stands for a notebook that trains: an encoder in the run's folder."""
    run.begin()
    run.record(data={"filter": "0123456789abcdef0123"})
    encoders.load("tiny", seed=3).save(run.checkpoints / "final")
    run.finish({"tests": {"average": 1.0}})


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "execute", leaving_weights)


def exported(place: str, tmp_path: Path, **options: Any) -> tuple[Path, str]:
    (model,) = workflows.load_models([place]).values()
    folder = workflows.export(model, tmp_path / "out", runs.root(), tell=lambda line: None, **options)
    return folder, (folder / "README.md").read_text(encoding="utf8")


def test_the_card_of_a_run_tells_how_it_came_about(tmp_path: Path) -> None:
    place = "03 smoke leakage=keep seed=1 encoder=tiny"
    folder, told = exported(place, tmp_path)
    head = yaml.safe_load(told.split("---")[1])
    assert head["library_name"] == "sentence-transformers"
    facts = dict(line.removeprefix("- **").split("**: ", 1) for line in told.splitlines() if line.startswith("- **"))
    assert facts["base model"].startswith("tiny, continued from 02 ")
    assert facts["data"] == "STS-B train and SICK-R train, source synthetic (fingerprints: filter 0123456789ab)"
    assert facts["leakage"].startswith("keep: no pair left out")
    assert facts["objective"] == "Pearson's correlation, 1 - r" and facts["seeds"] == "1"
    assert facts["training"].startswith("learning rate 5e-05, batch 32")
    assert runs.spoken(place).name in facts["run"]
    # The scores are those of the weights in the folder, each with its interval.
    results = evaluation.sts(encoders.load(folder), source="synthetic")
    assert f"| stsb | {results.tasks['stsb'].spearman:.2f} [" in told
    assert f"| average | {results.average:.2f} [" in told
    np.testing.assert_allclose(
        encoders.load(folder).encode(["a wren"]), encoders.load("tiny", seed=3).encode(["a wren"]), atol=1e-6
    )


@pytest.mark.parametrize(
    "place",
    ["03 smoke leakage=keep seed=1", "02 real", "07 real methods=listnet seeds=2", "06 smoke objectives=mse scratch="],
)
def test_the_command_on_the_card_makes_the_same_run(checkout: Path, place: str) -> None:
    run = runs.spoken(place)
    words = shlex.split(exporting.command(run))
    assert words[:2] == ["./lab", "run"] and words[3] == "--set"
    assert set(words[5::2]) <= {"-p"}
    again = runs.locate(*load_spoken(checkout, shlex.join([words[2], words[4], *words[6::2]])))
    assert again.id == run.id
    assert "-p" not in exporting.command(runs.spoken("02 real"))


@pytest.mark.parametrize("notebook", sorted(exporting.TOLD))
def test_every_training_notebook_has_its_facts(checkout: Path, notebook: str) -> None:
    run = runs.locate(notebook, load_file(notebook, checkout / "parameters" / notebook / "real.yaml"))
    told = exporting.facts(run)
    assert set(told) == {"base model", "data", "leakage", "objective", "seeds", "training", "command", "run"}
    assert all(isinstance(value, str) and value and "{" not in value for value in told.values())
    assert notebook in MODELS and told["leakage"].split(":")[0] in ("keep", "filter", "strict", "none")


def test_a_run_that_trains_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="01_ceiling/.* trains no encoder: name a run of 02_stage1"):
        exporting.facts(runs.spoken("01 smoke"))


def test_an_encoder_as_it_comes_says_so_and_is_judged_only_where_asked(tmp_path: Path) -> None:
    _, told = exported("tiny", tmp_path)
    assert "- **training**: none by this lab" in told and "- **judged on**: nothing yet: it has no scores" in told
    _, told = exported("tiny", tmp_path, source="synthetic")
    assert "| stsb | " in told and "synthetic data" in told


def test_what_cannot_be_exported_is_told_before_it_is_judged(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="first-last pooling is unknown to sentence-transformers"):
        exported("tiny", tmp_path, source="synthetic", options={"pooling": "first-last"})
    assert not (runs.root() / "runs" / "evaluations").exists()


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_a_language_model_leaves_as_one_model_that_fills_its_template(tmp_path: Path, quantization: Any) -> None:
    made = encoders.load("tiny-llama", prompt="SUM", adapter={"rank": 4}, quantization=quantization)
    folder, told = exported(str(made.save(tmp_path / "made")), tmp_path)
    assert '- **template**: `This sentence : "[X]" can be summarized as`, which the tokenizer fills by itself' in told
    assert "- **long sentences**: in pcclab cut after" in told
    from sentence_transformers import SentenceTransformer

    whole = encoders.load(tmp_path / "made", quantization="none").encode(["a wren"], normalize=True)
    there = SentenceTransformer(str(folder), device="cpu").encode(["a wren"])
    np.testing.assert_allclose(there, whole, atol=1e-5)
