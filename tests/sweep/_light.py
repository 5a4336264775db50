"""A light notebook in place of 01: steps that are kept, so that a broken run goes on where it was; and its figures."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pcclab import runs

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
