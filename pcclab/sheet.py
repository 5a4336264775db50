"""The sheet `run.json` of one run: its state, who works on it, and what it ran with.

The state comes from here and from whether the process lives, never from an output notebook: a kernel that was killed
leaves a notebook whose every cell says it completed.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

from pcclab import files, records

State = Literal["new", "running", "finished", "failed", "interrupted"]
NAME = "run.json"
BUSY = 3
"""Exit code of a command whose run belongs to another process: later it may not."""
OTHER_HOST_SECONDS = 3600.0
_TRIES = 4


def read(folder: Path) -> dict[str, Any]:
    """What the sheet says; empty where there is none or where it is damaged."""
    try:
        sheet = json.loads((folder / NAME).read_text(encoding="utf8"))
    except (FileNotFoundError, ValueError):
        return {}
    if not isinstance(sheet, dict) or sheet.get("state") not in get_args(State):
        return {}
    whole = all(isinstance(sheet.get(part, {}), dict) for part in ("attempt", "process", "provenance", "vault"))
    return sheet if whole else {}


def state(folder: Path) -> State:
    """The run's state; a run whose process is gone was interrupted, and one without its result is not finished."""
    sheet = read(folder)
    told: State = sheet.get("state", "new")
    if told == "finished" and not (folder / "result.json").is_file():
        return "interrupted"
    if told != "running":
        return told
    lives = records.alive(sheet.get("process", {}))
    if lives is None:  # on another host: believed as long as it writes
        written = max(path.stat().st_mtime for path in folder.glob("*.json*"))
        lives = time.time() - written < OTHER_HOST_SECONDS
    return "running" if lives else "interrupted"


def claim(folder: Path, head: Mapping[str, Any], *, needs_bytes: int) -> bool:
    """Take the run for this process; False where it is finished and there is nothing to do.

    A damaged sheet is set aside under another name, and that is said. With the environment variable PCCLAB_AGAIN (a
    time) whatever began before that time is set aside whole, so that the run starts from nothing.

    Args:
        folder: the run's folder; made here.
        head: what the sheet opens with: notebook, id, seed and source.
        needs_bytes: free disk space the run needs.

    Raises: OSError when the disk has less free, or when another live process has the run.
    """
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(_lock(folder)):
        now, sheet, me = state(folder), read(folder), records.process()
        owner = sheet.get("process", {})
        if now == "running" and (owner.get("host"), owner.get("pid")) != (me["host"], me["pid"]):
            raise BlockingIOError(
                errno.EAGAIN,
                f"run {folder.name} is at work in process {owner.get('pid')} on {owner.get('host')}: "
                "wait for it, end that process, or change a parameter",
            )
        if sheet and float(os.environ.get("PCCLAB_AGAIN") or 0) > float(sheet.get("began", 0)):
            set_aside(folder)
            now, sheet = "new", {}
            folder.mkdir()
        if now == "finished":
            return False
        free = shutil.disk_usage(folder).free
        if free < needs_bytes:
            raise OSError(
                errno.ENOSPC,
                f"run {folder.name} needs {needs_bytes / 2**20:,.0f} MiB and {folder} has {free / 2**20:,.0f} MiB: "
                "free space, or set PCCLAB_ROOT to a checkout on a larger disk",
            )
        if not sheet and (folder / NAME).exists():
            aside = folder / f"run.damaged-{time.time_ns()}.json"
            os.replace(folder / NAME, aside)
            print(f"run {folder.name}: damaged {NAME} set aside as {aside.name}; the run begins anew", flush=True)
        attempt = {"number": int(sheet.get("attempt", {}).get("number", 0)) + 1, "began": time.time()}
        began = sheet.get("began") or time.time()
        old = {"provenance": sheet.get("provenance", {}), **{k: sheet[k] for k in ("vault",) if k in sheet}}
        _write(folder, {**head, "state": "running", "began": began, "attempt": attempt, "process": me, **old})
    return True


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Hold a run from before its kernel starts until what runs it is done; the hold goes with its process.

    Raises: BlockingIOError where another process holds it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _hold(folder).open("a") as handle:
        for attempt in range(_TRIES):
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt == _TRIES - 1:
                    told = f"run {folder.name} is started by another process already: wait for it or end it"
                    raise BlockingIOError(errno.EAGAIN, told) from None
                time.sleep(0.05)  # one that only asks (`held`) is gone by then
        yield


def held(folder: Path) -> bool:
    """Whether a process of this machine, or of one that shares the disk, holds the run."""
    try:
        with _hold(folder).open() as handle:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def update(folder: Path, **changes: Any) -> None:
    """Change entries of the sheet; a mapping is merged into the one that is there, at every depth."""
    with _locked(_lock(folder)):
        _write(folder, _merged(read(folder), changes))


def enter(folder: Path, part: str, key: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Put an entry into a part of the sheet where there is none of this key, and give the one that is there then.

    Two processes that ask at once get the same: the first one's.
    """
    with _locked(_lock(folder)):
        sheet = read(folder)
        there = sheet.get(part, {})
        if key not in there:
            _write(folder, {**sheet, part: {**there, key: entry}})
        return dict(read(folder)[part][key])


def close(folder: Path, state: State, **changes: Any) -> None:
    """Leave the run in a final state, with the time and memory this attempt took."""
    began = float(read(folder).get("attempt", {}).get("began", time.time()))
    ended = {"ended": time.time(), "wall_seconds": round(time.time() - began, 3)}
    update(folder, state=state, attempt=ended, provenance=records.device(), **changes)


def metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines of `metrics.jsonl` in the order of their steps; of a step logged again the last one counts."""
    path = folder / "metrics.jsonl"
    steps: dict[int, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf8", errors="replace").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # a line torn by a kill; its step is logged again by the resumed run
        if isinstance(entry, dict) and isinstance(entry.get("step"), int):
            steps[entry["step"]] = {**steps.get(entry["step"], {}), **entry}
    return [steps[step] for step in sorted(steps)]


def set_aside(folder: Path) -> None:
    """Keep what there is of a run as `<id>.previous`, instead of what was kept there before."""
    if folder.is_dir():
        previous = folder.with_name(f"{folder.name}.previous")
        shutil.rmtree(previous, ignore_errors=True)
        os.replace(folder, previous)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn "no space left" into a sentence that names the place; what was there before is still whole."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        message = f"disk full while writing {folder}: what was there is whole; make room and run it again"
        raise OSError(error.errno, message) from error


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return new
    return {**old, **{name: _merged(old.get(name), value) for name, value in new.items()}}


def _write(folder: Path, sheet: Mapping[str, Any]) -> None:
    with writing(folder):
        files.write_json(folder / NAME, records.plain(sheet))


def _lock(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.lock"


def _hold(folder: Path) -> Path:
    return folder.parent / f".{folder.name}.held"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock goes with its process."""
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
