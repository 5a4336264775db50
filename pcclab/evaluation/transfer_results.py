"""Scores of one encoder on the transfer tasks: unrounded, with the protocol named and the undefined called so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pcclab.evaluation.results import UNDEFINED

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


@dataclass(frozen=True)
class TransferScore:
    """One task's accuracies x 100, or None where they are undefined and `reason` says why.

    Args:
        train: rows to learn from; all rows where folds are nested.
        test: rows that the accuracy is of.
        dev: accuracy by which the strengths were chosen, at the chosen ones: over folds, or on the development rows.
        accuracy: on the test rows, or the mean over the outer folds.
        f1: of the positive class x 100, for MRPC; None for the other tasks.
        strengths: what was chosen, by outer fold where there are any.
        reason: why an undefined score is undefined, empty otherwise.
        right: whether each test row was classified right, by which two classifiers are compared row by row: the rows
            stand as SentEval sorts them, alike for every encoder and protocol. Two scores are equal without it.
    """

    train: int
    test: int
    dev: float | None
    accuracy: float | None
    f1: float | None = None
    strengths: tuple[float, ...] = ()
    reason: str = ""
    right: np.ndarray | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class TransferResults:
    """What `evaluation.transfer` measured.

    Args:
        tasks: task -> its score, in the order they were asked for.
        protocol: which classifier and grid: "lbfgs" or "senteval".
        encoder: what was judged.
        source: where the data came from.
        limit: rows of each part at most, None for all.
    """

    tasks: Mapping[str, TransferScore]
    protocol: str = ""
    encoder: str = ""
    source: str = ""
    limit: int | None = None

    @property
    def scores(self) -> dict[str, float | None]:
        """Accuracy x 100 of each task, unrounded; None where it is undefined."""
        return {name: task.accuracy for name, task in self.tasks.items()}

    @property
    def average(self) -> float | None:
        """Mean of the tasks' accuracies, as the papers' tables average them; None if one is undefined."""
        return _mean(self.scores.values())

    def to_frame(self) -> pd.DataFrame:
        """One row a task, then the average; the protocol in each; undefined scores are the word "undefined"."""
        import pandas as pd

        rows: dict[str, dict[str, Any]] = {}
        for name, task in self.tasks.items():
            rows[name] = {
                "protocol": self.protocol,
                "train": task.train,
                "test": task.test,
                "dev": _told(task.dev),
                "accuracy": _told(task.accuracy),
                "f1": "" if task.f1 is None else task.f1,
            }
        parts = list(self.tasks.values())
        rows["average"] = {
            "protocol": self.protocol,
            "train": sum(task.train for task in parts),
            "test": sum(task.test for task in parts),
            "dev": _told(_mean(task.dev for task in parts)),
            "accuracy": _told(self.average),
            "f1": "",
        }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a run's result: the protocol, task -> accuracy, MRPC's F1 where it is, and the average."""
        named: dict[str, Any] = {**self.scores, "average": self.average}
        named |= {f"{name}_f1": task.f1 for name, task in self.tasks.items() if task.f1 is not None}
        told = {name: _told(score) for name, score in named.items()}
        return {"protocol": self.protocol, "limit": self.limit, **told}

    def __str__(self) -> str:
        body = self.to_frame().to_string(float_format="{:.2f}".format)
        few = f", at most {self.limit:,} rows a part" if self.limit is not None else ""
        reasons = [f"{name}: {task.reason}" for name, task in self.tasks.items() if task.reason]
        return "\n".join([f"{self.encoder} on {self.source}{few}, protocol {self.protocol}", body, *reasons])


def _told(score: float | None) -> float | str:
    return UNDEFINED if score is None else score


def _mean(scores: Iterable[float | None]) -> float | None:
    values = list(scores)
    defined = [score for score in values if score is not None]
    return sum(defined) / len(defined) if defined and len(defined) == len(values) else None
