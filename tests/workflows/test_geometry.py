"""Each model is measured once and resumed; averages are taken from where they were written; an order needs models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pcclab import batch, data, encoders, evaluation, files, runs, workflows
from pcclab.runs import Run
from pcclab.workflows import models as places
from pcclab.workflows.geometry import AS_IT_COMES, recorded_average

NOTEBOOK = "05_alignment_uniformity"
SETTINGS = {"source": "synthetic", "seed": 0, "models": ["tiny"], "also": "nothing", "tasks": ["stsb"]}


def begin(**other: Any) -> Run:
    return runs.start(NOTEBOOK, **{**SETTINGS, "sample": 0, "resamples": 100, **other})


def leaving_weights(run: Run, **options: Any) -> None:
    """Stands for a notebook that trains: random weights and the result it would write."""
    run.begin()
    encoders.load("tiny", seed=run.parameters.seed + 10 * int(run.notebook[:2])).save(run.checkpoints / places.WEIGHTS)
    run.finish({"after": {"average": 40.0 + run.parameters.seed}})


@pytest.fixture(autouse=True)
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "execute", leaving_weights)


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each `encode` embedded."""
    asked: list[int] = []
    encode = encoders.Encoder.encode

    def counted(self: Any, sentences: Any, **options: Any) -> Any:
        asked.append(len(sentences))
        return encode(self, sentences, **options)

    monkeypatch.setattr(encoders.Encoder, "encode", counted)
    return asked


def test_a_models_figures_are_those_of_the_evaluation(loads: list[int]) -> None:
    run = begin(tasks=["stsb", "sickr"])
    found = workflows.geometry(run, workflows.load_models(["tiny"]))
    dev, encoder = data.load("stsb", split="dev", source="synthetic"), encoders.load("tiny")
    assert len(loads) == 1, "dev and tests are embedded together, once"
    plane = evaluation.align_uniform(encoder, dev)
    point = found.points.loc["tiny"]
    assert point["alignment"] == pytest.approx(plane.alignment, rel=1e-4)
    assert point["uniformity"] == pytest.approx(plane.uniformity.value, rel=1e-4)
    assert (point["uniformity_error"], point["family"], point["method"]) == (0, AS_IT_COMES, "tiny")
    scores = evaluation.sts(encoder, tasks=["stsb", "sickr"], source="synthetic").scores
    levels = found.levels.set_index("task")
    for task, score in scores.items():
        assert levels.loc[task, "spearman"] == pytest.approx(score, abs=0.05)
        assert levels.loc[task, "levels_low"] < levels.loc[task, "levels"] < levels.loc[task, "levels_high"]
    assert len(found.cosines) == len(dev) and set(found.cosines["model"]) == {"tiny"}
    assert found.undefined == ()
    # Two tasks are no average, and an encoder as it comes has no run that recorded one.
    assert math.isnan(point["average"]) and math.isnan(point["measured"]) and math.isnan(point["recorded"])


def test_seven_tasks_give_an_average_and_a_sample_an_error() -> None:
    found = workflows.geometry(begin(tasks=list(data.STS_TASKS), sample=500), workflows.load_models(["tiny"]))
    point = found.points.loc["tiny"]
    average = evaluation.sts(encoders.load("tiny"), source="synthetic").average
    assert point["average"] == point["measured"] == pytest.approx(average, abs=0.05)
    assert point["uniformity_error"] > 0


