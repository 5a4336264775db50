"""What tests of sweeps share: a light notebook, and a sweep's file in the root."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
import yaml

from pcclab import sweep

sys.path.insert(0, str(Path(__file__).parent))
from _light import CEILING, COUNT, FINISH, STEPS


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
