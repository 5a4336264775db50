"""A sweep at work: slots, order, what others have, what breaks; kernels, papermills and launchers that are killed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from pcclab import runs, sheet, sweep
from pcclab.sweep import launching
from pcclab.sweep.slots import Slot

sys.path.insert(0, str(Path(__file__).parent))
from conftest import command, environment, expected, finishes  # type: ignore[import-not-found]

Swept = Callable[..., sweep.Sweep]
Light = Callable[..., None]
TWO = [Slot(0, None, 1), Slot(1, None, 1)]


class Pretended:
    """Stands for a run's process: what it does to the run, and how it ends."""

    def __init__(self, run: runs.Run, code: int | None) -> None:
        self.run, self.code = run, code

    def poll(self) -> int | None:
        return self.code

    def terminate(self) -> None:
        self.code = 130

    def wait(self, seconds: float) -> None:
        assert self.code is not None


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Runs finish at once instead of being run; a run in its list is (name, slot)."""
    found: list[tuple[str, int]] = []

    def begin(run: runs.Run, slot: Slot, *, kernel: str = "") -> Pretended:
        found.append((run.name, slot.number))
        if run.parameters.seed == 99:
            return Pretended(run, 2)
        run.begin()
        run.finish({"value": 1})
        return Pretended(run, 0)

    monkeypatch.setattr(launching, "begin", begin)
    monkeypatch.setattr(launching, "LOOK_SECONDS", 0.001)
    monkeypatch.setattr(launching, "AGAIN_SECONDS", 0.05)
    return found


class TestOrder:
    """The scheduler, with pretended processes."""

    def test_every_run_once_over_both_slots_and_finished_ones_not_at_all(self, swept: Swept, begun: Any) -> None:
        made = swept()
        made.runs[2].begin()
        made.runs[2].finish({"value": 0})
        work = sweep.launch(made, TWO)
        assert [name for name, _ in begun] == [run.name for run in made.runs if run != made.runs[2]]
        assert {slot for _, slot in begun} == {0, 1}
        assert not work.failed and all(run.finished for run in made.runs)
        sweep.launch(made, TWO)
        assert len(begun) == 5

    def test_a_stage_comes_before_what_stands_on_it(self, swept: Swept, begun: Any) -> None:
        made = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={"levels": []}, seeds=[0, 1, 2])
        sweep.launch(made, TWO)
        names = [name for name, _ in begun]
        assert names[0].startswith("02_stage1_contrastive/") and names[1:] == [run.name for run in made.runs]

    def test_one_that_broke_is_told_and_the_others_go_on(self, swept: Swept, begun: Any) -> None:
        made = swept(notebook="01_ceiling", base="smoke", seeds=[0, 99, 1])
        work = sweep.launch(made, TWO)
        assert work.failed == {made.runs[1].name: "it printed nothing"}
        assert [run.state for run in made.runs] == ["finished", "failed", "finished"]
        assert len(begun) == 3, "in one call a run is tried once"
        sweep.launch(made, TWO)
        assert len(begun) == 4, "the next call tries it again, and only it"

    def test_what_stands_on_one_that_broke_is_not_begun(self, swept: Swept, begun: Any, own_root: Path) -> None:
        text = (own_root / "parameters/02_stage1_contrastive/smoke.yaml").read_text()
        (own_root / "stage1.yaml").write_text(text.replace("seed: 0", "seed: 99"))
        made = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={"stage1": "stage1.yaml"}, seeds=[0, 1])
        work = sweep.launch(made, TWO)
        assert len(begun) == 1
        assert [work.failed[run.name].partition("/")[0] for run in made.runs] == [
            "it stands on 02_stage1_contrastive"
        ] * 2

    def test_what_another_has_is_waited_for(self, swept: Swept, begun: Any) -> None:
        made = swept()
        with sheet.holding(made.runs[0].folder):
            threading.Timer(0.5, made.runs[0].begin).start()  # from a kernel of the other's
            threading.Timer(1.0, lambda: made.runs[0].finish({"value": 2})).start()
            sweep.launch(made, TWO)
        assert made.runs[0].result == {"value": 2}
        assert made.runs[0].name not in [name for name, _ in begun]
        assert len(begun) == 5

    def test_stopped_by_hand_it_ends_its_runs(self, swept: Swept, begun: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        made = swept()
        started: list[Pretended] = []
        monkeypatch.setattr(
            launching, "begin", lambda run, *_, **__: started.append(Pretended(run, None)) or started[-1]
        )

        def stop(work: launching.Launch) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sweep.launch(made, TWO, tell=stop)
        assert [one.code for one in started] == [130, 130]


class TestSlots:
    def test_a_slot_a_gpu_or_two_cores(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
        monkeypatch.setattr(subprocess, "run", _no_tool)
        assert sweep.slots(around={}) == [Slot(number, None, 2) for number in range(4)]
        assert sweep.slots(3, around={}) == [Slot(number, None, 2) for number in range(3)]
        on_gpus = sweep.slots(around={"CUDA_VISIBLE_DEVICES": "2,5"})
        assert on_gpus == [Slot(0, "2", 4), Slot(1, "5", 4)]
        assert [slot.gpu for slot in sweep.slots(4, around={"CUDA_VISIBLE_DEVICES": "2,5"})] == ["2", "5", "2", "5"]
        assert {slot.gpu for slot in sweep.slots(cpu=True, around={"CUDA_VISIBLE_DEVICES": "2,5"})} == {""}
        with pytest.raises(ValueError, match="--slots 0: give at least 1"):
            sweep.slots(0)

    def test_gpus_are_asked_of_the_driver(self, monkeypatch: pytest.MonkeyPatch) -> None:
        told = "GPU 0: A (UUID: GPU-1)\n  MIG 1g\nGPU 1: B (UUID: GPU-2)\n"
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, stdout=told))
        assert [slot.gpu for slot in sweep.slots(around={})] == ["0", "1"]

    def test_threads_are_shared_out_but_never_over_what_was_set(self) -> None:
        given = Slot(0, "3", 2).environment({"OMP_NUM_THREADS": "1", "PATH": "/bin"})
        assert (given["OMP_NUM_THREADS"], given["MKL_NUM_THREADS"], given["CUDA_VISIBLE_DEVICES"]) == ("1", "2", "3")
        assert given["PATH"] == "/bin" and "CUDA_VISIBLE_DEVICES" not in Slot(0, None, 2).environment({})


def _no_tool(*_: Any, **__: Any) -> Any:
    raise FileNotFoundError("nvidia-smi")


def test_a_run_is_held_by_one_process_at_a_time(swept: Swept) -> None:
    run = swept().runs[0]
    assert not sheet.held(run.folder)
    with sheet.holding(run.folder):
        assert sheet.held(run.folder)
        with pytest.raises(BlockingIOError, match="started by another process already"), sheet.holding(run.folder):
            pass
    assert not sheet.held(run.folder)


class TestFaults:
    """Real papermills and kernels, of a light notebook."""

    def test_a_kernel_a_papermill_and_a_launcher_are_killed(self, light: Light, swept: Swept, own_root: Path) -> None:
        light()
        made = swept()
        seed = int(os.environ.get("PCCLAB_FAULTS") or time.time())
        print(f"PCCLAB_FAULTS={seed} gives the same moments again")
        moments = random.Random(seed)
        first = launcher(own_root)
        struck: list[str] = []
        for victim in ("kernel", "papermill", "launcher"):
            run = at_work(made, without=struck)
            time.sleep(moments.uniform(0, 1.2))
            kernel = sheet.read(run.folder)["process"]["pid"]
            try:
                hit = {"kernel": kernel, "papermill": psutil.Process(kernel).ppid(), "launcher": first.pid}[victim]
                os.kill(hit, signal.SIGKILL)
            except (psutil.NoSuchProcess, ProcessLookupError):
                print(f"the {victim} of {run.id} had ended by then")
            struck.append(run.id)
        assert first.wait(20) == -signal.SIGKILL
        second = launcher(own_root)
        assert second.wait(200) == 0, printed(own_root)
        assert [run.result for run in made.runs] == [expected(run) for run in made.runs]
        assert sorted(finishes(own_root)) == sorted(run.id for run in made.runs), "all six, none twice"
        assert [len(run.metrics) for run in made.runs] == [15] * 6
        again = subprocess.run(command("sweep", "mine.yaml"), cwd=own_root, env=environment(), capture_output=True)
        assert again.returncode == 0 and len(finishes(own_root)) == 6, "finished runs are reused"

    def test_two_launchers_share_a_sweep(self, light: Light, swept: Swept, own_root: Path) -> None:
        light()
        made = swept(notebook="01_ceiling", base="smoke", seeds=[0, 1, 2])
        both = [launcher(own_root, slots=1) for _ in range(2)]
        for one in both:
            assert one.wait(200) == 0, printed(own_root)
        assert [run.result for run in made.runs] == [expected(run) for run in made.runs]
        assert sorted(finishes(own_root)) == sorted(run.id for run in made.runs)

    def test_an_interrupt_leaves_runs_that_resume(self, light: Light, swept: Swept, own_root: Path) -> None:
        light()
        made = swept(notebook="01_ceiling", base="smoke", seeds=[0])
        first = launcher(own_root)
        run = at_work(made)
        while len(run.metrics) < 3:
            time.sleep(0.1)
        first.send_signal(signal.SIGINT)
        assert first.wait(60) == 130
        assert run.state == "interrupted"
        (run.folder / "run.json").write_text("{")  # and its sheet is damaged meanwhile
        second = launcher(own_root)
        assert second.wait(120) == 0
        assert run.result == expected(run)
        assert "damaged run.json set aside" in (run.folder / launching.LOG).read_text()
        assert list(run.folder.glob("run.damaged-*.json"))

    def test_a_failure_says_why_and_is_exit_code_one(self, light: Light, swept: Swept, own_root: Path) -> None:
        light("assert run.parameters.seed == 0, 'no such seed'", "run.finish({'value': 1})")
        made = swept(notebook="01_ceiling", base="smoke", seeds=[0, 1])
        assert launcher(own_root).wait(120) == 1
        assert "AssertionError: no such seed" in printed(own_root) and "1 finished, 1 failed" in printed(own_root)
        assert [run.state for run in made.runs] == ["finished", "failed"]
        shown = subprocess.run(command("status", "mine.yaml"), cwd=own_root, capture_output=True, text=True, check=True)
        assert "AssertionError: no such seed" in shown.stdout and "value 1" in shown.stdout

    def test_a_disk_that_fills_up_is_told_and_room_mends_it(self, light: Light, swept: Swept, own_root: Path) -> None:
        with small_disk(own_root / "runs", mebibytes=4):
            light(
                "(run.checkpoints / 'weights').write_bytes(bytes(2**21))",
                "from pcclab import files",
                "with files.replacing(run.checkpoints / 'more') as file: file.write_bytes(bytes(2**20))",
                "run.finish({'value': 1})",
                start="pcclab.start('01_ceiling', globals(), needs_bytes=0)",
            )
            made = swept(notebook="01_ceiling", base="smoke", seeds=[0])
            (run,) = made.runs
            filler = own_root / "runs" / "filler"
            filler.write_bytes(bytes(2**20 + 2**19))
            assert launcher(own_root).wait(120) == 1
            assert "No space left on device" in printed(own_root) or "disk full" in printed(own_root)
            assert run.state in ("failed", "interrupted")
            assert not (run.checkpoints / "more").exists(), "a file is whole or not there"
            filler.unlink()
            assert launcher(own_root).wait(120) == 0
            assert run.result == {"value": 1}


def launcher(root: Path, *, slots: int = 2) -> subprocess.Popen[bytes]:
    """`pcclab sweep mine.yaml` as a process of its own; what all of them print goes to one file."""
    with (root / "launchers.log").open("ab") as log:
        arguments = command("sweep", "mine.yaml", "--slots", str(slots))
        return subprocess.Popen(arguments, cwd=root, env=environment(), stdout=log, stderr=log)


def printed(root: Path) -> str:
    """What the launchers printed."""
    return (root / "launchers.log").read_text()


def at_work(made: sweep.Sweep, *, without: list[str] | None = None) -> runs.Run:
    """Wait for a run of the sweep to be at work, and give it."""
    end = time.monotonic() + 120
    while time.monotonic() < end:
        for run in made.runs:
            if run.id not in (without or []) and run.state == "running":
                return run
        time.sleep(0.05)
    raise AssertionError(f"no run came to work: {[run.state for run in made.runs]}")


@contextmanager
def small_disk(folder: Path, *, mebibytes: int) -> Iterator[None]:
    """A disk of its own at a folder; the test is skipped where none may be mounted."""
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    done = subprocess.run([mount or "mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)],
                          capture_output=True, text=True, check=False) if mount else None  # fmt: skip
    if done is None or done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip() if done else 'there is no mount'}")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)
