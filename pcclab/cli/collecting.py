"""Commands that bring many runs together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pcclab.cli.app import app

What = Annotated[
    str, typer.Argument(help="A sweep, such as losses or parameters/sweeps/losses.yaml, or a notebook, such as 03.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("-w", "--where", metavar="NAME=VALUE", help="Only runs with this parameter; repeatable."),
]
To = Annotated[str | None, typer.Option("--to", metavar="FOLDER", help="Another folder to write to.")]


@app.command()
def collect(what: What, where: Where = None, to: To = None) -> None:
    """The runs of a sweep or notebook as tables: rows, means over seeds, intervals, n (Parquet, CSV, Markdown)."""
    from pcclab import collecting

    found = collecting.collect(what, where=_pairs(where))
    typer.echo(collecting.plain(found))
    for path in collecting.write(found, Path(to) if to else found.folder):
        typer.echo(f"  {path}")


@app.command()
def report(what: What, where: Where = None, to: To = None) -> None:
    """One page of HTML on the runs of a sweep or notebook, to send: tables, figures, learning curves, provenance."""
    from pcclab import collecting

    found = collecting.collect(what, where=_pairs(where))
    page = collecting.write_page(found, (Path(to) if to else found.folder) / "report.html")
    typer.echo(f"{collecting.states(found)}\n  {page}")


def _pairs(where: list[str] | None) -> dict[str, str]:
    for text in where or ():
        if "=" not in text:
            raise ValueError(f"--where {text!r}: write NAME=VALUE, such as --where source=senteval")
    return {name.strip(): value.strip() for name, _, value in (text.partition("=") for text in where or ())}
