r"""How high a scorer with few levels can reach on Spearman.

Everything here follows from one fact. Let the gold values have mid-ranks :math:`R` and let a scorer put the pairs into
ordered groups that hold shares :math:`p_1, \dots, p_m` of them, no gold tie being cut in two. Its mid-ranks :math:`S`
are then the group means of :math:`R`, so :math:`\operatorname{cov}(S, R) = \operatorname{var}(S)` and

.. math:: \rho = \sqrt{\operatorname{var} S / \operatorname{var} R}
               = \sqrt{\frac{1 - \sum_j p_j^3}{1 - \sum_t q_t^3}}

with :math:`q_t` the shares of the gold's own ties (a distinct value holds :math:`1/n`). Equation 2 of the paper on the
same mid-ranks of untied gold gives :math:`(1 + \rho^2) / 2`: never below :math:`\rho`, and 1/2 for a constant scorer.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

Formula = Literal["midrank", "paper"]

PAPER_LIMIT = 7 / 8  # two equal levels, n to infinity, by equation 2
MIDRANK_LIMIT = math.sqrt(3) / 2  # the same scorer's Spearman as scipy and SentEval compute it
_MOST = 2_000_000  # the cube of the number of pairs has to fit 64 bits


def binary(n: SupportsIndex | float, k: SupportsIndex | None = None, *, formula: Formula = "midrank") -> float:
    r"""The Spearman of the optimal two-level scorer over `n` pairs with distinct gold values.

    .. math:: \rho_{midrank} = \sqrt{\frac{3 k (n - k)}{n^2 - 1}}, \qquad
              \rho_{paper} = 1 - \frac{6 \sum d_i^2}{n (n^2 - 1)} = \frac{1 + \rho_{midrank}^2}{2}

    Args:
        n: number of pairs, at least 2, or `math.inf` for the limit (then without `k`).
        k: number of pairs called similar, 1 to n - 1; None takes the best, the whole part of n / 2.
        formula: "midrank" is Pearson on mid-ranks, what scipy and SentEval compute; "paper" is equation 2 on mid-ranks.
    Raises: ValueError when `n` or `k` is outside its range.
    Source: Pcc-tuning, equations 2 to 7 and appendix C (equation 5's third line sums to k where n is meant).
    Departs: the default is the mid-rank Spearman; k is a whole number where equation 7 takes n / 2 for every n, and for
        odd n both formulas give their limits exactly.
    Relations: `from_shares` is the limit of many pairs, `on_gold` the same question for gold values with ties.

    >>> round(binary(10, formula="paper"), 5), round(binary(10), 5)
    (0.87879, 0.87039)
    >>> binary(math.inf, formula="paper"), round(binary(math.inf), 7)
    (0.875, 0.8660254)
    """
    if n == math.inf and k is None:
        return levels(2, formula=formula)
    count = _whole("n", n, 2, math.inf, "two pairs make a rank, math.inf is for k=None")
    top = _whole("k", count // 2 if k is None else k, 1, count - 1, "beyond, the score is constant, Spearman undefined")
    return _by(3 * top * (count - top) / (count**2 - 1), formula)


def levels(m: SupportsIndex, *, formula: Formula = "midrank") -> float:
    r"""The Spearman of `m` equal levels over very many distinct gold values: the best that m levels can do.

    .. math:: \rho_{midrank} = \sqrt{1 - 1/m^2}, \qquad \rho_{paper} = 1 - \frac{1}{2 m^2}

    Args: m: number of levels; formula: for ties ("midrank") or the paper's, without ("paper").
    Raises: ValueError when `m` is below 2.
    Source: Pcc-tuning, equation 7, is m = 2 by "paper"; the others follow in the same way.
    Relations: `from_shares` with m equal shares; equal ones are best because :math:`\sum p_j^3` is convex.

    >>> round(levels(5), 4), round(levels(2), 4), levels(2, formula="paper")
    (0.9798, 0.866, 0.875)
    """
    count = _whole("m", m, 2, math.inf, "one level is a constant score and Spearman undefined")
    return _by(1 - 1 / count**2, formula)


def from_shares(shares: ArrayLike, *, formula: Formula = "midrank") -> float:
    r"""The Spearman of a scorer whose levels hold these shares of very many distinct gold values, in the right order.

    .. math:: \rho_{midrank} = \sqrt{1 - \sum_j p_j^3}, \qquad \rho_{paper} = 1 - \frac{1}{2} \sum_j p_j^3

    Args:
        shares: (levels,) positive, with sum 1; for two levels :math:`1 - p^3 - (1 - p)^3 = 3 p (1 - p)`.
        formula: as `levels`.
    Raises: ValueError when fewer than two shares are given, one is not positive or the sum is not 1.

    >>> round(from_shares([0.2, 0.8]), 4), round(from_shares([0.2, 0.8], formula="paper"), 4)
    (0.6928, 0.74)
    """
    parts = np.asarray(shares, dtype=float)
    if parts.ndim != 1 or parts.size < 2 or not (parts > 0).all() or not math.isclose(parts.sum(), 1, abs_tol=1e-9):
        raise ValueError(f"shares={parts.tolist()}: give two or more positive shares whose sum is 1")
    return _by(1 - float((parts**3).sum()), formula)


@dataclass(frozen=True)
class Ceiling:
    """What the best scorer with few levels reaches on given gold values: that scorer is `np.digitize(gold, cuts)`.

    Attributes:
        value: its mid-rank Spearman.
        cuts: the lowest gold value of every level but the first, ascending.
        shares: the share of the pairs in each level, lowest level first.
    """

    value: float
    cuts: tuple[float, ...]
    shares: tuple[float, ...]


def on_gold(gold: ArrayLike, levels: SupportsIndex = 2) -> Ceiling:
    r"""The exact best mid-rank Spearman of any scorer with at most `levels` distinct scores on these gold values.

    Why it is exact, for any ties in the gold:

    1. Given the group sizes, :math:`\operatorname{var} S` is fixed and the covariance is largest when the groups follow
       the gold (rearrangement): only the cuts in the sorted gold are left to choose.
    2. A cut inside a gold tie never helps. As one cut moves through a tie, the others fixed, the covariance :math:`l`
       is linear and :math:`V = \operatorname{var} S` a concave parabola; wherever :math:`l / \sqrt V` is stationary its
       logarithm has second derivative :math:`V'^2 / 4 V^2 - V'' / 2 V > 0`, a minimum. So the cut goes to an end of
       the tie, or onto its neighbour and there is one level fewer.
    3. With whole ties, :math:`\rho^2 = (n^3 - \sum t_j^3) / (n^3 - \sum g_i^3)` for group sizes :math:`t_j` and tie
       sizes :math:`g_i`: least sum of cubes, a shortest path over the distinct values, lower with every level more.

    Args:
        gold: (pairs,) human ratings, at least two different ones, at most 2,000,000 pairs.
        levels: distinct scores allowed, 2 to the number of distinct gold values (where the ceiling is 1).
    Returns: value, cuts and shares; of several best scorers the one whose cuts, read from the highest, are lowest.
    Raises: ValueError when `gold` holds fewer than two values, NaN or infinity, or only one distinct value, or when
        `levels` is below 2 or above what the gold can use.
    Source: extends Pcc-tuning, section 2.3, to ties in the gold and any number of levels.
    Relations: equals `binary(n)` on distinct values; only ranks matter, so it is blind to monotone maps of the gold.

    >>> on_gold([0, 1, 1, 2, 3, 3, 4, 5])
    Ceiling(value=0.8834522085987724, cuts=(3.0,), shares=(0.5, 0.5))
    """
    ratings = _ratings(gold, "gold")
    distinct, counts = np.unique(ratings, return_counts=True)
    groups = _whole(
        "levels", levels, 2, distinct.size, "one is constant, more than the distinct gold values are no use"
    )
    edges = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    inner = _least_cubes(edges, groups)
    sizes = np.diff(edges[[0, *inner, distinct.size]])
    total = ratings.size**3
    square = (total - int((sizes**3).sum())) / (total - int((counts.astype(np.int64) ** 3).sum()))
    return Ceiling(math.sqrt(square), tuple(distinct[inner].tolist()), tuple((sizes / ratings.size).tolist()))


def midranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1, equal values sharing the mean of theirs. Args: values: (n,) in any order.

    >>> midranks([3, 1, 3, 2]).tolist()
    [3.5, 1.0, 3.5, 2.0]
    """
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return ranks


def spearman(similarity: ArrayLike, gold: ArrayLike) -> float:
    """Spearman's correlation: Pearson's on the mid-ranks of both sides. Args: similarity, gold: (pairs,).
    Raises: ValueError when the sizes differ, a value is not finite, or one side is constant.

    >>> round(spearman([0, 0, 1, 1], [1, 2, 3, 4]), 4)
    0.8944
    """
    scores, ratings = _ratings(similarity, "similarity"), _ratings(gold, "gold")
    if scores.size != ratings.size:
        raise ValueError(f"{scores.size} similarities against {ratings.size} gold values: give one of each per pair")
    first, second = midranks(scores), midranks(ratings)
    first, second = first - first.mean(), second - second.mean()
    return float(first @ second / math.sqrt((first @ first) * (second @ second)))


def sigmoid_scorer(gold: ArrayLike, hardness: float, *, share: float = 0.5, decimals: int = 6) -> NDArray[np.float64]:
    r"""Scores in the order of the gold that harden from its full ranking to a step with `share` of the pairs above.

    .. math:: s_i = \operatorname{round}(\sigma(h \, (u_i - 1 + p))), \qquad u_i = (R_i - 1/2) / n

    Args:
        gold: (pairs,) ratings; only their mid-ranks R count.
        hardness: slope h per unit of rank share, above 0: about 1 is nearly linear, above 30 n a step.
        share: p, the share of the pairs on the upper side, between 0 and 1.
        decimals: places the scores are rounded to, because a sigmoid ties nothing before rounding does.
    Returns: (pairs,) scores in [0, 1].
    Raises: ValueError when `hardness` or `share` is outside its range.

    >>> sigmoid_scorer([1, 2, 3, 4], 8.0, decimals=2).tolist(), sigmoid_scorer([1, 2, 3, 4], 400.0).tolist()
    ([0.05, 0.27, 0.73, 0.95], [0.0, 0.0, 1.0, 1.0])
    """
    if not hardness > 0 or not 0 < share < 1:
        raise ValueError(f"hardness={hardness}, share={share}: hardness must be above 0 and share between 0 and 1")
    ratings = _ratings(gold, "gold")
    place = (midranks(ratings) - 0.5) / ratings.size
    # tanh, unlike exp, cannot overflow.
    scores: NDArray[np.float64] = np.round(0.5 + 0.5 * np.tanh(hardness * (place - 1 + share) / 2), decimals)
    return scores


def _least_cubes(edges: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """Indices of the inner edges that split `edges[-1]` items into `groups` runs with the least sum of cubed sizes.

    Cubes of run lengths satisfy the quadrangle inequality, so the best last cut moves right with the end of the run,
    and halving the ends fills a layer in O(K log K) where trying every cut would take O(K^2).
    """
    last = edges.size - 1
    cost, choices = edges**3, []
    for used in range(2, groups + 1):
        best, choice = np.zeros_like(cost), np.zeros_like(cost)
        spans = [(used, last, used - 1, last - 1)]
        while spans:
            low, high, left, right = spans.pop()
            middle = (low + high) // 2
            runs = edges[middle] - edges[left : min(right, middle - 1) + 1]
            costs = cost[left : left + runs.size] + runs * runs * runs
            cut = left + int(costs.argmin())
            best[middle], choice[middle] = costs[cut - left], cut
            halves = (low, middle - 1, left, cut), (middle + 1, high, cut, right)
            spans += [half for half in halves if half[0] <= half[1]]
        cost = best
        choices.append(choice)
    cuts = [last]
    for choice in reversed(choices):
        cuts.append(int(choice[cuts[-1]]))
    return np.array(cuts[:0:-1])


def _by(square: float, formula: Formula) -> float:
    if formula not in ("midrank", "paper"):
        raise ValueError(f"formula={formula!r} is unknown: use 'midrank' or 'paper'")
    return math.sqrt(square) if formula == "midrank" else (1 + square) / 2


def _whole(name: str, value: Any, low: int, high: float, why: str) -> int:
    number = operator.index(value) if hasattr(value, "__index__") else low - 1
    if not low <= number <= high:
        span = f"at least {low}" if high == math.inf else f"from {low} to {high}"
        raise ValueError(f"{name}={value} must be an integer {span}: {why}")
    return number


def _ratings(values: ArrayLike, name: str) -> NDArray[np.float64]:
    ratings = np.asarray(values, dtype=float)
    if ratings.ndim != 1 or not 2 <= ratings.size <= _MOST:
        raise ValueError(f"{name} has shape {ratings.shape}: give one row of 2 to {_MOST:,} values")
    for row in np.flatnonzero(~np.isfinite(ratings)):
        raise ValueError(f"{name}[{row}] is {ratings[row]}: every value must be finite; drop or mend that row")
    if (ratings == ratings[0]).all():
        raise ValueError(f"all {ratings.size} values of {name} are {ratings[0]:g}: Spearman is undefined on a constant")
    return ratings
