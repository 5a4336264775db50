"""Sweeps on a real Slurm cluster of one node, set up here and taken down again."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pcclab import sheet, sweep

sys.path.insert(0, str(Path(__file__).parent))
from _light import command, expected, finishes
from one_node import cluster, missing, queue

Swept = Callable[..., sweep.Sweep]
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def node() -> Iterator[dict[str, str]]:
    """The environment of a cluster of one node with two cores."""
    pytest.importorskip("submitit", reason="submitit is not installed: pip install -e '.[sweep]'")
    if reason := missing():
        pytest.skip(reason)
    with cluster() as environment:
        yield environment


@pytest.fixture
def around(node: dict[str, str], own_root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The node's environment with the root and package of this test."""
    return {**os.environ, "SLURM_CONF": node["SLURM_CONF"], "OMP_NUM_THREADS": "1"}


def hand_in(root: Path, around: dict[str, str], *options: str) -> str:
    """`pcclab sweep mine.yaml --slurm`; what it says."""
    arguments = command("sweep", "mine.yaml", "--slurm", "--slurm-option", "cpus_per_task=1", *options)
    done = subprocess.run(arguments, cwd=root, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(ready: Callable[[], object], what: str, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, what
        time.sleep(0.3)


def test_an_array_of_runs_one_preempted_resumes(
    light: Callable[..., None], swept: Swept, own_root: Path, around: dict[str, str]
) -> None:
    light()
    made = swept(notebook="01_ceiling", base="smoke", seeds=[0, 1, 2])
    assert "3 run(s) of 01_ceiling" in hand_in(own_root, around, "--slots", "2")
    assert "nothing to hand in, 3 run(s)" in hand_in(own_root, around), "what is queued is not handed in twice"
    victim = made.runs[0]
    until(lambda: victim.state == "running" and len(victim.metrics) >= 3, "the first run did not begin")
    number = queue(around)[-1].partition("_")[0]
    for signal in ("SIGTERM", "USR2"):  # as Slurm does when it takes the node away
        subprocess.run(["scancel", f"{number}_0", "--signal", signal], env=around, check=True)
    until(lambda: victim.state in ("interrupted", "failed"), "the run was not stopped")

    def all_done() -> bool:
        # A job that was put back waits for two minutes, unless it is told not to.
        subprocess.run(["scontrol", "update", f"JobId={number}_0", "StartTime=now"], env=around, capture_output=True)
        return all(run.finished for run in made.runs)

    until(all_done, "not all finished")
    assert [run.result for run in made.runs] == [expected(run) for run in made.runs]
    until(lambda: len(finishes(own_root)) == 3, "a run came to its end more than once, or never")
    assert sheet.read(victim.folder)["attempt"]["number"] >= 2, "it went on where it was"
    assert [len(run.metrics) for run in made.runs] == [15] * 3
    until(lambda: not queue(around), "the queue did not become empty")
    assert "nothing to hand in, 0 run(s)" in hand_in(own_root, around)


def test_a_failure_is_in_the_runs_sheet(
    light: Callable[..., None], swept: Swept, own_root: Path, around: dict[str, str]
) -> None:
    light("assert run.parameters.seed == 0, 'no such seed'", "run.finish({'value': 1})")
    made = swept(notebook="01_ceiling", base="smoke", seeds=[0, 1])
    hand_in(own_root, around)
    until(lambda: not queue(around), "the queue did not become empty")
    assert [run.state for run in made.runs] == ["finished", "failed"]
    assert sheet.read(made.runs[1].folder)["error"] == "AssertionError: no such seed"


def test_a_stage_is_handed_in_before_what_stands_on_it(swept: Swept, own_root: Path, around: dict[str, str]) -> None:
    made = swept(notebook="03_stage2_pcc_tuning", base="smoke", values={"levels": []}, seeds=[0, 1])
    said = hand_in(own_root, around)
    subprocess.run(["scancel", "--user=root"], env=around, check=True)
    first, second, *_ = said.splitlines()
    number = first.split()[1].rstrip(":")
    assert "1 run(s) of 02_stage1_contrastive" in first
    assert "2 run(s) of 03_stage2_pcc_tuning" in second and f"after job {number}" in second
    until(lambda: not queue(around), "the queue did not become empty")
    assert not any(run.finished for run in made.runs)


def test_an_option_that_sbatch_does_not_have_is_told(swept: Swept, own_root: Path, around: dict[str, str]) -> None:
    swept()
    arguments = command("sweep", "mine.yaml", "--slurm", "--slurm-option", "partiton=all")
    done = subprocess.run(arguments, cwd=own_root, env=around, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "--slurm-option partiton: did you mean partition?" in done.stderr
