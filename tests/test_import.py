"""`import pcclab` costs nothing, and names its parts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pcclab


def fresh(code: str, folder: Path) -> str:
    return subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True).stdout


def test_import_is_quick_and_takes_no_torch(checkout: Path) -> None:
    code = """
import json, sys, time
began = time.perf_counter()
import pcclab
print(json.dumps([time.perf_counter() - began, sorted({name.split(".")[0] for name in sys.modules})]))
"""
    seconds, loaded = zip(*(json.loads(fresh(code, checkout)) for _ in range(3)), strict=True)
    assert min(seconds) < 0.3
    assert not {"torch", "transformers", "numpy", "pandas", "pydantic"} & set(loaded[0])


def test_start_and_its_runs_take_no_torch(checkout: Path) -> None:
    code = "import sys, pcclab; pcclab.start; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    assert fresh(code, checkout).split() == ["False", "False"]


def test_every_part_is_there_and_listed() -> None:
    for name in dir(pcclab):
        assert getattr(pcclab, name) is not None
    assert {"start", "ceiling", "runs"} <= set(dir(pcclab))
    assert pcclab.start is pcclab.runs.start


def test_an_unknown_part_is_an_attribute_error_that_names_the_parts() -> None:
    with pytest.raises(AttributeError, match=r"no part 'celing'.*ceiling"):
        pcclab.celing  # noqa: B018
