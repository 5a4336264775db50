"""Small data whose ratings a projection can find, and an encoder that looks its vectors up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcclab import runs
from pcclab.data import ScoredPairs
from pcclab.training import FitSettings
from pcclab.workflows import Bench, bench

DIM, HIDDEN = 8, 3


def vector(text: str) -> np.ndarray:
    """A vector that is a function of the text."""
    return np.random.default_rng(list(text.encode())).normal(size=DIM)


class Lookup:
    """An encoder without weights."""

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        return np.array([vector(text) for text in sentences], dtype=np.float32).reshape(-1, DIM)

    def __str__(self) -> str:
        return "Lookup"


def rated(count: int, start: int) -> ScoredPairs:
    """Pairs whose ratings some directions of the vectors tell."""
    first, second = (tuple(f"{side}{i}" for i in range(start, start + count)) for side in "ab")
    u, v = (np.array([vector(text)[:HIDDEN] for text in side]) for side in (first, second))
    cosine = (u * v).sum(1) / np.linalg.norm(u, axis=1) / np.linalg.norm(v, axis=1)
    return ScoredPairs(first, second, 2.5 + 2.5 * cosine)


TRAIN, DEV, TESTS = rated(120, 0), rated(60, 1000), {"stsb": rated(60, 2000), "sickr": rated(60, 3000)}
SETTINGS = FitSettings(batch_size=16, learning_rate=2e-2, max_steps=12, evaluate_every=4)


@pytest.fixture
def settings() -> FitSettings:
    """Twelve steps, three looks."""
    return SETTINGS


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Bench]:
    """A bench on the small data; two of them share their CSV."""

    def made(**other: Any) -> Bench:
        given: dict[str, Any] = {"encoder": Lookup(), "table": TRAIN, "dev": DEV, "tests": TESTS, "form": "frozen"}
        return Bench(**{**given, "file": tmp_path / "rows" / "race.csv", **other})

    return made


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float, int]]:
    """Loss, learning rate and seed of each projection that is trained."""
    seen: list[tuple[str, float, int]] = []
    fit_frozen = bench.training.fit_frozen

    def counted(encoder: Any, table: Any, loss: str, *, parameters: FitSettings, **options: Any) -> Any:
        if options.get("projected") is not None:
            seen.append((loss, parameters.learning_rate, parameters.seed))
        return fit_frozen(encoder, table, loss, parameters=parameters, **options)

    monkeypatch.setattr(bench.training, "fit_frozen", counted)
    return seen


@pytest.fixture
def begin(checkout: Path) -> Callable[..., runs.Run]:
    """Begin the smoke run of a notebook with the tiny encoder, few steps, and other values."""

    def begun(notebook: str, **other: Any) -> runs.Run:
        smoke = runs.load_file(notebook, checkout / "parameters" / notebook / "smoke.yaml").model_dump(mode="json")
        few = {"encoder": "tiny", "max_tokens": 128, "max_steps": 2, "evaluate_every": 1, "learning_rate": 1e-3}
        return runs.start(notebook, **{**smoke, **few, **other})

    return begun
