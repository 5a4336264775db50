"""The lab's Jupyter kernels: one for each GPU, which sees its GPU alone, so that two notebooks share none.

They lie in the environment they start, never in a home folder: another environment's notebooks do not see them.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PREFIX = "pcclab-"


def folder() -> Path:
    """Where this environment's kernels lie."""
    return Path(sys.prefix) / "share" / "jupyter" / "kernels"


def installed() -> dict[str, dict[str, Any]]:
    """The lab's kernels of this environment: name -> what its `kernel.json` holds."""
    files = sorted(folder().glob(f"{PREFIX}*/kernel.json"))
    return {file.parent.name: json.loads(file.read_text(encoding="utf8")) for file in files}


def install(gpus: Mapping[str, str]) -> list[str]:
    """Install one kernel for each GPU, or one for the CPU where there is none; those of GPUs that are gone are removed.

    Args:
        gpus: number, as CUDA_VISIBLE_DEVICES takes it -> name of the device; see `doctor.gpus`.

    Returns:
        The kernels' names, such as "pcclab-gpu-0".

    Raises:
        OSError: where the environment cannot be written.
    """
    from ipykernel import kernelspec

    wanted = {f"{PREFIX}gpu-{number}".lower(): (f"pcclab, GPU {number}", number) for number in gpus}
    wanted = wanted or {f"{PREFIX}cpu": ("pcclab, CPU", "")}
    try:
        remove(keep=wanted)
        for name, (title, number) in wanted.items():
            shutil.rmtree(folder() / name, ignore_errors=True)
            told = {"display_name": title, "env": {"CUDA_VISIBLE_DEVICES": number}}
            # without the option ipykernel warns in every notebook that the debugger may miss frozen modules
            kernelspec.write_kernel_spec(folder() / name, told, python_arguments=["-Xfrozen_modules=off"])
    except PermissionError as error:
        raise OSError(f"cannot write {error.filename}: use an environment of your own, such as ./lab makes") from None
    return list(wanted)


def remove(*, keep: Mapping[str, Any] | None = None) -> list[str]:
    """Remove the lab's kernels of this environment.

    Args:
        keep: names that stay.

    Returns:
        The names that are gone.
    """
    gone = [name for name in installed() if name not in (keep or {})]
    for name in gone:
        shutil.rmtree(folder() / name)
    return gone
