"""Runs as two tables: a row a run, and the mean of every metric over the seeds with its interval."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import records, runs
from pcclab.collecting.entries import Entry, Path_, at, is_number, leaves, of_notebook, of_run
from pcclab.complaints import unknown
from pcclab.evaluation import seeds
from pcclab.parameters import MODELS, notebook_named

if TYPE_CHECKING:
    import pandas as pd

_TOLD = {
    "commit": ("provenance", "git", "commit"),
    "dirty": ("provenance", "git", "dirty"),
    "machine": ("process", "host"),
    "device": ("provenance", "device"),
    "began": ("began",),
    "wall_seconds": ("attempt", "wall_seconds"),
    "peak_memory_mib": ("provenance", "peak_memory_mib"),
    "attempt": ("attempt", "number"),
}
"""Column of the table of runs -> its place in `run.json`."""
_SPREAD = ("metric", "mean", "low", "high", "sd", "n", "undefined")
"""Columns of the summary behind the settings."""


@dataclass(frozen=True)
class Collection:
    """The runs of a sweep or of a notebook.

    Attributes:
        name: of the sweep or the notebook, as a folder may be called.
        asked: the sweep's file as it was written, or the notebook's name.
        entries: all of its runs.
        changed: parameters that set the runs apart, the seed not among them.
        folder: where the collected tables go.
    """

    name: str
    asked: str
    entries: tuple[Entry, ...]
    changed: tuple[str, ...]
    folder: Path

    @property
    def finished(self) -> list[Entry]:
        """Those whose figures count."""
        return [entry for entry in self.entries if entry.state == "finished"]

    @property
    def states(self) -> dict[str, int]:
        """How many runs are in each state."""
        names = [entry.state for entry in self.entries]
        return {name: names.count(name) for name in dict.fromkeys(["finished", *names])}

    @property
    def settings(self) -> list[str]:
        """The changed parameters as columns of the summary; one called as another column is, is told from it."""
        return [f"parameter.{name}" if name in _SPREAD else name for name in self.changed]

    @property
    def notebooks(self) -> list[str]:
        """Whose runs they are."""
        return list(dict.fromkeys(entry.notebook for entry in self.entries))

    @cached_property
    def metrics(self) -> dict[str, Path_]:
        """Every number of the finished runs' results: its column -> its place in the result."""
        found = {path: None for entry in self.finished for path, value in leaves(entry.result) if is_number(value)}
        return {self._column(path): path for path in found}

    @cached_property
    def whole(self) -> set[str]:
        """The metrics that are counts: whole numbers by their type in every run."""
        kinds = {name: {type(at(entry.result, path)) for entry in self.finished} for name, path in self.metrics.items()}
        return {name for name, found in kinds.items() if float not in found}

    @cached_property
    def runs(self) -> pd.DataFrame:
        """One row a run: what sets it apart, seed, source, state, reason, every metric, commit, machine, time.

        A number that is undefined is a missing value, and its name stands in the column `undefined`.
        """
        import pandas as pd

        return _storable(pd.DataFrame([self._row(entry) for entry in self.entries]))

    @cached_property
    def summary(self) -> pd.DataFrame:
        """One row a metric and setting: mean, low and high (95 %, Student's t over seeds), sd, n, undefined.

        `n` counts the runs with a value; one alone has neither interval nor sd. `undefined` counts those without.
        """
        import pandas as pd

        rows = []
        for setting, entries in self.groups.items():
            for name, path in self.metrics.items():
                values = [at(entry.result, path) for entry in entries]
                numbers = [float(value) for value in values if is_number(value)]
                if not numbers and records.UNDEFINED not in values:
                    continue  # runs of another shape have it
                row = {**dict(zip(self.settings, setting, strict=True)), "metric": name}
                spread = seeds(numbers) if numbers else None
                for column in _SPREAD[1:-2]:
                    row[column] = getattr(spread, column) if spread else None
                rows.append({**row, "n": len(numbers), "undefined": values.count(records.UNDEFINED)})
        frame = pd.DataFrame(rows, columns=[*self.settings, *_SPREAD])
        return _storable(frame.astype(dict.fromkeys(_SPREAD[1:-2], "float64")))

    @cached_property
    def groups(self) -> dict[tuple[Any, ...], list[Entry]]:
        """The finished runs by what sets them apart, seeds together."""
        found: dict[tuple[Any, ...], list[Entry]] = {}
        for entry in self.finished:
            found.setdefault(tuple(entry.value(name) for name in self.changed), []).append(entry)
        return found

    def fixed(self) -> dict[str, Any]:
        """The parameters that all runs share."""
        names = dict.fromkeys(name for entry in self.entries for name in entry.parameters)
        kept = {name: {str(entry.value(name)) for entry in self.entries if entry.parameters} for name in names}
        return {name: values.pop() for name, values in kept.items() if len(values) == 1}

    def _row(self, entry: Entry) -> dict[str, Any]:
        row = {"run": entry.name, "notebook": entry.notebook, "state": entry.state, "reason": entry.reason}
        row |= {**{name: entry.value(name) for name in (*self.changed, "source")}, "seed": entry.seed}
        missing = []
        for path, value in leaves(entry.result):
            if value == records.UNDEFINED:
                missing.append(self._column(path))
            elif path[-1] not in row or str(value) != str(row[path[-1]]):
                row[self._column(path)] = json.dumps(value) if isinstance(value, list) else value
        row["undefined"] = ", ".join(missing)
        return {**row, **{name: entry.told(*place) for name, place in _TOLD.items()}}

    def _column(self, path: Path_) -> str:
        """A metric's column; one that is called as a parameter is, is told from it."""
        name = ".".join(path)
        taken = {"run", "notebook", "state", "reason", "seed", "source", "undefined", *_TOLD, *self.changed}
        return f"result.{name}" if name in taken else name