def test_what_was_measured_is_not_measured_again(loads: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    run, models = begin(), workflows.load_models(["tiny"])
    first = workflows.geometry(run, models)
    again = workflows.geometry(run, models)
    assert len(loads) == 1 and "(done before)" in capsys.readouterr().out
    pd.testing.assert_frame_equal(first.points, again.points)
    pd.testing.assert_frame_equal(first.levels, again.levels)
    other = workflows.geometry(begin(also="trained"), models)
    assert len(loads) == 1, "another run of the notebook takes what this one measured"
    pd.testing.assert_frame_equal(first.points, other.points)
    (kept,) = (run.folder.parent / "measured").iterdir()
    kept.write_text("{")
    with pytest.raises(ValueError, match="is damaged: delete it to measure tiny again"):
        workflows.geometry(run, models)


def test_other_models_cost_stsb_alone_and_bring_their_recorded_average(loads: list[int], own_root: Path) -> None:
    chosen = "02 smoke seed=1"
    for place in ("02 smoke", chosen, "03 smoke leakage=keep"):
        runs.complete(runs.spoken(place), named=place)
    run = begin(models=["tiny", chosen], also="trained", tasks=["stsb", "sickr"])
    models = workflows.load_models(run.parameters.models)  # type: ignore[attr-defined]
    more = workflows.other_models(run, models)
    # The one that is compared is not among the others; a name it has already is told apart.
    assert [model.run.parameters.seed for model in more.values() if model.run] == [0, 0]
    assert not set(more) & set(models)
    found = workflows.geometry(run, models, more)
    assert len(found.points) == 4 and loads[0] == loads[1] > loads[2] == loads[3]
    assert found.levels.groupby("model")["task"].apply(set).loc[list(more)].tolist() == [{"stsb"}, {"stsb"}]
    assert set(found.cosines["model"]) == set(models)
    assert found.points["recorded"].dropna().sort_values().tolist() == [40.0, 40.0, 41.0]
    assert found.points.loc["stage 1", "family"] == "stage 1" and set(found.points["family"]) >= {
        AS_IT_COMES,
        "stage 2",
    }
    assert workflows.other_models(begin(also="nothing"), models) == {}


def test_a_cells_average_counts_and_one_on_other_data_does_not() -> None:
    run = runs.spoken("02 smoke")
    leaving_weights(run)
    files.write_json(run.folder / "cell.json", {"tests": {"average": 55.5}})
    (model,) = workflows.load_models(["02 smoke"]).values()
    assert workflows.geometry(begin(), {"stage 1": model}).points.loc["stage 1", "recorded"] == 55.5
    files.write_json(run.folder / "cell.json", {"tests": {"average": "undefined"}})
    assert math.isnan(workflows.geometry(begin(), {"stage 1": model}).points.loc["stage 1", "recorded"])
    (run.folder / "cell.json").unlink()
    assert recorded_average(model, "synthetic") == 40.0 and recorded_average(model, "senteval") is None


def test_a_collapsed_model_is_said_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = encoders.Encoder.encode

    def collapsed(self: Any, sentences: Any, **options: Any) -> np.ndarray:
        found: np.ndarray = encode(self, sentences, **options)
        return found if self.settings.name.startswith("tiny") else np.ones_like(found)

    run = runs.spoken("02 smoke")
    leaving_weights(run)
    settings = run.folder / "checkpoints" / places.WEIGHTS / "pcclab.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "name": "flat"}))
    monkeypatch.setattr(encoders.Encoder, "encode", collapsed)
    found = workflows.geometry(begin(), workflows.load_models(["tiny", "02 smoke"]))
    assert found.undefined[0].startswith("stage 1 on stsb: all ") and len(found.undefined) == 1
    assert set(found.levels["model"]) == {"tiny"}
    assert found.points.loc["stage 1", "uniformity"] == pytest.approx(0)
    assert found.points["first_share"].isna().tolist() == [False, True]


def table(count: int, seeds: int = 1) -> pd.DataFrame:
    draw = np.random.default_rng(0)
    rows = [
        {"method": f"m{i}", "alignment": i + 0.01 * draw.normal(), "uniformity": -i, "mean_cosine": 0.1,
         "average": 80.0 - i + 0.1 * seed}
        for i in range(count) for seed in range(seeds)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_an_order_over_methods_counts_each_once_and_says_when_it_is_none() -> None:
    found = workflows.relations(table(7, seeds=3))
    assert found["n"].tolist() == [7] * 4
    row = found.loc["alignment and average"]
    assert row["spearman"] == pytest.approx(-1) and row["why"] == ""
    exact = stats.permutation_test(
        (np.arange(7.0),), lambda x: stats.spearmanr(x, -np.arange(7)).statistic, permutation_type="pairings",
        n_resamples=math.factorial(7),
    )  # fmt: skip
    assert row["p"] == pytest.approx(exact.pvalue, abs=2e-3)
    assert math.isnan(found.loc["mean_cosine and average", "spearman"])
    assert "constant" in found.loc["mean_cosine and average", "why"]
    assert workflows.relations(table(3))["why"].tolist()[0] == "n = 3: an order takes 4 methods or more"
    missing = table(6).assign(average=[math.nan] * 3 + [1.0, 2.0, 3.0])
    assert workflows.relations(missing)["n"].tolist() == [3, 3, 3, 6]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"models": []}, "models"),
        ({"models": [str(i) for i in range(7)]}, "models"),
        ({"also": "all"}, "also"),
        ({"tasks": ["sts17"]}, "tasks"),
        ({"sample": -1}, "sample"),
        ({"resamples": 10}, "resamples"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        begin(**changes)


def test_the_run_stands_on_the_runs_it_names(make_id: Callable[..., str]) -> None:
    assert make_id(["02 smoke"]) != make_id(["tiny"])
    assert begin(models=["tiny", "02 smoke"]).parameters.stands_on() == ("02 smoke",)


@pytest.fixture
def make_id() -> Callable[..., str]:
    return lambda models: begin(models=models).id
