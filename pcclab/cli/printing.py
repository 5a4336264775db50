"""The command that prints: every figure and table of the papers, from what is saved."""

from __future__ import annotations

from typing import Annotated

import typer

from pcclab.cli.app import app


@app.command("figures")
def rebuild(
    names: Annotated[list[str] | None, typer.Argument(help="Some only, by name.", show_default=False)] = None,
    from_runs: Annotated[
        bool, typer.Option("--from-runs", help="Take newer numbers from the finished runs first.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: name the files a rebuild would change; exit 1 if any.")
    ] = False,
    catalogue: Annotated[
        bool, typer.Option("--list", help="Name them, their runs, and what in the papers each redraws.")
    ] = False,
) -> None:
    """Rebuild the figures (PDF, PNG) and tables (LaTeX, Markdown) in figures/ from their JSON; no run is needed."""
    from pcclab import gallery, runs

    folder, chosen = runs.root() / "figures", gallery.names(names or ())
    if check and from_runs:
        raise ValueError("--check writes nothing and --from-runs does: give one of them")
    if catalogue:
        for name in chosen:
            shown = gallery.FIGURES[name].papers if name in gallery.FIGURES else gallery.TABLES[name].caption
            typer.echo(f"{name:<24} {', '.join(gallery.places(name)[:1]):<32} {shown}")
        for what, why in gallery.NONE.items() if not names else ():
            typer.echo(f"not redrawn: {what}: {why}")
        return
    if not check:
        for name, told in gallery.rebuild(folder, chosen, named="real" if from_runs else None):
            typer.echo(f"{name:<24} {told}")
        return
    stale = 0
    for name in chosen:
        if not gallery.file_of(name, folder).is_file():
            typer.echo(f"{name:<24} not there yet: {gallery.missing(name)}")
            continue
        changed = gallery.differing(name, folder)
        stale += bool(changed)
        typer.echo(f"{name:<24} {'as rebuilt, byte for byte' if not changed else 'differs: ' + ', '.join(changed)}")
    if stale and (tools := gallery.other_tools(folder)):
        typer.echo(f"{stale} differ, but so do the tools: {'; '.join(tools)}. Equal bytes need equal tools.")
    raise typer.Exit(1 if stale else 0)
