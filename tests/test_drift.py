"""pyproject.toml, constraints.txt and environment.yml tell the same story."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

CUDA = re.compile(r"nvidia|triton|cuda")


@pytest.fixture
def project(checkout: Path) -> dict[str, Any]:
    return dict(tomllib.loads((checkout / "pyproject.toml").read_text())["project"])


@pytest.fixture
def direct(project: dict[str, Any]) -> list[Requirement]:
    return [Requirement(text) for text in [*project["dependencies"], *project["optional-dependencies"]["dev"]]]


@pytest.fixture
def pins(checkout: Path) -> dict[str, str]:
    lines = [line for line in (checkout / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "exact versions only, no hashes, no +cpu"
    found = {str(canonicalize_name(name)): version for name, version in (line.split("==") for line in lines)}
    assert len(found) == len(lines), "a package is pinned twice"
    return found


def test_every_direct_dependency_is_pinned_inside_its_range(direct: list[Requirement], pins: dict[str, str]) -> None:
    for requirement in direct:
        assert pins[canonicalize_name(requirement.name)] in requirement.specifier, requirement


def test_every_optional_dependency_is_pinned_and_where_it_is_installed_it_is_the_pinned_one(
    project: dict[str, Any], pins: dict[str, str]
) -> None:
    optional = [text for extra, texts in project["optional-dependencies"].items() if extra != "dev" for text in texts]
    for requirement in map(Requirement, optional):
        pinned = pins[canonicalize_name(requirement.name)]
        assert pinned in requirement.specifier, requirement
        if importlib.util.find_spec(requirement.name) is not None:
            assert importlib.metadata.version(requirement.name) == pinned


def test_what_is_tested_is_what_is_pinned(direct: list[Requirement], pins: dict[str, str]) -> None:
    for requirement in direct:
        installed = importlib.metadata.version(requirement.name).partition("+")[0]
        assert installed == pins[canonicalize_name(requirement.name)], requirement.name


def test_everything_the_dependencies_need_is_pinned(direct: list[Requirement], pins: dict[str, str]) -> None:
    waiting, seen = list(direct), set[str]()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        extras = ("", *sorted(requirement.extras))
        if f"{name}{extras}" in seen or CUDA.match(name):
            continue
        seen.add(f"{name}{extras}")
        assert name in pins, f"{name} is installed by a dependency and not pinned"
        for text in importlib.metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(needed)


def test_no_cuda_package_is_pinned(pins: dict[str, str]) -> None:
    assert [name for name in pins if CUDA.match(name)] == []


def test_conda_delegates_to_the_same_pins_and_the_same_python(checkout: Path, project: dict[str, Any]) -> None:
    listed = yaml.safe_load((checkout / "environment.yml").read_text())["dependencies"]
    plain = [entry for entry in listed if isinstance(entry, str)]
    assert [entry.split()[0] for entry in plain] == ["python", "pip"], "all else comes from pip, with the pins"
    (pip,) = [entry["pip"] for entry in listed if isinstance(entry, dict)]
    assert pip == ["-c constraints.txt", "-e .[dev]"]
    conda, python = SpecifierSet(plain[0].split(maxsplit=1)[1]), SpecifierSet(project["requires-python"])
    for minor in range(9, 14):
        assert (f"3.{minor}" in conda) == (f"3.{minor}" in python), f"3.{minor}"
