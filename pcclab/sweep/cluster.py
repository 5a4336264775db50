"""The runs of a sweep on a Slurm cluster, as arrays that submitit hands in.

Each job runs `pcclab run` once, so it is the very run that a local sweep makes. When Slurm takes the machine away, or
the time is up, the run is interrupted, the job goes back into the queue, and the run resumes there.

submitit hands its job functions over as pickles: here a `Task` and text, written into the sweep's folder and read by
the job; the lab itself unpickles nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pcclab import files, sheet
from pcclab.complaints import near
from pcclab.runs import Run
from pcclab.sheet import BUSY
from pcclab.sweep.launching import LOG, done, wanted
from pcclab.sweep.plan import Sweep
from pcclab.sweep.slots import THREADS
from pcclab.values import read_assignments

DEFAULTS: dict[str, Any] = {"time": 24 * 60, "cpus_per_task": 2}
"""Minutes and cores of a job; a GPU is asked for by `gpus_per_node=1`."""
JOBS = "jobs.json"
TIMEOUTS = 100


class Task:
    """What a job does; submitit calls `checkpoint` when the job is preempted or its time is up, and queues it again."""

    def __call__(self, root: str, notebook: str, folder: str, kernel: str) -> str:
        """Run one run to its end, in a process of its own.

        Raises: RuntimeError with what it printed last, when it failed.
        """
        place = Path(folder)
        command = [sys.executable, "-m", "pcclab", "run", notebook, "--set", str(place / "parameters.yaml")]
        command += ["-k", kernel] if kernel else []
        cores = os.environ.get("SLURM_CPUS_PER_TASK")
        shared = {name: cores for name in THREADS if cores and name not in os.environ}
        # The signal that announces the end goes to every process of the job: only this one is to heed it.
        quiet = ["sh", "-c", f"trap '' USR2; exec {shlex.join(command)}"]
        with (place / LOG).open("ab") as log:
            process = subprocess.Popen(
                quiet, cwd=root, env={**os.environ, **shared, "PCCLAB_ROOT": root}, stdout=log, stderr=log
            )
            try:
                code = process.wait()
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if code not in (0, BUSY):
            raise RuntimeError(f"pcclab run {notebook} ended with {code}: read {place / LOG}")
        return "another process has it" if code == BUSY else "finished"

    def checkpoint(self, *arguments: str) -> Any:
        """The same again: the run knows how far it is."""
        import submitit

        return submitit.helpers.DelayedSubmission(self, *arguments)


def submit(sweep: Sweep, *, at_once: int | None = None, options: Sequence[str] = (), kernel: str = "") -> str:
    """Hand in what is neither finished nor queued, runs that others stand on first.

    Args:
        sweep: what to run; of a search what is known now, the rest at the next call.
        at_once: jobs of an array that may run at the same time.
        options: `name=value` for sbatch, as submitit names them, such as `partition=gpu` or `time=120`, in minutes.
        kernel: name of another Jupyter kernel than the notebook's own.

    Returns:
        What was handed in, as text.

    Raises: ValueError where submitit or Slurm is not there, or an option is unknown; RuntimeError when sbatch refuses.
    """
    executor = _executor(sweep, at_once, options)
    queued = _queued(sweep)
    told: list[str] = []
    waiting = [run for run in wanted(sweep) if not done(run)]
    for depth in sorted({_depth(run) for run in waiting}):
        level = [run for run in waiting if _depth(run) == depth and run.name not in queued and run.state != "running"]
        if not level:
            continue
        before = sorted({queued[base.name].partition("_")[0] for run in level for base in run.stands_on
                         if base.name in queued})  # fmt: skip
        executor.update_parameters(dependency=f"afterok:{':'.join(before)}" if before else None)
        for run in level:
            with sheet.writing(run.folder):
                files.write_text(run.folder / "parameters.yaml", run.yaml)
        columns = zip(*((str(run.root), run.notebook, str(run.folder), kernel) for run in level), strict=True)
        jobs = executor.map_array(Task(), *columns)
        queued |= {run.name: job.job_id for run, job in zip(level, jobs, strict=True)}
        files.write_json(sweep.folder / JOBS, queued)
        number = jobs[0].job_id.partition("_")[0]
        told.append(
            f"job {number}: {len(level)} run(s) of {level[0].notebook}"
            + (f", after job {', '.join(before)}" if before else "")
        )
    if not told:
        return f"sweep {sweep.name}: nothing to hand in, {len(waiting)} run(s) are queued or at work"
    return "\n".join(
        [*told, f"squeue shows the jobs, pcclab status {sweep.path} the runs, {sweep.folder / 'slurm'} the logs"]
    )


def _executor(sweep: Sweep, at_once: int | None, options: Sequence[str]) -> Any:
    try:
        import submitit
        from submitit.slurm.slurm import _get_default_parameters
    except ImportError:
        raise ValueError(
            "--slurm needs submitit, which is not installed: pip install -e '.[sweep]' -c constraints.txt"
        ) from None
    given = read_assignments(options, words=["account", "partition", "qos"], lists=[])
    known = _get_default_parameters()
    if unknown := [name for name in given if name not in known]:
        raise ValueError(f"--slurm-option {unknown[0]}: {near(unknown[0], known)}")
    try:
        executor = submitit.SlurmExecutor(folder=sweep.folder / "slurm", max_num_timeout=TIMEOUTS)
    except RuntimeError:
        raise ValueError("--slurm: there is no srun here: run it on a machine that hands jobs in") from None
    parallel = {} if at_once is None else {"array_parallelism": at_once}
    executor.update_parameters(**{"job_name": f"pcclab-{sweep.name}", **DEFAULTS, **parallel, **given})
    return executor


def _queued(sweep: Sweep) -> dict[str, str]:
    """Run's name -> job, of the jobs that were handed in before and that Slurm still has."""
    file = sweep.folder / JOBS
    try:
        known: dict[str, str] = json.loads(file.read_text(encoding="utf8"))
    except (FileNotFoundError, ValueError):
        return {}
    told = subprocess.run(["squeue", "--me", "-h", "-r", "-o", "%i"], capture_output=True, text=True, check=True).stdout
    there = set(told.split())
    return {name: job for name, job in known.items() if job in there}


def _depth(run: Run) -> int:
    return 1 + max(map(_depth, run.stands_on), default=-1)
