"""Many runs as tables: means and intervals over seeds, and no run dropped in silence."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pcclab import collecting, evaluation, files, runs, sheet

NAME = "01_ceiling"
CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
SCORES = {(2, 0): 80.0, (2, 1): 81.0, (2, 2): 82.5, (3, 0): 70.0, (3, 1): 71.0}


def start(**change: Any) -> runs.Run:
    return runs.start(NAME, **{**CEILING, **change})


@pytest.fixture
def finished(own_root: Path) -> None:
    """Two settings, of three seeds and of two."""
    for (levels, seed), score in SCORES.items():
        result = {"sts": {"stsb": score, "sickr": score / 2}, "steps": 10, "curve": [1, 2], "source": "synthetic"}
        start(levels=levels, seed=seed).finish(result)


def collect() -> collecting.Collection:
    return collecting.collect("01")


def test_a_row_a_run_with_what_sets_it_apart_and_all_of_its_figures(finished: None) -> None:
    frame = collect().runs.set_index(["levels", "seed"])
    assert len(frame) == len(SCORES)
    for (levels, seed), score in SCORES.items():
        row = frame.loc[levels, seed]
        assert (row["sts.stsb"], row["sts.sickr"], row["steps"]) == (score, score / 2, 10)
        assert (row["state"], row["source"], row["curve"]) == ("finished", "synthetic", "[1, 2]")
        assert len(row["commit"]) in (40, len("unknown"))
        assert row["machine"] and row["device"] == "cpu" and row["peak_memory_mib"] > 1
        assert row["run"].startswith("01_ceiling/")


def test_means_and_intervals_are_those_of_seeds(finished: None) -> None:
    found = collect()
    assert found.changed == ("levels",)
    summary = found.summary.set_index(["levels", "metric"])
    for levels in (2, 3):
        scores = [score for (level, _), score in SCORES.items() if level == levels]
        wanted = evaluation.seeds(scores)
        row = summary.loc[levels, "sts.stsb"]
        assert (row["mean"], row["low"], row["high"], row["sd"], row["n"]) == dataclasses.astuple(wanted)
    assert set(summary.loc[2].index) == {"sts.stsb", "sts.sickr", "steps"}


def test_one_seed_has_a_mean_and_no_interval(own_root: Path) -> None:
    start().finish({"score": 0.25})
    (row,) = collect().summary.to_dict("records")
    assert (row["mean"], row["n"]) == (0.25, 1)
    assert pd.isna([row["low"], row["high"], row["sd"]]).all()
    assert "0.2500" in collecting.plain(collect())


def test_an_undefined_figure_is_counted_and_never_averaged(own_root: Path) -> None:
    start(seed=0).finish({"sts": {"stsb": 80.0, "sickr": "undefined"}})
    start(seed=1).finish({"sts": {"stsb": 82.0, "sickr": 40.0}})
    start(seed=2, levels=9).finish({"sts": {"sickr": "undefined"}})
    found = collect()
    rows = found.summary.set_index(["levels", "metric"])
    assert rows.loc[5, "sts.sickr"][["mean", "n", "undefined"]].tolist() == [40.0, 1, 1]
    assert rows.loc[9, "sts.sickr"][["n", "undefined"]].tolist() == [0, 1]
    assert (9, "sts.stsb") not in rows.index, "what a run of another shape has not, it has not"
    told = collecting.markdown(found)
    assert "40.00 (n = 1)" in told and "| undefined |" in told
    assert found.runs.set_index("seed")["undefined"].to_dict() == {0: "sts.sickr", 1: "", 2: "sts.sickr"}


def test_parquet_and_csv_hold_the_tables(finished: None, tmp_path: Path) -> None:
    start(seed=7).fail("ValueError: x")
    found = collect()
    paths = collecting.write(found, tmp_path / "out")
    assert [path.name for path in paths] == [
        "runs.parquet", "runs.csv", "summary.parquet", "summary.csv", "summary.md"
    ]  # fmt: skip
    pd.testing.assert_frame_equal(pd.read_parquet(paths[2]), found.summary, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_csv(paths[3]), found.summary, check_dtype=False)
    assert pd.read_parquet(paths[0])["sts.stsb"].tolist()[:5] == pd.read_csv(paths[1])["sts.stsb"].tolist()[:5]
    assert paths[4].read_text(encoding="utf8") == collecting.markdown(found)


def broken(run: runs.Run, file: str, text: str) -> None:
    (run.folder / file).write_text(text, encoding="utf8")


BREAKS: dict[str, tuple[Callable[[runs.Run], Any], str, str]] = {
    "failed": (lambda run: run.fail("ValueError: no such loss"), "failed", "ValueError: no such loss"),
    "at work": (lambda run: None, "running", "at work in process"),
    "killed": (lambda run: sheet.update(run.folder, process={"pid": 2**22 + 1}), "interrupted", "process is gone"),
    "no sheet": (lambda run: broken(run, "run.json", '{"state": "fin'), "damaged", "run.json cannot be read"),
    "odd sheet": (lambda run: broken(run, "run.json", '{"state": "done"}'), "damaged", "run.json cannot be read"),
    "odd part": (
        lambda run: broken(run, "run.json", '{"state": "running", "process": 3}'), "damaged", "run.json cannot be read"
    ),
    "no parameters": (lambda run: (run.folder / "parameters.yaml").unlink(), "outdated", "no parameter file"),
    "not YAML": (lambda run: broken(run, "parameters.yaml", "a: ["), "outdated", "not YAML"),
    "older": (lambda run: broken(run, "parameters.yaml", "seed: 3\nn: 10"), "outdated", "source is missing"),
    "newer": (lambda run: broken(run, "parameters.yaml", run.yaml + "wings: 2\n"), "outdated", "parameter wings = 2"),
    "other": (lambda run: broken(run, "parameters.yaml", run.yaml.replace("n: 10", "n: 12")), "outdated", "make run"),
}  # fmt: skip


@pytest.mark.parametrize("case", BREAKS)
def test_a_run_that_does_not_count_is_told_with_its_reason(finished: None, case: str, tmp_path: Path) -> None:
    mend, state, reason = BREAKS[case]
    run = start(seed=99)
    mend(run)
    found = collect()
    (entry,) = [entry for entry in found.entries if entry.folder == run.folder]
    assert entry.state == state
    assert reason in entry.reason and "\n" not in entry.reason and str(run.folder) not in entry.reason
    assert int(found.summary["n"].max()) == 3
    for told in (collecting.plain(found), collecting.html(found)):
        assert run.id in told and state in told
    assert run.id in collecting.markdown(found)
    assert len(collecting.write(found, tmp_path / "out")) == 5


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": NaN}', '{"a": "3"}', "{}", '{"a": null}', '"text"'])
def test_a_result_against_its_schema_does_not_count(finished: None, text: str) -> None:
    run = start(seed=99)
    run.finish({"score": 1.0})
    broken(run, "result.json", text)
    (entry,) = [entry for entry in collect().entries if entry.folder == run.folder]
    assert entry.state == "damaged" and entry.reason.startswith("result.json: ")
    assert entry.reason.endswith("; delete it and run it again") and "\n" not in entry.reason
    with pytest.raises(ValueError, match=r"result\.json is damaged: delete it"):
        print(run.result)


def test_what_lies_beside_the_runs_is_no_run(finished: None, own_root: Path) -> None:
    (own_root / "runs" / NAME / "teachers").mkdir()
    sheet.set_aside(start(levels=2).folder)
    assert len(collect().entries) == len(SCORES) - 1


def test_parameters_that_change_together_are_told_by_the_first(own_root: Path) -> None:
    for levels, n in ((5, 10), (6, 20)):
        for share in (0.25, 0.5):
            start(levels=levels, n=n, share=share).finish({"score": 1.0})
    assert collect().changed == ("n", "share")


def test_a_metric_that_is_called_as_a_parameter_is_told_from_it(own_root: Path) -> None:
    for levels in (2, 3):
        start(levels=levels).finish({"levels": 7 * levels, "n": 10, "pearson + 0.1 * info_nce": {"dev": 1.5}})
    frame = collect().runs
    assert frame[["levels", "result.levels"]].to_numpy().tolist() == [[2, 14], [3, 21]]
    assert set(collect().metrics) == {"result.levels", "n", "pearson + 0.1 * info_nce.dev"}
    assert collect().metrics["pearson + 0.1 * info_nce.dev"] == ("pearson + 0.1 * info_nce", "dev")


def test_a_parameter_that_is_called_as_a_column_of_the_summary_is_told_from_it(own_root: Path) -> None:
    for n in (10, 20):
        start(n=n).finish({"n": 2 * n, "score": 0.5})
    found = collect()
    assert found.changed == ("n",)
    assert found.summary.set_index(["parameter.n", "metric"])["n"].tolist() == [1, 1, 1, 1]
    assert "| n | result.n | score | runs |".replace("result.", "") in collecting.markdown(found)


def test_a_cell_of_a_grid_is_repeated_over_its_one_seed(tmp_path: Path) -> None:
    entries = [
        collecting.Entry(NAME, tmp_path / f"{seed}", {"seed": 0, "seeds": seeds}, "finished", "", {"s": seed})
        for seed, seeds in ((1, [1]), (2, [2]), (9, [1, 2]))
    ]  # fmt: skip
    found = collecting.of_entries("x", entries, asked="x", folder=tmp_path)
    assert found.changed == ("seeds",)
    rows = found.summary.set_index("seeds")[["mean", "n"]]
    assert rows.loc["one"].tolist() == [1.5, 2] and rows.loc["1, 2"].tolist() == [9, 1]
    assert sorted(found.runs["seed"]) == [0, 1, 2]


def test_only_what_was_asked_for(finished: None) -> None:
    assert len(collecting.collect(NAME, where={"levels": "2"}).entries) == 3
    assert len(collecting.collect("01", where={"hardness": "3", "source": "synthetic"}).entries) == 5
    with pytest.raises(ValueError, match=r"unknown parameter 'lvels': did you mean levels\?"):
        collecting.collect("01", where={"lvels": "2"})
    with pytest.raises(ValueError, match="01: none of 5 runs is left"):
        collecting.collect("01", where={"levels": "4"})
    with pytest.raises(ValueError, match="names 0 notebooks"):
        collecting.collect("nothing")
    with pytest.raises(ValueError, match="none of 0 runs"):
        collecting.collect("03")


class TestSweep:
    def test_the_runs_a_sweep_asks_for_are_there_before_they_begin(self, own_root: Path) -> None:
        found = collecting.collect("parameters/sweeps/losses.yaml")
        assert collecting.states(found) == "12 runs: 0 finished, 12 new"
        assert found.changed == ("loss",) and found.name == "losses"
        assert found.folder == own_root / "runs" / "sweeps" / "losses"
        assert found.summary.empty
        assert collecting.markdown(found).count("not begun") == 12
        assert "0 finished" in collecting.html(found)

    def test_its_settings_stand_in_its_order_and_its_file_on_the_page(self, own_root: Path) -> None:
        from pcclab import sweep

        for number, trial in enumerate(sweep.load("losses").trials[:6]):
            runs.start(trial.run.notebook, **trial.run.parameters.model_dump()).finish({"dev": float(number)})
        found = collecting.collect("losses")
        assert found.summary[["loss", "mean", "n"]].to_numpy().tolist() == [["pearson", 1.0, 3], ["cosine_mse", 4.0, 3]]
        assert "loss: [pearson, cosine_mse, cosent, angle]" in collecting.html(found)


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    finished: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = collecting.write(collect(), tmp_path)
    before = {path: path.read_bytes() for path in paths}

    def full(path: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    start(seed=50).finish({"score": 1})
    monkeypatch.setattr(files, "sync", full)
    with pytest.raises(OSError, match=r"disk full while writing .*make room"):
        collecting.write(collect(), tmp_path)
    assert {path: path.read_bytes() for path in paths} == before
    assert len(list(tmp_path.iterdir())) == len(paths) + 1, "the tables and the root: nothing half is left"


def test_a_line_of_metrics_that_is_none_is_passed_over(finished: None) -> None:
    run = start(seed=50)
    run.log(1, loss=0.5)
    with (run.folder / "metrics.jsonl").open("ab") as file:
        file.write(b'3\n{"loss": 1}\n{"step": "x"}\n\xff\n' + json.dumps({"step": 2, "loss": 0.25}).encode())
    assert run.metrics == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.25}]
