"""How sure a score is: bootstrap intervals of a Spearman and of two models' difference, and intervals over seeds.

The bootstrap takes the pairs as drawn independently. In some STS sets one sentence stands in several pairs, and some
pairs stand in two sets: there the intervals are a little too narrow.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float
from scipy import stats

from pcclab.evaluation.correlation import Undefined, spearman
from pcclab.evaluation.resampling import Seed, resampled
from pcclab.evaluation.significance import holm

if TYPE_CHECKING:
    import pandas as pd

AVERAGE = "average"


@dataclass(frozen=True)
class Interval:
    """A Spearman x 100 and the percentile interval of its bootstrap, at `level`."""

    value: float
    low: float
    high: float
    level: float
    resamples: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Difference:
    """First model's Spearman x 100 less the second's, with its interval.

    Args:
        value, low, high: the difference and its percentile interval at `level`.
        p: two-sided: twice the smaller share of resamples on one side of 0, both ends counted, at most 1.
        level, resamples: of the bootstrap.
        first, second: Spearman x 100 of each model.
    """

    value: float
    low: float
    high: float
    p: float
    level: float
    resamples: int
    first: float
    second: float

    @property
    def differs(self) -> bool:
        """Whether the interval leaves 0 out: the data tell the models apart."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}], p = {self.p:.2g}"


@dataclass(frozen=True)
class Spread:
    """A mean over seeds; interval and standard deviation are None for one seed, which has neither."""

    mean: float
    low: float | None
    high: float | None
    sd: float | None
    n: int

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.mean:.2f} (n = 1, no interval)"
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}] (n = {self.n})"


def bootstrap(
    similarity: Float[np.ndarray, " pairs"],
    gold: Float[np.ndarray, " pairs"],
    *,
    resamples: int = 10_000,
    seed: Seed = 0,
    level: float = 0.95,
) -> Interval:
    r"""A Spearman x 100 with the interval from the :math:`(1 \mp level) / 2` quantiles of its bootstrap over pairs.

    Args:
        similarity, gold: (pairs,) finite scores and ratings.
        resamples, seed: as in `resampled`.
        level: probability that the interval is to hold the population's value, between 0 and 1.

    Raises: as `resampled`; ValueError when `level` is outside 0..1.
    Source: Efron 1979; percentile interval.

    >>> gold = np.arange(200.0) % 6
    >>> print(bootstrap(gold + np.sin(np.arange(200.0)), gold, resamples=500))
    93.82 [92.37, 94.61]
    """
    ends = _ends(level)
    value = 100 * spearman(similarity, gold)
    drawn = 100 * resampled(np.asarray(similarity)[None], gold, resamples=resamples, seed=seed)[0]
    return Interval(value, *_quantiles(drawn, ends), level, resamples)


def compare(
    first: Float[np.ndarray, " pairs"],
    second: Float[np.ndarray, " pairs"],
    gold: Float[np.ndarray, " pairs"],
    *,
    resamples: int = 10_000,
    seed: Seed = 0,
    level: float = 0.95,
) -> Difference:
    """The paired bootstrap: difference of two models' Spearman x 100 on the same resamples of the same pairs.

    Args:
        first, second: (pairs,) finite scores of the two models, pair by pair the same.
        gold: (pairs,) finite ratings.
        resamples, seed, level: as in `bootstrap`.

    Raises: as `bootstrap`.
    Relations: `williams` asks the same without resampling, for normal data; models that rank alike differ by 0, p = 1.

    >>> gold = np.arange(200.0) % 6
    >>> noise = np.sin(np.arange(200.0))
    >>> print(compare(gold + noise, gold + 2 * noise, gold, resamples=500))
    +14.55 [+11.32, +18.64], p = 0.004
    """
    return _compared(first, second, gold, resamples, seed, level)[0]


