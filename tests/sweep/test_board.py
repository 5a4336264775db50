"""What status and a dry run say of runs, in every state that a run can be in."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pcclab import files, runs, sheet, sweep
from pcclab.cli import sweeping
from pcclab.sweep import board, outlook
from pcclab.sweep.estimates import Estimate, Past
from pcclab.sweep.slots import Slot

GONE = {"host": socket.gethostname(), "pid": 2**22 + 1, "began": 1.0}
Swept = Callable[..., sweep.Sweep]


def told(run: runs.Run, **changes: Any) -> board.Row:
    return board.row(run, changes, Past(run.root))


def finished(run: runs.Run, seconds: float) -> None:
    """A run that was run as a notebook and took so long."""
    run.begin()
    run.finish({"value": 3.0})
    (run.folder / "figures").mkdir()
    attempt = {**sheet.read(run.folder)["attempt"], "wall_seconds": seconds}
    files.write_json(run.folder / "run.json", {**sheet.read(run.folder), "attempt": attempt})


def test_a_run_at_work_shows_step_score_memory_and_what_is_left(swept: Swept) -> None:
    first, second, *_ = swept().runs
    finished(first, 3600)
    second.begin()
    second.log(1, loss=0.5)
    second.log(2, loss=0.25, dev_spearman=81.234)
    row = told(second, n=10, seed=1)
    assert (row["run"], row["n"], row["seed"]) == (second.id, "10", "1")
    assert (row["state"], row["step"], row["last"], row["reason"]) == ("running", "2", "dev 81.23", "")
    assert row["left"] in ("~60 m 00 s", "~59 m 59 s", "~1 h 0 m")
    assert row["time"].endswith(" s") and row["memory"].endswith("GiB")


def test_states_and_their_reasons(swept: Swept) -> None:
    new, gone, failed, done, starting, _ = swept().runs
    gone.begin()
    files.write_json(gone.folder / "run.json", {**sheet.read(gone.folder), "process": GONE})
    failed.begin()
    failed.fail("ValueError: the loss is not finite")
    finished(done, 95)
    with sheet.holding(starting.folder):
        rows = [told(run) for run in (new, gone, failed, done, starting)]
    assert [row["state"] for row in rows] == ["new", "interrupted", "failed", "finished", "starting"]
    assert [row["reason"] for row in rows] == ["", "its process is gone", "ValueError: the loss is not finite", "", ""]
    assert (rows[3]["time"], rows[3]["last"], rows[3]["left"]) == ("1 m 35 s", "value 3", "")
    assert board.counts(rows) == "1 new, 1 interrupted, 1 failed, 1 finished, 1 starting"
    shown = sweeping.table(rows)
    assert "the loss is not finite" in shown and "left" not in shown, "a column that says nothing is left out"


def test_steps_are_told_of_how_many_where_that_is_known(swept: Swept) -> None:
    made = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={"stage1": "", "levels": []}, seeds=[0, 1])
    made.runs[0].begin()
    made.runs[0].log(3, loss=0.5)
    assert told(made.runs[0])["step"] == "3/8"


class TestPast:
    def test_the_nearest_runs_count_and_what_differs_is_named(self, swept: Swept, own_root: Path) -> None:
        made = swept()
        assert Past(own_root).estimate(made.runs[0]) is None
        finished(made.runs[0], 10)
        finished(made.runs[1], 20)
        finished(made.runs[2], 300)
        past = Past(own_root)
        assert past.estimate(runs.locate("01_ceiling", made.runs[0].parameters)) == Estimate(15, 2, ())
        assert past.estimate(made.runs[4]) == Estimate(20, 3, ("n",))

    def test_what_was_resumed_or_is_no_notebook_does_not_count(self, swept: Swept, own_root: Path) -> None:
        made = swept()
        finished(made.runs[0], 10)
        told = sheet.read(made.runs[0].folder)
        files.write_json(made.runs[0].folder / "run.json", {**told, "attempt": {**told["attempt"], "number": 2}})
        made.runs[1].begin()
        made.runs[1].finish({"value": 1})  # a neighbour that another run trained
        assert Past(own_root).estimate(made.runs[2]) is None

    def test_a_run_of_another_encoder_says_nothing(self, swept: Swept, own_root: Path) -> None:
        values = {"levels": [], "stage1": ""}
        small = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={**values, "encoder": "tiny"}, seeds=[0])
        finished(small.runs[0], 10)
        alike = {**values, "encoder": "tiny", "batch_size": 16}
        same = swept(notebook="03_stage2_pcc_tuning", base="smoke", values=alike, seeds=[0])
        assert Past(own_root).estimate(same.runs[0]) == Estimate(10, 1, ("batch_size",))
        large = swept(notebook="03_stage2_pcc_tuning", base="smoke", values=values, seeds=[0])
        assert Past(own_root).estimate(large.runs[0]) is None
        assert "unknown for 1 of the 1 that are left" in outlook.summary(large, [Slot(0, None, 1)])


class TestOutlook:
    def test_it_says_what_and_how_long(self, swept: Swept) -> None:
        made = swept(notebook="01_ceiling", base="smoke", values={"levels": 7}, grid={"n": [10, 12, 14]}, seeds=[0, 1])
        two = [Slot(0, None, 1), Slot(1, None, 1)]
        assert "time: unknown" in outlook.summary(made, two)
        finished(made.runs[0], 100)
        said = outlook.summary(made, two)
        assert "6 runs of 01_ceiling: 3 settings x 2 seed(s)" in said and "all have levels=7" in said
        assert "time: about 4 m 10 s for the 5 that are left, on 2 slot(s)" in said and "that differ in n" in said
        assert [row["expected"] for row in outlook.rows(made)] == ["", *["1 m 40 s"] * 5]
        for run in made.runs[1:]:
            finished(run, 1)
        assert "all are finished: nothing to do" in outlook.summary(made, two)

    def test_stages_that_are_missing_are_named(self, swept: Swept) -> None:
        made = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={"levels": []}, seeds=[0, 1])
        assert "run before them: 02_stage1_contrastive/" in outlook.summary(made, [Slot(0, None, 1)])


class TestRecent:
    def test_runs_are_told_by_the_nearest_set_newest_last(self, own_root: Path) -> None:
        for order, place in enumerate(["01 smoke n=12", "01 real", "03 smoke stage1= leakage=keep seed=3"]):
            run = runs.spoken(place)
            run.begin()
            (run.folder / "run.json").touch()
            os.utime(run.folder / "run.json", (time.time() + order, time.time() + order))
        told = [changes["made by"] for _, changes in board.recent(own_root)]
        assert told == ["01 smoke n=12", "01 real", "03 smoke seed=3 stage1= leakage=keep"]
        assert [changes["made by"] for _, changes in board.recent(own_root, number=1)] == told[-1:]
        assert len(board.recent(own_root, "01_ceiling")) == 2

    def test_a_run_of_before_a_parameter_came_is_still_told(self, own_root: Path) -> None:
        run = runs.spoken("03 smoke stage1=")
        run.begin()
        values = yaml.safe_load((run.folder / "parameters.yaml").read_text())
        del values["loss"]
        (run.folder / "parameters.yaml").write_text(yaml.safe_dump(values))
        assert [found.id for found, _ in board.recent(own_root)] == [run.id]


def test_status_without_runs_says_how_to_make_some(own_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweeping.status("", number=20, watch=False)
    assert "no runs in" in capsys.readouterr().out


def test_watching_ends_when_nothing_runs(swept: Swept, capsys: pytest.CaptureFixture[str]) -> None:
    made = swept()
    finished(made.runs[0], 5)
    sweeping.status(str(made.path), number=20, watch=True)
    assert capsys.readouterr().out == "", "a log is told of changes only, and there was none"
