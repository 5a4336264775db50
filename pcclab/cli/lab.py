"""Commands about the lab itself: the first five minutes, the machine, the tests."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from pcclab.cli.app import app


@app.command()
def quickstart(
    again: Annotated[bool, typer.Option("--again", help="Run anew what is finished.")] = False,
) -> None:
    """Run notebooks 01 to 03 on embedded data with a real small encoder: a table, two ceilings, figures."""
    from pcclab import quickstart as first

    first.main(again=again)


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
