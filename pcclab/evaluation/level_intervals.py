"""How sure effective levels are: percentile intervals of them and of the share within, from a bootstrap over pairs."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float

from pcclab import ceiling
from pcclab.evaluation.levels import LIMIT, levels_of, split
from pcclab.evaluation.resampling import Seed
from pcclab.evaluation.statistics import bootstrap

Ends = tuple[float, float]


@dataclass(frozen=True)
class LevelsInterval:
    """Percentile intervals, lower and upper end, of what `effective_levels` gives.

    Args:
        spearman, levels, share_within: the ends; `share_within` is None where a resample has none.
        level, resamples: of the bootstrap.
    """

    spearman: Ends
    levels: Ends
    share_within: Ends | None
    level: float
    resamples: int


def levels_interval(
    similarity: Float[np.ndarray, " pairs"],
    gold: Float[np.ndarray, " pairs"],
    *,
    resamples: int = 1000,
    seed: Seed = 0,
    level: float = 0.95,
    limit: SupportsIndex = LIMIT,
) -> LevelsInterval:
    """Percentile intervals of `effective_levels` from a bootstrap over pairs; the cut is chosen anew in each resample.

    Args:
        similarity, gold, limit: as in `effective_levels`.
        resamples, seed, level: as in `evaluation.bootstrap`, whose resamples these are.

    Returns: the intervals. Levels rise with the Spearman, so their ends are those of its ends, on the gold as given.
    Raises: as `effective_levels` and `evaluation.bootstrap`.
    """
    whole = bootstrap(similarity, gold, resamples=resamples, seed=seed, level=level)
    generator, n = np.random.default_rng(seed), len(gold)
    shares: list[float | None] = []
    for _ in range(resamples):
        drawn = generator.integers(0, n, n, dtype=np.uint32)
        rated = ceiling.midranks(gold[drawn]) - (n + 1) / 2
        shares.append(split(similarity[drawn], rated)[2])
    ends = None
    if None not in shares:
        low, high = np.quantile(np.array(shares, dtype=np.float64), [(1 - level) / 2, (1 + level) / 2])
        ends = (float(low), float(high))
    most = operator.index(limit)
    levels = (levels_of(whole.low / 100, gold, most), levels_of(whole.high / 100, gold, most))
    return LevelsInterval((whole.low, whole.high), levels, ends, level, resamples)
