"""A browser of this checkout's finished runs."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Annotated, Any

from pcclab import runs
from pcclab.parameters import load_recorded
from pcclab.runs import Run
from pcclab.widgets.controls import linear
from pcclab.widgets.exploring import Shown, width_of


def finished_runs() -> dict[str, Run]:
    """The finished runs with figures of their own, by name, notebooks in order and the newest first in each."""
    found = []
    for file in (runs.root() / "runs").glob("*/*/result.json"):
        notebook, folder = file.parent.parent.name, file.parent
        try:
            run = Run(notebook, load_recorded(notebook, folder / "parameters.yaml"), runs.root())
        except (ValueError, OSError):
            continue  # of an older version, or kept by another tool
        if run.folder == folder and run.finished and any((folder / "figures").glob("*.png")):
            found.append((notebook, -file.stat().st_mtime, run))
    return {run.name: run for *_, run in sorted(found, key=lambda entry: entry[:2])}


def browse(
    *,
    run: str,
    figure: Annotated[int, linear(1, 8, 1, "which of its figures; beyond the last one the last")] = 1,
) -> Shown:
    """One finished run: a figure of it, its result and its parameters.

    Args:
        run: a name of `finished_runs`; empty where there is none.
        figure: which figure, from 1, in the order of their names.

    Raises: ValueError for a run that is not among them.
    """
    found = finished_runs()
    if not run:
        return Shown(said="No run of this checkout is finished yet: pcclab run 01 makes one, and this cell shows it.")
    if run not in found:
        raise ValueError(f"run {run} is not finished, or has no figure: choose one of {', '.join(found) or 'none'}")
    figures = sorted((found[run].folder / "figures").glob("*.png"))
    place = min(figure, len(figures))
    values = found[run].parameters.model_dump(mode="json")
    page = _table("result", _leaves(found[run].result)) + _table("parameters", values)
    said = f"{run}, figure {place} of {len(figures)}: {figures[place - 1].stem.replace('_', ' ')}"
    png = figures[place - 1].read_bytes()
    return Shown(png=png, page=page, width=width_of(png), said=said)


def _leaves(tree: Mapping[str, Any], head: str = "") -> dict[str, Any]:
    """A result as one row a number, its place in the tree as the name."""
    rows: dict[str, Any] = {}
    for name, value in tree.items():
        rows |= _leaves(value, f"{head}{name}, ") if isinstance(value, Mapping) else {f"{head}{name}": value}
    return rows


def _table(title: str, rows: Mapping[str, Any]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(str(name))}</th><td>{html.escape(_text(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<details><summary>{title}: {len(rows)} entries</summary><table>{cells}</table></details>"


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
