"""Stage 2 judged: one look a run, at its own data and from its own start; and what each rule of choosing reports."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pcclab import data, runs, vault, workflows
from pcclab.workflows import choices, grid, leakage, looked, stage2_looks, with_looks

PLACE = "03 smoke stage1= encoder=tiny max_steps=2 warmup_steps=0 learning_rate=0.001 evaluate_every=1 levels={level}"


@pytest.fixture
def one(begin: Any) -> Any:
    """A run of notebook 10 with one training of two steps."""

    def run(**other: Any) -> runs.Run:
        small = {"stage2": "", "levels": [], "selected": ["filter"], "warmup_steps": 0, "look_pairs": 40}
        begun: runs.Run = begin("10_leakage", **{**small, **other})
        return begun

    return run


def test_a_training_tells_every_look_at_the_tests(one: Any) -> None:
    cell = with_looks(one(), {})
    assert set(cell) == {"step", "tests", "looks", "seconds"}
    assert list(cell["looks"]) == ["0", "1", "2"]
    for look in cell["looks"].values():
        assert list(look) == ["dev", *data.STS_TASKS, "average"]
        assert look["average"] == pytest.approx(np.mean([look[task] for task in data.STS_TASKS]))
    assert cell["tests"] == cell["looks"][str(cell["step"])]
    devs = {step: look["dev"] for step, look in cell["looks"].items() if step != "0"}
    assert str(cell["step"]) == max(devs, key=devs.__getitem__)


def test_the_looks_choose_nothing(one: Any) -> None:
    # The same training without them ends with the same weights.
    from pcclab import encoders, training

    run = one()
    with_looks(run, {})
    encoder = encoders.load("tiny")
    pairs, dev = data.stage2_pairs(leakage="filter", source="synthetic"), data.dev_pairs(source="synthetic")
    training.fit(encoder, pairs, "pearson", parameters=run.parameters, dev=dev)
    assert encoders.load(run.checkpoints / "final").fingerprint == encoder.fingerprint


def test_the_drawn_pairs_are_the_same_for_every_training_and_others_for_another_seed() -> None:
    table = data.sts_tests(source="synthetic")["sts12"]
    few = leakage.drawn(table, 50, name="sts12", seed=0)
    assert len(few) == 50 and len(set(zip(few.first, few.second, strict=True))) == 50
    assert few.fingerprint == leakage.drawn(table, 50, name="sts12", seed=0).fingerprint
    assert few.fingerprint != leakage.drawn(table, 50, name="sts12", seed=1).fingerprint
    assert leakage.drawn(table, 0, name="sts12", seed=0) is table
    assert leakage.drawn(table, 10**6, name="sts12", seed=0) is table


def test_cells_do_not_depend_on_what_is_judged(one: Any, capsys: Any) -> None:
    first = one(selected=["filter"], least=30)
    axes = {"seeds": [0], "selected": ["filter"]}
    frame = grid(first, with_looks, axes=axes, fixed=workflows.JUDGING)
    other = one(least=50, resamples=123)
    again = grid(other, with_looks, axes=axes, fixed=workflows.JUDGING)
    assert "done before" in capsys.readouterr().out
    pd.testing.assert_frame_equal(frame, again)


def cells() -> pd.DataFrame:
    """Two trainings of three looks; the dev and the test scores disagree in the first."""
    rows = []
    for level, devs, one, two in (
        ("keep", [70, 80, 82, 81], [50, 60, 61, 65], [50, 70, 69, 67]),
        ("filter", [70, 80, 81, 83], [50, 55, 56, 57], [50, 65, 66, 67]),
    ):
        row: dict[str, Any] = {"seeds": 0, "selected": level, "step": 20}
        for step, dev, a, b in zip((0, 10, 20, 25), devs, one, two, strict=True):
            row |= {f"looks/{step}/dev": dev, f"looks/{step}/sts12": a, f"looks/{step}/stsb": b}
            row |= {f"looks/{step}/average": (a + b) / 2}
        rows.append(row)
    rows[1] = {name: value for name, value in rows[1].items() if "/25/" not in name}  # a shorter training
    return pd.DataFrame(rows)


def test_each_rule_reports_the_score_at_its_step() -> None:
    found = choices(cells()).set_index("leakage")
    keep = found.loc["keep"]
    assert (keep["dev"], keep["last"], keep["test"], keep["task"]) == (65.0, 66.0, 66.0, 67.5)
    assert (keep["dev_step"], keep["test_step"], keep["looks"]) == (20, 25, 3)
    assert (keep["optimism"], keep["optimism_task"]) == (1.0, 2.5)
    shorter = found.loc["filter"]
    assert (shorter["dev_step"], shorter["looks"], shorter["optimism"]) == (20, 2, 0.0)


def test_the_encoder_as_it_was_is_never_chosen() -> None:
    frame = cells()
    for name in [name for name in frame if name.startswith("looks/0/")]:
        frame[name] = 99.0
    assert (choices(frame)[["dev_step", "test_step"]] > 0).all(axis=None)
    assert looked(frame.iloc[0]).index.tolist() == [0, 10, 20, 25]


def test_each_run_is_looked_at_once_and_the_baseline_under_this_run(one: Any) -> None:
    run = one(stage2=PLACE.format(level="filter"), levels=["filter", "keep"], seeds=[0])
    tests = data.sts_tests(source="synthetic")
    found = stage2_looks(run, tests)
    assert list(found) == ["baseline", "filter", "keep"]
    assert [len(looks) for looks in found.values()] == [1, 1, 1]
    assert found["baseline"][0].run == run.name and found["baseline"][0].fresh
    for level in ("filter", "keep"):
        (look,) = found[level]
        other = runs.spoken(f"{PLACE.format(level='filter')} leakage={level} seed=0")
        assert look.run == other.name
        assert not look.fresh  # notebook 03 took it, this one reads
        assert other.result["after"] == look.results.to_dict()
        assert len(vault.looks(other)) == 1
    again = stage2_looks(run, tests)
    assert [looks[0].time for looks in again.values()] == [looks[0].time for looks in found.values()]
    # Another start than these runs had is told, not subtracted.
    wrong = one(stage2=PLACE.format(level="filter"), levels=["filter"], encoder="minilm", max_tokens=64)
    with pytest.raises(ValueError, match="started from other weights than encoder = 'minilm': name its start"):
        stage2_looks(wrong, tests)


def test_nothing_to_judge_and_other_data_are_told(one: Any) -> None:
    with pytest.raises(ValueError, match="no runs to judge: name a set of notebook 03"):
        stage2_looks(one(), {})
    run = one(stage2="03 real", levels=["keep"])
    with pytest.raises(ValueError, match="has source 'senteval' and this run 'synthetic'"):
        stage2_looks(run, {})


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"stage2": "02 real"}, "must be empty or a set of notebook 03"),
        ({"stage2": "minilm"}, "must be empty or a set of notebook 03"),
        ({"stage2": ""}, "give both, or neither"),
        ({"levels": ["keep", "keep"]}, "names 'keep' twice"),
        ({"selected": []}, "selected"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(checkout: Any, change: dict[str, Any], told: str) -> None:
    smoke = runs.load_file("10_leakage", checkout / "parameters" / "10_leakage" / "smoke.yaml").model_dump(mode="json")
    with pytest.raises(ValueError, match=told):
        runs.validate("10_leakage", {**smoke, **change})


def test_another_stage_2_makes_another_run_but_the_same_cells(one: Any) -> None:
    first, second = (one(stage2=f"03 smoke epochs={epochs}", levels=["keep"]) for epochs in (1.0, 2.0))
    assert first.id != second.id
    fixed = {**workflows.JUDGING, "seeds": [0], "selected": ["keep"]}
    assert first.variant(**fixed).id == second.variant(**fixed).id
    assert json.loads(json.dumps(fixed)) == fixed
