"""A training in two processes through a launcher: the result of one, its errors, and a kill it survives."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch.testing import assert_close

from pcclab import data, encoders, runs
from pcclab.data import Table
from pcclab.encoders.heads import SiameseHead
from pcclab.training import fit, launch
from pcclab.training.launch import LaunchFailed

SETTINGS: dict[str, Any] = {"batch_size": 16, "learning_rate": 1e-3, "max_steps": 4, "max_tokens": 64}
SETTINGS |= {"micro_tokens": 128, "keep_tokens": 0, "evaluate_every": 2}


def begin(seed: int) -> runs.Run:
    run = runs.spoken(f"02 smoke seed={seed}")
    run.begin()
    return run


def train(run: runs.Run, **settings: Any) -> tuple[Any, Any]:
    """A language model trained with Pearson on generated pairs; it has no dropout, so processes draw nothing."""
    encoder = encoders.load("tiny-llama", prompt="STH")
    pairs, dev = data.stage2_pairs(source="synthetic"), data.dev_pairs(source="synthetic")
    history = fit(encoder, pairs, "pearson", parameters={**SETTINGS, **settings}, run=run, dev=dev)
    return encoder, history


def test_two_processes_train_what_one_trains(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, told = train(begin(1))
    monkeypatch.setenv(launch.PROCESSES, "2")
    run = begin(2)
    together, history = train(run)
    for one, other in zip(alone.weights, together.weights, strict=True):
        assert_close(one, other, atol=2e-5, rtol=1e-4)
    assert history.best_step == told.best_step
    assert [line["loss"] for line in history.steps if "loss" in line] == pytest.approx(
        [line["loss"] for line in told.steps if "loss" in line], abs=1e-4
    )
    assert [line["step"] for line in run.metrics] == [line["step"] for line in history.steps]
    assert not (run.checkpoints / "job").exists()
    assert "training in 2 processes on cpu" in capsys.readouterr().out
    again, _ = train(run)  # finished: loaded, no process is started
    assert capsys.readouterr().out == ""
    assert again.fingerprint == together.fingerprint
    saved = encoders.load(run.checkpoints / "final")
    assert saved.fingerprint == together.fingerprint


ACCELERATE = [sys.executable, "-m", "accelerate.commands.launch", "--num_machines", "1", "--mixed_precision", "no"]
ACCELERATE += ["--dynamo_backend", "no", "--multi_gpu", "--num_processes", "2"]


def test_accelerates_launcher_trains_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It starts torchrun, and so processes on a CPU too, as long as it is told of several GPUs."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone, told = train(begin(1))
    monkeypatch.setenv(launch.LAUNCHER, shlex.join(ACCELERATE))
    together, history = train(begin(2))
    for one, other in zip(alone.weights, together.weights, strict=True):
        assert_close(one, other, atol=2e-5, rtol=1e-4)
    assert history.best_step == told.best_step
    assert "training by " in capfd.readouterr().out


@pytest.mark.slow
def test_two_machines_that_see_the_same_folder_train_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone, _ = train(begin(1))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    words += ["--master-addr", "127.0.0.1", "--master-port", str(port), "--node-rank"]
    run = begin(2)
    job, second = run.checkpoints / "job", list[subprocess.Popen[bytes]]()

    def other_machine() -> None:
        until = time.monotonic() + 60
        while not (job / launch.JOB).exists() and time.monotonic() < until:
            time.sleep(0.02)
        second.append(subprocess.Popen([*words, "1", "-m", "pcclab.training", str(job)]))

    watch = threading.Thread(target=other_machine)
    watch.start()
    monkeypatch.setenv(launch.LAUNCHER, shlex.join([*words, "0"]))
    together, _ = train(run)
    watch.join()
    assert second[0].wait(timeout=60) == 0
    for one, other in zip(alone.weights, together.weights, strict=True):
        assert_close(one, other, atol=2e-5, rtol=1e-4)


def test_a_launcher_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(launch.LAUNCHER, "no-such-launcher --nnodes 2")
    with pytest.raises(ValueError, match="PCCLAB_LAUNCHER begins with 'no-such-launcher', which cannot be run"):
        launch.start(tmp_path, processes=1, device="cpu")
    monkeypatch.setenv(launch.LAUNCHER, "srun 'one")
    with pytest.raises(ValueError, match="PCCLAB_LAUNCHER is .*No closing quotation, write it as a shell"):
        launch.own()


def kill_one(run: runs.Run, seen: list[int]) -> None:
    """End a process of the training without warning, once there is a checkpoint."""
    until = time.monotonic() + 120
    while time.monotonic() < until and not seen:
        if any(run.checkpoints.glob("checkpoint-*/COMPLETE")):
            for child in psutil.Process().children(recursive=True):
                try:
                    ours = child.cmdline()[-2:-1] == ["pcclab.training"] and child.environ().get("RANK") == "1"
                except psutil.Error:
                    continue
                if ours:
                    child.kill()
                    seen.append(child.pid)
        time.sleep(0.02)


@pytest.mark.slow
def test_a_killed_process_ends_the_training_which_then_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.PROCESSES, "2")
    longer = {"max_steps": 40, "checkpoint_seconds": 0.0, "evaluate_every": 0}
    whole, _ = train(begin(1), **longer)
    run, seen = begin(2), list[int]()
    watch = threading.Thread(target=kill_one, args=(run, seen))
    watch.start()
    began = time.monotonic()
    with pytest.raises(LaunchFailed, match="processes ended with|of the training broke"):
        train(run, **longer)
    watch.join()
    assert seen and time.monotonic() - began < 120
    resumed, history = train(run, **longer)
    assert 0 < history.resumed_from < 40
    for one, other in zip(whole.weights, resumed.weights, strict=True):
        assert_close(one, other, atol=2e-5, rtol=1e-4)


def test_a_processs_own_error_is_told(tmp_path: Path) -> None:
    pairs, settings = data.stage2_pairs(source="synthetic"), launch.FitSettings()
    launch.write(tmp_path, encoders.load("tiny"), pairs, "pearson", settings=settings, dev=None, options={}, head=None)
    file = tmp_path / "encoder" / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(LaunchFailed, match=r"process [01] of the training broke: ValueError: the weights of .* cannot"):
        launch.start(tmp_path, processes=2, device="cpu")


@pytest.mark.parametrize("told", ["0", "two", "-1", "1.5"])
def test_a_count_that_is_none_is_refused(told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.PROCESSES, told)
    with pytest.raises(ValueError, match=f"PCCLAB_PROCESSES is '{told}'"):
        launch.wanted()


def test_more_processes_than_gpus_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"PCCLAB_PROCESSES is 99 and there are {torch.cuda.device_count()} GPUs"):
        launch.start(tmp_path, processes=99, device="cuda")


def test_what_cannot_be_written_as_a_job_trains_in_one_process_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(launch.PROCESSES, "2")
    pairs = data.stage2_pairs(source="synthetic")
    with pytest.raises(ValueError, match="a loss of your own, teachers and watched tables train in one process"):
        fit(encoders.load("tiny"), pairs, lambda similarity: similarity.mean(), parameters=SETTINGS, run=begin(1))


TABLES = {
    "pairs": lambda: data.stage2_pairs(source="synthetic"),
    "triplets": lambda: data.nli_triplets(source="synthetic"),
    "sentences": lambda: data.sentences(source="synthetic"),
}


@pytest.mark.parametrize("kind", list(TABLES))
def test_a_job_reads_back_as_it_was_written(kind: str, tmp_path: Path) -> None:
    table: Table = TABLES[kind]()
    encoder = encoders.load("tiny-opt", prompt="EOL", adapter={"rank": 2}, quantization="nf4")
    head, settings = SiameseHead(encoder.dim, levels=(0, 1, 2)), launch.FitSettings(batch_size=8, warmup_share=0.1)
    launch.write(tmp_path, encoder, table, "info_nce", settings=settings, dev=TABLES["pairs"](),
                 options={"temperature": 0.1}, head=head)  # fmt: skip
    (again, same, loss), more = launch.read(tmp_path, "cpu")
    assert again.fingerprint == encoder.fingerprint and again.settings == encoder.settings
    assert same.fingerprint == table.fingerprint and same.provenance == table.provenance and loss == "info_nce"
    assert more["parameters"] == settings and more["options"] == {"temperature": 0.1}
    assert more["dev"].fingerprint == TABLES["pairs"]().fingerprint
    assert more["head"].fingerprint == head.fingerprint
