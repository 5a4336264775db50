"""What a training costs: the time of a step and the peak of memory, measured in a process of its own."""

from __future__ import annotations

import io
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import torch

from pcclab import encoders
from pcclab.encoders.heads import Features, SiameseHead
from pcclab.training import launch, teachers
from pcclab.training.quantities import Trainable
from pcclab.training.settings import FitSettings
from pcclab.training.trainer import fit

P = ParamSpec("P")
T = TypeVar("T")
WARM_UP = 1
"""Steps before the timed ones: the first allocates, and is the slowest."""


@dataclass(frozen=True)
class Cost:
    """The cost of one training.

    Args:
        seconds: of each timed step.
        memory: bytes at the peak: of the GPU, or what the process grew by since it last trained next to nothing.
        before: seconds that teachers took to embed the table once; 0 without any.
        device: cpu, or the GPU's name.
        threads: of the CPU's computation.
    """

    seconds: tuple[float, ...]
    memory: int
    before: float
    device: str
    threads: int


def cost(
    place: str,
    table: Trainable,
    loss: str,
    *,
    settings: FitSettings,
    steps: int,
    features: Features | None = None,
    taught_by: Sequence[str] = (),
    loading: dict[str, Any] | None = None,
) -> Cost:
    """Train a few steps by `fit` in a new process, and tell what they took.

    Args:
        place, loading: the encoder, as `encoders.load` takes it.
        table, loss, settings: as `fit` takes them; the table's rows are gone through from the first on.
        steps: timed ones, after `WARM_UP`.
        features: of a head, for losses on its judgement.
        taught_by: encoders whose similarities the loss follows; they embed the table once, and are gone then.

    Raises: as `fit`; MemoryError when the process was ended, as it is where memory runs out.
    """
    settings = replace(settings, max_steps=WARM_UP + steps, evaluate_every=0)
    return apart(_trained, _Job(place, table, loss, settings, features, tuple(taught_by), loading or {}))


def apart(work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Call a module's function in a process of its own, whose memory is its alone; gives what the function gives.

    Args:
        work: a function that its module's name finds.
        *args, **options: what it is given; they travel pickled.

    Raises: what the function raises, and MemoryError when its process was ended from outside.
    """
    # Forked from a server that has imported all this already; a process that may have touched a GPU cannot be forked.
    context: Any = multiprocessing.get_context("spawn" if torch.cuda.is_available() else "forkserver")
    if context.get_start_method() == "forkserver":
        context.set_forkserver_preload([__name__])
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            return pool.submit(work, *args, **options).result()
        except BrokenProcessPool as error:
            raise MemoryError(
                "the measuring process was ended, most often for want of memory: lower the batch, the tokens or "
                "micro_tokens"
            ) from error


def peak(device: torch.device) -> int:
    """The most memory in use so far, in bytes: allocated on a GPU, resident in this process on a CPU.

    Args:
        device: where the work is done.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if status.is_file():  # getrusage would count what the process was before it became this program
        told = dict(line.split(":", 1) for line in status.read_text(encoding="utf8").splitlines())
        return int(told["VmHWM"].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


class _Watch:
    """A run that keeps the time and the peak at each step, and its files nowhere."""

    def __init__(self, folder: str, device: torch.device) -> None:
        self.checkpoints, self.device = Path(folder), device
        self.times: list[float] = []
        self.peaks: list[int] = []

    def log(self, step: int, **metrics: Any) -> None:
        if "loss" in metrics:  # of the step that has just ended
            self.times.append(time.perf_counter())
            self.peaks.append(peak(self.device))


@dataclass(frozen=True)
class _Job:
    """What `cost` is asked for, as it travels to the process that measures it."""

    place: str
    table: Any
    loss: str
    settings: FitSettings
    features: Features | None
    taught_by: tuple[str, ...]
    loading: dict[str, Any]


def _trained(job: _Job) -> Cost:
    import psutil

    launch.stay_alone()
    silent = io.StringIO()
    with warnings.catch_warnings(), redirect_stdout(silent), redirect_stderr(silent):
        warnings.simplefilter("ignore")
        # What every training brings into a process, such as modules imported at their first use, is none's own cost.
        some = job.table.select(range(min(len(job.table), 64)))
        few = replace(job.settings, batch_size=64, max_steps=1)
        _steps(
            replace(job, place="tiny", table=some, settings=few, taught_by=("tiny",) * len(job.taught_by), loading={})
        )
        held = psutil.Process().memory_info().rss
        watch, before = _steps(job)
    gpu = watch.device.type == "cuda"
    pairs = zip(watch.times[WARM_UP - 1 :], watch.times[WARM_UP:], strict=False)
    return Cost(
        seconds=tuple(after - start for start, after in pairs),
        memory=max(watch.peaks) - (0 if gpu else held),
        before=before,
        device=torch.cuda.get_device_name(watch.device) if gpu else "cpu",
        threads=torch.get_num_threads(),
    )


def _steps(job: _Job) -> tuple[_Watch, float]:
    """Train, watched; and the seconds the teachers took."""
    began = time.perf_counter()
    taught = teachers.gather([encoders.load(name) for name in job.taught_by], job.table.text) if job.taught_by else None
    before = time.perf_counter() - began if job.taught_by else 0.0
    encoder = encoders.load(job.place, **{"seed": job.settings.seed, **job.loading})
    head = SiameseHead(encoder.dim, features=job.features) if job.features else None
    with tempfile.TemporaryDirectory() as folder:
        watch = _Watch(folder, encoder.device)
        fit(encoder, job.table, job.loss, parameters=job.settings, run=watch, head=head, teachers=taught)
    return watch, before
