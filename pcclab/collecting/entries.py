"""One run as it lies on the disk: whatever is wrong with it becomes a state and a reason, never an error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pcclab import records, runs, sheet
from pcclab.parameters import load_recorded
from pcclab.values import read_yaml

_ID = re.compile(r"[0-9a-f]{12}")
_SAID = {
    "new": "not begun",
    "running": "at work",
    "interrupted": "its process is gone; the same command again resumes it",
    "failed": "no reason was written down",
}
Path_ = tuple[str, ...]
"""Place of a value in a result."""


@dataclass(frozen=True)
class Entry:
    """One run as it lies on the disk.

    Attributes:
        folder: of the run; may not be there yet.
        parameters: name -> value, as its file has them.
        state: as in `runs.Run.state`, or "damaged", or "outdated" for a run that today's code would not make so.
        reason: one line; empty for a finished run.
        result: its checked result; empty unless it can be read.
        sheet: its `run.json`; empty unless it can be read.
        changes: values that stand for several parameters, such as a sweep's `base`.
    """

    notebook: str
    folder: Path
    parameters: Mapping[str, Any]
    state: str
    reason: str
    result: Mapping[str, Any] = field(default_factory=dict)
    sheet: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Notebook and id."""
        return f"{self.notebook}/{self.folder.name}"

    def told(self, *path: str) -> Any:
        """What its sheet says at a place; None where it says nothing."""
        value: Any = self.sheet
        for part in path:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    @property
    def trained_as(self) -> Any:
        """The one seed of `seeds` that a cell of a notebook's own grid is trained with; None where there is no such."""
        given = self.parameters.get("seeds")
        return given[0] if isinstance(given, list) and len(given) == 1 else None

    @property
    def seed(self) -> Any:
        """The seed that tells repetitions apart."""
        return self.parameters.get("seed") if self.trained_as is None else self.trained_as

    def value(self, name: str) -> Any:
        """A parameter, or a change that stands for several, as a table can hold it."""
        value = {**self.parameters, **self.changes}.get(name)
        if name == "seeds" and self.trained_as is not None:
            return "one"
        return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


def of_run(run: runs.Run, *, changes: Mapping[str, Any] | None = None) -> Entry:
    """A run with valid parameters, begun or not.

    Args:
        run: the run.
        changes: what a sweep changed for it; None where none did.
    """
    state, reason, told, result = _read(run.folder)
    parameters = run.parameters.model_dump(mode="json")
    return Entry(run.notebook, run.folder, parameters, state, reason, result, told, changes or {})


def of_notebook(root: Path, notebook: str) -> Iterator[Entry]:
    """Every run of a notebook that lies on the disk, whatever wrote it.

    Args:
        root: the checkout.
        notebook: name without `.ipynb`.
    """
    for folder in sorted((root / "runs" / notebook).glob("*/")):
        if not _ID.fullmatch(folder.name):
            continue  # one set aside, or what the notebook keeps beside its runs
        state, reason, told, result = _read(folder)
        values, file = dict[str, Any](), folder / "parameters.yaml"
        try:
            values = read_yaml(file)[0]
            run = runs.Run(notebook, load_recorded(notebook, file), root)
            values = run.parameters.model_dump(mode="json")
            if run.id != folder.name:
                state = "outdated"
                reason = f"the same parameters make run {run.id} today: a run that it stands on is another one now"
        except (ValueError, OSError) as error:
            state, reason = "outdated", f"of another version: {_line(error)}".replace(f"{folder}/", "")
        yield Entry(notebook, folder, values, state, reason, result, told)


def _read(folder: Path) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
    """State, reason, sheet and result of a run's folder; every fault becomes a state with its reason."""
    told: dict[str, Any] = sheet.read(folder)
    if not told and (folder / sheet.NAME).exists():
        return "damaged", f"{sheet.NAME} cannot be read: run it again, what there is will be set aside", {}, {}
    state = sheet.state(folder)
    reason = str(told.get("error") or _SAID.get(state, ""))
    if state == "running":
        reason += f" in process {told.get('process', {}).get('pid')} on {told.get('process', {}).get('host')}"
    if state != "finished":
        return state, reason, told, {}
    try:
        return state, "", told, records.check_result(json.loads((folder / "result.json").read_bytes()))
    except (ValueError, OSError) as error:
        return "damaged", f"result.json: {_line(error)}; delete it and run it again", told, {}


def leaves(tree: Mapping[str, Any], path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every value of a result that is no mapping, with its place."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name), value


def at(tree: Any, path: Path_) -> Any:
    """The value at a place of a result; None where there is none."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def is_number(value: Any) -> bool:
    """Whether it is a number that a mean can be taken of."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _line(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = text.splitlines() or [type(error).__name__]
    return lines[0] + (f" (and {len(lines) - 1} more)" if len(lines) > 1 else "")