def collect(what: str, *, where: Mapping[str, str] | None = None) -> Collection:
    """The runs of a sweep's file (a path, or a name in `parameters/sweeps`), or all runs of a notebook.

    Args:
        what: "losses", "parameters/sweeps/losses.yaml", or a notebook's name or its beginning.
        where: parameter -> value as text: only the runs that have it.

    Raises: FileNotFoundError and ValueError where it names neither, or where no run is left.
    """
    root = runs.root()
    if what.endswith((".yaml", ".yml")) or (root / "parameters" / "sweeps" / f"{what}.yaml").is_file():
        from pcclab import sweep

        wanted = sweep.load(what)
        found = [of_run(trial.run, changes=trial.changes) for trial in wanted.trials]
        changed = tuple(dict.fromkeys(name for trial in wanted.trials for name in trial.setting))
        name, asked, folder = wanted.name, wanted.path.read_text(encoding="utf-8-sig"), wanted.folder
    else:
        name = asked = notebook_named(what, MODELS)
        found, folder = list(of_notebook(root, name)), root / "runs" / "collected" / name
        changed = None
    kept = _kept(found, where or {})
    if not kept:
        raise ValueError(f"{what}: none of {len(found)} runs is left to collect: run it first, or ask for others")
    return of_entries(name, kept, asked=asked, folder=folder, changed=changed)


def of_entries(
    name: str, entries: Iterable[Entry], *, asked: str, folder: Path, changed: tuple[str, ...] | None = None
) -> Collection:
    """A collection of any runs.

    Args:
        name: of the collection.
        entries: the runs.
        asked: how they were asked for, for what is shown.
        folder: where the collection's files belong.
        changed: parameters that set the runs apart; None: found by comparing them, and they are put in its order.
    """
    entries = tuple(entries)
    if changed is None:
        changed = _changed([entry for entry in entries if entry.parameters])
        entries = tuple(
            sorted(entries, key=lambda entry: [*(str(entry.value(name)) for name in changed), str(entry.seed)])
        )
    return Collection(name, asked, entries, changed, folder)


def _changed(entries: list[Entry]) -> tuple[str, ...]:
    """The parameters in which runs differ, of those that change only together the first one."""
    single = any(entry.trained_as is not None for entry in entries)
    names = dict.fromkeys(name for entry in entries for name in entry.parameters if single or name != "seed")
    kept: dict[frozenset[tuple[int, ...]], str] = {}
    for name in names:
        parts: dict[str, list[int]] = {}
        for place, entry in enumerate(entries):
            parts.setdefault(str(entry.value(name)), []).append(place)
        if len(parts) > 1:
            kept.setdefault(frozenset(map(tuple, parts.values())), name)
    return tuple(kept.values())


def _kept(entries: list[Entry], where: Mapping[str, str]) -> list[Entry]:
    for name in where:
        known = {known for entry in entries for known in {**entry.parameters, **entry.changes}}
        if entries and name not in known:
            raise ValueError(unknown("parameter", name, known))
    return [entry for entry in entries if all(_same(entry.value(name), value) for name, value in where.items())]


def _same(value: Any, text: str) -> bool:
    try:
        return float(value) == float(text)
    except (TypeError, ValueError):
        return str(value).lower() == text.lower()


def _storable(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of one type each, as Parquet wants them: of a mixed one the texts."""
    for name in frame:
        kinds = {type(value) for value in frame[name] if value is not None and value == value}
        if len(kinds) > 1 and not kinds <= {int, float}:
            frame[name] = [None if value is None or value != value else str(value) for value in frame[name]]
    return frame
