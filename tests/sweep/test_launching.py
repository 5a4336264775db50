"""A sweep at work: slots, order, what others have, what breaks; with pretended processes."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from pcclab import runs, sheet, sweep
from pcclab.sweep import launching, orphans
from pcclab.sweep.slots import Slot

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


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ("", "it printed nothing"),
        ("Segmentation fault\n\n", "Segmentation fault"),
        (
            "pcclab: note: x\npcclab: notebook 01_ceiling failed: No module\nits cells: y\nthe traceback: z\n",
            "No module",
        ),
        ("pcclab: mine.yaml, line 3: n = 2\n(pcclab --debug ... shows the traceback)\n", "mine.yaml, line 3: n = 2"),
    ],
)
def test_the_reason_is_what_the_process_said(swept: Swept, printed: str, told: str) -> None:
    run = swept().runs[0]
    run.folder.mkdir(parents=True)
    (run.folder / launching.LOG).write_text(printed)
    assert launching.broken(run, 2) == told
    assert (run.state, sheet.read(run.folder)["error"]) == ("failed", told)
    other = swept().runs[1]
    other.folder.mkdir(parents=True)
    assert launching.broken(other, -9) == "killed by SIGKILL"


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


class TestOrphans:
    """What a launcher that was killed has left at work."""

    @pytest.fixture
    def orphan(self, tmp_path: Path) -> Iterator[psutil.Process]:
        """A process of slot 1 whose launcher is gone."""
        launcher = (
            "import os, subprocess, sys; from pcclab.sweep import orphans; from pcclab.sweep.slots import Slot; "
            "marked = {**os.environ, orphans.MARK: orphans.mark(Slot(1, None, 1))}; "
            "command = [sys.executable, '-c', 'import time; time.sleep(60)']; "
            "print(subprocess.Popen(command, env=marked, stdout=subprocess.DEVNULL).pid)"
        )
        told = subprocess.run([sys.executable, "-c", launcher], stdout=subprocess.PIPE, text=True, check=True).stdout
        process = psutil.Process(int(told))
        yield process
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()

    def test_it_fills_its_slot_until_it_ends(self, swept: Swept, begun: Any, orphan: psutil.Process) -> None:
        made = swept()
        assert list(orphans.filled(TWO)) == [1] and orphans.filled([Slot(1, "0", 1)]) == {}
        assert list(orphans.filled([Slot(0, None, 1)])) == [0], "with fewer slots it fills another of its kind"
        ended: list[int] = []

        def tell(work: launching.Launch) -> None:
            if len(begun) == 3 and orphan.is_running():
                ended.append(len(begun))
                orphan.kill()
                orphan.wait(10)

        sweep.launch(made, TWO, tell=tell)
        assert ended == [3] and {slot for _, slot in begun[:3]} == {0} and len(begun) == 6

    def test_a_launcher_that_lives_keeps_its_slots_to_itself(self) -> None:
        marked = {**os.environ, orphans.MARK: orphans.mark(TWO[0])}
        with subprocess.Popen([sys.executable, "-c", "input()"], env=marked, stdin=subprocess.PIPE) as process:
            assert orphans.filled(TWO) == {}
            process.communicate(b"\n")
