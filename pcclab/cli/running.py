"""Commands that run notebooks and trainings."""

from __future__ import annotations

from typing import Annotated

import typer

from pcclab.cli.app import Overrides, app


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="Name of a notebook, or its beginning, such as 03.")],
    set_: Annotated[
        str, typer.Option("--set", metavar="SET", help="smoke, real or paper, or the path of a parameter file.")
    ] = "smoke",
    parameters: Overrides = None,
    again: Annotated[bool, typer.Option("--again", help="Run anew even where the result is there.")] = False,
    kernel: Annotated[str, typer.Option("-k", "--kernel", help="Another Jupyter kernel.", show_default=False)] = "",
) -> None:
    """Check the parameters, then run a notebook into the folder of its run; a finished run is reused."""
    from pcclab import batch, report, runs
    from pcclab.parameters import MODELS, load_file, notebook_named, parameter_file, read_overrides

    name = notebook_named(notebook, MODELS)
    path = parameter_file(runs.root(), name, set_)
    chosen = runs.locate(name, load_file(name, path, read_overrides(name, parameters or [])))
    if chosen.finished and not again and not chosen.cell_alone:
        typer.echo(f"run {chosen.name} is finished already; --again runs it anew")
    else:
        typer.echo(f"run {chosen.name}, {chosen.state}: {chosen.folder}")
        batch.execute(chosen, again=again, kernel=kernel)
    typer.echo(report.of_run(chosen))


@app.command()
def race(
    losses: Annotated[
        list[str] | None,
        typer.Argument(help="Losses, or sums such as 'pearson + 0.1 * info_nce'; those of the file otherwise."),
    ] = None,
    set_: Annotated[
        str, typer.Option("--set", metavar="SET", help="smoke, real, full or paper, or the path of a parameter file.")
    ] = "smoke",
    parameters: Overrides = None,
) -> None:
    """Train every pair loss on the same data and budget, a row a training in a CSV; goes on where it was stopped."""
    from pcclab import report, runs
    from pcclab.parameters import load_file, parameter_file, read_overrides

    name = "04_ablations"
    path = parameter_file(runs.root(), name, set_)
    given = {**read_overrides(name, parameters or []), **({"losses": list(losses)} if losses else {})}
    typer.echo(report.of_race(load_file(name, path, given)))
