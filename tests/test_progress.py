"""Bars where somebody looks, rare lines elsewhere."""

from __future__ import annotations

import pytest

from pcclab import progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress.time, "monotonic", clock)
    monkeypatch.setenv("PCCLAB_BATCH", "1")
    return clock


def count(clock: Clock, *, seconds: float, steps: int = 100) -> list[str]:
    lines: list[str] = []
    with progress.Progress("training", steps, "steps", write=lines.append) as bar:
        for step in range(steps):
            clock.now += seconds / steps
            bar.advance(note=f"loss {step}")
    return lines


def test_short_work_writes_nothing(clock: Clock) -> None:
    assert count(clock, seconds=29) == []


def test_long_work_writes_a_line_about_every_half_minute_and_one_at_the_end(clock: Clock) -> None:
    lines = count(clock, seconds=100)
    assert len(lines) == 4
    assert lines[0] == "training: 30/100 steps, 1.0/s, 70 s left loss 29"
    assert lines[-1].startswith("training: 100/100 steps, 1.0/s, 0 s left")


def test_broken_work_writes_no_closing_line(clock: Clock) -> None:
    lines: list[str] = []

    def broken() -> None:
        with progress.Progress("training", 100, "steps", write=lines.append) as bar:
            clock.now += 31
            bar.advance()
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        broken()
    assert len(lines) == 1


def test_batch_is_not_interactive_and_a_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "_under_papermill", lambda: False)
    assert progress.interactive()
    monkeypatch.setenv("PCCLAB_BATCH", "1")
    assert not progress.interactive()


def test_no_progress_yet_has_no_end() -> None:
    assert "inf s left" in progress.Progress("encoding", 10, "texts").line()
