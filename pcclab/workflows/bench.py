"""Small trainings on one set of data, each measured once and kept as a row of a CSV."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from pcclab import data, encoders, evaluation, files, losses, training
from pcclab.encoders.heads import Features, SiameseHead
from pcclab.parameters.comparisons import ComparisonParameters
from pcclab.training import FitSettings, History, Projected, Remembered

if TYPE_CHECKING:
    from pcclab.data import ScoredPairs, Sentences
    from pcclab.training import Teachers

Form = Literal["frozen", "full"]
JUDGED = {"l1", "mse", "translated_relu", "smooth_k2", "cross_entropy"}
"""Losses on a head's output."""
HEAD_RATE = 0.01
"""Learning rate of a head alone; it is so many times smaller a problem than a projection that one rate does."""


@dataclass(frozen=True)
class Trial:
    """One training.

    Args:
        loss: as `pcclab.losses.parse` reads it.
        settings: of the training, with its seed and learning rate.
        features: of the head, for losses that have one.
        tag: what sets trials apart that these do not, such as a prompt.
    """

    loss: str
    settings: FitSettings
    features: Features = "u,v,|u-v|"
    tag: str = ""

    @property
    def names(self) -> set[str]:
        """The losses it sums."""
        return {term.name for term in losses.parse(self.loss)}


