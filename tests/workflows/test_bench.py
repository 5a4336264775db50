"""A row a training, in a CSV that several processes share; the tests only where they are asked for."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pcclab import data, encoders
from pcclab.training import FitSettings, Remembered
from pcclab.workflows import Trial, bench, rated

SCORES = {"stsb", "sickr", "average"}


def test_a_training_is_a_row_of_the_csv(make: Any, settings: FitSettings) -> None:
    at = make()
    row = at.measure(Trial("pearson", replace(settings, seed=3)), section="first")
    assert {"loss", "learning_rate", "seed", "form", "encoder", "dev", "step", "seconds", "section"} | SCORES == set(
        row
    )
    assert (row["loss"], row["learning_rate"], row["seed"], row["encoder"]) == ("pearson", 0.02, 3, "Lookup")
    assert row["average"] == pytest.approx((row["stsb"] + row["sickr"]) / 2)
    assert row["step"] in (4, 8, 12)
    frame = pd.read_csv(at.file)
    assert frame["key"].tolist() == [at.key(Trial("pearson", replace(settings, seed=3)))]
    assert make().rows() == {frame["key"][0]: row}  # to the last digit


def test_a_row_that_is_there_is_not_trained_again(make: Any, settings: FitSettings, trained: list[Any]) -> None:
    trials = [Trial("pearson", settings), Trial("smooth_k2", settings), Trial("smooth_k2", settings, features="u,v")]
    first = [make().measure(trial) for trial in trials]
    assert len(trained) == 3
    assert [make().measure(trial) for trial in trials] == first
    assert len(trained) == 3


def test_whatever_the_result_depends_on_makes_another_row(make: Any, settings: FitSettings) -> None:
    trial = Trial("pearson", settings)
    at = make()
    keys = {at.key(trial)}
    for other in ({"seed": 1}, {"learning_rate": 0.1}, {"batch_size": 8}, {"max_steps": 13}):
        keys.add(at.key(replace(trial, settings=replace(settings, **other))))
    keys |= {at.key(replace(trial, **other)) for other in ({"loss": "ccc"}, {"features": "u,v"}, {"tag": "EOL"})}
    tests = {"stsb": at.tests["stsb"]}
    keys |= {make(**other).key(trial) for other in ({"table": at.dev}, {"dev": at.table}, {"tests": tests})}
    keys.add(make(form="full").key(trial))
    keys.add(make(encoder=encoders.load("tiny")).key(trial))
    keys.add(make(encoder=encoders.load("tiny", seed=1)).key(trial))
    assert len(keys) == 14
    assert make().key(trial) == at.key(trial)


def test_a_row_is_found_again_whatever_was_embedded_before(make: Any, settings: FitSettings) -> None:
    # A batch's other texts change an embedding's last digits.
    fresh, used = (Remembered(encoders.load("tiny")) for _ in range(2))
    used.encode(["a much longer sentence than any of the others in this small batch of texts", *make().dev.first])
    trial = Trial("pearson", settings)
    assert make(encoder=used).key(trial) == make(encoder=fresh).key(trial)


class Noisy:
    """A stand-in whose embeddings differ with what was asked for in the same call, as padding makes them."""

    def encode(self, sentences: Any) -> np.ndarray:
        return np.ones((len(sentences), 4), np.float32) * (1 + 1e-3 * len(sentences))


def test_a_stand_in_without_a_fingerprint_is_known_by_the_same_embeddings(make: Any, settings: FitSettings) -> None:
    used = Remembered(Noisy())
    used.encode(make().dev.first)
    trial = Trial("pearson", settings)
    assert make(encoder=used).key(trial) == make(encoder=Noisy()).key(trial)


def test_a_trial_that_helps_to_choose_never_sees_a_test(
    make: Any, settings: FitSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial("pearson", settings)
    with monkeypatch.context() as patched:
        patched.setattr(bench.evaluation, "sts_pairs", None)
        row = make().measure(trial, tests=False)
        assert make().measure(trial, tests=False) == row
    assert not SCORES & set(row)
    assert not SCORES & set(pd.read_csv(make().file).columns)
    judged = make().measure(trial)
    assert (judged["dev"], judged["step"]) == (row["dev"], row["step"])
    assert set(judged) >= SCORES
    assert len(make().rows()) == 1
    assert make().measure(trial, tests=False)["average"] == judged["average"]


def test_a_head_learns_first_and_is_judged_beside_the_cosine(make: Any, settings: FitSettings) -> None:
    row = make().measure(Trial("smooth_k2", settings))
    assert row["head average"] != row["average"]
    assert "head average" not in make().measure(Trial("pearson", settings))


@pytest.mark.parametrize("told", ["the loss is nan: lower the learning rate", "undefined at every look: x"])
def test_a_training_that_broke_is_a_row_with_its_error(
    make: Any, settings: FitSettings, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    def broken(*args: Any, **options: Any) -> Any:
        raise ValueError(told)

    monkeypatch.setattr(bench.training, "fit_frozen", broken)
    row = make().measure(Trial("pearson", settings))
    assert row["error"] == told
    assert not {"dev", "average"} & set(row)
    monkeypatch.setattr(bench.training, "fit_frozen", None)
    assert make().measure(Trial("pearson", settings)) == row  # what broke once breaks again


def test_another_error_is_no_row(make: Any, settings: FitSettings) -> None:
    with pytest.raises(ValueError, match="pearson has no option 'slope'"):
        make().measure(Trial("pearson(slope=1)", settings))
    assert make().rows() == {}


def test_scores_that_are_undefined_are_an_error_and_are_not_measured_again(
    make: Any, settings: FitSettings, trained: list[Any]
) -> None:
    one = data.ScoredPairs(("a", "b", "c"), ("d", "e", "f"), np.array([1.0, 1.0, 1.0]))
    at = make(tests={**make().tests, "flat": one})
    row = at.measure(Trial("pearson", settings))
    assert row["error"].startswith("flat: ")
    assert {"stsb", "sickr"} <= set(row)
    assert "average" not in row
    assert at.measure(Trial("pearson", settings)) == row
    assert len(trained) == 1


@pytest.mark.parametrize("content", [b"", b"hello\n1\n", b"key,loss\na,b,c,d\n", b"\xff\xfe\x00\x01"])
def test_a_damaged_csv_is_told_by_its_path_and_left_alone(make: Any, settings: FitSettings, content: bytes) -> None:
    at = make()
    at.file.parent.mkdir()
    at.file.write_bytes(content)
    with pytest.raises(ValueError, match=r"race\.csv cannot be read .*move it away to measure anew"):
        at.measure(Trial("pearson", settings))
    assert at.file.read_bytes() == content


def test_a_row_without_its_score_is_measured_again(make: Any, settings: FitSettings, trained: list[Any]) -> None:
    at, trial = make(), Trial("pearson", settings)
    at.measure(trial, tests=False)
    frame = pd.read_csv(at.file)
    frame.drop(columns="dev").to_csv(at.file, index=False)
    assert "dev" in at.measure(trial, tests=False)
    assert len(trained) == 2


def test_keys_that_read_as_numbers_stay_names(make: Any) -> None:
    at = make()
    for key in ("000000000012", "12345678e012"):
        at._keep(key, {"loss": "pearson", "dev": 1.5})
    assert set(at.rows()) == {"000000000012", "12345678e012"}


def test_threads_that_write_at_once_lose_no_row(make: Any) -> None:
    def write(number: int) -> None:
        for i in range(5):
            make()._keep(f"{number:06d}{i:06d}", {"loss": "pearson", "dev": float(i)})

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(make().rows()) == 20


@pytest.fixture
def full(tmp_path: Path) -> Any:
    """Benches that train all weights of the tiny encoder on synthetic pairs."""
    place: dict[str, Any] = {"place": "tiny", "loading": {"pooling": "mean"}, "form": "full"}
    encoder = Remembered(encoders.load("tiny", pooling="mean"))
    return lambda: rated(encoder, source="synthetic", file=tmp_path / "race.csv", **place)


@pytest.mark.parametrize("loss", ["pearson", "smooth_k2"])
def test_full_training_goes_on_from_its_slot_and_clears_it(full: Any, loss: str) -> None:
    trial = Trial(loss, FitSettings(batch_size=16, learning_rate=1e-3, max_steps=4, evaluate_every=2, max_tokens=16))
    with pytest.warns(UserWarning, match="were cut"):
        chosen = full().measure(trial, tests=False)
    (slot,) = (full().file.parent / "trials").iterdir()
    assert slot.name == full().key(trial)
    assert (slot / "final").is_dir()
    assert "average" not in chosen
    with pytest.warns(UserWarning, match="were cut"):
        row = full().measure(trial)
    assert (row["dev"], row["step"], row["seconds"]) == (chosen["dev"], chosen["step"], chosen["seconds"])  # read again
    assert not slot.exists()
    assert ("head average" in row) == (loss == "smooth_k2")
    assert full().measure(trial) == row


def test_a_full_training_that_broke_leaves_no_weights(full: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, run: Any, **options: Any) -> Any:
        (run.checkpoints / "weights").touch()
        raise ValueError("the loss is nan: lower the learning rate")

    monkeypatch.setattr(bench.training, "fit", broken)
    row = full().measure(Trial("pearson", FitSettings()), tests=False)
    assert "error" in row
    assert not list((full().file.parent / "trials").iterdir())
