"""Commands that judge an encoder, or hand it on."""

from __future__ import annotations

from typing import Annotated

import typer

from pcclab.cli.app import Source, app


@app.command()
def evaluate(
    name: Annotated[
        str,
        typer.Argument(
            help="minilm, tiny, a folder with weights, a hub name, or a run such as '03 real leakage=keep'."
        ),
    ],
    source: Source = None,
    tasks: Annotated[str | None, typer.Option(help="Some tasks only, such as sts12,stsb.", show_default=False)] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, first-last or last instead of the model's.", show_default=False)
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Tokens a text is cut at.", show_default=False)] = None,
    subsets: Annotated[bool, typer.Option("--subsets", help="Also every subset, and all, mean and wmean.")] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="STS, transfer and rank tasks and geometry; goes on where it was stopped.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="With --all: compute also what is kept.")] = False,
) -> None:
    """Spearman x 100 on the seven STS tasks, unrounded averages; or everything, with intervals, kept on disk."""
    from pcclab import report

    if again and not everything:
        raise ValueError("--again goes with --all, which keeps what it computes: add --all, or drop --again")
    if everything and (tasks is not None or subsets):
        raise ValueError("--tasks and --subsets do not go with --all, which judges everything: drop one of them")
    if everything:
        options = {"pooling": pooling, "max_tokens": max_tokens}
        typer.echo(report.of_everything(name, source=source, again=again, options=options))
        return
    chosen = [task.strip() for task in tasks.split(",") if task.strip()] if tasks is not None else None
    typer.echo(
        report.of_encoder(
            name, source=source, tasks=chosen, subsets=subsets, options={"pooling": pooling, "max_tokens": max_tokens}
        )
    )


@app.command()
def export(
    place: Annotated[
        str, typer.Argument(help="minilm, a folder with weights, a hub name, or a run such as '03 real leakage=keep'.")
    ],
    folder: Annotated[str, typer.Argument(help="Folder to make; one that is there is replaced.")],
    source: Source = None,
) -> None:
    """Write an encoder as a folder for sentence-transformers, with a model card: data, leakage, scores, command."""
    from pcclab import report

    typer.echo(report.of_export(place, folder, source=source))
