"""What the benchmarks share: sides measured in turn in one process, and the record that is kept of it."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import torch

from pcclab import files

FIGURES = Path(__file__).resolve().parents[2] / "figures" / "benchmarks"


def alternate(ours: Callable[[int], Any], theirs: Callable[[int], Any], rounds: int) -> dict[str, Any]:
    """Seconds of both sides, turn about (A B, B A, ...), after one uncounted warm-up of each on round 0."""
    measured = turn_about({"ours": ours, "theirs": theirs}, rounds)
    return {**measured, "ratio": measured["ratio"]["ours"]}


def turn_about(sides: dict[str, Callable[[int], Any]], rounds: int) -> dict[str, Any]:
    """Seconds of all sides, in turn and back again, after a warm-up of each; ratios: the last one's to the others'."""
    for work in sides.values():
        work(0)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in sides if turn % 2 == 0 else reversed(sides):
            began = time.perf_counter()
            sides[name](turn)
            seconds[name].append(time.perf_counter() - began)
    *others, last = sides
    ratios = {name: [b / a for a, b in zip(seconds[name], seconds[last], strict=True)] for name in others}
    return {
        "seconds": {name: [round(s, 3) for s in values] for name, values in seconds.items()},
        "median_seconds": {name: round(statistics.median(values), 3) for name, values in seconds.items()},
        "ratio": {name: {"median": statistics.median(r), "min": min(r), "max": max(r)} for name, r in ratios.items()},
    }


def keep(name: str, how: str, measured: dict[str, Any]) -> Path:
    """Write a measurement, with how and where it was taken, to `figures/benchmarks/`."""
    model = next((line.split(":", 1)[1].strip() for line in _cpuinfo() if line.startswith("model name")), "")
    where = {
        "date": date.today().isoformat(),
        "machine": f"{model or platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    path = FIGURES / f"{name}.json"
    files.write_json(path, {"how": how, **where, **measured})
    return path


def _cpuinfo() -> list[str]:
    file = Path("/proc/cpuinfo")
    return file.read_text(encoding="utf8").splitlines() if file.is_file() else []
