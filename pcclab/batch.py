"""A notebook run in batch: by papermill in a process of its own, with the lab's engine, into the folder of its run."""

from __future__ import annotations

import importlib.metadata
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pcclab import files, records, sheet

if TYPE_CHECKING:
    from pcclab.runs import Run

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class RunFailed(RuntimeError):
    """A notebook was run and did not finish; the message names the error and where to read the rest."""


def execute(run: Run, *, again: bool = False, kernel: str = "", tell: Callable[[str], None] | None = None) -> None:
    """Run the notebook of `run` to its end.

    Args:
        run: what to do, with validated parameters.
        again: set what there is aside and start from nothing, instead of resuming.
        kernel: name of another Jupyter kernel than the notebook's own.
        tell: takes each line that the notebook prints; printed where None.

    Raises:
        FileNotFoundError: where the notebook is not there.
        BlockingIOError: where another process is at the run.
        RunFailed: when a cell fails, the kernel dies, or the notebook ends without a result.
        KeyboardInterrupt: when stopped by hand; notebook and kernel are ended, the run is interrupted and can resume.
    """
    source = Path("notebooks") / f"{run.notebook}.ipynb"
    if not (run.root / source).is_file():
        raise FileNotFoundError(f"no notebook {run.root / source}: run from a checkout, or set PCCLAB_ROOT to one")
    with sheet.holding(run.folder):
        _execute(run, source, again=again, kernel=kernel, tell=tell or _print)


def _execute(run: Run, source: Path, *, again: bool, kernel: str, tell: Callable[[str], None]) -> None:
    if run.state == "running":
        raise BlockingIOError(f"run {run.name} is at work in another process: wait for it or end it")
    if again:
        sheet.set_aside(run.folder)
    with sheet.writing(run.folder):
        files.write_text(run.folder / "parameters.yaml", run.yaml)
    # Relative paths from the root: papermill fills braces in a path as if they were parameters.
    folder = run.folder.relative_to(run.root)
    command = [sys.executable, "-m", "pcclab.lean_papermill", str(source), str(folder / "notebook.ipynb")]
    command += ["-f", str(folder / "parameters.yaml"), "--no-progress-bar", "--log-level", "WARNING"]
    command += ["--stdout-file", "-", "--stderr-file", "-", *(["-k", kernel] if kernel else [])]
    command += _engine(tell)
    environment = {
        **os.environ,
        "PCCLAB_ROOT": str(run.root),
        "PCCLAB_BATCH": "1",
        "JUPYTER_PREFER_ENV_PATH": "1",  # a kernel of the same name in the home folder may be another Python
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    if os.environ.get("PCCLAB_DATA"):  # the kernel starts in the checkout, not where this was called
        environment["PCCLAB_DATA"] = str(Path(os.environ["PCCLAB_DATA"]).expanduser().resolve())
    if again:
        environment["PCCLAB_AGAIN"] = str(time.time())
    log = run.folder / "papermill.log"
    code = _papermill(command, run, environment, log, tell)
    if code == 0 and run.finished:
        return
    if code == 0:
        reason = "the notebook ended without run.finish"
    else:
        reason = str(sheet.read(run.folder).get("error") or _last_line(log) or f"papermill exited with {code}")
    if "DeadKernelError" in reason:  # the engine knows how it died, plain papermill does not
        told = reason.partition("DeadKernelError: ")[2]
        unknown = "the kernel died, most often for want of memory: lower micro_tokens or batch_size"
        reason = told if told.startswith("the kernel died") else unknown
    if reason.startswith("BlockingIOError"):  # the run, or one it needs, belongs to another process
        raise BlockingIOError(reason.removeprefix("BlockingIOError: "))
    if code < 0:
        reason = f"papermill was killed by {signal.Signals(-code).name}"
        _end_kernel(run)
    told_to_end = code == 128 + signal.SIGTERM  # by a scheduler, or the machine as it shuts down
    if told_to_end:
        reason = "papermill was told to end (SIGTERM)"
    run.fail(reason, state="interrupted" if told_to_end else "failed")
    raise RunFailed(
        f"notebook {run.notebook} failed: {reason}\nits cells: {run.folder / 'notebook.ipynb'}\nthe traceback: {log}"
    )


def _engine(tell: Callable[[str], None]) -> list[str]:
    """The engine, where this installation has it; an older one runs by plain papermill, which is told."""
    if importlib.metadata.entry_points(group="papermill.engine", name="pcclab"):
        return ["--engine", "pcclab"]
    tell("note: this installation has no papermill engine pcclab, plain papermill runs; pip install -e . brings it")
    return []


def _papermill(
    command: list[str], run: Run, environment: dict[str, str], log: Path, tell: Callable[[str], None]
) -> int:
    with log.open("w", encoding="utf8") as errors:
        process = subprocess.Popen(
            command,
            cwd=run.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            encoding="utf8",
            errors="replace",
            start_new_session=True,  # an interrupt from the terminal comes here, and only here
        )
        assert process.stdout is not None
        try:
            for line in process.stdout:
                tell(line.rstrip())
            return process.wait()
        except BaseException:
            _end(process)
            run.fail("stopped by hand", state="interrupted")
            raise
        finally:
            process.stdout.close()


def _end(process: subprocess.Popen[str]) -> None:
    """End papermill and its kernel, which lives in a session of its own and would not hear of it."""
    import psutil

    try:
        family = [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
    except psutil.NoSuchProcess:
        return
    for member in family:
        try:
            member.terminate()
        except psutil.NoSuchProcess:
            continue
    for member in psutil.wait_procs(family, timeout=5)[1]:
        member.kill()
    process.wait()


def _end_kernel(run: Run) -> None:
    """End the kernel of a papermill that was killed: it would go on alone, and write into the run."""
    import psutil

    owner = sheet.read(run.folder).get("process", {})
    if records.alive(owner):
        psutil.Process(int(owner["pid"])).kill()


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in _COLOUR.sub("", log.read_text(encoding="utf8", errors="replace")).splitlines()]
    lines = [line for line in lines if line]
    return lines[-1] if lines else ""


def _print(line: str) -> None:
    print(line, flush=True)
