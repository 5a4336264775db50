"""What there is to say of runs: their states, how far they are, and why one failed; a row a run."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pcclab import parameters, records, sheet
from pcclab.parameters import MODELS
from pcclab.runs import Run
from pcclab.sweep.estimates import Past

Row = dict[str, str]
SEEN = 20


def row(run: Run, changes: Mapping[str, Any], past: Past) -> Row:
    """One run: what was changed, its state, step, time, the end to expect, the last score, memory, why it failed."""
    told, state = sheet.read(run.folder), str(run.state)
    attempt = told.get("attempt", {})
    if state in ("new", "interrupted", "failed") and sheet.held(run.folder):
        state = "starting"
    seconds = attempt.get("wall_seconds")
    left = ""
    if state == "running":
        seconds = time.time() - float(attempt.get("began", time.time()))
        left = _left(run, seconds, past)
    return {
        "run": run.name if not changes else run.id,
        **{name: spelled(value) for name, value in changes.items()},
        "state": state,
        "step": _step(run),
        "time": duration(seconds) if seconds is not None and state != "starting" else "",
        "left": left,
        "last": _last(run),
        "memory": _memory(told, state),
        "reason": _reason(told, state),
    }


def recent(root: Path, notebook: str | None = None, *, number: int = SEEN) -> list[tuple[Run, dict[str, Any]]]:
    """The runs of a checkout that were written to last, oldest first, and how each differs from the nearest set."""
    folders = [root / "runs" / name for name in ([notebook] if notebook else MODELS)]
    files = [file for folder in folders for file in folder.glob("*/run.json")]
    found: list[tuple[Run, dict[str, Any]]] = []
    for file in sorted(files, key=lambda file: file.stat().st_mtime, reverse=True):
        folder = file.parent
        name = folder.parent.name
        try:
            run = Run(name, parameters.load_recorded(name, folder / "parameters.yaml"), root)
            if run.folder != folder:
                continue  # of an older version, or set aside
            named, changes = parameters.nearest_set(root, name, run.parameters)
        except (ValueError, FileNotFoundError):
            continue
        found.append((run, {"made by": " ".join([name[:2], named, *changes])}))
        if len(found) == number:
            break
    return found[::-1]


def counts(rows: Iterable[Row]) -> str:
    """`3 finished, 2 running, 7 new`."""
    states = [row["state"] for row in rows]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))


def spelled(value: Any) -> str:
    """A value as a person writes it.

    >>> spelled(5e-05), spelled(["keep", "filter"]), spelled("")
    ('5e-05', 'keep,filter', "''")
    """
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "[]"
    return f"{value:g}" if isinstance(value, float) else str(value) or "''"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(8.4), duration(95), duration(7300)
    ('8 s', '1 m 35 s', '2 h 1 m')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} m {rest:02} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"


def _step(run: Run) -> str:
    steps = [line["step"] for line in run.metrics]
    total = getattr(run.parameters, "max_steps", -1)
    return "" if not steps else f"{steps[-1]}/{total}" if total > 0 else str(steps[-1])


def _left(run: Run, seconds: float, past: Past) -> str:
    estimate = past.estimate(run)
    if estimate is None:
        return ""
    rest = estimate.seconds - seconds
    return f"~{duration(rest)}" if rest > 0 else "late"


def _last(run: Run) -> str:
    """The last score on dev, else the last loss, else of a finished run the first figure of its result."""
    for name, word in (("dev_spearman", "dev"), ("loss", "loss")):
        values = [line[name] for line in run.metrics if name in line]
        if values:
            return f"{word} {values[-1]:.4g}" if isinstance(values[-1], int | float) else f"{word} {values[-1]}"
    try:
        first = next(_figures(run.result), None) if run.finished else None
    except ValueError:
        return ""
    return f"{first[0]} {first[1]:.4g}" if first else ""


def _figures(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _figures(value, f"{before}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield before + name, value


def _memory(told: Mapping[str, Any], state: str) -> str:
    import psutil

    known = told.get("provenance", {})
    peak, gpu = known.get("peak_memory_mib"), known.get("peak_gpu_memory_mib")
    process = told.get("process", {})
    if state == "running" and records.alive(process):
        with contextlib.suppress(psutil.Error):
            peak = psutil.Process(int(process["pid"])).memory_info().rss / 2**20
    parts = [f"{peak / 1024:.1f} GiB"] if peak else []
    return " + ".join([*parts, *([f"{gpu / 1024:.1f} GiB GPU"] if gpu else [])])


def _reason(told: Mapping[str, Any], state: str) -> str:
    if state == "interrupted":
        return str(told.get("error") or "its process is gone")
    return str(told.get("error", "")) if state == "failed" else ""
