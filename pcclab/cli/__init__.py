"""The command `pcclab`: each subcommand checks its input first, then does one thing.

Exit codes: 0 done, 1 a notebook or a test failed, 2 bad input, 3 another process has the run, 130 stopped by hand.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from types import FrameType
from typing import Any

import typer

# The order of the imports is the order of the commands in the help.
from pcclab.cli import lab, running, planning, sweeping, collecting, judging, printing, corpora  # isort: skip
from pcclab.cli.app import app
from pcclab.sheet import BUSY

__all__ = ["app", "collecting", "corpora", "judging", "lab", "main", "planning", "printing", "running", "sweeping"]


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
        sys.exit(1 if isinstance(error, RunFailed) else BUSY if isinstance(error, BlockingIOError) else 2)
