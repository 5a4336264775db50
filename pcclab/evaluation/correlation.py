"""Correlations that say when they are undefined instead of answering NaN or 0."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy import stats

CONSTANT = 1e-6
"""Cosines closer together than this differ by the rounding of float32, not by meaning."""


class Undefined(ValueError):
    """A statistic that has no value on these data."""


def cosine(
    first: Float[np.ndarray, "pairs dim"], second: Float[np.ndarray, "pairs dim"]
) -> Float[np.ndarray, " pairs"]:
    """Cosine of each row of `first` with the same row of `second`, in float64, to twelve decimals.

    A sentence beside itself has cosine 1, which sums make 1 plus or minus 2e-16: ranked as they come, such pairs (65 of
    STS12's SMTeuroparl) would be ordered by rounding alone, and Spearman with them. To twelve decimals they tie.

    Args:
        first: embeddings of the pairs' first sentences.
        second: of their second ones.

    Raises: ValueError naming the first row that is zero or not finite: it has no direction.
    """
    sides = [np.asarray(side, dtype=np.float64) for side in (first, second)]
    norms = [np.linalg.norm(side, axis=1) for side in sides]
    for norm in norms:
        bad = np.flatnonzero(~(np.isfinite(norm) & (norm > 0)))
        if len(bad):
            raise ValueError(
                f"embedding {bad[0]} has length {norm[bad[0]]}, as have {len(bad) - 1} more: it has no direction; "
                "look for NaN in the weights, or lower the learning rate"
            )
    return np.round(np.einsum("ij,ij->i", *sides) / (norms[0] * norms[1]), 12)


def spearman(similarity: Float[np.ndarray, " pairs"], gold: Float[np.ndarray, " pairs"]) -> float:
    """Spearman's correlation as scipy and SentEval compute it: Pearson's on mid-ranks.

    Args:
        similarity: an encoder's scores.
        gold: the ratings of the same pairs.

    Raises: Undefined when a side is constant or there are fewer than two pairs; ValueError on NaN or unequal lengths.

    >>> spearman(np.array([0.1, 0.4, 0.3]), np.array([0.0, 5.0, 2.0]))
    1.0
    """
    check(similarity, gold)
    return _pearson(stats.rankdata(similarity), stats.rankdata(gold))


def pearson(similarity: Float[np.ndarray, " pairs"], gold: Float[np.ndarray, " pairs"]) -> float:
    """Pearson's correlation; takes and raises what `spearman` does.

    Args:
        similarity: an encoder's scores.
        gold: the ratings of the same pairs.
    """
    check(similarity, gold)
    return _pearson(similarity, gold)


def matched(similarity: np.ndarray, gold: np.ndarray) -> None:
    """Refuse what is not one finite similarity and one finite rating a pair, naming why."""
    if similarity.shape != gold.shape or similarity.ndim != 1:
        raise ValueError(f"shapes {similarity.shape} and {gold.shape}: give one similarity and one gold rating a pair")
    for name, values in (("similarity", similarity), ("gold", gold)):
        if not np.isfinite(values).all():
            raise ValueError(
                f"{name} of pair {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite: drop or mend it"
            )


def check(similarity: np.ndarray, gold: np.ndarray) -> None:
    """Refuse what has no correlation, naming why."""
    matched(similarity, gold)
    if len(gold) < 2:
        raise Undefined(f"{len(gold)} pair(s) have no correlation: give at least 2")
    if np.ptp(similarity) <= CONSTANT:
        raise Undefined(f"all {len(gold)} similarities are {similarity[0]:.6f}: constant scores rank nothing")
    if np.ptp(gold) == 0:
        raise Undefined(f"all {len(gold)} gold ratings are {gold[0]:g}: there is no order to find")


def _pearson(first: np.ndarray, second: np.ndarray) -> float:
    first, second = first - first.mean(), second - second.mean()
    value = float(first @ second / np.sqrt((first @ first) * (second @ second)))
    return min(1.0, max(-1.0, value))
