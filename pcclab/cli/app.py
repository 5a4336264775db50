"""The commands' common ground: the application they hang on, and options that several share."""

from __future__ import annotations

import os
from typing import Annotated

import typer

app = typer.Typer(
    name="pcclab",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How far sentence embeddings climb on Semantic Textual Similarity, and what stops them.",
    epilog="Start with: pcclab quickstart. Real data: set PCCLAB_DATA to a SentEval folder, see pcclab data --help.",
)
data_app = typer.Typer(no_args_is_help=True, help="Fetch, check and show the corpora.")
app.add_typer(data_app, name="data")

Source = Annotated[
    str | None,
    typer.Option(
        help="synthetic, senteval (the folder in PCCLAB_DATA), hub, or a SentEval folder.", show_default=False
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Another value; repeatable.")
]


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["PCCLAB_DEBUG"] = "1"
