"""The notebooks as people run them: plain papermill, the smoke sets, a kernel of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest


def papermill(root: Path, notebook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a notebook of the checkout with its smoke set into `out.ipynb`, as the README does."""
    command = [sys.executable, "-m", "papermill", f"notebooks/{notebook}.ipynb", "out.ipynb", "--no-progress-bar"]
    command += ["-f", f"parameters/{notebook}/smoke.yaml", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def only_run(root: Path, notebook: str, **parameters: object) -> Path:
    """The folder of the one finished run of a notebook whose result holds these values."""
    found = []
    for file in sorted((root / "runs" / notebook).glob("*/result.json")):
        result = json.loads(file.read_text(encoding="utf8"))
        if all(result[name] == value for name, value in parameters.items()):
            found.append(file.parent)
    assert len(found) == 1, found
    return found[0]


def test_the_ceiling_runs_and_asserts_its_equations(own_root: Path) -> None:
    done = papermill(own_root, "01_ceiling")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "01_ceiling")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    assert result["ceiling"]["paper"] == 0.875
    assert result["ceiling"]["midrank"] == pytest.approx(3**0.5 / 2)
    assert len(list((folder / "figures").glob("*.pdf"))) >= 5


def test_stage_2_makes_its_stage_1_and_keeps_the_levels_apart(own_root: Path) -> None:
    done = papermill(own_root, "03_stage2_pcc_tuning")
    assert done.returncode == 0, done.stderr[-2000:]
    first = json.loads((only_run(own_root, "02_stage1_contrastive") / "result.json").read_text(encoding="utf8"))
    results = {
        level: json.loads((only_run(own_root, "03_stage2_pcc_tuning", leakage=level) / "result.json").read_text())
        for level in ("strict", "filter", "keep")
    }
    for result in results.values():
        # Stage 2 starts where stage 1 ended, and gains on every level.
        assert result["baseline"]["average"] == pytest.approx(first["after"]["average"], abs=1e-3)
        assert result["after"]["average"] > result["baseline"]["average"] + 1
    # The planted leaks pay: all pairs beat the filtered ones on the tests that leak most.
    assert results["keep"]["after"]["sts14"] > results["filter"]["after"]["sts14"]
    drawn = {path.stem for path in (only_run(own_root, "03_stage2_pcc_tuning", leakage="filter") / "figures").iterdir()}
    assert drawn == {"leakage", "training_curve", "stage2_levels"}
    said = nbformat.read(own_root / "out.ipynb", as_version=4).cells[-1].outputs[0]["data"]["text/markdown"]
    assert said.startswith("**Verdict.**")


def test_a_mistyped_parameter_stops_the_notebook_before_it_works(own_root: Path) -> None:
    done = papermill(own_root, "03_stage2_pcc_tuning", "-p", "leakge", "keep")
    assert done.returncode == 1
    assert "did you mean leakage" in done.stderr.lower() or "leakage" in done.stderr.split("leakge")[-1]
    assert not list((own_root / "runs").rglob("checkpoints"))
