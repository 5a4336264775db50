"""Writing a file so that a reader sees the old one or the new one, never half of either."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMPLETE = "COMPLETE"
"""Name of the empty file that closes a folder: without it the folder was never finished."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on a clean exit it is synced and renamed over `path`.

    On an error (a full disk among them) the temporary file is removed and `path` is what it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        sync(temporary)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write UTF-8 text atomically."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf8", newline="\n")


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write JSON atomically, keys in the given order; NaN is refused because no other reader accepts it."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder that becomes `path`, closed by a COMPLETE marker, on a clean exit."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    try:
        yield temporary
        close_folder(temporary)
        os.chmod(temporary, 0o777 & ~_umask())
        if path.exists():
            # A folder cannot be renamed over a full one: step the old one aside first.
            aside = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.old."))
            os.replace(path, aside / "old")
            os.replace(temporary, path)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            os.replace(temporary, path)
        sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def close_folder(path: Path) -> None:
    """Sync every file of a folder, then mark it COMPLETE."""
    for file in sorted(path.rglob("*")):
        if file.is_file():
            sync(file)
    marker = path / COMPLETE
    marker.touch()
    sync(marker)
    sync(path)


def is_complete(path: Path) -> bool:
    """Whether a folder was finished by `close_folder` or `replacing_folder`."""
    return (path / COMPLETE).is_file()


def sync(path: Path) -> None:
    """Flush a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
