"""A slow view behind a button: it runs in a thread, is shown on the way, and stops when asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from matplotlib.figure import Figure

from pcclab import widgets
from pcclab.widgets import live
from pcclab.widgets.controls import linear

gate = threading.Event()


def slow(*, show: live.Show, steps: Annotated[int, linear(1, 1000)] = 3, fails: bool = False) -> Figure:
    """A view that counts."""
    done = 0

    def picture() -> Figure:
        figure = Figure(figsize=(1, 1))
        figure.set_label(f"{done} steps")
        return figure

    for _ in range(steps):
        done += 1
        gate.wait(10)
        if fails and done == 2:
            raise RuntimeError("step 2 broke")
        if not show(picture):
            break
    return picture()


@pytest.fixture
def in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "in_a_notebook", lambda: True)
    monkeypatch.setattr(live, "BETWEEN_SECONDS", 0.0)
    gate.set()


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so, ten seconds at most."""
    end = time.monotonic() + 10
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.01)


def buttons(view: Any) -> tuple[bool, bool]:
    """Whether Run and Stop can be pressed."""
    return not view._run.disabled, not view._stop.disabled


def test_in_batch_it_runs_to_its_end_at_once() -> None:
    gate.set()
    assert widgets.explore(slow, steps=4).now.said == "4 steps"
    with pytest.raises(RuntimeError, match="step 2 broke"):
        widgets.explore(slow, fails=True)


@pytest.mark.usefixtures("in_a_notebook")
def test_run_takes_the_moved_values_and_stop_ends_it_after_its_step() -> None:
    view: Any = widgets.explore(slow, steps=2)
    view.box  # noqa: B018
    assert view.now.png == b"" and buttons(view) == (True, False)
    view._run.click()
    view.thread.join(10)
    assert view.now.said == "2 steps" and buttons(view) == (True, False)
    view.controls["steps"].value = 1000
    assert view.now.said == "2 steps"  # nothing runs by itself
    gate.clear()
    view._run.click()
    assert buttons(view) == (False, True)
    gate.set()
    until(lambda: "steps" in view._said.value and "2 steps" not in view._said.value)
    view._stop.click()
    view.thread.join(10)
    steps = int(view.now.said.split()[0])
    assert 1 <= steps < 1000 and buttons(view) == (True, False)
    assert f"{steps} steps" in view._said.value
    assert view._picture.value == view.now.png != b""


@pytest.mark.usefixtures("in_a_notebook")
def test_a_fault_in_the_thread_is_shown_and_the_next_run_works() -> None:
    view: Any = widgets.explore(slow, steps=3, fails=True)
    view.box  # noqa: B018
    view._run.click()
    view.thread.join(10)
    assert "RuntimeError: step 2 broke" in view._fault.value and buttons(view) == (True, False)
    view.controls["fails"].value = False
    view._run.click()
    view.thread.join(10)
    assert view._fault.value == "" and view.now.said == "3 steps"


@pytest.mark.usefixtures("in_a_notebook")
def test_a_second_view_waits_for_the_first() -> None:
    first: Any = widgets.explore(slow, steps=1)
    second: Any = widgets.explore(slow, steps=1)
    for view in (first, second):
        view.box  # noqa: B018
    gate.clear()
    first._run.click()
    second._run.click()
    assert "another view of this notebook is at work" in second._fault.value
    assert buttons(second) == (True, False)
    gate.set()
    first.thread.join(10)
    second._run.click()
    second.thread.join(10)
    assert second.now.said == "1 steps" and second._fault.value == ""
