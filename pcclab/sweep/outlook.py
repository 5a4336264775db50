"""What a sweep would do, before it does anything."""

from __future__ import annotations

from collections.abc import Sequence

from pcclab.sweep import board
from pcclab.sweep.estimates import WORK, Estimate, Past
from pcclab.sweep.launching import done, wanted
from pcclab.sweep.plan import Sweep
from pcclab.sweep.slots import Slot


def rows(sweep: Sweep) -> list[board.Row]:
    """A row a run: what it changes, its state, and the time to expect."""
    past = Past(sweep.root)
    found = []
    for trial in sweep.trials:
        estimate = None if done(trial.run) else past.estimate(trial.run)
        changes = {name: board.spelled(value) for name, value in trial.changes.items()}
        expected = board.duration(estimate.seconds) if estimate is not None else ""
        found.append({"run": trial.run.id, **changes, "state": str(trial.run.state), "expected": expected})
    return found


def summary(sweep: Sweep, slots: Sequence[Slot]) -> str:
    """How many runs, what all have in common, what is run before them, and how long it takes on so many slots."""
    past = Past(sweep.root)
    left = [run for run in wanted(sweep) if not done(run)]
    before = [run for run in left if run not in sweep.runs]
    seeds, known = max(1, len(sweep.sheet.seeds)), len(sweep.trials)
    told = [f"{sweep.planned} runs of {sweep.notebook}: {sweep.planned // seeds} settings x {seeds} seed(s)"]
    if sweep.planned > known:
        told.append(f"{known} of them are known now; TPE proposes the next by their scores on clean dev")
    if sweep.sheet.values:
        told.append("all have " + ", ".join(f"{name}={board.spelled(v)}" for name, v in sweep.sheet.values.items()))
    told += [f"run before them: {run.name} ({run.state})" for run in before]
    found = {run.name: past.estimate(run) for run in left}
    known_ones = [estimate for estimate in found.values() if estimate is not None]
    if not left:
        told.append("all are finished: nothing to do")
    elif len(known_ones) < len(left):
        told.append(
            f"time: unknown for {len(left) - len(known_ones)} of the {len(left)} that are left: no finished run here "
            f"has their {', '.join(WORK)}; pcclab plan estimates a training"
        )
    else:
        told.append(_time(known_ones, sweep.planned - known, len(slots)))
    return "\n".join(told)


def _time(estimates: Sequence[Estimate], later: int, slots: int) -> str:
    each = [estimate.seconds for estimate in estimates]
    total = sum(each) + later * sum(each) / len(each)
    expected = max(total / slots, max(each))
    differs = sorted({name for estimate in estimates for name in estimate.differs})
    basis = f"from {max(estimate.runs for estimate in estimates)} finished run(s)"
    basis += f" that differ in {', '.join(differs)}" if differs else ""
    return (
        f"time: about {board.duration(expected)} for the {len(each) + later} that are left, on {slots} slot(s), and a "
        f"few seconds a run for its kernel; {basis}"
    )