def compare_tasks(
    tasks: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]],
    *,
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """`compare` on each task and on their average, with Holm's correction over the tasks.

    Each task has a stream of its own, `(seed, crc32(its name))`: tasks are independent, and a task's row does not
    depend on which others stand beside it. The r-th average is that of the tasks' r-th resamples.

    Args:
        tasks: task -> (first model's similarity, second's, gold), each (pairs,).
        resamples, seed, level: as in `bootstrap`.

    Returns: one row a task, then "average" when there are several: pairs, first, second, difference, low, high (x 100),
        p, p_holm, and `differs`: p_holm below 1 - level. The average is one question, so its p_holm is its p; `low` and
        `high` are those of a single comparison.
    Raises: as `compare`, with the task's name; ValueError when there are no tasks or one is named "average".
    """
    import pandas as pd

    if not tasks or AVERAGE in tasks:
        raise ValueError(f'tasks {list(tasks)}: give at least one, and none named "{AVERAGE}", the last row\'s name')
    rows: dict[str, dict[str, Any]] = {}
    drawn = []
    for name, (first, second, gold) in tasks.items():
        try:
            found, differences = _compared(first, second, gold, resamples, (seed, zlib.crc32(name.encode())), level)
        except ValueError as error:
            raise type(error)(f"{name}: {error}") from error
        rows[name] = _row(len(gold), found)
        drawn.append(differences)
    corrected = list(holm([row["p"] for row in rows.values()]))
    if len(rows) > 1:
        means = [float(np.mean([row[side] for row in rows.values()])) for side in ("first", "second")]
        pairs = sum(row["pairs"] for row in rows.values())
        whole = _difference(means[0], means[1], np.mean(drawn, axis=0), level)
        rows[AVERAGE] = _row(pairs, whole)
        corrected.append(whole.p)
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")
    frame["p_holm"] = corrected
    frame["differs"] = frame["p_holm"] < 1 - level
    return frame


def seeds(values: Sequence[float] | np.ndarray, *, level: float = 0.95) -> Spread:
    r"""Mean over seeds with Student's interval, :math:`\bar x \pm t_{n-1} \, s / \sqrt n`.

    Args:
        values: one finite score a seed; for a difference of two methods give the differences seed by seed.
        level: as in `bootstrap`.

    Returns: mean, interval, standard deviation (n - 1) and n; of one seed the mean alone.
    Raises: Undefined without values; ValueError when one is not finite or `level` is outside 0..1.

    >>> print(seeds([80.8, 81.0, 80.6]), "|", seeds([80.8]))
    80.80 [80.30, 81.30] (n = 3) | 80.80 (n = 1, no interval)
    """
    _, upper = _ends(level)
    scores = np.asarray(values, dtype=np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError(f"values {scores.tolist()}: give one finite score a seed; drop the failed run")
    if not len(scores):
        raise Undefined("no seeds have no mean: give at least 1 score")
    mean, n = float(scores.mean()), len(scores)
    if n == 1:
        return Spread(mean, None, None, None, 1)
    sd = float(scores.std(ddof=1))
    half = float(stats.t.ppf(upper, n - 1)) * sd / math.sqrt(n)
    return Spread(mean, mean - half, mean + half, sd, n)


def _compared(
    first: np.ndarray, second: np.ndarray, gold: np.ndarray, resamples: int, seed: Seed, level: float
) -> tuple[Difference, np.ndarray]:
    _ends(level)
    values = [100 * spearman(side, gold) for side in (first, second)]
    drawn = 100 * resampled(np.stack([first, second]), gold, resamples=resamples, seed=seed)
    differences = drawn[0] - drawn[1]
    return _difference(values[0], values[1], differences, level), differences


def _difference(first: float, second: float, drawn: np.ndarray, level: float) -> Difference:
    # One more resample on either side: no finite number of them shows a probability of 0.
    rarer = 1 + min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * rarer / (len(drawn) + 1))
    return Difference(first - second, *_quantiles(drawn, _ends(level)), p, level, len(drawn), first, second)


def _row(pairs: int, found: Difference) -> dict[str, Any]:
    names = ("first", "second", "low", "high", "p")
    row = {name: getattr(found, name) for name in names}
    return {"pairs": pairs, "first": row["first"], "second": row["second"], "difference": found.value, **row}


def _ends(level: float) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: give a probability between 0 and 1, such as 0.95")
    return (1 - level) / 2, (1 + level) / 2


def _quantiles(values: np.ndarray, ends: tuple[float, float]) -> tuple[float, float]:
    low, high = np.quantile(values, ends)
    return float(low), float(high)
