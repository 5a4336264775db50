"""Progress of long work: a bar where somebody looks, one line every 30 seconds where a log is kept."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

LOG_SECONDS = 30.0


def interactive() -> bool:
    """Whether a moving bar would be seen: a terminal, or a notebook that papermill does not run in batch."""
    if os.environ.get("PCCLAB_BATCH") or _under_papermill():
        return False
    shell = sys.modules.get("IPython")
    kernel = shell.get_ipython() if shell is not None else None
    return (kernel is not None and hasattr(kernel, "kernel")) or sys.stderr.isatty()


class Progress:
    """Counts units of work. In a notebook or a terminal it draws a bar; elsewhere it logs a line per 30 s.

    Args:
        title: what is being counted, as the first word of every line; None for silence.
        total: how many units there are.
        unit: plural noun of one unit, such as "sentences" or "steps".

    Work under two seconds shows no bar, work under 30 seconds writes no line.
    """

    def __init__(self, title: str | None, total: int, unit: str, *, write: Callable[[str], None] | None = None) -> None:
        self.title, self.total, self.unit, self.done = title, total, unit, 0
        self._write = write or _log
        self._began = self._told = time.monotonic()
        self._bar: Any = None
        self._note = ""

    def __enter__(self) -> Progress:
        if self.title is not None and interactive():
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.total, desc=self.title, unit=" " + self.unit, leave=False, delay=2.0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        elif self._told != self._began and kind is None:
            self._write(self.line())

    def advance(self, units: int = 1, note: str = "") -> None:
        """Add finished units; `note` (a loss, a score) is shown behind the count."""
        self.done += units
        self._note = note or self._note
        now = time.monotonic()
        if self._bar is not None:
            self._bar.update(units)
            if note:
                self._bar.set_postfix_str(note)
        elif self.title is not None and now - self._told >= LOG_SECONDS:
            self._told = now
            self._write(self.line())

    def line(self) -> str:
        """One log line: how far, how fast, how much longer."""
        seconds = max(time.monotonic() - self._began, 1e-9)
        rate = self.done / seconds
        left = (self.total - self.done) / rate if rate else float("inf")
        done = f"{self.title}: {self.done:,}/{self.total:,} {self.unit}"
        return f"{done}, {rate:,.1f}/s, {left:,.0f} s left {self._note}".rstrip()


def _under_papermill() -> bool:
    """A kernel that papermill started cannot know it but by its parent's command line."""
    if "ipykernel" not in sys.modules:
        return False
    import psutil

    parent = psutil.Process().parent()
    try:
        return parent is not None and any("papermill" in part for part in parent.cmdline())
    except psutil.Error:
        return False


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
