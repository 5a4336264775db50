"""Where runs go: a slot is a share of the machine, a GPU or some of its cores, for one run at a time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True)
class Slot:
    """One place for a run.

    Attributes:
        number: from 0.
        gpu: what CUDA_VISIBLE_DEVICES is to be; empty hides all, None leaves it as it is, for a machine without any.
        threads: cores of this slot.
    """

    number: int
    gpu: str | None
    threads: int

    def environment(self, around: Mapping[str, str]) -> dict[str, str]:
        """What a run in this slot is started with; a number of threads that is set already is kept."""
        shared = {name: str(self.threads) for name in THREADS if name not in around}
        return {**around, **shared, **({} if self.gpu is None else {"CUDA_VISIBLE_DEVICES": self.gpu})}


def slots(count: int | None = None, *, cpu: bool = False, around: Mapping[str, str] | None = None) -> list[Slot]:
    """The slots of this machine.

    Args:
        count: how many; None: one a GPU, without GPUs one for two cores.
        cpu: use no GPU.
        around: the environment; this process's where None.

    Raises: ValueError for a count below 1.
    """
    around = os.environ if around is None else around
    gpus = [] if cpu else visible_gpus(around)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if count is not None and count < 1:
        raise ValueError(f"--slots {count}: give at least 1")
    number = count or len(gpus) or max(1, cores // 2)
    threads = max(1, cores // number)
    hidden = "" if cpu else None
    return [Slot(place, gpus[place % len(gpus)] if gpus else hidden, threads) for place in range(number)]


def visible_gpus(around: Mapping[str, str]) -> list[str]:
    """The GPUs that may be used, as CUDA_VISIBLE_DEVICES names them; asked of the driver's tool, not of torch."""
    if "CUDA_VISIBLE_DEVICES" in around:
        return [name for name in around["CUDA_VISIBLE_DEVICES"].split(",") if name.strip() not in ("", "-1")]
    try:
        told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    return [str(index) for index, _ in enumerate(line for line in told.splitlines() if line.startswith("GPU "))]
