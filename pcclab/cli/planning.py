"""The command that says what a training will need, before anything is loaded."""

from __future__ import annotations

from typing import Annotated

import typer

from pcclab.cli.app import Overrides, app


@app.command()
def plan(
    place: Annotated[str, typer.Argument(help="02 or 03, or the path of a parameter file of theirs.")],
    set_: Annotated[
        str, typer.Option("--set", metavar="SET", help="smoke, real, paper_..., or the path of a parameter file.")
    ] = "smoke",
    parameters: Overrides = None,
    card: Annotated[
        str | None, typer.Option(help="A card such as a100-80 or h100, or a size such as 24GB.", show_default=False)
    ] = None,
    memory: Annotated[float | None, typer.Option(help="The card's memory in GiB instead.", show_default=False)] = None,
    cards: Annotated[
        int | None, typer.Option(help="How many cards share a batch; PCCLAB_PROCESSES otherwise.", show_default=False)
    ] = None,
    tokens: Annotated[
        float | None, typer.Option(help="Mean tokens of a sentence instead of counted ones.", show_default=False)
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="TFLOP/s of one card instead of a measured run's.", show_default=False)
    ] = None,
) -> None:
    """Weights, memory, steps and time of a training, from its config alone; refuses what cannot fit, says what does."""
    from pcclab import forecast

    chosen = forecast.planned(
        place, set_, parameters or [], card=card, memory=memory, cards=cards, tokens=tokens, rate=rate
    )
    typer.echo(forecast.of_plan(chosen))
    if not chosen.fits:
        raise ValueError(forecast.of_refusal(chosen))
