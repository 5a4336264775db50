"""A grid of trainings: every cell is a run of its own, so that a finished one is never trained again."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pcclab import files, records
from pcclab.evaluation import Results
from pcclab.runs import Run

if TYPE_CHECKING:
    import pandas as pd

Cell = dict[str, Any]
CELL = "cell.json"
"""A cell's figures in its run's folder, beside the result: a notebook with one cell has a result of its own."""
Work = Callable[[Run, dict[str, Any]], Cell]
"""From the run of one cell, and a dict that all cells of a grid share, to the cell's figures."""


def grid(
    run: Run, work: Work, *, axes: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Do the work of every cell that is not done yet, and give all cells as one tidy table.

    Args:
        run: the notebook's run; a cell is its variant with one entry in each list.
        work: what a cell does.
        axes: names of list parameters, each with the entries to go through; the last one changes fastest.
        fixed: other parameters that all cells have in common.

    Returns:
        One row a cell: a column for each axis, then the cell's figures, nested ones as "outer/inner".

    Raises: whatever the work raises, and ValueError for a figure that no result may hold; the cells done before stay
        done.
    """
    import pandas as pd

    shared: dict[str, Any] = {}
    rows = []
    cells = list(itertools.product(*axes.values()))
    for number, entries in enumerate(cells, start=1):
        chosen = dict(zip(axes, entries, strict=True))
        at = run.variant(**(fixed or {}), **{name: [value] for name, value in chosen.items()})
        began, known = time.monotonic(), _known(at)
        try:
            cell = known if known is not None else records.check_result(work(at, shared))
            if known is None:
                files.write_json(at.folder / CELL, cell)
        except BaseException as error:
            if at.id != run.id:
                stopped = isinstance(error, KeyboardInterrupt)
                at.fail(f"{type(error).__name__}: {error}", state="interrupted" if stopped else "failed")
            raise
        if at.id != run.id and not at.finished:
            at.finish(cell)
        rows.append({**chosen, **flat(cell)})
        said = ", ".join(map(str, entries))
        told = "done before" if known is not None else f"{time.monotonic() - began:,.0f} s"
        print(f"{number} of {len(cells)}: {said}: tests {_shown(cell)} ({told})", flush=True)
    return pd.DataFrame(rows)


def _known(at: Run) -> Cell | None:
    """The figures of a cell that is done."""
    path = at.folder / CELL
    if path.is_file():
        try:
            return dict(json.loads(path.read_text(encoding="utf8")))
        except ValueError:
            raise ValueError(f"{path} is damaged: delete it to train the cell again") from None
    # Cells that were finished before they had a file have nothing but their result.
    return at.result if at.finished and "tests" in at.result else None


def flat(cell: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested figures as one level of names.

    >>> flat({"dev": 80.0, "tests": {"average": 78.5}})
    {'dev': 80.0, 'tests/average': 78.5}
    """
    found: dict[str, Any] = {}
    for name, value in cell.items():
        found.update(flat(value, f"{before}{name}/") if isinstance(value, Mapping) else {before + name: value})
    return found


def by_task(cells: pd.DataFrame, by: str) -> dict[str, dict[str, list[float]]]:
    """Test scores of a grid by method and task, for a result: the mean over seeds and, of several, the deviation.

    Args:
        cells: the grid's table, a row a cell.
        by: the methods' column.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for method, rows in cells.groupby(by, sort=False):
        tests = rows[[column for column in rows if column.startswith("tests/")]].dropna(axis=1)
        ends = tests.agg(["mean", "std"]).dropna()
        found[str(method)] = {column.removeprefix("tests/"): list(ends[column]) for column in ends}
    return found


def told(results: Results) -> dict[str, Any]:
    """Scores of the tasks and their average, for a cell."""
    return {name: score for name, score in results.to_dict().items() if name != "average_without_sickr"}


def _shown(cell: Mapping[str, Any]) -> str:
    average = cell.get("tests", {}).get("average")
    return f"{average:.2f}" if isinstance(average, float) else "undefined"
