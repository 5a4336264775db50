"""Intervals: of STS tasks over their pairs, of transfer tasks over their test rows, of geometry over its sentences."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pcclab.evaluation.answers import wilson
from pcclab.evaluation.correlation import Undefined, spearman
from pcclab.evaluation.geometry import alignment, anisotropy, uniformity
from pcclab.evaluation.resampling import resampled

if TYPE_CHECKING:
    import pandas as pd

    from pcclab.evaluation.transfer_results import TransferScore

AVERAGE = "average"
Row = tuple[str, int, float, float, float]


def sts_intervals(
    scored: Mapping[str, tuple[np.ndarray, np.ndarray]],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Spearman x 100 of each task with the percentile interval of its bootstrap over the pairs, and their average.

    Args:
        scored: task -> (similarity, gold), each (pairs,).
        resamples, seed, level: as in `bootstrap`; each task has a stream of its own.

    Returns: columns task, number (pairs), value, low, high; the average last, over the tasks' r-th resamples. NaN where
        a task is undefined, and then for the average too.

    Raises: ValueError when `level` is outside 0..1 or `resamples` below 1.
    """
    ends, rows, drawn = _ends(level), [], []
    for task, (similarity, gold) in scored.items():
        stream = (seed, zlib.crc32(task.encode()))
        try:
            value = 100 * spearman(similarity, gold)
            means = 100 * resampled(np.asarray(similarity)[None], gold, resamples=resamples, seed=stream)[0]
        except Undefined:
            value, means = float("nan"), np.full(resamples, np.nan)
        rows.append(_row(task, len(gold), value, means, ends))
        drawn.append(means)
    return _frame(rows, drawn, ends)


def accuracy_intervals(
    tasks: Mapping[str, TransferScore], *, resamples: int = 10_000, seed: int = 0, level: float = 0.95
) -> pd.DataFrame:
    """Accuracy x 100 of each transfer task with Wilson's interval, and their average with its bootstrap.

    A resample of rows that are right or wrong has a binomial number of right ones: nothing but the accuracy and the
    number of rows is needed. The classifiers stay as they were trained, so what another training set would change is
    in neither interval.

    Args:
        tasks: as in `TransferResults.tasks`; where folds are nested every row is a test row once.
        resamples, seed: of the average's bootstrap.
        level: as in `sts_intervals`.

    Returns, Raises: as `sts_intervals`; `number` counts the test rows.
    Relations: `accuracy_interval`, from the rows themselves.
    """
    ends, rows, drawn = _ends(level), [], []
    for task, score in tasks.items():
        if score.accuracy is None:
            rows.append((task, score.test, float("nan"), float("nan"), float("nan")))
            drawn.append(np.full(resamples, np.nan))
            continue
        draw = np.random.default_rng((seed, zlib.crc32(task.encode())))
        share = min(max(score.accuracy / 100, 0.0), 1.0)
        rows.append((task, score.test, score.accuracy, *wilson(share, score.test, level=level)))
        drawn.append(100 * draw.binomial(score.test, share, size=resamples) / score.test)
    return _frame(rows, drawn, ends)


def geometry_intervals(
    first: np.ndarray,
    second: np.ndarray,
    vectors: np.ndarray,
    *,
    resamples: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    t: float = 2.0,
) -> pd.DataFrame:
    r"""Alignment, uniformity, mean cosine and the share of the first component, with bootstrap intervals.

    Alignment is a mean over positive pairs, which are drawn; uniformity and the mean cosine are means over pairs of
    sentences, which are drawn: with a sentence i drawn :math:`w_i` times, the pair i, j counts :math:`w_i w_j`, and a
    sentence is never paired with a copy of itself. The first component's share has no interval here.

    Args:
        first, second: (positives, dim) both sides of the positive pairs.
        vectors: (sentences, dim) of distinct sentences; the kernel matrix of all of them is held at once.
        resamples, seed, level: of the bootstrap.
        t: as in `uniformity`.

    Returns: columns task (the measure's name), number (pairs or sentences), value, low, high.

    Raises: as `alignment`, `uniformity` and `anisotropy`.
    """
    import pandas as pd

    ends, draw = _ends(level), np.random.default_rng(seed)
    value, spread = alignment(first, second), anisotropy(vectors)
    squares = np.square(_unit(first) - _unit(second)).sum(axis=1)
    counts = draw.multinomial(len(squares), np.full(len(squares), 1 / len(squares)), size=resamples)
    rows = [_row("alignment", len(squares), value, counts @ squares / len(squares), ends)]
    unit = _unit(vectors)
    number = len(unit)
    cosines = unit @ unit.T
    weights = draw.multinomial(number, np.full(number, 1 / number), size=resamples).T.astype(float)
    pairs = np.square(weights.sum(axis=0)) - np.square(weights).sum(axis=0)
    kernel = np.exp(2 * t * (np.minimum(cosines, 1) - 1))
    means = [(_quadratic(matrix, weights)) / pairs for matrix in (kernel, cosines)]
    rows.append(_row("uniformity", number, uniformity(vectors, t=t).value, np.log(means[0]), ends))
    rows.append(_row("mean cosine", number, spread.cosine, means[1], ends))
    share = float("nan") if spread.first_share is None else spread.first_share
    rows.append(("first component's share", number, share, float("nan"), float("nan")))
    return pd.DataFrame(rows, columns=["task", "number", "value", "low", "high"])


def _quadratic(matrix: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted sum over pairs of different rows, for each column of weights."""
    inside = matrix.copy()
    np.fill_diagonal(inside, 0.0)
    return np.asarray(np.einsum("nr,nr->r", weights, inside @ weights))


def _unit(rows: np.ndarray) -> np.ndarray:
    rows = np.asarray(rows, dtype=np.float64)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _frame(rows: list[Row], drawn: list[np.ndarray], ends: tuple[float, float]) -> pd.DataFrame:
    import pandas as pd

    if len(rows) > 1:
        value = float(np.mean([row[2] for row in rows]))
        rows = [*rows, _row(AVERAGE, sum(row[1] for row in rows), value, np.mean(drawn, axis=0), ends)]
    return pd.DataFrame(rows, columns=["task", "number", "value", "low", "high"])


def _row(name: str, number: int, value: float, drawn: np.ndarray, ends: tuple[float, float]) -> Row:
    low, high = (np.nan, np.nan) if np.isnan(value) else np.quantile(drawn, ends)
    return name, number, value, float(low), float(high)


def _ends(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: give a probability between 0 and 1, such as 0.95")
    return (1 - level) / 2, (1 + level) / 2
