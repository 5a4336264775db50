"""The doctor: every look ends in time and in a line, and what is not there says how to get it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import huggingface_hub
import pytest
import torch

from pcclab import doctor, runs


def look(title: str) -> doctor.Finding:
    """One look of the doctor's."""
    return doctor._bounded(title, getattr(doctor, f"_{title}"), doctor.PATIENCE)


def test_every_look_is_a_line_and_each_lack_has_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    found = {finding.title: finding for finding in doctor.examine()}
    assert list(found) == [
        *("pcclab", "python", "torch", "gpu", "bitsandbytes", "kernels", "jupyterlab", "encoder"),
        *("checkout", "disk", "hub", "data"),
    ]
    for finding in found.values():
        assert "\n" not in finding.told
        assert bool(finding.mend) == (finding.mark != "ok")
    for title in ("pcclab", "python", "torch", "bitsandbytes", "kernels", "jupyterlab", "encoder", "checkout", "disk"):
        assert found[title].mark == "ok", found[title]
    assert sys.executable in found["python"].told
    assert "NF4 forwards and backwards" in found["bitsandbytes"].told
    assert "python3" in found["kernels"].told
    assert (found["hub"].mark, found["hub"].told) == ("not usable", "switched off by HF_HUB_OFFLINE")
    assert found["data"].mark == "missing" and "./lab data fetch" in found["data"].mend


def test_continuous_integration_finds_the_python_in_what_the_doctor_prints(checkout: Path) -> None:
    (line,) = [line for line in (checkout / ".ci" / "run").read_text().splitlines() if line.startswith("python=")]
    program = line.removeprefix("python=$(./lab doctor | ").removesuffix(")")
    told = f"pcclab       ok          1 in /a\npython       ok          3.12.1 at {sys.executable}\ntorch ok 2 at x\n"
    found = subprocess.run(["sh", "-c", program], input=told, capture_output=True, text=True, check=True).stdout
    assert found.strip() == sys.executable


def test_a_look_that_hangs_is_left_behind() -> None:
    until = threading.Event()
    began = time.perf_counter()
    found = doctor._bounded("disk", lambda: str(until.wait(60)), 0.2)
    assert time.perf_counter() - began < 5
    until.set()
    assert (found.mark, found.told) == ("not usable", "no answer within 0.2 seconds")


@contextmanager
def serving(status: int) -> Iterator[str]:
    """A hub that answers with `status`."""

    class Answer(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(status)
            self.end_headers()

        def log_message(self, *told: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def silent() -> Iterator[str]:
    """A hub that takes a call and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], doctor.Finding]:
    monkeypatch.setattr(doctor, "HUB_PATIENCE", 1.0)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    huggingface_hub.close_session()  # one made offline would stay so

    def examine(address: str) -> doctor.Finding:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
        return look("hub")

    yield examine
    huggingface_hub.close_session()


def test_a_hub_that_answers_is_ok(hub: Callable[[str], doctor.Finding]) -> None:
    with serving(200) as address:
        found = hub(address)
    assert found.mark == "ok" and found.told.startswith(f"{address} answers in 0.")


def test_a_hub_that_is_broken_silent_or_not_there_is_told_in_time(hub: Callable[[str], doctor.Finding]) -> None:
    with serving(503) as address:
        assert hub(address).told == f"{address} answers 503"
    with silent() as address:
        began = time.perf_counter()
        found = hub(address)
        assert time.perf_counter() - began < 5
        assert "does not answer: ReadTimeout" in found.told
    found = hub(address)  # nobody listens there any more
    assert (found.mark, found.told) == ("not usable", f"{address} does not answer: ConnectError")
    assert "--source hub" in found.mend


def test_a_cpu_build_beside_a_driver_is_told_apart_from_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/nvidia-smi")
    assert look("gpu").told == "an NVIDIA driver is here, torch is a CPU build"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert look("gpu").mark == "not usable"
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(doctor.os.path, "exists", lambda path: False)
    assert look("gpu").mark == "missing"


@pytest.mark.gpu
def test_a_gpu_that_works_is_named() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU here")
    assert look("gpu").mark == "ok"
    assert next(iter(doctor.gpus().values())) in look("gpu").told


def test_gpus_carry_the_numbers_of_cuda_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"card {index}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert doctor.gpus() == {"0": "card 0", "1": "card 1"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, 5")
    assert doctor.gpus() == {"3": "card 0", "5": "card 1"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert doctor.gpus() == {}


def test_a_kernel_of_another_environment_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = tmp_path / "kernels" / "python3"
    planted.mkdir(parents=True)
    (planted / "kernel.json").write_text(
        '{"argv": ["/elsewhere/bin/python"], "display_name": "x", "language": "python"}'
    )
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    found = look("kernels")
    assert found.told == "python3 starts /elsewhere/bin/python, another environment"
    assert found.mend == f"remove {planted}"


def test_a_full_disk_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "NEEDS_BYTES", 2**70)
    assert look("disk").mark == "not usable"


@pytest.mark.real_data
def test_data_are_counted_and_what_is_wrong_is_named(
    senteval: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PCCLAB_DATA", str(senteval))
    found = look("data")
    assert found.mark == "ok"
    assert "sts12 test 3,108" in found.told and "stsb dev 1,500" in found.told
    (tmp_path / "STS").mkdir()
    monkeypatch.setenv("PCCLAB_DATA", str(tmp_path))
    found = look("data")
    assert found.mark == "not usable" and "sts12 test" in found.told
