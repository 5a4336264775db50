"""Commands that fetch, check and show the corpora."""

from __future__ import annotations

from typing import Annotated

import typer

from pcclab.cli.app import Source, data_app


@data_app.command()
def fetch(
    folder: Annotated[str, typer.Argument(help="New folder to make; then set PCCLAB_DATA to it.")],
    revision: Annotated[
        str | None, typer.Option(help="Commit of the hub's repository; the newest otherwise.", show_default=False)
    ] = None,
) -> None:
    """Download SentEval's data from the hub into a folder and check the STS tasks in it."""
    from pcclab import data

    typer.echo(f"PCCLAB_DATA={data.fetch(folder, revision=revision)}")


@data_app.command()
def check(source: Source = None) -> None:
    """Load every corpus of a source and count its rows against the papers' counts; exit code 1 where one is wrong."""
    from pcclab import data

    found = data.check(source)
    typer.echo(f"{data.describe(source)}\n{found.to_string(index=False)}")
    wrong = int((found["state"] != "ok").sum())
    if wrong:
        typer.echo(f"{wrong} of {len(found)} are not as declared", err=True)
        raise typer.Exit(1)


@data_app.command()
def show(
    name: Annotated[str, typer.Argument(help="A corpus, such as stsb.")],
    split: Annotated[str | None, typer.Option(help="train, dev or test.", show_default=False)] = None,
    source: Source = None,
    rows: Annotated[int, typer.Option(help="How many rows.")] = 5,
    seed: Annotated[int, typer.Option(help="Which rows.")] = 0,
) -> None:
    """Print a few rows of a corpus and where they come from."""
    from pcclab import data

    frame = data.show(name, split=split, source=source, rows=rows, seed=seed)
    typer.echo(f"{data.describe('synthetic' if name.startswith('synthetic-') else source)}\n{frame.to_string()}")
