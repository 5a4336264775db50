"""One run, one folder, one state, one result; broken ones are seen as broken and resume."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pcclab import batch, files, records, runs, sheet

CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
GONE = {"host": records.process()["host"], "pid": 2**22 + 1, "began": 1.0}


def start(**change: Any) -> runs.Run:
    return runs.start("01_ceiling", **{**CEILING, **change})


def test_a_run_from_new_to_finished(own_root: Path) -> None:
    run = start()
    assert run.folder == own_root / "runs" / "01_ceiling" / run.id
    assert run.state == "running"
    run.record(data={"stsb": "abc"})
    run.record(data={"sickr": Path("x")}, cut=np.int64(3))
    run.finish({"sts": {"stsb": np.float64(82.5), "sickr": "undefined"}})
    assert run.finished
    assert run.result == {"sts": {"stsb": 82.5, "sickr": "undefined"}}
    told = sheet.read(run.folder)
    assert told["provenance"]["data"] == {"stsb": "abc", "sickr": "x"}
    assert told["provenance"]["cut"] == 3
    assert told["attempt"]["wall_seconds"] >= 0
    assert told["provenance"]["peak_memory_mib"] > 10
    assert told["seed"] == 0
    assert {"commit", "dirty"} == set(told["provenance"]["git"])
    assert told["provenance"]["versions"]["numpy"] == np.__version__


def test_the_same_parameters_find_the_finished_run(own_root: Path) -> None:
    start().finish({"a": 1})
    before = (start().folder / "run.json").read_bytes()
    assert start().finished
    assert (start().folder / "run.json").read_bytes() == before
    assert not start(seed=1).finished


def test_a_finished_run_writes_a_new_result_and_keeps_its_time(own_root: Path) -> None:
    start().finish({"a": 1})
    attempt = sheet.read(start().folder)["attempt"]
    start().finish({"a": 2})
    assert start().result == {"a": 2}
    assert sheet.read(start().folder)["attempt"] == attempt


def test_again_sets_aside_what_began_before(own_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start()
    run.finish({"a": 1})
    (run.checkpoints / "x").write_text("old")
    monkeypatch.setenv("PCCLAB_AGAIN", str(time.time()))
    assert not start().finished
    assert list(run.checkpoints.iterdir()) == []
    assert (run.folder.with_name(f"{run.id}.previous") / "checkpoints" / "x").read_text() == "old"
    start().finish({"a": 2})
    assert start().finished, "what began after the call stays"


def test_a_variant_is_a_run_of_its_own(own_root: Path) -> None:
    run = start()
    other = run.variant(seed=1)
    assert (other.id, other.parameters.seed, other.state) == (start(seed=1).id, 1, "running")
    assert run.variant(seed=0) == run
    with pytest.raises(ValueError, match="unknown parameter sed"):
        run.variant(sed=1)


def write_sheet(run: runs.Run, **entries: Any) -> None:
    files.write_json(run.folder / "run.json", {**sheet.read(run.folder), **entries})


def test_a_run_whose_process_is_gone_was_interrupted_and_resumes(own_root: Path) -> None:
    run = start()
    (run.checkpoints / "x").write_text("kept")
    run.record(data="kept")
    write_sheet(run, process=GONE)
    assert run.state == "interrupted"
    assert start().state == "running"
    assert (run.checkpoints / "x").read_text() == "kept"
    told = sheet.read(run.folder)
    assert told["attempt"]["number"] == 2
    assert told["provenance"]["data"] == "kept"


def test_a_process_number_that_was_given_again_does_not_count(own_root: Path) -> None:
    run = start()
    write_sheet(run, process={**records.process(), "began": records.process()["began"] - 3600})
    assert run.state == "interrupted"


def test_a_killed_process_leaves_an_interrupted_run(own_root: Path, checkout: Path) -> None:
    code = f"import os, pcclab; pcclab.start('01_ceiling', **{CEILING!r}); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], cwd=checkout, check=False).returncode == -9
    assert runs.locate("01_ceiling", runs.validate("01_ceiling", CEILING)).state == "interrupted"
    assert start().state == "running"


def test_a_run_at_work_elsewhere_is_not_taken(own_root: Path, checkout: Path) -> None:
    code = f"import pcclab; pcclab.start('01_ceiling', **{CEILING!r}); print('up', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "up\n"
        with pytest.raises(BlockingIOError, match=f"at work in process {other.pid} .*wait for it"):
            start()
        other.kill()
    assert start().state == "running"


def test_a_run_on_another_host_is_believed_while_it_writes(own_root: Path) -> None:
    run = start()
    write_sheet(run, process={"host": "elsewhere", "pid": 1, "began": 1.0})
    assert run.state == "running"
    for path in run.folder.glob("*.json"):
        os.utime(path, (1, 1))
    assert run.state == "interrupted"


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"state": 3}', '{"state": "done"}', '{"state": "failed", "process": 3}']
)
def test_a_damaged_sheet_is_set_aside_and_told(own_root: Path, capsys: pytest.CaptureFixture[str], damage: str) -> None:
    run = start()
    (run.folder / "run.json").write_text(damage)
    assert run.state == "new"
    assert start().state == "running"
    assert "damaged run.json set aside" in capsys.readouterr().out
    (aside,) = run.folder.glob("run.damaged-*.json")
    assert aside.read_text() == damage


def test_finished_without_a_result_is_not_finished(own_root: Path) -> None:
    run = start()
    run.finish({"a": 1})
    (run.folder / "result.json").unlink()
    assert run.state == "interrupted"
    with pytest.raises(FileNotFoundError, match="interrupted and has no result"):
        print(run.result)


def test_a_failed_run_says_why_until_it_is_started_again(own_root: Path) -> None:
    run = start()
    run.fail("ValueError: x")
    assert run.state == "failed"
    assert sheet.read(run.folder)["error"] == "ValueError: x"
    assert start().state == "running"
    assert "error" not in sheet.read(run.folder)


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"sts": {"stsb": float("nan")}}, "result.sts.stsb is nan: .*write 'undefined'"),
        ({"a": [1.0, float("inf")]}, r"result.a\[1\] is inf"),
        ({"a": None}, "result.a is None"),
        ({"a": "82.5"}, "result.a is the text '82.5': give the number"),
        ({"a": {}}, "result.a is empty"),
        ({}, "result is empty"),
        ([1], "not list"),
        ({"a": object()}, "nothing JSON can hold"),
    ],
)
def test_a_bad_result_is_refused_and_the_run_stays_unfinished(own_root: Path, result: Any, told: str) -> None:
    run = start()
    with pytest.raises(ValueError, match=told):
        run.finish(result)
    assert run.state == "running"
    assert not (run.folder / "result.json").exists()


def test_frames_and_series_are_results(own_root: Path) -> None:
    frame = pd.DataFrame({"stsb": [1.0, 2.0]}, index=["before", "after"])
    run = start()
    run.finish({"table": frame, "row": frame.loc["after"]})
    assert run.result == {"table": {"before": {"stsb": 1.0}, "after": {"stsb": 2.0}}, "row": {"stsb": 2.0}}


def test_metrics_survive_a_torn_line_and_a_repeated_step(own_root: Path) -> None:
    run = start()
    run.log(1, loss=0.5)
    run.log(2, loss=np.float32(0.25), dev=float("nan"))
    with (run.folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "lo')
    run.log(2, loss=0.125)
    run.log(3, loss=0.0)
    assert run.metrics == [
        {"step": 1, "loss": 0.5},
        {"step": 2, "loss": 0.125, "dev": "undefined"},
        {"step": 3, "loss": 0.0},
    ]


def drawing() -> Figure:
    figure = Figure(figsize=(3.03, 2))
    figure.subplots().plot([0, 1], [1, 0], label="rho")
    figure.axes[0].set_title("ρ of $x^2$")
    return figure


def test_a_figure_is_written_thrice_and_again_to_the_byte(own_root: Path) -> None:
    run = start()
    shown = run.figure(drawing(), "curve", numbers={"y": np.array([1.0, 0.0])})
    assert shown == run.folder / "figures" / "curve.png"
    first = {path.name: path.read_bytes() for path in shown.parent.iterdir()}
    assert set(first) == {"curve.pdf", "curve.png", "curve.json"}
    assert json.loads(first["curve.json"]) == {"run": run.name, "numbers": {"y": [1.0, 0.0]}}
    assert b"/Type3" not in first["curve.pdf"]
    time.sleep(1.1)  # a date in the file would have moved on
    run.figure(drawing(), "curve", numbers={"y": np.array([1.0, 0.0])})
    assert {path.name: path.read_bytes() for path in shown.parent.iterdir()} == first


@pytest.mark.parametrize("name", ["", "a/b", "a.png", ".."])
def test_a_figure_name_is_plain(own_root: Path, name: str) -> None:
    with pytest.raises(ValueError, match="plain name"):
        start().figure(drawing(), name, numbers={})


def test_a_full_disk_is_told_before_the_work(own_root: Path) -> None:
    with pytest.raises(OSError, match=r"needs 9,\d+,\d+,\d+ MiB .*free space"):
        runs.start("01_ceiling", **CEILING, needs_bytes=10**16)


def test_a_disk_that_fills_up_is_told_and_loses_nothing(own_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = start()
    run.finish({"a": 1})

    def full(path: Path, value: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "write_json", full)
    with pytest.raises(OSError, match=r"disk full while writing .*make room"):
        run.finish({"a": 2})
    assert run.result == {"a": 1}


class TestNamespace:
    def test_parameters_are_taken_from_the_notebook(self, own_root: Path) -> None:
        namespace = {**CEILING, "__name__": "__main__", "_": 3, "In": ["a"], "Out": {}, "np": np, "start": start}
        assert runs.start("01_ceiling", namespace, seed=7).parameters.seed == 7

    def test_an_unknown_injected_parameter_is_told(self, own_root: Path) -> None:
        with pytest.raises(ValueError, match=r"01_ceiling: unknown parameter 'lvels': did you mean levels\?.*'7'"):
            runs.start("01_ceiling", {**CEILING, "lvels": "7"})

    def test_the_notebooks_own_variables_pass_once_it_started(self, own_root: Path) -> None:
        namespace = dict(CEILING)
        run = runs.start("01_ceiling", namespace)
        namespace["best"] = 3.0
        assert runs.start("01_ceiling", namespace).id == run.id

    def test_a_missing_one_is_told(self, own_root: Path) -> None:
        with pytest.raises(ValueError, match="the parameter n is missing"):
            runs.start("01_ceiling", {name: value for name, value in CEILING.items() if name != "n"})


def test_the_root_is_the_variable_else_the_checkout_around(
    own_root: Path, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runs.root() == own_root
    monkeypatch.setenv("PCCLAB_ROOT", str(tmp_path / "none"))
    with pytest.raises(FileNotFoundError, match=r"PCCLAB_ROOT = .*unset it"):
        runs.root()
    monkeypatch.delenv("PCCLAB_ROOT")
    inside = tmp_path / "checkout" / "notebooks"
    inside.mkdir(parents=True)
    (inside.parent / "pyproject.toml").touch()
    monkeypatch.chdir(inside)
    assert runs.root() == inside.parent
    monkeypatch.chdir("/")
    assert runs.root() == checkout


def test_a_changed_stage_one_makes_another_stage_two(own_root: Path, checkout: Path) -> None:
    name = "03_stage2_pcc_tuning"
    (own_root / "stage1.yaml").write_text((checkout / "parameters/02_stage1_contrastive/smoke.yaml").read_text())
    values = runs.load_file(name, checkout / "parameters" / name / "smoke.yaml").model_dump(mode="json")
    before = runs.locate(name, runs.validate(name, {**values, "stage1": "stage1.yaml"})).id
    (own_root / "stage1.yaml").write_text((own_root / "stage1.yaml").read_text().replace("seed: 0", "seed: 1"))
    assert runs.locate(name, runs.validate(name, {**values, "stage1": "stage1.yaml"})).id != before


def test_a_run_shows_itself(own_root: Path) -> None:
    run = start(source="./<b>")
    assert run.id in str(run)
    assert "running" in str(run)
    assert "./&lt;b&gt;" in run._repr_html_()


@pytest.fixture
def notebook(own_root: Path) -> Any:
    """Replace the root's notebook 01 by one of the given cells."""
    import nbformat

    def write(*cells: str) -> runs.Run:
        if (own_root / "notebooks").is_symlink():
            (own_root / "notebooks").unlink()
        (own_root / "notebooks").mkdir(exist_ok=True)
        given = "\n".join(f"{name} = {value!r}" for name, value in CEILING.items())
        opening = "import pcclab\nrun = pcclab.start('01_ceiling', globals())"
        new = nbformat.v4.new_code_cell
        made = [new(given, metadata={"tags": ["parameters"]}), new(opening), *(new(textwrap.dedent(c)) for c in cells)]
        spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(
            nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": spec}), own_root / "notebooks/01_ceiling.ipynb"
        )
        return runs.locate("01_ceiling", runs.validate("01_ceiling", CEILING))

    return write


