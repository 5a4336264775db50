"""How sure an accuracy is, and a difference of two accuracies on the same rows.

Test rows are taken as drawn independently and the classifiers as given: how much a classifier would change with other
training rows or another seed is in none of these intervals, nor is it in nested folds that nine tenths of any two
training sets are the same rows.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool
from scipy import stats

from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.significance import holm
from pcclab.evaluation.statistics import AVERAGE

if TYPE_CHECKING:
    import pandas as pd


def accuracy_interval(right: Bool[np.ndarray, " rows"], *, level: float = 0.95) -> tuple[float, float]:
    r"""The ends x 100 of Wilson's interval of a share: all p with :math:`|\hat p - p| \le z \sqrt{p (1 - p) / n}`.

    Args:
        right: whether each test row was classified right.
        level: probability that the interval is to hold the accuracy on further rows, between 0 and 1.

    Raises: Undefined without rows; ValueError when `level` is outside 0..1.
    Source: Wilson 1927.

    >>> [round(end, 2) for end in accuracy_interval(np.arange(500) < 450)]
    [87.06, 92.33]
    """
    if not len(right):
        raise Undefined("no test rows have no accuracy: give at least 1")
    return wilson(float(np.mean(right)), len(right), level=level)


def wilson(share: float, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """The same interval from the share of right rows, 0..1, and how many rows there are, at least 1."""
    _probable(level)
    z = float(stats.norm.ppf((1 + level) / 2))
    middle = share + z**2 / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    # Of none or all right one end is the share itself, which rounding may miss.
    return max(100 * (middle - half) / (1 + z**2 / n), 0.0), min(100 * (middle + half) / (1 + z**2 / n), 100.0)


def compare_answers(
    tasks: Mapping[str, tuple[np.ndarray, np.ndarray]], *, resamples: int = 10_000, seed: int = 0, level: float = 0.95
) -> pd.DataFrame:
    """The paired bootstrap of two classifiers' accuracies, by task and on average, with Holm's correction.

    Only rows that one of them has right and the other wrong tell them apart, and a resample of all rows is a
    multinomial draw of how many there are of either kind: none has to be drawn row by row.

    Args:
        tasks: task -> (whether the first has each row right, whether the second has), both (rows,).
        resamples: how many times n of the n rows are drawn.
        seed: each task has the stream `(seed, crc32(its name))`, whatever tasks stand beside it.
        level: of the intervals and of what counts as different.

    Returns: one row a task, then "average" when there are several: rows, first, second, difference, low, high (x 100),
        p, p_holm and `differs`, as `compare_tasks` has them.
    Raises: ValueError for no tasks, one named "average", unequal lengths, `resamples` below 1 or `level` outside 0..1;
        Undefined for a task without rows.

    >>> first, second = np.arange(500) < 450, np.arange(500) < 440
    >>> told = compare_answers({"trec": (first, second)}).loc["trec"]
    >>> float(told["difference"]), bool(told["differs"])
    (2.0, True)
    """
    import pandas as pd

    _probable(level)
    if not tasks or AVERAGE in tasks:
        raise ValueError(f'tasks {list(tasks)}: give at least one, and none named "{AVERAGE}", the last row\'s name')
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: draw at least 1, and 1,000 or more for an interval")
    rows: dict[str, dict[str, Any]] = {}
    drawn = []
    for name, (first, second) in tasks.items():
        if len(first) != len(second):
            raise ValueError(f"{name}: {len(first)} and {len(second)} rows: both classifiers answer the same ones")
        if not len(first):
            raise Undefined(f"{name}: no test rows have no accuracy: give at least 1")
        n, gained, lost = len(first), int((first & ~second).sum()), int((~first & second).sum())
        draws = np.random.default_rng((seed, zlib.crc32(name.encode())))
        counts = draws.multinomial(n, [gained / n, lost / n, 1 - (gained + lost) / n], size=resamples)
        drawn.append(100 * (counts[:, 0] - counts[:, 1]) / n)
        rows[name] = _row(n, 100 * float(first.mean()), 100 * float(second.mean()), drawn[-1], level)
    corrected = list(holm([row["p"] for row in rows.values()]))
    if len(rows) > 1:
        first_mean, second_mean = (float(np.mean([row[side] for row in rows.values()])) for side in ("first", "second"))
        whole = sum(row["rows"] for row in rows.values())
        rows[AVERAGE] = _row(whole, first_mean, second_mean, np.mean(drawn, axis=0), level)
        corrected.append(rows[AVERAGE]["p"])
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")
    frame["p_holm"] = corrected
    frame["differs"] = frame["p_holm"] < 1 - level
    return frame


def _row(rows: int, first: float, second: float, drawn: np.ndarray, level: float) -> dict[str, Any]:
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    rarer = 1 + min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    told = {"rows": rows, "first": first, "second": second, "difference": first - second}
    return {**told, "low": float(low), "high": float(high), "p": min(1.0, 2 * rarer / (len(drawn) + 1))}


def _probable(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: give a probability between 0 and 1, such as 0.95")
