"""Which part of pcclab may import which: one dict, held over the whole package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LEAVES = {"checkout", "complaints", "files", "lazily", "progress", "values"}
RUNNING = {"batch", "checkout", "figures", "notebook", "parameters", "records", "runs", "sheet"}
ALLOWED: dict[str, set[str]] = {
    "__init__": {"runs"},
    "__main__": {"cli"},
    "batch": {"records", "runs", "sheet"},
    "ceiling": set(),
    "cells": set(),
    "cli": {
        "batch",
        "collecting",
        "data",
        "doctor",
        "forecast",
        "gallery",
        "kernels",
        "parameters",
        "quickstart",
        "report",
        "runs",
        "sheet",
        "sweep",
    },
    "collecting": {
        "evaluation",
        "figures",
        "parameters",
        "plots",
        "records",
        "report",
        "runs",
        "sheet",
        "sweep",
        "tables",
    },
    "data": set(),
    "doctor": {"data", "runs"},
    "encoders": set(),
    "engine": {"execution", "parameters"},
    "execution": set(),
    "evaluation": {"ceiling", "data"},
    "figures": {"plots", "records"},
    "gallery": {"figures", "parameters", "plots", "records", "reference", "runs", "sheet", "tables", "workflows"},
    "kernels": set(),
    "lean_papermill": set(),
    "forecast": {"parameters", "report", "runs", "workflows"},
    "losses": set(),
    "notebook": set(),
    "parameters": set(),
    "plots": {"ceiling"},
    "quickstart": {"batch", "ceiling", "parameters", "report", "runs"},
    "records": set(),
    "reference": set(),
    "report": {"data", "encoders", "evaluation", "figures", "parameters", "plots", "runs", "workflows"},
    "runs": RUNNING,
    "sheet": {"records"},
    "sweep": {"batch", "parameters", "records", "runs", "sheet"},
    "tables": {"cells"},
    "training": {"data", "encoders", "losses"},
    "vault": {"data", "encoders", "evaluation", "records", "runs", "sheet"},
    "workflows": {"data", "encoders", "evaluation", "losses", "parameters", "records", "runs", "training", "vault"},
    "widgets": {
        "ceiling",
        "data",
        "encoders",
        "evaluation",
        "figures",
        "losses",
        "parameters",
        "plots",
        "runs",
        "training",
        "workflows",
    },
    **{leaf: set[str]() for leaf in LEAVES},
}
WEIGHTS = {"torch", "transformers", "peft", "accelerate", "bitsandbytes"}
"""Only these parts may load them; `doctor` looks whether they work."""
MAY_LOAD_WEIGHTS = {"doctor", "encoders", "losses", "training", "widgets"}
MAY_LOAD_TOO = {"evaluation/probes.py"}
"""One file each in a part that otherwise may not: SentEval's classifier is a torch loop, to its random numbers."""


def imports(file: Path, package: str) -> Iterator[tuple[int, str]]:
    """Every module a file imports, as a dotted name, with its line; `from pcclab import data` gives pcclab.data."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*base, *([node.module] if node.module else [])])
            else:
                module = node.module or ""
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}" if module == "pcclab" else module
        elif isinstance(node, ast.Call) and "import_module" in ast.dump(node.func):
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def violations(folder: Path) -> list[str]:
    """Every import in the package at `folder` that the ladder forbids."""
    found = []
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        part, where = parts[0], f"{file.relative_to(folder.parent)}"
        if part not in ALLOWED:
            found.append(f"{where}: {part} has no line in the ladder")
            continue
        for line, module in imports(file, ".".join(["pcclab", *parts[:-1]])):
            names = module.split(".")
            if names[0] == "pcclab" and len(names) > 1:
                target = names[1]
                if target not in {part, "__version__", "start"} | LEAVES | ALLOWED[part]:
                    found.append(f"{where}:{line}: {part} must not import {target}")
            elif names[0] in WEIGHTS and part not in MAY_LOAD_WEIGHTS and "/".join(parts) + ".py" not in MAY_LOAD_TOO:
                found.append(f"{where}:{line}: {part} must not import {names[0]}")
            elif names[0] == "notebooks":
                found.append(f"{where}:{line}: nothing imports a notebook")
    return found


def test_the_package_keeps_the_ladder(checkout: Path) -> None:
    assert violations(checkout / "pcclab") == []


def test_the_ladder_has_no_line_for_a_part_that_is_gone(checkout: Path) -> None:
    there = {
        path.stem
        for path in (checkout / "pcclab").iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert set(ALLOWED) <= there


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("losses/bad.py", "from pcclab import data", "losses must not import data"),
        ("losses/bad.py", "import pcclab.encoders.base", "losses must not import encoders"),
        ("encoders/bad.py", "from pcclab.data.pairs import ScoredPairs", "encoders must not import data"),
        ("encoders/bad.py", "from ..data import pairs", "encoders must not import data"),
        ("training/bad.py", "def f():\n    from pcclab import parameters", "training must not import parameters"),
        ("evaluation/bad.py", "from pcclab.encoders import load", "evaluation must not import encoders"),
        ("evaluation/bad.py", "import torch", "evaluation must not import torch"),
        ("plots/bad.py", "from pcclab import runs", "plots must not import runs"),
        ("ceiling.py", "import importlib\nimportlib.import_module('pcclab.data')", "ceiling must not import data"),
        ("data/bad.py", "from notebooks import x", "nothing imports a notebook"),
        ("newpart.py", "", "newpart has no line in the ladder"),
    ],
)
def test_a_planted_wrong_import_is_found(tmp_path: Path, file: str, text: str, told: str) -> None:
    planted = tmp_path / "pcclab" / file
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    assert [line for line in violations(tmp_path / "pcclab") if line.endswith(told)]


def test_a_right_import_is_let_through(tmp_path: Path) -> None:
    planted = tmp_path / "pcclab" / "training" / "good.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(
        "import torch\nfrom pcclab import files, losses\nfrom pcclab.encoders import load\nfrom . import other\n"
    )
    assert violations(tmp_path / "pcclab") == []
