"""Runs that go on although their launcher was killed, and the slots they still fill.

A run outlives its launcher, so that a lost terminal costs no work. The next launcher would otherwise begin others on
the same GPU.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import psutil

from pcclab import records
from pcclab.sweep.slots import Slot

MARK = "PCCLAB_SLOT"
"""In the environment of a run and of all it starts: its slot and its launcher."""


def mark(slot: Slot) -> str:
    """What tells later that this process began a run in a slot."""
    return json.dumps({"number": slot.number, "gpu": slot.gpu, **records.process()})


def filled(slots: Sequence[Slot]) -> dict[int, list[psutil.Process]]:
    """The slots that runs of launchers which are gone still fill.

    Args:
        slots: of this machine.

    Returns:
        Number of the slot -> processes that are at work there.
    """
    found: dict[str, list[psutil.Process]] = {}
    for process in psutil.process_iter():
        try:
            told = process.environ().get(MARK)
        except (psutil.Error, OSError):  # another user's, or just ended
            continue
        if told and process.pid != os.getpid():
            found.setdefault(told, []).append(process)
    taken: dict[int, list[psutil.Process]] = {}
    for told, processes in found.items():
        left = _launcher(told)
        like = [slot.number for slot in slots if left and slot.gpu == left["gpu"] and slot.number not in taken]
        if left and like:
            taken[left["number"] if left["number"] in like else like[0]] = processes
    return taken


def at_work(processes: Sequence[psutil.Process]) -> bool:
    """Whether one of the processes still lives."""
    return any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in processes)


def _launcher(told: str) -> dict[str, Any] | None:
    """What a mark says, where it is of a launcher of this machine that is gone."""
    try:
        left = json.loads(told)
        return left if records.alive(left) is False and {"number", "gpu"} <= set(left) else None
    except (ValueError, AttributeError):
        return None
