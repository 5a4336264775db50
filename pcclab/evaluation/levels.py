r"""How binary a model's scores are: does the ceiling of few-level scorers describe it, or is it assumed?

The ceiling paper takes a contrastive encoder for a scorer of two levels. Spearman sees the order of the scores alone,
not their histogram, so the question is one of order: how many levels would the best scorer need to do as well, and how
much of what the model gains lies between two groups of its scores, how much within them.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float

from pcclab import ceiling
from pcclab.evaluation.correlation import Undefined, spearman

LIMIT = 64
_ROUNDING = 1e-12  # two ways to compute the same Spearman differ by less


@dataclass(frozen=True)
class Levels:
    """How binary a model's scores are; every Spearman is x 100.

    Args:
        spearman: of the scores with the gold.
        levels: effective levels, continuous; `math.ceil` of it is the fewest levels that reach `spearman`. 1 when the
            scores agree no better than a constant, infinity when more than the limit are needed.
        cut: lowest score of the upper group, at the split of the scores into two groups that agrees best.
        upper: share of the pairs in the upper group.
        between: Spearman of the two groups with the gold: the model made binary.
        within_low, within_high: Spearman inside the lower and the upper group; None where it is undefined.
        share_within: part of `spearman` that the order within the groups gives, below 0 when that order misleads; None
            when `spearman` is not above 0.
    """

    spearman: float
    levels: float
    cut: float
    upper: float
    between: float
    within_low: float | None
    within_high: float | None
    share_within: float | None


def effective_levels(
    similarity: Float[np.ndarray, " pairs"], gold: Float[np.ndarray, " pairs"], *, limit: SupportsIndex = LIMIT
) -> Levels:
    r"""Effective levels of a model's scores, and what the order within two groups of them adds.

    *Levels.* With :math:`\rho_m` the best Spearman of m levels on this gold (`pcclab.ceiling.on_gold`,
    :math:`\rho_1 = 0`) and m the first that reaches the model's :math:`\rho`, the levels are interpolated between m - 1
    and m, linearly in the number of *equal* levels

    .. math:: h(\rho) = \left(1 - \rho^2 \, (1 - \textstyle\sum_t q_t^3)\right)^{-1/2}

    where q are the shares of the gold's ties: m equal levels on gold without ties have :math:`h(\rho_m) = m`, so there
    the levels are h itself, :math:`1 / \sqrt{1 - \rho^2}`, the Hill number of order 3 of a best scorer's level shares.

    *Within and between.* The scores' centred mid-ranks S are split at the cut whose two groups have the best Spearman
    with the gold: :math:`S = \bar S + (S - \bar S)` with :math:`\bar S` the groups' means, which are the mid-ranks of
    the binary scores. Covariance with the gold's mid-ranks R adds up, and so does the Spearman:

    .. math:: \rho = \underbrace{\frac{\operatorname{cov}(\bar S, R)}{\sigma_S \sigma_R}}_{\rho_{between} \,
              \sigma_{\bar S} / \sigma_S} + \frac{\operatorname{cov}(S - \bar S, R)}{\sigma_S \sigma_R}, \qquad
              share_{within} = \frac{\operatorname{cov}(S - \bar S, R)}{\operatorname{cov}(S, R)}

    A scorer of two values has 0. Scores that follow untied gold are cut at the median and have 1/4, under normal noise
    up to :math:`1 - 1/\sqrt 2 = 0.29`: that, not 1, is what an encoder without any binary trait shows.

    Args:
        similarity, gold: (pairs,) finite scores and ratings.
        limit: most levels tried, at least 2.

    Returns: the levels and the split; of equally good cuts the lowest. Choosing the cut on the same pairs raises
        `between` a little when there are few.
    Raises: as `spearman`; ValueError when `limit` is below 2.
    Source: new; tests the premise of Pcc-tuning, section 2.3.
    Relations: blind to monotone maps of the scores, but for `cut`, which moves with them. The gold itself as scorer has
        as many levels as distinct values. `ceiling.on_gold` cuts the gold where this cuts the scores. Noise lowers the
        levels as coarseness does; `share_within` tells them apart.

    >>> found = effective_levels(np.array([0.1, 0.1, 0.9, 0.9]), np.array([1.0, 2.0, 3.0, 4.0]))
    >>> found.levels, found.cut, round(found.between, 2), found.share_within
    (2.0, 0.9, 89.44, 0.0)
    >>> effective_levels(np.arange(100.0), np.arange(100.0), limit=200).levels
    100.0
    """
    most = operator.index(limit)
    if most < 2:
        raise ValueError(f"limit={most}: allow at least 2 levels")
    total = spearman(similarity, gold)
    ranks, rated = (ceiling.midranks(side) - (len(gold) + 1) / 2 for side in (similarity, gold))
    cut, between = _best_cut(similarity, rated)
    high = similarity >= cut
    level_means = np.where(high, ranks[high].mean(), ranks[~high].mean())
    share = float((ranks - level_means) @ rated / (ranks @ rated)) if total > _ROUNDING else None
    low_inside, high_inside = _inside(similarity[~high], gold[~high]), _inside(similarity[high], gold[high])
    levels = _levels(total, gold, most)
    return Levels(100 * total, levels, cut, float(high.mean()), 100 * between, low_inside, high_inside, share)


def _levels(value: float, gold: np.ndarray, limit: int) -> float:
    if value <= 0:
        return 1.0
    _, ties = np.unique(gold, return_counts=True)
    untied = 1 - float(((ties / len(gold)) ** 3).sum())
    most = min(limit, len(ties))
    reached = {1: 0.0}

    def reaches(m: int) -> bool:
        reached[m] = ceiling.on_gold(gold, levels=m).value
        return reached[m] >= value - _ROUNDING

    # A best scorer of m levels takes time in proportion to m: double m, then halve what is left.
    low, high = 1, 2
    while not reaches(high):
        if high == most:
            return math.inf
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    below, here, above = ((1 - rho**2 * untied) ** -0.5 for rho in (reached[low], value, reached[high]))
    return low + min(1.0, (here - below) / (above - below))


def _best_cut(similarity: np.ndarray, rated: np.ndarray) -> tuple[float, float]:
    """Lowest score of the upper group and the Spearman of the two groups, from the gold's centred mid-ranks."""
    order = np.argsort(similarity, kind="stable")
    scores, n = similarity[order], len(order)
    starts = np.flatnonzero(np.diff(scores)) + 1
    # 0 for k lower pairs and 1 for the others: the sum of products is that of the upper ranks, minus that of the lower
    # ones as all sum to 0, and the sum of squares about the mean is k (n - k) / n.
    lower = np.cumsum(rated[order])[starts - 1]
    values = -lower * math.sqrt(n) / np.sqrt(starts * (n - starts) * float(rated @ rated))
    best = int(np.argmax(values))
    return float(scores[starts[best]]), min(1.0, float(values[best]))


def _inside(similarity: np.ndarray, gold: np.ndarray) -> float | None:
    try:
        return 100 * spearman(similarity, gold)
    except Undefined:
        return None
