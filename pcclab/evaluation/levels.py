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
        two_classes: the most that scores without ties reach whose order is chance inside two classes of the gold; a
            `spearman` above it is that of a model that knows more than two classes, whatever its noise.
        cut: lowest score of the upper group, at the split of the scores into two groups that agrees best.
        upper: share of the pairs in the upper group.
        between: Spearman of the two groups with the gold: the model made binary.
        within_low, within_high: Spearman inside the lower and the upper group; None where it is undefined.
        share_within: part of `spearman` that the order within the groups gives, below 0 when that order misleads; None
            when `spearman` is not above 0.
    """

    spearman: float
    levels: float
    two_classes: float
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

    *Reading them.* They grade accuracy in the ceiling paper's unit and do not count the values a model's scores take:
    1.5 levels (:math:`\rho` = .745) rank as well as an errorless scorer of two uneven levels, a quarter of the pairs in
    one and three quarters in the other; 2 as the best two-level scorer (.866); 3 as the best of three (.943). On one
    gold they rise with the Spearman and with nothing else. So above 2 the scores cannot be two-valued, but below 2 they
    need not be: noise lowers the levels as coarseness does. Whether a model is binary is told by what follows.

    *Two classes.* An encoder's cosines hardly ever tie, so it is not the two-valued scorer of the ceiling. One that
    knows two classes of the gold and orders them by chance inside reaches 3/4 of untied gold at most
    (`untied_ceiling`): a Spearman above `two_classes` refutes that without any further statistic.

    *Within and between.* The scores' centred mid-ranks S are split at the cut whose two groups have the best Spearman
    with the gold: :math:`S = \bar S + (S - \bar S)` with :math:`\bar S` the groups' means, which are the mid-ranks of
    the binary scores. Covariance with the gold's mid-ranks R adds up, and so does the Spearman:

    .. math:: \rho = \underbrace{\frac{\operatorname{cov}(\bar S, R)}{\sigma_S \sigma_R}}_{\rho_{between} \,
              \sigma_{\bar S} / \sigma_S} + \frac{\operatorname{cov}(S - \bar S, R)}{\sigma_S \sigma_R}, \qquad
              share_{within} = \frac{\operatorname{cov}(S - \bar S, R)}{\operatorname{cov}(S, R)}

    A scorer of two values has 0. Scores that follow untied gold are cut at the median and have 1/4, under normal noise
    .23 (even gold, some noise) to :math:`1 - 1/\sqrt 2 = .29` (normal gold, much noise): that, not 1, is what an
    encoder without any binary trait shows. Two classes that noise makes overlap lie between: under normal noise near 0
    at a Spearman of 75, .08 at 73, .14 at 69, and from about 50 downwards as high as without classes: there the share
    says nothing.

    Args:
        similarity, gold: (pairs,) finite scores and ratings.
        limit: most levels tried, at least 2.

    Returns: the levels and the split; of equally good cuts the lowest. Choosing the cut on the same pairs raises
        `between` a little when there are few.
    Raises: as `spearman`; ValueError when `limit` is below 2.
    Source: new; tests the premise of Pcc-tuning, section 2.3.
    Relations: blind to monotone maps of the scores, but for `cut`, which moves with them. The gold itself as scorer has
        as many levels as distinct values. `ceiling.on_gold` cuts the gold where this cuts the scores.
        `levels_interval` says how sure the numbers are.

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
    cut, between, share = split(np.asarray(similarity), ceiling.midranks(gold) - (len(gold) + 1) / 2)
    high = similarity >= cut
    low_inside, high_inside = _inside(similarity[~high], gold[~high]), _inside(similarity[high], gold[high])
    return Levels(
        spearman=100 * total,
        levels=levels_of(total, gold, most),
        two_classes=100 * untied_ceiling(gold),
        cut=cut,
        upper=float(high.mean()),
        between=100 * between,
        within_low=low_inside,
        within_high=high_inside,
        share_within=share if total > _ROUNDING else None,
    )


def untied_ceiling(gold: Float[np.ndarray, " pairs"], *, classes: SupportsIndex = 2) -> float:
    r"""The best expected Spearman of scores without ties that know `classes` classes of the gold and nothing within.

    Such scores are independent of the gold once the class is given. The covariance with the gold's mid-ranks is then
    that of the classes' mean ranks alone, greatest when the classes do not overlap, and there the same as that of the
    scorer of so many *values*; but the ranks of untied scores spread over all n places:

    .. math:: \rho_{untied} = \frac{n^3 - \sum_j t_j^3}{\sqrt{(n^3 - \sum_i g_i^3)(n^3 - n)}}
                            \;\longrightarrow\; 1 - \frac{1}{m^2}

    for class sizes t and sizes g of the gold's ties; the limit is that of m equal classes and untied gold, 3/4 for two.

    Args:
        gold: (pairs,) ratings.
        classes: how many, 2 to the number of distinct ratings.

    Returns: the expectation over the order within the classes, 0 to 1; one sample strays from it with
        a standard deviation of about :math:`0.26 / \sqrt n` (two classes).
    Raises: as `pcclab.ceiling.on_gold`.
    Source: new; the ceiling of Pcc-tuning, section 2.3, for scores that do not tie.
    Relations: with ties inside the classes it is `ceiling.on_gold`, whose square this is on untied gold.

    >>> round(untied_ceiling(np.arange(1000.0)), 4), round(untied_ceiling(np.arange(1000.0), classes=4), 4)
    (0.75, 0.9375)
    """
    tied = ceiling.on_gold(gold, levels=classes).value
    n = len(gold)
    _, ties = np.unique(gold, return_counts=True)
    spread = (n**3 - float((ties.astype(np.float64) ** 3).sum())) / (n**3 - n)
    return tied**2 * math.sqrt(spread)


def levels_of(value: float, gold: np.ndarray, limit: int) -> float:
    """The effective levels of a Spearman on this gold, as `effective_levels` says."""
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


def split(similarity: np.ndarray, rated: np.ndarray) -> tuple[float, float, float | None]:
    """The best cut, the Spearman of its two groups, and the share within; from the gold's centred mid-ranks."""
    cut, between = _best_cut(similarity, rated)
    ranks = ceiling.midranks(similarity) - (len(rated) + 1) / 2
    high = similarity >= cut
    means = np.where(high, ranks[high].mean(), ranks[~high].mean())
    whole = float(ranks @ rated)
    return cut, between, float((ranks - means) @ rated) / whole if whole > 0 else None


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
