"""A slow view behind a button: run in a thread, shown on the way, stopped by hand."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from typing import Any

from matplotlib.figure import Figure

from pcclab.widgets.controls import SHOW
from pcclab.widgets.exploring import Explorer, Shown, in_a_notebook, shown

BETWEEN_SECONDS = 0.4
"""Pictures on the way come no closer: drawing must not be what the time goes into."""

Show = Callable[[Callable[[], Figure]], bool]
"""What a slow view is handed: it takes how to draw the state so far, and says whether to go on."""

_working = threading.Lock()
"""One at a time in a kernel: two trainings would halve each other's speed and share torch's random numbers."""


def is_slow(view: Callable[..., Any]) -> bool:
    """Whether a view asks for `show`, and so stands behind a button."""
    return SHOW in inspect.signature(view).parameters


class Live(Explorer):
    """A slow view: in batch it runs once to its end, in a notebook when Run is pressed, until it ends or Stop is."""

    def draw(self) -> Shown:
        """In batch the finished picture; in a notebook nothing before Run is pressed."""
        if in_a_notebook():
            return Shown(said="Run works with the values above, and takes its time.")
        return shown(self.view(show=lambda picture: True, **self.moved, **self._fixed))

    def start(self, *_: Any) -> None:
        """Run the view with the values as they are now, in a thread of its own."""
        if not _working.acquire(blocking=False):
            self._complain(RuntimeError("another view of this notebook is at work: stop it first"))
            return
        self._asked, self._told = threading.Event(), 0.0
        self._run.disabled, self._stop.disabled = True, False
        values = dict(self.moved)
        self.thread = threading.Thread(target=self._work, args=(values,), daemon=True, name=self.view.__name__)
        self.thread.start()

    def stop(self, *_: Any) -> None:
        """Ask it to end after the step it is at."""
        self._asked.set()
        self._stop.disabled = True

    def _work(self, values: dict[str, Any]) -> None:
        try:
            self.now = shown(self.view(show=self._show, **values, **self._fixed))
            self._tell(self.now)
        except Exception as error:
            self._complain(error)
        finally:
            _working.release()
            self._run.disabled, self._stop.disabled = False, True

    def _show(self, picture: Callable[[], Figure]) -> bool:
        if time.monotonic() - self._told >= BETWEEN_SECONDS:
            self._tell(shown(picture()))
            self._told = time.monotonic()
        return not self._asked.is_set()

    def _move(self, name: str, value: Any) -> None:
        self.moved[name] = value  # counts from the next Run on

    def _buttons(self) -> list[Any]:
        import ipywidgets

        self._run = ipywidgets.Button(description="Run", button_style="primary", icon="play")
        self._stop = ipywidgets.Button(description="Stop", icon="stop", disabled=True)
        self._run.on_click(self.start)
        self._stop.on_click(self.stop)
        for button in (self._run, self._stop):
            button.add_class(f"pcclab-{button.description.lower()}")
        return [self._run, self._stop, *super()._buttons()]
