"""Commands for many runs: a sweep from a file, and how far runs are."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pcclab.cli.app import app

if TYPE_CHECKING:
    from pcclab.sweep.board import Row

WATCH_SECONDS = 2.0
LOG_SECONDS = 60.0

File = Annotated[str, typer.Argument(metavar="SWEEP", help="A sweep's file, or its name in parameters/sweeps.")]


@app.command()
def sweep(
    file: File,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and the time to expect; run none.")
    ] = False,
    slots: Annotated[
        int | None,
        typer.Option(help="Runs at a time; otherwise one a GPU, without GPUs one for two cores.", show_default=False),
    ] = None,
    cpu: Annotated[bool, typer.Option("--cpu", help="Use no GPU.")] = False,
    kernel: Annotated[str, typer.Option("-k", "--kernel", help="Another Jupyter kernel.", show_default=False)] = "",
    slurm: Annotated[bool, typer.Option("--slurm", help="Hand the runs to a Slurm cluster, as an array.")] = False,
    options: Annotated[
        list[str] | None,
        typer.Option("--slurm-option", metavar="NAME=VALUE", help="For sbatch, such as partition=gpu; repeatable."),
    ] = None,
) -> None:
    """Run every run of a sweep's file that is not finished; stop it any time, the same command goes on."""
    from pcclab import sweep as sweeps
    from pcclab.sweep import board, estimates, launching, outlook

    if options and not slurm:
        raise ValueError("--slurm-option goes with --slurm: add it, or drop the option")
    chosen = sweeps.load(file)
    where = sweeps.slots(slots, cpu=cpu)
    if dry_run:
        typer.echo(f"{table(outlook.rows(chosen))}\n\n{outlook.summary(chosen, where)}")
        return
    if slurm:
        from pcclab.sweep import cluster

        typer.echo(cluster.submit(chosen, at_once=slots, options=options or [], kernel=kernel))
        return
    threads = where[0].environment(os.environ)["OMP_NUM_THREADS"]
    typer.echo(f"sweep {chosen.name}: {chosen.planned} runs of {chosen.notebook} on {len(where)} slots, "
               f"{threads} thread(s) each; Ctrl-C stops, the same command goes on")  # fmt: skip
    past = estimates.Past(chosen.root)
    before = [run for run in launching.wanted(chosen) if run not in chosen.runs and not launching.done(run)]

    def rows() -> list[Row]:
        first = [board.row(run, {}, past) for run in before]
        return [*first, *(board.row(trial.run, trial.changes, past) for trial in chosen.trials)]

    with _Screen() as screen:
        work = launching.launch(chosen, where, kernel=kernel, tell=lambda work: screen.show(rows))
    made = rows()
    if not screen.live:
        typer.echo(table(made))
    typer.echo(f"sweep {chosen.name}: {board.counts(made)}")
    for name, reason in work.failed.items():
        typer.echo(
            f"{name} failed: {reason}\n  what it printed: {chosen.root / 'runs' / name / launching.LOG}", err=True
        )
    if work.failed:
        raise typer.Exit(1)


@app.command()
def status(
    what: Annotated[
        str, typer.Argument(metavar="[SWEEP|NOTEBOOK]", help="A sweep's file or name, or a notebook; all otherwise.")
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Go on showing it until nothing runs any more.")] = False,
    number: Annotated[int, typer.Option("-n", help="How many of the latest runs, where no sweep is named.")] = 20,
) -> None:
    """How far runs are: what was changed, state, step, time, the last score, memory, why one failed."""
    from pcclab import runs
    from pcclab import sweep as sweeps
    from pcclab.parameters import MODELS, notebook_named
    from pcclab.sweep import board, estimates

    root = runs.root()
    past = estimates.Past(root)
    notebook = notebook_named(what, MODELS) if what[:2].isdigit() else None
    chosen = sweeps.load(what) if what and notebook is None else None

    def rows() -> list[Row]:
        if chosen is not None:
            return [board.row(trial.run, trial.changes, past) for trial in chosen.trials]
        return [board.row(run, made, past) for run, made in board.recent(root, notebook, number=number)]

    made = rows()
    if not made:
        typer.echo(f"no runs in {root / 'runs'}: pcclab run, or pcclab sweep, makes some")
        return
    if not watch:
        typer.echo(f"{table(made)}\n\n{board.counts(made)}")
        return
    with _Screen() as screen:
        while True:
            screen.show(rows)
            if not any(row["state"] in ("running", "starting") for row in rows()):
                break
            time.sleep(WATCH_SECONDS)


def table(rows: Sequence[Row]) -> str:
    """Rows under each other; a column that says nothing is left out."""
    from pcclab import report

    columns = _columns(rows)
    (first, *rest) = columns
    return report.table({row[first]: {name: row.get(name, "") for name in rest} for row in rows}, title=first)


def _columns(rows: Sequence[Row]) -> list[str]:
    names = dict.fromkeys(name for row in rows for name in row)
    last = [name for name in ("state", "step", "time", "left", "last", "memory", "reason") if name in names]
    ordered = [*(name for name in names if name not in last), *last]
    return [name for name in ordered if any(row.get(name) for row in rows)]


class _Screen:
    """A table that is drawn anew on a terminal; in a log a line where something changed, and one a minute."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self._drawn = 0.0
        self._told = time.monotonic()
        self._states: dict[str, str] = {}
        self._display: Any = None

    def __enter__(self) -> _Screen:
        if self.live:
            from rich.live import Live

            self._display = Live(auto_refresh=False, vertical_overflow="visible").__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._display is not None:
            self._display.__exit__(None, None, None)

    def show(self, rows: Callable[[], list[Row]]) -> None:
        """Draw, unless that was done just now; `rows` is asked only where it is."""
        if self._drawn and time.monotonic() - self._drawn < WATCH_SECONDS:
            return
        made, self._drawn = rows(), time.monotonic()
        if self._display is not None:
            self._display.update(_drawing(made), refresh=True)
            return
        for row in made:
            if row["state"] not in ("new", self._states.get(row["run"], "finished")):
                typer.echo(_line(row))
        self._states = {row["run"]: row["state"] for row in made}
        if time.monotonic() - self._told >= LOG_SECONDS:
            from pcclab.sweep import board

            typer.echo(f"{time.strftime('%H:%M:%S')} {board.counts(made)}")
            self._told = time.monotonic()


def _line(row: Row) -> str:
    changes = [f"{name}={value}" for name, value in row.items() if name not in
               ("run", "state", "step", "time", "left", "last", "memory", "reason")]  # fmt: skip
    told = [row[name] for name in ("time", "last", "reason") if row.get(name)]
    return " ".join([time.strftime("%H:%M:%S"), row["run"], *changes, row["state"] + ",", ", ".join(told)]).rstrip(" ,")


def _drawing(rows: Sequence[Row]) -> object:
    from rich.table import Table
    from rich.text import Text

    colours = {"finished": "green", "running": "cyan", "starting": "cyan", "failed": "red", "interrupted": "yellow"}
    columns = _columns(rows)
    drawing = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        drawing.add_column(name, overflow="fold", ratio=1 if name == "reason" else None)
    for row in rows:
        styles = {"state": colours.get(row["state"], "")}
        drawing.add_row(*(Text(row.get(name, ""), style=styles.get(name, "")) for name in columns))
    return drawing
