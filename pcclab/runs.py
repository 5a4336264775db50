"""A run: the same notebook with the same parameters is the same run, with one folder, one state and one result."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files, records, sheet
from pcclab import notebook as kernel
from pcclab.checkout import root as root
from pcclab.parameters import Parameters, identifier, load_file, load_spoken, model_of, to_yaml, validate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS_BYTES = 200 * 2**20


def start(
    notebook: str, namespace: Mapping[str, Any] | None = None, /, *, needs_bytes: int = NEEDS_BYTES, **parameters: Any
) -> Run:
    """Validate a notebook's parameters and begin its run, or find it finished.

    Args:
        notebook: name without `.ipynb`.
        namespace: the notebook's `globals()`, from which the parameters are taken.
        needs_bytes: free disk space the run needs.
        **parameters: values beside or instead of the namespace's.

    Returns:
        The run. `run.finished` tells that there is nothing left to do; a broken one resumes from its checkpoints.

    Raises:
        ValueError: for wrong, missing or unknown parameters, among them unknown ones that papermill injected.
        OSError: when the disk is too full, or when another live process is at this run.
    """
    fields = model_of(notebook).model_fields
    taken = kernel.parameters(notebook, namespace, fields) if namespace is not None else {}
    run = locate(notebook, validate(notebook, {**taken, **parameters}))
    run.begin(needs_bytes=needs_bytes)
    if isinstance(namespace, MutableMapping):
        namespace[kernel.STARTED] = run.id
    return run


def locate(notebook: str, parameters: Parameters) -> Run:
    """The run of these parameters, begun or not; writes nothing. Args: notebook: its name; parameters: validated."""
    return Run(notebook, parameters, root())


def ensure(notebook: str, parameters_file: str | os.PathLike[str]) -> Run:
    """The finished run of a parameter file; where there is none its notebook is run now, and that is said.

    Args:
        notebook: name without `.ipynb`.
        parameters_file: its file, from the checkout's root.

    Raises: what `load_file` raises, and `batch.RunFailed` when the notebook fails.
    """
    return complete(locate(notebook, load_file(notebook, root() / parameters_file)), named=str(parameters_file))


def spoken(place: str) -> Run:
    """The run that is spoken of as `pcclab run` takes it; writes nothing. Args: place: such as "03 real leakage=keep".

    Raises: ValueError and FileNotFoundError where it names none.
    """
    return locate(*load_spoken(root(), place))


def complete(run: Run, *, named: str) -> Run:
    """The run, finished; where it is not its notebook is run now, and that is said.

    Args:
        run: any run.
        named: how it was asked for, for what is said.

    Raises: `batch.RunFailed` when the notebook fails.
    """
    if not run.finished:
        from pcclab import batch

        print(f"run {run.name} is {run.state}: running notebook {run.notebook} with {named} first", flush=True)
        batch.execute(run)
    return run


@dataclass(frozen=True)
class Run:
    """One notebook with one set of parameters; its folder is `runs/<notebook>/<id>/`."""

    notebook: str
    parameters: Parameters
    root: Path

    @cached_property
    def id(self) -> str:
        """Twelve hex digits of the notebook, its parameters and the runs it stands on."""
        return identifier(self.notebook, self.parameters, on=tuple(run.id for run in self.stands_on))

    @cached_property
    def stands_on(self) -> tuple[Run, ...]:
        """The runs whose results this one continues."""
        return tuple(Run(*load_spoken(self.root, place), self.root) for place in self.parameters.stands_on())

    @property
    def name(self) -> str:
        """Notebook and id, as paths and tables show it."""
        return f"{self.notebook}/{self.id}"

    @property
    def folder(self) -> Path:
        """Where everything of the run lies."""
        return self.root / "runs" / self.notebook / self.id

    @property
    def yaml(self) -> str:
        """Its parameters as a file."""
        return to_yaml(self.parameters)

    @property
    def embeddings(self) -> Path:
        """Where this checkout's runs keep the embeddings of encoders that several of them judge."""
        return self.root / "runs" / "embeddings"

    @property
    def checkpoints(self) -> Path:
        """Folder for checkpoints; made when asked for."""
        folder = self.folder / "checkpoints"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def state(self) -> sheet.State:
        """new, running, finished, failed or interrupted."""
        return sheet.state(self.folder)

    @property
    def finished(self) -> bool:
        """Whether the result is there."""
        return self.state == "finished"

    @property
    def cell_alone(self) -> bool:
        """Whether it was finished as one cell of another run's grid, so that its own notebook has not been run."""
        cell, result = self.folder / "cell.json", self.folder / "result.json"
        return cell.is_file() and result.is_file() and json.loads(cell.read_bytes()) == json.loads(result.read_bytes())

    @property
    def result(self) -> dict[str, Any]:
        """The finished run's figures.

        Raises: FileNotFoundError where the run is not finished; ValueError where `result.json` is damaged.
        """
        if not self.finished:
            raise FileNotFoundError(
                f"run {self.name} is {self.state} and has no result: run {self.notebook} to its end"
            )
        path = self.folder / "result.json"
        try:
            return records.check_result(json.loads(path.read_text(encoding="utf8")))
        except ValueError:
            raise ValueError(f"{path} is damaged: delete it and run notebook {self.notebook} again") from None

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The logged lines in the order of their steps; of a step logged again after a resume the last one counts."""
        return sheet.metrics(self.folder)

    def begin(self, *, needs_bytes: int = NEEDS_BYTES) -> None:
        """Claim the run for this process and write down what it runs with; a finished one stays as it is.

        Raises: OSError when the disk has less than `needs_bytes` free, or another live process has the run.
        """
        head = {"notebook": self.notebook, "id": self.id, **self.parameters.model_dump(include={"seed", "source"})}
        if not sheet.claim(self.folder, head, needs_bytes=needs_bytes):
            return
        with sheet.writing(self.folder):
            files.write_text(self.folder / "parameters.yaml", self.yaml)
        sheet.update(self.folder, provenance=records.surroundings(self.root))
        kernel.on_failure(self._failed_cell)

    def variant(self, **changes: Any) -> Run:
        """The run of the same notebook with changed parameters, begun; itself where nothing changes."""
        values = {**self.parameters.model_dump(mode="json"), **changes}
        other = Run(self.notebook, validate(self.notebook, values), self.root)
        if other.id != self.id:
            other.begin()
        return other

    def log(self, step: int, **metrics: Any) -> None:
        """Append one line of metrics to `metrics.jsonl`; a value that is not finite is written as undefined."""
        entry = {"step": int(step)}
        for name, value in records.plain(metrics).items():
            entry[name] = records.finite(value)
        with sheet.writing(self.folder), (self.folder / "metrics.jsonl").open("ab+") as file:
            if file.tell():
                file.seek(-1, os.SEEK_END)
                torn = file.read() != b"\n"
                file.write(b"\n" if torn else b"")
            file.write(json.dumps(entry, ensure_ascii=False, allow_nan=False).encode("utf8") + b"\n")

    def record(self, **provenance: Any) -> None:
        """Add to the provenance in `run.json`: revisions of data and models, what was cut or dropped."""
        sheet.update(self.folder, provenance=provenance)

    def figure(self, figure: Figure, name: str, *, numbers: Mapping[str, Any]) -> Path:
        """Write a figure and its numbers to `figures/`, as `figures.save` does; returns the PNG's path."""
        from pcclab import figures

        with sheet.writing(self.folder):
            return figures.save(figure, self.folder / "figures", name, numbers=numbers, run=self.name)[1]

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the checked result, then the state, so that a finished run always has one.

        A run that was finished before keeps its time and provenance; its result is written again.

        Raises: ValueError, as `records.check_result`; the run stays unfinished then.
        """
        checked, before = records.check_result(result), self.finished
        with sheet.writing(self.folder):
            files.write_json(self.folder / "result.json", checked)
        if not before:
            sheet.close(self.folder, "finished")

    def fail(self, reason: str, *, state: sheet.State = "failed") -> None:
        """Write down that the run broke and why; it resumes when it is started again."""
        if self.state not in ("new", "finished"):
            sheet.close(self.folder, state, error=reason)

    def _failed_cell(self, error: BaseException) -> None:
        if self.state == "running":
            # What waits for another run, such as a neighbour it trains, is not broken.
            stopped = isinstance(error, KeyboardInterrupt | BlockingIOError)
            self.fail(f"{type(error).__name__}: {error}", state="interrupted" if stopped else "failed")

    def __str__(self) -> str:
        return f"run {self.name}: {self.state}, {self.folder}"

    def _repr_html_(self) -> str:
        rows = {"run": self.name, "state": self.state, "folder": self.folder, **self.parameters.model_dump(mode="json")}
        cells = (f"<tr><th>{html.escape(k)}</th><td>{html.escape(str(v))}</td></tr>" for k, v in rows.items())
        return f"<table>{''.join(cells)}</table>"
