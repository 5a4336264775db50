"""The papermill engine: parameters held before a kernel starts, sockets, and cells that were cut off say so.

Most of these start kernels and kill them for real.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

from pcclab import batch, engine, parameters, runs

OPENING = "import pcclab\nrun = pcclab.start('01_ceiling', globals())"
PARAMETERS = "source: str = 'synthetic'\nseed: int = 0\nn: int = 10\nshare: float = 0.5\nlevels: int = 5"


def notebook(*cells: str, given: str = PARAMETERS + "\nhardness: float = 3.0") -> nbformat.NotebookNode:
    new = nbformat.v4.new_code_cell
    made = [new(given, metadata={"tags": ["parameters"]}), *map(new, cells)]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": spec})


class TestCheck:
    """Reading a notebook runs nothing."""

    def test_the_values_of_both_tagged_cells_are_read_the_later_ones_count(self) -> None:
        nb = notebook(OPENING)
        injected = nbformat.v4.new_code_cell("# Parameters\nn = 20\nlevels = -3", metadata={"tags": [*engine.TAGS][:1]})
        nb.cells.insert(1, injected)
        found = engine.assigned(nb, origin="x")
        assert (found["n"], found["levels"], found["source"]) == (20, -3, "synthetic")

    @pytest.mark.parametrize(
        ("line", "told"),
        [
            ("n: int = 2", r"x: n = 2: it must be greater than or equal to 4"),
            ("lvels: int = 2", r"x: unknown parameter lvels = 2: did you mean levels\?"),
            ("n = 2 + 8", r"x: the parameters cell holds 'n = 2 \+ 8': write `name = literal`"),
            ("hardness = float('nan')", r"holds .*float\('nan'\)"),
            ("n: int", "holds 'n: int'"),
            ("a = b = 3", "holds 'a = b = 3'"),
            ("n = = 3", "the parameters cell is not Python"),
        ],
    )
    def test_a_bad_line_is_told(self, line: str, told: str) -> None:
        with pytest.raises(ValueError, match=told):
            engine.check(notebook(OPENING, given=f"{PARAMETERS}\nhardness: float = 3.0\n{line}"), origin="x")

    def test_a_notebook_of_no_model_passes_and_an_unknown_name_is_told(self) -> None:
        engine.check(notebook("print('mine')", given="whatever = 1"), origin="x")
        with pytest.raises(ValueError, match="unknown notebook '01_celing': did you mean 01_ceiling"):
            engine.check(notebook("run = pcclab.start('01_celing', globals())"), origin="x")


def test_the_engine_loads_no_papermill_so_that_papermill_can_load_it(checkout: Path) -> None:
    code = "import sys, pcclab.engine; sys.exit(any(m.split('.')[0] in ('papermill', 'torch') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], cwd=checkout, check=False).returncode == 0


@pytest.fixture
def installed(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry point that pyproject declares, found by papermill whether or not this checkout is installed."""
    declared = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf8"))["project"]["entry-points"]
    folder = tmp_path / "site" / "pcclab_declared-0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: pcclab_declared\nVersion: 0\n")
    lines = [f"{name} = {target}" for name, target in declared["papermill.engine"].items()]
    (folder / "entry_points.txt").write_text("\n".join(["[papermill.engine]", *lines]))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent), prepend=os.pathsep)


