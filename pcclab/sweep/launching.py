"""The runs of a sweep on this machine: one process a run, as many at a time as there are slots.

Nothing is kept beside the runs themselves: their states say what is left to do. So a launcher may be stopped or killed
at any time, another may work at the same sweep, and the same command goes on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import psutil

from pcclab import files, sheet
from pcclab.runs import Run
from pcclab.sheet import BUSY
from pcclab.sweep import orphans
from pcclab.sweep.plan import Sweep
from pcclab.sweep.slots import Slot

LOG = "output.log"
"""What a run printed when it was run as a process of its own, in its folder."""
LOOK_SECONDS = 0.5
AGAIN_SECONDS = 5.0
END_SECONDS = 20.0
_SILENT = "it printed nothing"


def launch(
    sweep: Sweep, slots: Sequence[Slot], *, kernel: str = "", tell: Callable[[Launch], None] | None = None
) -> Launch:
    """Run what is not finished of a sweep, each run at most once, and wait for what others have at work.

    Args:
        sweep: what to do.
        slots: where.
        kernel: name of another Jupyter kernel than the notebook's own.
        tell: called after every look, about twice a second.

    Returns:
        What was done; `failed` says what broke and why.

    Raises: KeyboardInterrupt when stopped by hand: its runs are ended first, each is interrupted and can resume.
    """
    work = Launch(sweep, kernel=kernel, taken=orphans.filled(slots))
    try:
        while work.look(slots):
            if tell is not None:
                tell(work)
            time.sleep(LOOK_SECONDS)
        if tell is not None:
            tell(work)
        return work
    finally:
        work.end()


@dataclass
class Launch:
    """A sweep at work.

    Attributes:
        sweep: what is run.
        kernel: name of a Jupyter kernel, or empty.
        at_work: slot's number -> run and process, of this launcher.
        taken: slot's number -> processes of a run that a launcher which was killed had begun there.
        elsewhere: names of runs that another process has, and when to look at them again.
        failed: names of runs that broke here or stand on one that did, and why.
    """

    sweep: Sweep
    kernel: str = ""
    at_work: dict[int, tuple[Run, subprocess.Popen[bytes]]] = field(default_factory=dict)
    taken: dict[int, list[psutil.Process]] = field(default_factory=dict)
    elsewhere: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def look(self, slots: Sequence[Slot]) -> bool:
        """Take up what has ended, begin what can begin; whether there is more to wait for."""
        self._reap()
        self.taken = {number: left for number, left in self.taken.items() if orphans.at_work(left)}
        full = {*self.at_work, *self.taken}
        open_ = [run for run in wanted(self.sweep) if run.name not in self.failed and not done(run)]
        here = {run.name for run, _ in self.at_work.values()}
        for run in open_:
            free = next((slot for slot in slots if slot.number not in full), None)
            base = next((before for before in run.stands_on if before.name in self.failed), None)
            if base is not None:
                self.failed[run.name] = f"it stands on {base.name}, which failed"
            elif free is None or run.name in here or time.monotonic() < self.elsewhere.get(run.name, 0):
                continue  # no place, at work, or somebody else's as of just now
            elif any(not before.finished for before in run.stands_on):
                continue
            elif run.state == "running" or sheet.held(run.folder):
                self.elsewhere[run.name] = time.monotonic() + AGAIN_SECONDS
            else:
                self.at_work[free.number] = run, begin(run, free, kernel=self.kernel)
                full.add(free.number)
        return any(run.name not in self.failed for run in open_)

    def end(self) -> None:
        """End the runs that this launcher has at work; each is interrupted and can resume."""
        processes = [process for _, process in self.at_work.values()]
        for process in processes:
            process.terminate()
        until = time.monotonic() + END_SECONDS
        for process in processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()

    def _reap(self) -> None:
        for number, (run, process) in list(self.at_work.items()):
            code = process.poll()
            if code is None:
                continue
            del self.at_work[number]
            if code == BUSY or (not done(run) and run.state == "running"):
                # Another process has it, or it has lost the process that was to wait for it.
                self.elsewhere[run.name] = time.monotonic() + AGAIN_SECONDS
            elif not done(run):
                self.failed[run.name] = broken(run, code)


def broken(run: Run, code: int) -> str:
    """Why a run's process ended with an exit code other than 0; written into its sheet where nothing did so before."""
    told = sheet.read(run.folder).get("error")
    if not told:
        told = f"killed by {signal.Signals(-code).name}" if code < 0 else last_words(run)
        with contextlib.suppress(OSError):  # on a full disk
            sheet.update(run.folder, notebook=run.notebook, id=run.id, state="failed", error=told)
    return str(told)


def begin(run: Run, slot: Slot, *, kernel: str = "") -> subprocess.Popen[bytes]:
    """Start a run as `pcclab run` does, in a process and a session of its own that outlives this one."""
    with sheet.writing(run.folder):
        files.write_text(run.folder / "parameters.yaml", run.yaml)
        command = [sys.executable, "-m", "pcclab", "run", run.notebook, "--set", str(run.folder / "parameters.yaml")]
        environment = {**slot.environment(os.environ), "PCCLAB_ROOT": str(run.root), orphans.MARK: orphans.mark(slot)}
        with (run.folder / LOG).open("wb") as log:
            return subprocess.Popen(
                [*command, *(["-k", kernel] if kernel else [])],
                cwd=run.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def wanted(sweep: Sweep) -> list[Run]:
    """The runs of a sweep, and before them those they stand on, each once."""
    found: dict[str, Run] = {}
    for run in sweep.runs:
        found.update((before.name, before) for before in _before(run))
    return list({**found, **{run.name: run for run in sweep.runs}}.values())


def done(run: Run) -> bool:
    """Whether `pcclab run` would find nothing left to do."""
    return run.finished and not run.cell_alone


def last_words(run: Run) -> str:
    """The error that a run's process printed, else its last line."""
    file = run.folder / LOG
    text = file.read_text(encoding="utf8", errors="replace") if file.is_file() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("pcclab: ") and not line.startswith("pcclab: note:")]
    told = [*lines[-1:], *errors[-1:]]
    return told[-1].removeprefix("pcclab: ").removeprefix(f"notebook {run.notebook} failed: ") if told else _SILENT


def _before(run: Run) -> Iterator[Run]:
    for before in run.stands_on:
        yield from _before(before)
        yield before