@dataclass
class Bench:
    """Encoder, data and the rows measured so far.

    Args:
        encoder: where every trial starts; a full trial loads its own copy with `place` and `loading`.
        table: what is trained on.
        dev: rated pairs that choose step and learning rate.
        tests: test tables by name.
        form: whether a projection on frozen embeddings is trained, or all weights.
        file: CSV of the rows; a trial whose row is there is not trained again.
        place, loading: arguments of `pcclab.encoders.load`, for full trials.
        teachers: for losses that follow one.
    """

    encoder: encoders.Encoder | Remembered
    table: ScoredPairs | Sentences
    dev: ScoredPairs
    tests: Mapping[str, ScoredPairs]
    form: Form
    file: Path
    place: str = ""
    loading: Mapping[str, Any] = field(default_factory=dict)
    teachers: Teachers | None = None

    @cached_property
    def remembered(self) -> Remembered:
        """The encoder of frozen trials."""
        return self.encoder if isinstance(self.encoder, Remembered) else Remembered(self.encoder)

    @cached_property
    def dim(self) -> int:
        """Length of an embedding."""
        return int(self.remembered.encode([self.dev.first[0]]).shape[1])

    @cached_property
    def stand(self) -> str:
        """Fingerprint of all that the trials have in common."""
        # Embeddings differ in their last digits with whatever shared their batch: they say what an encoder is only
        # where it has no fingerprint of its own.
        known: Any = getattr(self.remembered.encoder, "fingerprint", None)
        if known is None:
            sample = np.asarray(self.remembered.encoder.encode(self.dev.first[:8]))
            known = hashlib.sha256(sample.round(5).tobytes()).hexdigest()
        parts = [self.form, known, self.table.fingerprint, self.dev.fingerprint]
        parts += [*(table.fingerprint for table in self.tests.values())]
        parts += [self.teachers.fingerprint if self.teachers is not None else ""]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def key(self, trial: Trial) -> str:
        """Twelve hex digits that name the trial's row."""
        told = json.dumps([self.stand, asdict(trial)], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    def rows(self) -> dict[str, dict[Any, Any]]:
        """What was measured, a row for each key, without the columns a row has no value in.

        Raises: ValueError where the file is damaged.
        """
        if not self.file.is_file():
            return {}
        try:
            frame = pd.read_csv(self.file, index_col="key", dtype=str, keep_default_na=False)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{self.file} cannot be read ({error}): move it away to measure anew") from error
        return {
            str(key): {name: _value(text) for name, text in values.items() if text} for key, values in frame.iterrows()
        }

    def measure(self, trial: Trial, *, tests: bool = True, **labels: Any) -> dict[str, Any]:
        """The trial's row, from the CSV or trained now.

        Args:
            trial: what to train.
            tests: whether to judge it on the tests; a trial that only helps to choose never sees them.
            **labels: further columns of the row, such as the section it belongs to.

        Returns:
            loss, learning_rate, seed, dev, step, seconds and, where asked for, the tests and their average; `error`
            says why a training broke, and its scores are missing then.
        """
        key = self.key(trial)
        before = self.rows().get(key)
        if before is not None and {"average" if tests else "dev", "error"} & set(before):
            return before
        row: dict[str, Any] = {"loss": trial.loss, "learning_rate": trial.settings.learning_rate}
        row |= {"seed": trial.settings.seed, "form": self.form, "encoder": str(self.remembered), **labels}
        try:
            history, judge, head = self._train(trial, key)
        except ValueError as error:
            if "undefined at every look" not in str(error) and "the loss is" not in str(error):
                raise
            row["error"] = str(error)
        else:
            row |= {"dev": history.best_dev, "step": history.best_step, "seconds": history.seconds}
            if tests:
                scored = evaluation.sts_pairs(judge, self.tests)
                row |= {name: score for name, score in scored.scores.items() if score is not None}
                if scored.average is None:
                    row["error"] = "; ".join(f"{name}: {t.reason}" for name, t in scored.tasks.items() if t.reason)
                else:
                    row["average"] = scored.average
                if head is not None:
                    row["head average"] = evaluation.sts_pairs(judge, self.tests, score=head.score).average
        self._keep(key, row)
        if tests or "error" in row:
            self.forget(trial)
        return row

    def check(self, trial: Trial) -> None:
        """Raise the ValueError that training would raise for a loss that does not fit the data."""
        training.bind(self.table, trial.loss, head=self._head(trial), teachers=self._followed(trial))

    def forget(self, trial: Trial) -> None:
        """Remove the weights a full trial keeps until it is judged on the tests."""
        shutil.rmtree(self._slot(self.key(trial)).folder, ignore_errors=True)

    def _keep(self, key: str, row: dict[str, Any]) -> None:
        """Add a row to the CSV, which other processes may write to as well."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.with_name(f".{self.file.name}.lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            frame = pd.DataFrame.from_dict({**self.rows(), key: row}, orient="index").rename_axis("key")
            files.write_text(self.file, frame.to_csv())

    def _train(self, trial: Trial, key: str) -> tuple[History, Any, SiameseHead | None]:
        head = self._head(trial)
        if head is not None:
            # A node drawn at random would pull the embeddings towards nothing: it learns first, as in the two phases.
            first = replace(trial.settings, learning_rate=HEAD_RATE)
            training.fit_frozen(self.remembered, self.table, trial.loss, parameters=first, head=head)
        common: dict[str, Any] = {"parameters": trial.settings, "dev": self.dev, "head": head}
        common["teachers"] = self._followed(trial)
        if self.form == "frozen":
            projected = Projected(self.remembered, self.dim)
            history = training.fit_frozen(self.remembered, self.table, trial.loss, projected=projected, **common)
            return history, projected, head
        encoder = encoders.load(self.place, **self.loading, seed=trial.settings.seed)
        history = training.fit(encoder, self.table, trial.loss, run=self._slot(key), **common)
        return history, Remembered(encoder), head

    def _head(self, trial: Trial) -> SiameseHead | None:
        if not JUDGED & trial.names:
            return None
        levels = tuple(range(6)) if "cross_entropy" in trial.names else None
        start = float(self.table.gold.mean()) if isinstance(self.table, data.ScoredPairs) else 0.0
        return SiameseHead(self.dim, features=trial.features, levels=levels, start=start, seed=trial.settings.seed)

    def _followed(self, trial: Trial) -> Teachers | None:
        return self.teachers if {"listnet", "listmle"} & trial.names else None

    def _slot(self, key: str) -> _Slot:
        return _Slot(self.file.parent / "trials" / key)


@dataclass(frozen=True)
class _Slot:
    """Where a full trial keeps its checkpoints until it is measured."""

    folder: Path

    @property
    def checkpoints(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        return self.folder

    def log(self, step: int, **metrics: Any) -> None:
        """The history says it all."""


def _value(text: str) -> int | float | str:
    """A cell of the CSV as what was written, to the last digit."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def rated(encoder: encoders.Encoder | Remembered, *, source: str | None, form: Form, file: Path, **more: Any) -> Bench:
    """A bench on the filtered STS-B + SICK-R pairs, chosen on clean dev, tested on the seven tasks.

    Args: source: as `data.load` takes it; encoder, form, file, more: as `Bench`.
    """
    pairs, dev = data.stage2_pairs(leakage="filter", source=source), data.dev_pairs(source=source)
    return Bench(encoder, pairs, dev, data.sts_tests(source=source), form, file, **more)


def frozen(p: ComparisonParameters, shared: dict[Any, Any]) -> Remembered:
    """The encoder of the race and of most sections. Args: p: the notebook's; shared: where embeddings are kept."""
    if "encoder" not in shared:
        shared["encoder"] = Remembered(encoders.load(p.encoder, **p.loading(), seed=p.seed))
    known: Remembered = shared["encoder"]
    return known
