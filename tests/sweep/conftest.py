"""A light notebook in place of 01: two seconds of steps that are kept, so that a broken run goes on where it was."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import yaml

from pcclab import runs, sweep

CEILING = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
STEPS = """
import time
kept = run.checkpoints / "steps.txt"
done = len(kept.read_text().splitlines()) if kept.exists() else 0
for step in range(done + 1, 16):
    time.sleep(0.1)
    with kept.open("a") as file:
        file.write(f"{step}\\n")
    run.log(step, loss=1 / step, dev_spearman=80 + step / 10)
"""
FINISH = """
value = sum(int(line) for line in kept.read_text().split()) + run.parameters.n + 0.25 * run.parameters.seed
run.finish({"value": value})
"""
COUNT = """
with (run.root / "finishes.txt").open("a") as file:
    file.write(run.id + "\\n")
"""


@pytest.fixture
def light(own_root: Path) -> Callable[..., None]:
    """Give the root a notebook 01 of these cells: by default one that takes its time."""

    def write(*cells: str, start: str = "pcclab.start('01_ceiling', globals())") -> None:
        notebooks = own_root / "notebooks"
        if notebooks.is_symlink():
            notebooks.unlink()
        notebooks.mkdir(exist_ok=True)
        given = "\n".join(f"{name} = {value!r}" for name, value in CEILING.items())
        new = nbformat.v4.new_code_cell
        made = [new(given, metadata={"tags": ["parameters"]}), new(f"import pcclab\nrun = {start}")]
        made += [new(textwrap.dedent(cell).strip()) for cell in cells or (STEPS, FINISH, COUNT)]
        spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(
            nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": spec}), notebooks / "01_ceiling.ipynb"
        )

    return write


@pytest.fixture
def swept(own_root: Path) -> Callable[..., sweep.Sweep]:
    """Write a sweep's file into the root and load it; without entries: six runs of notebook 01."""

    def write(**entries: object) -> sweep.Sweep:
        given = entries or {"notebook": "01_ceiling", "base": "smoke", "grid": {"n": [10, 12, 14]}, "seeds": [0, 1]}
        (own_root / "mine.yaml").write_text(yaml.safe_dump(given, sort_keys=False))
        return sweep.load(own_root / "mine.yaml")

    return write


def command(*arguments: str) -> list[str]:
    """`pcclab` as a process of its own."""
    return [sys.executable, "-m", "pcclab", *arguments]


def finishes(root: Path) -> list[str]:
    """Ids of the runs whose notebook came to its end, once for each time that it did."""
    file = root / "finishes.txt"
    return file.read_text().split() if file.is_file() else []


def expected(run: runs.Run) -> dict[str, float]:
    """What the light notebook finds, however often it was broken."""
    return {"value": 120 + run.parameters.model_dump()["n"] + 0.25 * run.parameters.seed}


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}
