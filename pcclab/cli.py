"""The command `pcclab`: each subcommand checks its input first, then does one thing.

Exit codes: 0 done, 1 a notebook or a test failed, 2 bad input, 130 stopped by hand.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from types import FrameType
from typing import Annotated, Any

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


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["PCCLAB_DEBUG"] = "1"


@app.command()
def quickstart(
    again: Annotated[bool, typer.Option("--again", help="Run anew what is finished.")] = False,
) -> None:
    """Run notebooks 01 to 03 on embedded data with a real small encoder: a table, two ceilings, figures."""
    from pcclab import quickstart as first

    first.main(again=again)


@app.command()
def run(
    notebook: Annotated[str, typer.Argument(help="Name of a notebook, or its beginning, such as 03.")],
    set_: Annotated[
        str, typer.Option("--set", metavar="SET", help="smoke, real or paper, or the path of a parameter file.")
    ] = "smoke",
    parameters: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Another value; repeatable.")
    ] = None,
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
    parameters: Annotated[
        list[str] | None, typer.Option("-p", "--parameter", metavar="NAME=VALUE", help="Another value; repeatable.")
    ] = None,
) -> None:
    """Train every pair loss on the same data and budget, a row a training in a CSV; goes on where it was stopped."""
    from pcclab import report, runs
    from pcclab.parameters import load_file, parameter_file, read_overrides

    name = "04_ablations"
    path = parameter_file(runs.root(), name, set_)
    given = {**read_overrides(name, parameters or []), **({"losses": list(losses)} if losses else {})}
    typer.echo(report.of_race(load_file(name, path, given)))


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


@app.command()
def doctor() -> None:
    """Say what this machine offers: Python, torch, GPU, kernels, disk and data."""
    from pcclab import doctor as examine

    for title, found in examine.examine():
        typer.echo(f"{title:<14} {found}")


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def test(context: typer.Context) -> None:
    """Run the test suite, shared out over the cores; with arguments, which go to pytest, in one process."""
    import importlib.util
    import subprocess

    from pcclab import runs

    if importlib.util.find_spec("pytest") is None:
        raise ValueError("pytest is not installed: run ./lab test in the checkout, or pip install -e '.[dev]'")
    folder = runs.root()
    if not (folder / "tests").is_dir():
        raise FileNotFoundError(f"{folder} has no tests: run from a checkout, or set PCCLAB_ROOT to one")
    # A worker for each core, of one thread: most tests wait for one core, another process or a kernel.
    shared = [] if context.args else ["-n", "logical", "--dist", "worksteal"]
    threads = {"OMP_NUM_THREADS": "1", **os.environ} if shared else dict(os.environ)
    command = [sys.executable, "-m", "pytest", *(context.args or shared)]
    raise typer.Exit(subprocess.run(command, cwd=folder, env=threads, check=False).returncode)


def main() -> None:
    """Run the command; bad input becomes one sentence and exit code 2."""
    from pcclab.batch import RunFailed

    def stop(signum: int, frame: FrameType | None) -> Any:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    warnings.formatwarning = lambda message, *rest, **more: f"pcclab: note: {message}\n"
    try:
        app(prog_name="pcclab")
    except (ValueError, OSError, RunFailed) as error:
        if os.environ.get("PCCLAB_DEBUG"):
            raise
        text = f"{error.strerror or error}" if isinstance(error, OSError) and not error.filename else str(error)
        typer.echo(f"pcclab: {text}\n(pcclab --debug ... shows the traceback)", err=True)
        sys.exit(1 if isinstance(error, RunFailed) else 2)