@pytest.fixture
def papermill(own_root: Path, installed: None) -> Any:
    """Write a notebook of these cells and start papermill on it; whatever still lives at the end is ended."""
    started: list[subprocess.Popen[str]] = []

    def begin(*cells: str, engine: str = "pcclab", name: str = "out.ipynb", options: list[str] | None = None) -> Any:
        nbformat.write(notebook(*cells), own_root / "in.ipynb")
        command = [sys.executable, "-m", "papermill", "in.ipynb", name, "--no-progress-bar", *(options or [])]
        command += ["--engine", engine] if engine else []
        started.append(subprocess.Popen(command, cwd=own_root, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield begin
    for process in started:
        for member in [*kernels_of(process), process]:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
        process.communicate()


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    told = process.communicate(timeout=240)[1]
    return process.returncode, told


def waited(what: Callable[[], Any]) -> Any:
    """What it gives, once it gives something."""
    for _ in range(1200):
        if found := what():
            return found
        time.sleep(0.1)
    raise TimeoutError("nothing came within two minutes")


def cells(path: Path) -> list[tuple[str, str]]:
    """State of every code cell of a saved notebook, and what it printed and how it broke."""
    found = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    told = ["".join(out.get("evalue", out.get("text", "")) for out in cell.outputs) for cell in found]
    return [(cell.metadata.papermill.status, text) for cell, text in zip(found, told, strict=True)]


def test_bad_parameters_stop_papermill_before_anything_is_written(papermill: Any, own_root: Path) -> None:
    code, told = ended(papermill(OPENING, options=["-p", "n", "2", "-p", "lvels", "3", "-k", "no-such-kernel"]))
    assert code == 2
    assert "in.ipynb: n = 2: it must be greater than or equal to 4" in told
    assert "unknown parameter lvels = 3: did you mean levels?" in told
    assert "Traceback" not in told
    assert not (own_root / "out.ipynb").exists()


def test_good_cells_run_over_sockets_and_a_failing_one_is_papermills(papermill: Any, own_root: Path) -> None:
    look = "import json, ipykernel\nprint(json.load(open(ipykernel.get_connection_file()))['transport'])"
    code, told = ended(papermill(OPENING, look, "1 / 0", "2", options=["-p", "n", "12"]))
    assert code == 1
    assert "ZeroDivisionError" in told
    found = cells(own_root / "out.ipynb")  # the second one is the injected cell
    assert [state for state, _ in found] == [*["completed"] * 4, "failed", "pending"]
    assert found[3][1] == "ipc\n"


def kernels_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children()
    except psutil.NoSuchProcess:
        return []


def test_kernels_of_one_moment_and_one_folder_do_not_meet_and_a_killed_one_says_so(
    papermill: Any, own_root: Path
) -> None:
    """Three at once: one kernel is killed, one papermill is told to end, one is left alone."""
    names = ["dead.ipynb", "ended.ipynb", "whole.ipynb"]
    code = "import time\nfrom pathlib import Path\nPath(f'up{n}').touch()\nwhile n < 12: time.sleep(0.1)"
    three = [papermill("print(n)", code, "print('later')", name=name, options=["-p", "n", str(10 + index)])
             for index, name in enumerate(names)]  # fmt: skip
    dead, stopped, whole = three
    waited(lambda: len(list(own_root.glob("up*"))) == 3)
    (kernel,) = kernels_of(dead)
    # Its five channels are sockets in a folder; the one port is ipykernel's own pipe for its children, picked by the
    # system as it is bound.
    assert len([one for one in kernel.net_connections() if one.status == "LISTEN"]) <= 1
    kernel.send_signal(signal.SIGKILL)
    (other,) = kernels_of(stopped)
    stopped.terminate()

    code_dead, told = ended(dead)
    assert code_dead == 138
    assert "(killed by SIGKILL), most often for want of memory: lower micro_tokens" in told.splitlines()[-1]
    found = cells(own_root / "dead.ipynb")
    assert [state for state, _ in found] == ["completed", "completed", "completed", "failed", "pending"]
    assert found[2][1] == "10\n"
    assert found[3][1].startswith("the kernel died (killed by SIGKILL)")

    assert ended(stopped)[0] == 143
    found = cells(own_root / "ended.ipynb")
    assert [state for state, _ in found[2:]] == ["completed", "failed", "pending"]
    assert found[3][1] == "stopped from outside"
    waited(lambda: not other.is_running())

    assert ended(whole)[0] == 0
    assert cells(own_root / "whole.ipynb")[2:] == [("completed", "12\n"), ("completed", ""), ("completed", "later\n")]


def test_plain_papermill_marks_what_a_dead_kernel_never_ran_as_completed(papermill: Any, own_root: Path) -> None:
    """Without the treatment: what the engine is there for. Should papermill mend it, this test says so."""
    code, _ = ended(papermill("import os\nos._exit(3)", "print('later')", engine=""))
    assert code == 138
    assert [state for state, _ in cells(own_root / "out.ipynb")] == ["completed"] * 3


def test_an_exit_is_told_with_its_code(papermill: Any, own_root: Path) -> None:
    code, told = ended(papermill("import os\nos._exit(3)", "print('later')"))
    assert code == 138
    assert "the kernel died (it exited with 3)" in told
    assert [state for state, _ in cells(own_root / "out.ipynb")] == ["completed", "failed", "pending"]


def test_a_kernel_that_cannot_start_leaves_no_cell_completed(papermill: Any, own_root: Path) -> None:
    code, told = ended(papermill("print('later')", options=["-k", "no-such-kernel"]))
    assert code == 1
    assert "no-such-kernel" in told
    found = cells(own_root / "out.ipynb")
    assert [state for state, _ in found] == ["failed", "pending"]
    assert found[0][1].startswith("no kernel 'no-such-kernel' started, no cell was run")


class TestBatch:
    """`pcclab run` and sweeps go by the engine where this installation has it."""

    @pytest.fixture
    def run(self, installed: None, own_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        (own_root / "notebooks").unlink()
        (own_root / "notebooks").mkdir()

        def write(*cells: str) -> runs.Run:
            nbformat.write(notebook(OPENING, *cells), own_root / "notebooks" / "01_ceiling.ipynb")
            values = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
            return runs.locate("01_ceiling", parameters.validate("01_ceiling", values))

        return write

    def test_a_run_whose_kernel_is_killed_says_how_in_its_state_and_its_notebook(self, run: Any) -> None:
        killed = run("import os\nos.kill(os.getpid(), 9)", "print('later')")
        told: list[str] = []
        with pytest.raises(batch.RunFailed, match=r"the kernel died \(killed by SIGKILL\), most often for want of"):
            batch.execute(killed, tell=told.append)
        assert killed.state == "failed"
        assert not any("plain papermill" in line for line in told)
        states = [state for state, _ in cells(killed.folder / "notebook.ipynb")]
        assert states[-2:] == ["failed", "pending"]

    def test_a_run_whose_papermill_is_told_to_end_was_interrupted(self, run: Any) -> None:
        ended = run("import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\nimport time\ntime.sleep(600)")
        with pytest.raises(batch.RunFailed, match=r"told to end \(SIGTERM\)"):
            batch.execute(ended)
        assert ended.state == "interrupted"
        assert "stopped from outside" in cells(ended.folder / "notebook.ipynb")[-1][1]

    def test_an_installation_without_the_engine_says_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(importlib.metadata, "entry_points", lambda **wanted: ())
        told: list[str] = []
        assert batch._engine(told.append) == []
        assert "pip install -e ." in told[0]