class TestBatch:
    """Each of these starts a kernel."""

    def test_a_notebook_runs_into_its_folder(self, notebook: Any) -> None:
        run = notebook("print('hello', run.parameters.seed)", "run.finish({'a': 1})")
        lines: list[str] = []
        batch.execute(run, tell=lines.append)
        assert "hello 0" in lines
        assert run.result == {"a": 1}
        assert (run.folder / "notebook.ipynb").is_file()

    def test_a_failing_cell_fails_the_run_with_its_error(self, notebook: Any) -> None:
        run = notebook("1 / 0")
        with pytest.raises(batch.RunFailed, match="ZeroDivisionError: division by zero"):
            batch.execute(run)
        assert run.state == "failed"

    def test_a_killed_kernel_fails_the_run_and_it_resumes(self, notebook: Any) -> None:
        run = notebook("import os; os.kill(os.getpid(), 9)")
        with pytest.raises(batch.RunFailed, match="the kernel died"):
            batch.execute(run)
        notebook("run.finish({'a': 1})")
        batch.execute(run)
        assert sheet.read(run.folder)["attempt"]["number"] == 2

    def test_an_end_without_a_result_is_a_failure(self, notebook: Any) -> None:
        run = notebook("pass")
        with pytest.raises(batch.RunFailed, match=r"ended without run\.finish"):
            batch.execute(run)

    def test_ensure_runs_what_is_missing_and_only_that(
        self, notebook: Any, own_root: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        run = notebook("run.finish({'a': 1})")
        (own_root / "mine.yaml").write_text(run.yaml)
        assert runs.ensure("01_ceiling", "mine.yaml").result == {"a": 1}
        assert "running notebook 01_ceiling with mine.yaml first" in capsys.readouterr().out
        runs.ensure("01_ceiling", "mine.yaml")
        assert capsys.readouterr().out == ""


def test_a_missing_notebook_is_told(own_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PCCLAB_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"no notebook .*01_ceiling\.ipynb: run from a checkout"):
        batch.execute(runs.locate("01_ceiling", runs.validate("01_ceiling", CEILING)))
