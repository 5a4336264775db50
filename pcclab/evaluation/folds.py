"""How a transfer task is judged: which rows train, choose the regularisation and test, after SentEval's three ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float, Int

from pcclab.evaluation.correlation import Undefined

FOLDS = 10
SEED = 1111
"""Of the folds' shuffle, of the first weights and of the order of rows: SentEval has one for all."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One classifier to train, as positions of rows.

    Args:
        train: rows to learn from.
        dev: rows to stop early on; None takes a part of `train` where the solver needs any.
        test: rows to predict.
    """

    train: Int[np.ndarray, " train"]
    dev: Int[np.ndarray, " dev"] | None
    test: Int[np.ndarray, " test"]


class Solver(Protocol):
    """Trains every fit with every strength of its row of `strengths` and predicts its test rows."""

    def __call__(
        self,
        features: Float[np.ndarray, "rows dim"],
        labels: Int[np.ndarray, " rows"],
        fits: Sequence[Fit],
        strengths: Float[np.ndarray, "fits strengths"],
    ) -> list[Int[np.ndarray, "strengths test"]]:
        """The class that each strength of a fit gives its test rows, by fit."""
        ...


@dataclass(frozen=True, eq=False)
class Judged:
    """What one task came to.

    Args:
        dev: accuracy x 100 by which the strengths were chosen, at the ones chosen.
        accuracy: accuracy x 100 on the test rows: the mean over the outer folds where there are any.
        strengths: the chosen one of each outer fold, or the one.
        predicted: the class of each test row, in the order of the rows; of nested folds every row is one once.
        right: whether it is the row's own.
    """

    dev: float
    accuracy: float
    strengths: tuple[float, ...]
    predicted: Int[np.ndarray, " test"]
    right: Bool[np.ndarray, " test"]


def nested(solve: Solver, features: np.ndarray, labels: np.ndarray, grid: Sequence[float]) -> Judged:
    """Ten folds to test on and, in the rows each leaves, ten to choose by: one call for all 100 x strengths, one after.

    Source: SentEval's `InnerKFoldClassifier`. Accuracies of a strength are rounded to 0.01 before the first of the best
        is taken, as there, so that ties fall on the same strength.

    Raises: Undefined when a class has too few rows for the folds.
    """
    outer = _stratified(np.arange(len(labels)), labels)
    inner = [Fit(train, dev, dev) for rows, _ in outer for train, dev in _stratified(rows, labels)]
    scores = _accuracies(solve(features, labels, inner, np.tile(grid, (len(inner), 1))), inner, labels)
    by_fold = scores.reshape(len(outer), FOLDS, len(grid)).mean(axis=1)
    best = [_first_best(row) for row in by_fold]
    final = [Fit(train, None, test) for train, test in outer]
    chosen = np.array([grid[at] for at in best])
    answers = solve(features, labels, final, chosen[:, None])
    predicted = np.empty_like(labels)
    for fit, answer in zip(final, answers, strict=True):
        predicted[fit.test] = answer[0]
    dev = float(np.mean([row[at] for row, at in zip(by_fold, best, strict=True)]))
    accuracy = float(_accuracies(answers, final, labels).mean())
    return Judged(dev, accuracy, tuple(chosen.tolist()), predicted, predicted == labels)


def folded(
    solve: Solver, features: np.ndarray, labels: np.ndarray, grid: Sequence[float], train: np.ndarray, test: np.ndarray
) -> Judged:
    """Ten folds of the training rows to choose by, then one classifier of all of them for the test rows.

    Source: SentEval's `KFoldClassifier`.

    Raises: Undefined as `nested` does.
    """
    fits = [Fit(rows, dev, dev) for rows, dev in _stratified(train, labels)]
    scores = _accuracies(solve(features, labels, fits, np.tile(grid, (len(fits), 1))), fits, labels).mean(axis=0)
    return _final(solve, features, labels, grid, scores, Fit(train, None, test))


def split(
    solve: Solver,
    features: np.ndarray,
    labels: np.ndarray,
    grid: Sequence[float],
    train: np.ndarray,
    dev: np.ndarray,
    test: np.ndarray,
) -> Judged:
    """Chosen, and stopped, on the development rows that come with the corpus.

    Source: SentEval's `SplitClassifier`.

    Raises: Undefined when a class has no training row.
    """
    fits = [Fit(train, dev, dev)]
    scores = _accuracies(solve(features, labels, fits, np.array([grid])), fits, labels)[0]
    return _final(solve, features, labels, grid, scores, Fit(train, dev, test))


def check(labels: np.ndarray, fits: Sequence[Fit]) -> int:
    """The number of classes, after seeing that every fit learns each of them.

    Raises: Undefined naming the class that a fit has no row of.
    """
    classes = int(labels.max()) + 1
    if classes < 2:
        raise Undefined(f"all {len(labels)} rows are of one class: there is nothing to tell apart")
    for at, fit in enumerate(fits):
        counts = np.bincount(labels[fit.train], minlength=classes)
        if not counts.all():
            raise Undefined(f"fold {at} has no training row of class {int(np.argmin(counts))}: give more rows")
    return classes


def _stratified(rows: np.ndarray, labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    names, counts = np.unique(labels[rows], return_counts=True)
    if len(names) < 2:
        raise Undefined(f"all {len(rows)} rows are of one class: there is nothing to tell apart")
    if counts.min() < FOLDS:
        raise Undefined(
            f"class {names[counts.argmin()]} has {counts.min()} of {len(rows)} rows, and {FOLDS} folds need one each: "
            "give more rows"
        )
    made = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(rows, labels[rows])
    return [(rows[train], rows[test]) for train, test in made]


def _accuracies(predicted: Sequence[np.ndarray], fits: Sequence[Fit], labels: np.ndarray) -> np.ndarray:
    """(fits, strengths), x 100."""
    return np.array([100 * (p == labels[fit.test]).mean(axis=1) for p, fit in zip(predicted, fits, strict=True)])


def _first_best(scores: np.ndarray) -> int:
    return int(np.argmax(np.round(scores, 2)))


def _final(
    solve: Solver, features: np.ndarray, labels: np.ndarray, grid: Sequence[float], scores: np.ndarray, fit: Fit
) -> Judged:
    at = _first_best(scores)
    predicted = solve(features, labels, [fit], np.array([[grid[at]]]))[0][0]
    right = predicted == labels[fit.test]
    return Judged(float(scores[at]), 100 * float(right.mean()), (float(grid[at]),), predicted, right)
