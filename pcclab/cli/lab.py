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
    """Say what this machine offers: Python, torch, GPU, kernels, JupyterLab, disk, hub and data; it never fails."""
    from pcclab import doctor as examine

    colours = {"ok": typer.colors.GREEN, "missing": typer.colors.YELLOW, "not usable": typer.colors.RED}
    found = []
    for finding in examine.examine():
        found.append(finding.mark)
        mark = typer.style(f"{finding.mark:<10}", fg=colours[finding.mark])
        typer.echo(f"{finding.title:<12} {mark}  {finding.told}")
        if finding.mend:
            typer.echo(f"{'':<12} {'mend':>10}: {finding.mend}")
    typer.echo(", ".join(f"{found.count(mark)} {mark}" for mark in colours if mark in found))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def jupyter(context: typer.Context) -> None:
    """Open JupyterLab on this checkout; arguments go to it, such as --no-browser, --port 8890 or --allow-root."""
    from pcclab import runs

    folder = runs.root()
    if not (folder / "notebooks").is_dir():
        raise FileNotFoundError(f"{folder} has no notebooks: call from a checkout, or set PCCLAB_ROOT to one")
    os.environ["PCCLAB_ROOT"] = str(
        folder
    )  # a notebook moved elsewhere still finds this checkout's parameters and runs
    os.chdir(folder)
    os.execv(
        sys.executable, [sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", *context.args]
    )


@app.command()
def kernels(
    list_: Annotated[bool, typer.Option("--list", help="Only list this environment's kernels of the lab.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove them.")] = False,
) -> None:
    """Install a Jupyter kernel for each GPU, which sees that GPU alone, into this environment; without a GPU one."""
    from pcclab import doctor as examine
    from pcclab import kernels as offered

    if list_ and remove:
        raise ValueError("--list and --remove are two things: give one of them")
    if remove:
        typer.echo(f"removed: {', '.join(offered.remove()) or 'none, there was none'}")
        return
    if not list_:
        offered.install(examine.gpus())
    found = offered.installed()
    for name, told in found.items():
        typer.echo(f"{name:<14} {told['display_name']}  (CUDA_VISIBLE_DEVICES={told['env']['CUDA_VISIBLE_DEVICES']!r})")
    if found:
        first = next(iter(found))
        typer.echo(
            f"in {offered.folder()}; pcclab run 01 -k {first}, papermill ... -k {first}, or JupyterLab's launcher"
        )
    else:
        typer.echo(f"none in {offered.folder()}: ./lab kernels installs them")


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
