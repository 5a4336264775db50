"""Tests and their correction: Williams' test of two correlations with the same gold, and Holm's over many tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from scipy import stats

from pcclab.evaluation.correlation import Undefined, pearson, spearman

Correlation = Literal["spearman", "pearson"]
_ROUNDING = 1e-9  # how far rounding may push the determinant of three correlations below 0


@dataclass(frozen=True)
class Williams:
    """Williams' t, its degrees of freedom and two-sided p; above 0 the first correlation is the larger."""

    t: float
    df: int
    p: float


def williams(
    first: Float[np.ndarray, " pairs"],
    second: Float[np.ndarray, " pairs"],
    gold: Float[np.ndarray, " pairs"],
    *,
    correlation: Correlation = "pearson",
) -> Williams:
    """Williams' test on two models' scores of the same pairs: do they correlate equally with the gold?

    Args:
        first, second: (pairs,) finite scores of the two models.
        gold: (pairs,) finite ratings.
        correlation: "pearson", for which the test was derived, or "spearman", for which it is too eager: mid-ranks
            spread more than normal data do, so at Spearman 85 models that are equally good are told apart at the 5 %
            level in 7 to 9 % of simulated sets, however many their pairs. For a Spearman use `compare`.

    Raises: as `spearman` and `williams_from`; ValueError for an unknown `correlation`.
    Relations: `compare` asks the same by resampling and supposes no distribution.

    >>> gold = np.arange(40.0)
    >>> found = williams(gold + 9 * np.sin(gold), gold + 9 * np.cos(2 * gold), gold)
    >>> round(found.t, 3), found.df, round(found.p, 3)
    (0.098, 37, 0.922)
    """
    if correlation not in ("spearman", "pearson"):
        raise ValueError(f"correlation={correlation!r} is unknown: use 'spearman' or 'pearson'")
    measure = spearman if correlation == "spearman" else pearson
    return williams_from(measure(first, gold), measure(second, gold), measure(first, second), len(gold))


def williams_from(r12: float, r13: float, r23: float, n: int) -> Williams:
    r"""Williams' test from the correlations themselves: is r12 equal to r13, the variable 1 being shared?

    .. math:: t_{n-3} = (r_{12} - r_{13}) \sqrt{\frac{(n-1)(1 + r_{23})}
                        {2 \frac{n-1}{n-3} |R| + \bar r^2 (1 - r_{23})^3}}, \qquad
              |R| = 1 - r_{12}^2 - r_{13}^2 - r_{23}^2 + 2 r_{12} r_{13} r_{23},
              \quad \bar r = \tfrac12 (r_{12} + r_{13})

    Args:
        r12, r13: correlations of the first and of the second model with the gold.
        r23: correlation of the two models with each other.
        n: number of pairs, at least 4.

    Returns: t, n - 3 and the two-sided p; equal correlations give t = 0, p = 1 whatever r23.
    Raises: ValueError when a correlation is outside -1..1 or no data can have these three; Undefined when n is below 4
        or the denominator is 0.
    Source: Williams 1959, in the form of Steiger 1980, equation 7. His case A, n = 103 and .4, .5, .1, gives -0.89.

    >>> found = williams_from(0.4, 0.5, 0.1, 103)
    >>> round(found.t, 4), found.df, round(found.p, 4)
    (-0.8913, 100, 0.3749)
    """
    for name, value in (("r12", r12), ("r13", r13), ("r23", r23)):
        if not -1 <= value <= 1:
            raise ValueError(f"{name}={value}: a correlation lies in -1..1 (divide a score x 100 by 100)")
    if n < 4:
        raise Undefined(f"n={n}: the test has n - 3 degrees of freedom; give at least 4 pairs")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if determinant < -_ROUNDING:
        raise ValueError(
            f"r12={r12}, r13={r13}, r23={r23}: no data have these three (determinant {determinant:.3g}, 0 or more is "
            "possible); take all three from the same pairs"
        )
    if r12 == r13:
        return Williams(0.0, n - 3, 1.0)
    below = 2 * (n - 1) / (n - 3) * max(determinant, 0.0) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if below == 0:
        raise Undefined(f"r12={r12}, r13={r13}, r23={r23}: the test divides by 0; one model is the other turned round")
    t = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / below)
    return Williams(t, n - 3, float(2 * stats.t.sf(abs(t), n - 3)))


def holm(p_values: Sequence[float] | np.ndarray) -> Float[np.ndarray, " tests"]:
    r"""Holm's adjusted p-values: with p sorted, :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1) p_{(j)})`.

    Rejecting where the adjusted value is at most :math:`\alpha` errs once or more with probability at most
    :math:`\alpha`, whatever the dependence of the tests.

    Args:
        p_values: (tests,) probabilities.

    Returns: (tests,) in the order given.
    Raises: ValueError when there are none or one is outside 0..1.
    Source: Holm 1979.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1 or not given.size or not ((given >= 0) & (given <= 1)).all():
        raise ValueError(f"p-values {given.tolist()}: give one or more, each from 0 to 1")
    order = np.argsort(given, kind="stable")
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(given[order] * np.arange(given.size, 0, -1)))
    return adjusted
