"""Sweeps that are broken: kernels, papermills and launchers killed, a disk that fills up; the same command goes on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from pcclab import runs, sheet, sweep
from pcclab.sweep import launching

sys.path.insert(0, str(Path(__file__).parent))
from _light import command, environment, expected, finishes

Swept = Callable[..., sweep.Sweep]
Light = Callable[..., None]


class TestFaults:
    """Real papermills and kernels, of a light notebook."""

    def test_a_kernel_a_papermill_and_a_launcher_are_killed(self, light: Light, swept: Swept, own_root: Path) -> None:
        light()
        made = swept()
        disturb(made, own_root, 1.2)
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
        assert run is not None
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


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_disturbed_trainings_end_as_undisturbed_ones(
    swept: Swept, own_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six trainings of notebook 03, broken at random moments and gone on with; then the same six in peace."""
    small = {"encoder": "tiny", "stage1": "", "levels": [], "max_steps": 40, "learning_rate": 0.001}
    entries = {"notebook": "03_stage2_pcc_tuning", "base": "smoke", "values": small}
    made = swept(**entries, grid={"loss": ["pearson", "cosent", "angle"]}, seeds=[0, 1])
    disturb(made, own_root, 8)
    peace = tmp_path / "peace"
    shutil.copytree(own_root, peace, symlinks=True, ignore=shutil.ignore_patterns("runs", "*.log"))
    monkeypatch.setenv("PCCLAB_ROOT", str(peace))
    assert launcher(peace).wait(900) == 0, printed(peace)
    undisturbed = sweep.load(peace / "mine.yaml")
    assert [run.result for run in made.runs] == [run.result for run in undisturbed.runs]
    assert len({str(run.result["after"]) for run in made.runs}) == 6


def disturb(made: sweep.Sweep, root: Path, longest: float) -> None:
    """Kill a kernel, a papermill and the launcher, each at a random moment; then give the same command to its end."""
    seed = int(os.environ.get("PCCLAB_FAULTS") or time.time())
    print(f"PCCLAB_FAULTS={seed} gives the same moments again")
    moments = random.Random(seed)
    first = launcher(root)
    struck: list[str] = []
    for victim in ("kernel", "papermill", "launcher"):
        run = at_work(made, without=struck)
        if run is None:
            break  # all had come to their end
        time.sleep(moments.uniform(0, longest))
        kernel = sheet.read(run.folder)["process"]["pid"]
        try:
            hit = {"kernel": kernel, "papermill": psutil.Process(kernel).ppid(), "launcher": first.pid}[victim]
            os.kill(hit, signal.SIGKILL)
        except (psutil.NoSuchProcess, ProcessLookupError):
            print(f"the {victim} of {run.id} had ended by then")
        struck.append(run.id)
    assert first.wait(900) in (0, 1, -signal.SIGKILL)
    assert launcher(root).wait(900) == 0, printed(root)


def launcher(root: Path, *, slots: int = 2) -> subprocess.Popen[bytes]:
    """`pcclab sweep mine.yaml` as a process of its own; what all of them print goes to one file."""
    with (root / "launchers.log").open("ab") as log:
        arguments = command("sweep", "mine.yaml", "--slots", str(slots))
        return subprocess.Popen(
            arguments, cwd=root, env=environment(), stdout=log, stderr=log, preexec_fn=hears_interrupts
        )


def hears_interrupts() -> None:
    """A suite started in the background of a shell inherits an ignored SIGINT, and passes it on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def printed(root: Path) -> str:
    """What the launchers printed."""
    return (root / "launchers.log").read_text()


def at_work(made: sweep.Sweep, *, without: list[str] | None = None) -> runs.Run | None:
    """Wait for a run of the sweep to be at work, and give it; None where all have come to their end."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        for run in made.runs:
            if run.id not in (without or []) and run.state == "running":
                return run
        if all(run.finished or run.id in (without or []) for run in made.runs):
            return None
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
