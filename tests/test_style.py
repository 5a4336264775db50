"""What the tools cannot hold: sizes, the shape of a notebook, nothing of one machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from pcclab.parameters import MODELS
from pcclab.values import read_yaml

CHECKOUT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((CHECKOUT / "notebooks").glob("*.ipynb"))
LIBRARY = sorted((CHECKOUT / "pcclab").rglob("*.py"))
SKIP = {"runs", "build", "dist", "__pycache__"}
# In two halves, so that this file passes its own test.
MACHINE = re.compile("|".join(f"(?<![\\w.])/{folder}/" for folder in ("root", "home", "Users", "work", "opt", "tmp")))
HOSTS = re.compile(
    r"\b(?:" + "|".join(["pypi" + r"\.org", "python" + r"hosted" + r"\.org", "download" + r"\.pytorch"]) + ")"
)


def texts() -> Iterator[tuple[Path, str]]:
    for path in sorted(CHECKOUT.rglob("*")):
        inside = path.relative_to(CHECKOUT).parts
        hidden = any(part.startswith(".") and part != ".ci" for part in inside[:-1])
        if path.is_file() and not hidden and not SKIP & set(inside) and ".egg-info" not in str(path):
            try:
                yield path, path.read_text(encoding="utf8")
            except UnicodeDecodeError:
                continue


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_a_library_file_is_one_idea(path: Path) -> None:
    assert len(path.read_text(encoding="utf8").splitlines()) <= 250


def test_nothing_names_one_machine_or_a_registry() -> None:
    found = []
    for path, text in texts():
        for number, line in enumerate(text.splitlines(), 1):
            if MACHINE.search(line) or HOSTS.search(line):
                found.append(f"{path.relative_to(CHECKOUT)}:{number}: {line.strip()[:100]}")
    assert found == []


def test_every_notebook_has_its_model_and_its_three_sets() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(MODELS)
    for name in MODELS:
        # More sets may stand beside these three, such as a race with all weights.
        assert {"paper", "real", "smoke"} <= {path.stem for path in (CHECKOUT / "parameters" / name).glob("*.yaml")}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_holds_no_outputs_and_runs_on_python3(self, path: Path) -> None:
        notebook = nbformat.read(path, as_version=4)
        assert notebook.metadata.kernelspec.name == "python3"
        for cell in notebook.cells:
            if cell.cell_type == "code":
                assert cell.outputs == []
                assert cell.execution_count is None

    def test_its_first_code_cell_alone_holds_the_smoke_parameters(self, path: Path) -> None:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert ["parameters" in cell.metadata.get("tags", []) for cell in cells] == [True] + [False] * (len(cells) - 1)
        lines = ast.parse(cells[0].source).body
        # papermill knows these lines only: no union types, no derived values, no equals sign in a comment.
        assert all(isinstance(line, ast.AnnAssign) and "|" not in ast.unparse(line.annotation) for line in lines)
        for line in cells[0].source.splitlines():
            assert "=" not in line.partition("#")[2]
        values = {ast.unparse(line.target): ast.literal_eval(line.value) for line in lines}
        smoke, _ = read_yaml(CHECKOUT / "parameters" / path.stem / "smoke.yaml")
        assert values == smoke
        assert set(values) == set(MODELS[path.stem].model_fields)
        assert f'start("{path.stem}", globals())' in cells[1].source

    def test_its_cells_are_short_and_define_nothing(self, path: Path) -> None:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        for cell in cells[1:]:
            assert len(cell.source.splitlines()) < 15, cell.source
        for cell in cells:
            kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
            assert not any(isinstance(node, kinds) for node in ast.walk(ast.parse(cell.source))), cell.source
