"""A sweep's file: which runs it means, and what is told of one that means none."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pcclab import parameters, runs, sweep
from pcclab.sweep import search

HEAD = "notebook: 01_ceiling\nbase: smoke\n"
STAGE2 = "03_stage2_pcc_tuning"
FILES = sorted((Path(__file__).parents[2] / "parameters" / "sweeps").glob("*.yaml"))
Swept = Callable[..., sweep.Sweep]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_sweep_of_the_checkout_is_valid(file: Path) -> None:
    loaded = sweep.load(file)
    assert len(loaded.runs) == loaded.planned == len({run.id for run in loaded.runs}) > 1
    assert sweep.load(file.stem).runs == loaded.runs


def test_a_run_of_a_sweep_is_the_run_of_the_command_line(own_root: Path) -> None:
    trials = sweep.load("losses").trials
    assert len(trials) == 12
    for trial in trials:
        told = " ".join(f"{name}={value}" for name, value in trial.changes.items())
        assert runs.spoken(f"03 smoke levels=[] {told}").id == trial.run.id


def test_settings_are_in_order_with_the_seeds_innermost(swept: Swept) -> None:
    made = swept(notebook="01", base="smoke", values={"levels": 7}, grid={"n": [10, 12], "share": [0.25]}, seeds=[3, 5])
    assert [trial.changes for trial in made.trials] == [
        {"n": 10, "share": 0.25, "seed": 3},
        {"n": 10, "share": 0.25, "seed": 5},
        {"n": 12, "share": 0.25, "seed": 3},
        {"n": 12, "share": 0.25, "seed": 5},
    ]
    assert [trial.setting for trial in made.trials[::2]] == [{"n": 10, "share": 0.25}, {"n": 12, "share": 0.25}]
    assert [trial.seed for trial in made.trials] == [3, 5, 3, 5]
    assert all(run.parameters.model_dump()["levels"] == 7 for run in made.runs)


def test_several_bases_and_cases_with_one_of_their_own(swept: Swept, checkout: Path) -> None:
    made = swept(notebook="01_ceiling", base=["smoke", "paper"], seeds=[4])
    assert [trial.changes for trial in made.trials] == [{"base": "smoke", "seed": 4}, {"base": "paper", "seed": 4}]
    paper = parameters.load_file("01_ceiling", checkout / "parameters/01_ceiling/paper.yaml", {"seed": 4})
    assert made.runs[1].parameters == paper
    made = swept(notebook="01_ceiling", base=["smoke", "paper"], cases=[{"base": "real", "n": 40}, {"n": 50}])
    assert [trial.changes for trial in made.trials] == [
        {"base": "real", "n": 40},
        {"base": "smoke", "n": 50},
        {"base": "paper", "n": 50},
    ]
    made = swept(notebook="01_ceiling", cases=[{"base": "smoke"}, {"base": "smoke", "n": 12}])
    assert [trial.changes for trial in made.trials] == [{}, {"n": 12}]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("notebook: 03\nbase: smoke\n", "line 1: notebook = 3: .*quotes"),
        ("notebook: '99'\nbase: smoke\n", "line 1: notebook '99' names 0"),
        ("notebook: 01_ceiling\n", "base is missing: add it"),
        ("notebook: 01_ceiling\nbase: smok\n", "line 2: no parameter file .*smok.yaml: its folder holds paper.yaml, r"),
        (HEAD + "gird: {n: [1]}\n", "line 3: unknown entry gird: did you mean grid"),
        (HEAD + "grid:\n  n: 12\n", r"line 4: grid.n = 12: it must be a valid list"),
        (HEAD + "grid:\n  n: [12, 2]\n", "line 4: n = 2: it must be greater"),
        (HEAD + "grid:\n  nn: [12]\n", "line 4: unknown parameter nn = 12"),
        (HEAD + "values:\n  share: 1e-1\n", r"line 4: share = '1e-1': .*write 1\.0e-1"),
        (HEAD + "cases:\n- n: 12\n- m: 12\n", "line 5: unknown parameter m"),
        (HEAD + "cases:\n- n: 12\n- n: 12\n", "line 5: settings 1 and 2 are the same run"),
        (HEAD + "cases:\n- n: 12\n  n: 14\n", "line 5: n stands in line 4 already"),
        (HEAD + "seeds: [0, -1]\n", "line 3: seed = -1"),
        (HEAD + "grid:\n  seed: [1]\nseeds: [0]\n", "line 4: seed is given and seeds too"),
        (HEAD + "random:\n  ranges: {n: [9]}\n", "line 3: random.trials is missing: add it"),
        (
            HEAD + "random:\n  trials: 2\n  ranges:\n    n: {low: 9, hihg: 12}\n",
            "line 6: n: unknown entry hihg: did you mean high|line 6: n: high is missing",
        ),
        (
            HEAD + "random:\n  trials: 2\n  ranges:\n    n: {low: 12, high: 12}\n",
            "line 6: n: low = 12 is not below high = 12",
        ),
        (
            HEAD + "random:\n  trials: 2\n  ranges:\n    share: {low: 0, high: 1, log: true}\n",
            "line 6: share: low = 0 has no logarithm",
        ),
        (HEAD + "random: {trials: 3, ranges: {n: [9, 8]}}\n", "line 3: .*offer about 2 set"),
        (HEAD + "tpe: {trials: 3, ranges: {n: [9, 8]}}\n", "line 3: tpe searches on clean"),
        (
            HEAD.replace("01_ceiling", STAGE2) + "grid: {seed: [1, 2]}\ntpe: {trials: 3, ranges: {epochs: [1.0]}}\n",
            "line 4: a search has one base",
        ),
        (HEAD + "random: {trials: 1, ranges: {n: [9]}}\ntpe: {trials: 1, ranges: {n: [9]}}\n",
         "random and tpe both choose"),
    ],
)  # fmt: skip
def test_a_bad_file_is_told_with_its_line(own_root: Path, text: str, told: str) -> None:
    (own_root / "bad.yaml").write_text(text)
    with pytest.raises(ValueError, match=told) as caught:
        sweep.load(own_root / "bad.yaml")
    assert str(own_root / "bad.yaml") in str(caught.value)


def test_all_faults_come_at_once_each_once(swept: Swept) -> None:
    with pytest.raises(ValueError, match="n = 2") as caught:
        swept(notebook="01_ceiling", base="smoke", grid={"n": [2, 3, 12], "share": [2.0, 0.5]}, seeds=[0, 1])
    assert len(str(caught.value).splitlines()) == 3


def test_a_missing_stage_1_is_told(swept: Swept) -> None:
    with pytest.raises(ValueError, match=r"mine\.yaml.*no parameter file .*gone\.yaml"):
        swept(notebook=STAGE2, base="smoke", values={"stage1": "gone.yaml"}, seeds=[0])


def test_random_settings_are_different_in_range_and_the_same_again(swept: Swept) -> None:
    ranges = {"n": {"low": 8, "high": 20}, "share": {"low": 0.01, "high": 0.9, "log": True}, "levels": [3, 5, 9]}
    made = swept(notebook="01_ceiling", base="smoke", random={"trials": 12, "ranges": ranges}, seeds=[0, 1])
    assert len(made.runs) == made.planned == 24
    assert made.runs == sweep.load(made.path).runs
    drawn = [trial.changes for trial in made.trials]
    assert all(8 <= c["n"] <= 20 and 0.01 <= c["share"] <= 0.9 and c["levels"] in (3, 5, 9) for c in drawn)
    assert all(isinstance(c["n"], int) and float(f"{c['share']:.4g}") == c["share"] for c in drawn)
    assert sum(c["share"] < 0.1 for c in drawn[::2]) > 2, "on a log scale half the draws lie below 0.095"
    other = swept(notebook="01_ceiling", base="smoke", random={"trials": 12, "seed": 1, "ranges": ranges})
    assert other.trials[0].setting != made.trials[0].setting


class TestSearch:
    """TPE by the scores on clean dev; the scores here are a parabola around a learning rate of 1e-4."""

    def search(self, swept: Swept, **entries: Any) -> sweep.Sweep:
        pytest.importorskip("optuna", reason="optuna is not installed: pip install -e '.[sweep]'")
        wanted = {"trials": 12, "width": 3, "ranges": {"learning_rate": {"low": 1e-6, "high": 1e-2, "log": True}}}
        given = {"notebook": STAGE2, "base": "smoke", "values": {"levels": [], "stage1": ""}}
        return swept(**given, tpe={**wanted, **entries}, seeds=[0, 1])

    def finish(self, run: runs.Run) -> None:
        run.begin()
        run.finish({"dev": 80 - (math.log10(run.parameters.model_dump()["learning_rate"]) + 4) ** 2, "test": 99.0})

    def test_settings_come_a_generation_at_a_time_and_the_same_again(self, swept: Swept) -> None:
        made = self.search(swept)
        assert (made.planned, len(made.runs)) == (24, 6)
        first = made.runs
        for run in first[:-1]:
            self.finish(run)
        assert made.runs == first, "the next generation waits for the last of this one"
        while todo := [run for run in made.runs if not run.finished]:
            for run in todo:
                self.finish(run)
        assert len(made.runs) == 24 and made.runs[:6] == first
        search._replayed.cache_clear()  # another process
        assert sweep.load(made.path).runs == made.runs

    def test_it_homes_in(self, swept: Swept) -> None:
        wanted = self.search(swept, trials=32, width=4).sheet.tpe
        assert wanted is not None
        away: list[float] = []
        while settings := search.proposed(wanted, tuple(-distance for distance in away)):
            away += [abs(math.log10(setting["learning_rate"]) + 4) for setting in settings]
        assert sum(away[-16:]) / 16 < 0.7, "settings drawn at random are 1 away on average"

    def test_a_failed_setting_is_passed_over(self, swept: Swept) -> None:
        made = self.search(swept)
        for run in made.runs[1:]:
            self.finish(run)
        made.runs[0].begin()
        made.runs[0].fail("ValueError: the loss is not finite")
        assert len(made.runs) == 12

    def test_without_optuna_one_sentence_names_the_extra(self, swept: Swept, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "optuna", None)
        given = {"notebook": STAGE2, "base": "smoke", "tpe": {"trials": 3, "ranges": {"epochs": [1.0, 2.0]}}}
        with pytest.raises(ValueError, match=r"needs optuna, which is not installed: pip install -e '\.\[sweep\]'"):
            swept(**given)

    def test_a_result_without_a_dev_score_is_told(self, swept: Swept) -> None:
        made = self.search(swept)
        for run in made.runs:
            run.begin()
            run.finish({"test": 99.0})
        with pytest.raises(ValueError, match="has no score 'dev' on clean dev"):
            print(made.runs)
