"""The vault: the tests are looked at once, what was said stays said, and further looks are counted."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcclab import data, evaluation, runs, sheet, vault

CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
ROWS = np.arange(40)


class Counting:
    """An encoder that counts how often it is asked."""

    def __init__(self, seed: int = 0) -> None:
        self.seed, self.asked = seed, 0

    @property
    def fingerprint(self) -> str:
        return f"seed {self.seed}"

    def encode(self, sentences: list[str]) -> np.ndarray:
        self.asked += 1
        return np.stack([np.random.default_rng([self.seed, *text.encode()]).normal(size=6) for text in sentences])


@pytest.fixture
def run() -> runs.Run:
    return runs.start("01_ceiling", **CEILING)


@pytest.fixture(scope="module")
def tests() -> dict[str, data.ScoredPairs]:
    return {name: table.select(ROWS) for name, table in data.sts_tests(source="synthetic").items()}


def test_the_same_question_is_answered_from_the_record(run: runs.Run, tests: Any) -> None:
    encoder = Counting()
    first = vault.look(run, encoder, tests)  # type: ignore[arg-type]
    again = vault.look(run, encoder, tests)  # type: ignore[arg-type]
    assert encoder.asked == 1
    assert (first.fresh, again.fresh) == (True, False)
    assert first.results.scores == again.results.scores == evaluation.sts_pairs(Counting(), tests).scores
    for name in tests:
        np.testing.assert_array_equal(first.similarities[name], again.similarities[name])
    assert (again.number, again.looks, again.time) == (1, 1, first.time)
    assert str(first) == f"{run.name}: look 1 of 1 at the tests, taken now: {first.results.average:.2f}"
    assert "recorded" in str(again) and first.time in str(again)


def test_what_was_seen_stands_in_the_sheet(run: runs.Run, tests: Any) -> None:
    found = vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    ((key, entry),) = json.loads((run.folder / "run.json").read_text(encoding="utf8"))["vault"].items()
    assert len(key) == 12
    assert entry["scores"] == found.results.to_dict()
    assert entry["encoder"] == "seed 0"
    assert entry["data"] == {name: table.fingerprint for name, table in tests.items()}
    assert entry["time"] == found.time and set(entry["git"]) == {"commit", "dirty"}


def test_other_weights_and_other_tests_are_further_looks(run: runs.Run, tests: Any) -> None:
    vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    other = vault.look(run, Counting(1), tests)  # type: ignore[arg-type]
    fewer = vault.look(run, Counting(), {"stsb": tests["stsb"]})  # type: ignore[arg-type]
    assert [(look.number, look.looks, look.fresh) for look in (other, fewer)] == [(2, 2, True), (3, 3, True)]
    assert vault.look(run, Counting(1), tests).number == 2  # type: ignore[arg-type]
    assert len(vault.looks(run)) == 3


def test_looks_outlive_a_restart_and_the_finish(run: runs.Run, tests: Any) -> None:
    vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    run.fail("stopped")
    again = runs.start("01_ceiling", **CEILING)
    again.finish({"figure": 1.0})
    assert len(vault.looks(again)) == 1
    encoder = Counting()
    assert not vault.look(again, encoder, tests).fresh  # type: ignore[arg-type]
    assert encoder.asked == 0 and again.finished


def test_a_run_set_aside_takes_its_looks_along(run: runs.Run, tests: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    monkeypatch.setenv("PCCLAB_AGAIN", "99999999999")
    anew = runs.start("01_ceiling", **CEILING)
    assert vault.looks(anew) == {}
    assert len(sheet.read(run.folder.with_name(f"{run.id}.previous"))["vault"]) == 1


@pytest.mark.parametrize(("damage", "told"), [("change", "was changed"), ("remove", "is gone")])
def test_a_look_that_was_tampered_with_is_told(run: runs.Run, tests: Any, damage: str, told: str) -> None:
    vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    (file,) = (run.folder / "vault").iterdir()
    if damage == "change":
        file.write_bytes(file.read_bytes()[:-1] + b"\x00\x01")
    else:
        file.unlink()
    with pytest.raises(ValueError, match=f"{told}.*cannot be told again.*put the file back"):
        vault.look(run, Counting(), tests)  # type: ignore[arg-type]


def test_a_run_that_never_began_has_no_vault(tests: Any) -> None:
    from pcclab.parameters import validate

    run = runs.locate("01_ceiling", validate("01_ceiling", {**CEILING, "seed": 9}))
    with pytest.raises(ValueError, match=r"was never begun.*run\.json"):
        vault.look(run, Counting(), tests)  # type: ignore[arg-type]
    assert not run.folder.exists()


def test_a_look_that_breaks_leaves_none(run: runs.Run, tests: Any) -> None:
    class Broken(Counting):
        def encode(self, sentences: list[str]) -> np.ndarray:
            raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        vault.look(run, Broken(), tests)  # type: ignore[arg-type]
    assert vault.looks(run) == {}


def test_entries_made_at_once_are_all_kept_and_the_first_one_counts(run: runs.Run, own_root: Path) -> None:
    def enter(number: int) -> dict[str, Any]:
        sheet.update(run.folder, provenance={f"n{number}": number})
        return sheet.enter(run.folder, "vault", f"key {number % 4}", {"by": number})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(enter, range(32)))
    told = sheet.read(run.folder)
    assert set(told["vault"]) == {f"key {k}" for k in range(4)}
    assert all(answer == told["vault"][f"key {number % 4}"] for number, answer in enumerate(answers))
    assert {f"n{k}" for k in range(32)} <= set(told["provenance"])
