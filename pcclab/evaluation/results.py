"""Scores of one encoder on several tasks: unrounded, with the undefined ones called so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

UNDEFINED = "undefined"


@dataclass(frozen=True)
class TaskScore:
    """One task's correlations x 100, or None where a correlation is undefined and `reason` says why.

    Args:
        pairs: rated pairs.
        spearman, pearson: over all pairs of the task at once (SentEval's `all`).
        subsets: name -> (pairs, Spearman, Pearson) of each subset.
        reason: why an undefined score is undefined, empty otherwise.
    """

    pairs: int
    spearman: float | None
    pearson: float | None
    subsets: Mapping[str, tuple[int, float | None, float | None]] = field(default_factory=dict)
    reason: str = ""

    @property
    def mean(self) -> float | None:
        """Plain mean of the subsets' Spearman (SentEval's `mean`); the task's own where it has no subsets."""
        return self._average(weighted=False)

    @property
    def wmean(self) -> float | None:
        """Mean of the subsets' Spearman weighted by pairs (SentEval's `wmean`)."""
        return self._average(weighted=True)

    def _average(self, *, weighted: bool) -> float | None:
        rows = [(pairs if weighted else 1, score) for pairs, score, _ in self.subsets.values()] or [(1, self.spearman)]
        defined = [(weight, score) for weight, score in rows if score is not None]
        if len(defined) < len(rows):
            return None
        return sum(weight * score for weight, score in defined) / sum(weight for weight, _ in defined)


@dataclass(frozen=True)
class Results:
    """What `evaluation.sts` measured.

    Args:
        tasks: task -> its score, in the order they were asked for.
        encoder: what was judged.
        source: where the data came from.
    """

    tasks: Mapping[str, TaskScore]
    encoder: str = ""
    source: str = ""

    @property
    def scores(self) -> dict[str, float | None]:
        """Spearman x 100 of each task, unrounded; None where it is undefined."""
        return {name: task.spearman for name, task in self.tasks.items()}

    @property
    def average(self) -> float | None:
        """Mean of the tasks' Spearman: over seven tasks when all were judged. None if one of them is undefined."""
        return _mean(self.scores.values())

    @property
    def average6(self) -> float | None:
        """The same without SICK-R."""
        return _mean(score for name, score in self.scores.items() if name != "sickr")

    def to_frame(self, *, subsets: bool = False) -> pd.DataFrame:
        """One row a task (and a subset), then the averages; undefined scores are the word "undefined"."""
        import pandas as pd

        rows: dict[str, dict[str, Any]] = {}
        for name, task in self.tasks.items():
            rows[name] = _row(task.pairs, task.spearman, task.pearson, task.mean, task.wmean)
            if subsets:
                for subset, (pairs, spearman, pearson) in task.subsets.items():
                    rows[f"{name}/{subset}"] = _row(pairs, spearman, pearson, spearman, spearman)
        parts = list(self.tasks.values())
        columns = [[getattr(task, kind) for task in parts] for kind in ("spearman", "pearson", "mean", "wmean")]
        rows["average"] = _row(sum(task.pairs for task in parts), *map(_mean, columns))
        if "sickr" in self.tasks and len(self.tasks) > 1:
            rest = [i for i, name in enumerate(self.tasks) if name != "sickr"]
            rows["average without sickr"] = _row(
                sum(parts[i].pairs for i in rest), *(_mean(column[i] for i in rest) for column in columns)
            )
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a run's result: task -> Spearman, and the averages."""
        named = {**self.scores, "average": self.average, "average_without_sickr": self.average6}
        return {name: UNDEFINED if score is None else score for name, score in named.items()}

    def __str__(self) -> str:
        body = self.to_frame().to_string(float_format="{:.2f}".format)
        reasons = [f"{name}: {task.reason}" for name, task in self.tasks.items() if task.reason]
        return "\n".join([f"{self.encoder} on {self.source}", body, *reasons])


def _row(pairs: int, *scores: float | None) -> dict[str, Any]:
    names = ("spearman", "pearson", "mean", "wmean")
    return {"pairs": pairs, **{n: UNDEFINED if s is None else s for n, s in zip(names, scores, strict=True)}}


def _mean(scores: Any) -> float | None:
    values = list(scores)
    return None if not values or None in values else sum(values) / len(values)
