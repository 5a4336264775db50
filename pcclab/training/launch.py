"""A training in several processes: the job as files, a launcher, its log passed on, its result taken back.

Everything a process needs lies in one folder as JSON and safetensors, so that nothing is unpickled and another node can
read it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from pcclab import data, encoders, files
from pcclab.data import ScoredPairs
from pcclab.encoders import Encoder
from pcclab.encoders.heads import SiameseHead
from pcclab.training.settings import FitSettings

PROCESSES = "PCCLAB_PROCESSES"
LAUNCHER = "PCCLAB_LAUNCHER"
JOB = "job.json"
ERROR = "error"


class LaunchFailed(RuntimeError):
    """A process of a training broke; the message is its own error."""


def wanted() -> int:
    """Processes that a training is shared out over, from the environment variable PCCLAB_PROCESSES; 1 where unset.

    Raises: ValueError for a value that is no whole number from 1.
    """
    told = os.environ.get(PROCESSES, "1")
    if not told.isdigit() or int(told) < 1:
        raise ValueError(f"{PROCESSES} is {told!r}: give a whole number of processes, at least 1")
    return int(told)


def own() -> list[str]:
    """The words of another launcher than torchrun on this machine, from the environment variable PCCLAB_LAUNCHER.

    They come before ``-m pcclab.training FOLDER``, such as ``accelerate launch --multi_gpu --num_processes 4`` or, for
    several machines that see the same folder, ``srun --nodes 2 torchrun --nnodes 2 ...``; empty where it is unset.

    Raises: ValueError for a quotation without an end.
    """
    told = os.environ.get(LAUNCHER, "")
    try:
        return shlex.split(told)
    except ValueError as error:
        raise ValueError(f"{LAUNCHER} is {told!r}: {error}, write it as a shell would take it") from None


def shared() -> bool:
    """Whether a training is shared out over processes, however they are started."""
    return wanted() > 1 or bool(own())


def stay_alone() -> None:
    """From now on this process starts no others: it is one of several, or measures one."""
    os.environ.update({PROCESSES: "1", LAUNCHER: ""})


def write(
    folder: Path,
    encoder: Encoder,
    table: Any,
    loss: str,
    *,
    settings: FitSettings,
    dev: ScoredPairs | None,
    options: dict[str, Any],
    head: SiameseHead | None,
) -> Path:
    """Write a job into a folder: encoder, head, tables, loss and settings; gives the folder."""
    encoder.save(folder / "encoder")
    if head is not None:
        head.save(folder / "head")
    job = {
        "loss": loss,
        "name": encoder.settings.name,
        "options": options,
        "settings": asdict(settings),
        "dtype": str(next(encoder.trunk.parameters()).dtype).removeprefix("torch."),
        "device": encoder.device.type,
        "head": head is not None,
        "table": _told(table),
        "dev": None if dev is None else _told(dev),
    }
    files.write_json(folder / JOB, job)
    return folder


def read(folder: Path, device: str) -> tuple[tuple[Encoder, Any, str], dict[str, Any]]:
    """What `write` wrote, as the arguments of `fit`.

    Args:
        folder: the job's.
        device: where this process computes.
    """
    job = json.loads((folder / JOB).read_text(encoding="utf8"))
    encoder = encoders.load(folder / "encoder", dtype=job["dtype"], device=device)
    # Under the name it had: what a process saves must not point into the job's folder.
    encoder.settings = replace(encoder.settings, name=job["name"])
    head = SiameseHead.load(folder / "head").to(encoder.device) if job["head"] else None
    dev = None if job["dev"] is None else _table(job["dev"])
    more = {"parameters": FitSettings(**job["settings"]), "options": job["options"], "dev": dev, "head": head}
    return (encoder, _table(job["table"]), job["loss"]), more


def start(folder: Path, *, processes: int, device: str) -> None:
    """Run a job's processes to their end, their output passed on line by line.

    Args:
        folder: the job's, in the folder of a run's checkpoints.
        processes: how many on this machine; a launcher of one's own has its own number.
        device: cpu or cuda; each process takes a GPU of its own.

    Raises: LaunchFailed with the error of the process that broke; the others are ended then, and what was
        checkpointed stays. ValueError for more processes than GPUs, or a launcher that is not there.
    """
    import torch

    launcher = own()
    if not launcher and device == "cuda" and processes > torch.cuda.device_count():
        raise ValueError(
            f"{PROCESSES} is {processes} and there are {torch.cuda.device_count()} GPUs: give at most those"
        )
    for old in folder.glob(f"{ERROR}-*"):
        old.unlink()
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", PROCESSES: "1", LAUNCHER: ""}
    if launcher:
        print(f"training by {shlex.join(launcher)}", flush=True)
    else:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
        threads = environment.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // processes))
        environment["OMP_NUM_THREADS"] = threads
        print(f"training in {processes} processes on {device}, {threads} thread(s) each", flush=True)
    command = [*launcher, "-m", "pcclab.training", str(folder)]
    try:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf8", errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise ValueError(f"{LAUNCHER} begins with {launcher[0]!r}, which cannot be run ({error.strerror})") from None
    assert process.stdout is not None
    last: list[str] = []
    try:
        for line in process.stdout:
            print(line.rstrip(), flush=True)
            last = [*last[-20:], line.rstrip()]
        code = process.wait()
    except BaseException:
        _end(process)
        raise
    finally:
        process.stdout.close()
    if code:
        raise LaunchFailed(_reason(folder, last, code))


def _reason(folder: Path, last: list[str], code: int) -> str:
    """The error of the process that broke first; without one, how the launcher ended."""
    told = sorted(folder.glob(f"{ERROR}-*"), key=lambda path: path.stat().st_mtime)
    if told:
        rank = told[0].name.removeprefix(f"{ERROR}-")
        return f"process {rank} of the training broke: {told[0].read_text(encoding='utf8').strip()}"
    lines = [line for line in last if line.strip()]
    return f"the training's processes ended with {code}, most often for want of memory: {lines[-1] if lines else ''}"


def _end(process: subprocess.Popen[str]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, sign)
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                continue


def _told(table: Any) -> dict[str, Any]:
    """A table as JSON holds it."""
    values = {field.name: getattr(table, field.name) for field in fields(table) if field.name != "provenance"}
    plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
    return {"kind": type(table).__name__, "columns": plain, "provenance": [asdict(p) for p in table.provenance]}


def _table(told: dict[str, Any]) -> Any:
    kinds: Iterable[type] = (data.ScoredPairs, data.Triplets, data.Sentences)
    kind = next(kind for kind in kinds if kind.__name__ == told["kind"])
    columns = {name: tuple(value) if isinstance(value, list) else value for name, value in told["columns"].items()}
    return kind(**columns, provenance=tuple(data.Provenance(**entry) for entry in told["provenance"]))
