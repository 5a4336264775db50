"""`pcclab collect` and `pcclab report` as they are typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pcclab import runs

CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}


def call(root: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pcclab", *arguments], cwd=root, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_collect_and_report_write_where_they_say(own_root: Path) -> None:
    for seed in (0, 1):
        runs.start("01_ceiling", **{**CEILING, "seed": seed}).finish({"after": {"average": 80.0 + seed}})
    runs.start("01_ceiling", **{**CEILING, "seed": 2}).fail("ValueError: x")
    code, out, err = call(own_root, "collect", "01")
    assert (code, err) == (0, "")
    assert "01_ceiling, 3 runs: 2 finished, 1 failed" in out
    assert "80.50 [74.15, 86.85]" in out
    assert "failed: ValueError: x" in out
    written = [Path(line.strip()) for line in out.splitlines() if line.startswith("  /")]
    assert len(written) == 5 and all(path.stat().st_size for path in written)
    code, out, err = call(own_root, "report", "01", "--to", str(own_root / "sent"), "-w", "seed=0")
    assert (code, err) == (0, "")
    assert "1 run: 1 finished" in out
    assert (own_root / "sent" / "report.html").read_text(encoding="utf8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["collect", "01"], "01: none of 0 runs is left to collect: run it first"),
        (["collect", "99"], "names 0 notebooks"),
        (["report", "parameters/sweeps/nothing.yaml"], "nothing.yaml"),
        (["collect", "01", "--where", "levels"], "--where 'levels': write NAME=VALUE"),
    ],
)
def test_bad_input_is_one_sentence(own_root: Path, arguments: list[str], told: str) -> None:
    code, out, err = call(own_root, *arguments)
    assert (code, out) == (2, "")
    assert told in err and "Traceback" not in err
