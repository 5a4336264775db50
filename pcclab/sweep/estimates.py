"""How long a run will take, from those that were run before."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pcclab import sheet
from pcclab.runs import Run

WORK = ("source", "encoder", "quantization", "dtype", "max_steps", "epochs")
"""Parameters in which a run must be the same to say anything of another's time."""


@dataclass(frozen=True)
class Estimate:
    """Seconds a run takes.

    Attributes:
        seconds: median over the runs it is taken from.
        runs: how many those are.
        differs: parameters in which they differ from the run, other than its seed.
    """

    seconds: float
    runs: int
    differs: tuple[str, ...]


class Past:
    """The finished runs of a checkout, read once a notebook."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, list[tuple[dict[str, Any], float]]] = {}

    def estimate(self, run: Run) -> Estimate | None:
        """From the finished runs of the notebook with as much work whose parameters are nearest; None without any."""
        mine = {**run.parameters.LATER, **run.parameters.model_dump(mode="json", exclude={"seed"})}
        found: dict[tuple[str, ...], list[float]] = {}
        for values, seconds in self._runs(run.notebook):
            theirs = {**run.parameters.LATER, **values}
            differs = tuple(name for name, value in mine.items() if theirs.get(name) != value)
            if not set(WORK) & set(differs):
                found.setdefault(differs, []).append(seconds)
        if not found:
            return None
        nearest = min(found, key=len)
        return Estimate(statistics.median(found[nearest]), len(found[nearest]), nearest)

    def _runs(self, notebook: str) -> list[tuple[dict[str, Any], float]]:
        if notebook not in self._known:
            self._known[notebook] = list(filter(None, map(_past, (self.root / "runs" / notebook).glob("*/run.json"))))
        return self._known[notebook]


def _past(file: Path) -> tuple[dict[str, Any], float] | None:
    """Parameters and seconds of a run that was run in one piece as a notebook; a neighbour it trained drew nothing."""
    told = sheet.read(file.parent)
    attempt = told.get("attempt", {})
    if told.get("state") != "finished" or attempt.get("number") != 1 or not (file.parent / "figures").is_dir():
        return None
    try:
        values = yaml.safe_load((file.parent / "parameters.yaml").read_text(encoding="utf8"))
        return dict(values), float(attempt["wall_seconds"])
    except (OSError, KeyError, TypeError, ValueError, yaml.YAMLError):
        return None
