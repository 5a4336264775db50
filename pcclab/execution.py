"""Cells run in a kernel of their own: over sockets in a private folder, and told as failed when the kernel dies.

papermill's own engine marks the cell during which a kernel died, and all behind it, as completed, and kernels that
start at the same time may take each other's TCP port.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import nbformat
from nbclient.exceptions import CellExecutionError, DeadKernelError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine
from papermill.exceptions import PapermillExecutionError
from papermill.log import logger
from traitlets.config import Config

if TYPE_CHECKING:
    from nbformat import NotebookNode

LONGEST = 107 - len("/kernel-ipc-5")
"""Letters of a folder in which a kernel's sockets can lie: the system allows 107 for the whole path."""


class BadParameters(click.ClickException, ValueError):
    """Parameters that the notebook's model refuses; papermill's command prints the sentence and exits with 2."""

    exit_code = 2


class Stopped(SystemExit):
    """papermill was told to end (SIGTERM): raised where it stood, so that the notebook says so."""


class CellEngine(NBClientEngine):  # type: ignore[misc]
    """papermill's engine with this module's client and kernels; `pcclab.engine.Engine` checks and calls it."""

    @classmethod
    def execute_notebook(
        cls, nb: NotebookNode, kernel_name: str, output_path: str | None = None, **options: Any
    ) -> NotebookNode:
        """Run the notebook; whatever breaks it leaves it saved, the failed cell marked and the later ones pending."""
        from papermill.execute import raise_for_execution_errors  # here: papermill may be half imported above

        try:
            with _heeding_sigterm():
                return super().execute_notebook(nb, kernel_name, output_path=output_path, **options)
        except BaseException:
            if output_path:  # papermill's head line and its mark above the cell, as for a cell that raised
                with contextlib.suppress(PapermillExecutionError, OSError):
                    raise_for_execution_errors(nb, output_path)
            raise

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        *,
        start_timeout: int = 60,
        execution_timeout: int | None = None,
        input_path: str | None = None,
        **options: Any,
    ) -> NotebookNode:
        """Start a kernel, run the cells, end the kernel."""
        with _folder() as folder:
            sockets = Config(ConnectionFileMixin={"transport": "ipc", "connection_file": f"{folder}/kernel.json"})
            client = Client(
                nb_man, kernel_name=kernel_name, startup_timeout=start_timeout, timeout=execution_timeout, log=logger,
                config=sockets, **options,
            )  # fmt: skip
            try:
                return client.execute()
            except BaseException as error:
                if not any(cell.metadata.papermill.get("start_time") for cell in nb_man.nb.cells):
                    first = next((cell for cell in nb_man.nb.cells if cell.cell_type == "code"), None)
                    fail(nb_man, first, f"no kernel {kernel_name!r} started, no cell was run: {_words(error)}")
                raise


class Client(PapermillNotebookClient):  # type: ignore[misc]
    """papermill's client, which tells a cell that was cut off from one that came to its end."""

    def execute_cell(self, cell: NotebookNode, cell_index: int, **options: Any) -> Any:
        """One cell; what ends it from outside is written into it before papermill calls it completed."""
        try:
            return super().execute_cell(cell, cell_index, **options)
        except CellExecutionError:  # the cell's own error: papermill tells it
            raise
        except DeadKernelError:
            reason = f"the kernel died{_cause(self.km)}"
            fail(self.nb_man, cell, reason, name="DeadKernelError")
            raise DeadKernelError(reason) from None
        except BaseException as error:
            fail(self.nb_man, cell, _words(error), name=type(error).__name__)
            raise


def fail(nb_man: Any, cell: NotebookNode | None, reason: str, *, name: str = "KernelError") -> None:
    """Mark a cell as failed, the reason behind whatever it had printed; cells after it stay pending."""
    if cell is None:
        return
    told = [f"\x1b[31m{name}\x1b[0m: {reason}"]
    cell.outputs.append(nbformat.v4.new_output("error", ename=name, evalue=reason, traceback=told))
    nb_man.cell_exception(cell)


def _cause(manager: Any) -> str:
    """How the kernel's process ended, and what that most often means."""
    process = getattr(getattr(manager, "provisioner", None), "process", None)
    code = process.poll() if process is not None else None
    if code is None:
        return ""
    if code >= 0:
        return f" (it exited with {code})"
    how = f" (killed by {signal.Signals(-code).name})"
    memory = ", most often for want of memory: lower micro_tokens or batch_size"
    return how + (memory if -code == signal.SIGKILL else "")


def _words(error: BaseException) -> str:
    if isinstance(error, Stopped | KeyboardInterrupt):
        return "stopped from outside"
    return f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for one kernel's sockets that no other user can enter."""
    place = None if len(tempfile.gettempdir()) + len("/pcclab-12345678") <= LONGEST else "/tmp"
    with tempfile.TemporaryDirectory(prefix="pcclab-", dir=place, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@contextlib.contextmanager
def _heeding_sigterm() -> Iterator[None]:
    """A SIGTERM ends the cell, the kernel and the notebook in this order instead of papermill alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        raise Stopped(128 + signum)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
