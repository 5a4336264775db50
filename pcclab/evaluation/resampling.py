r"""The Spearman of many bootstrap resamples of the same pairs, exactly, without sorting any of them.

A resample draws n of n pairs with replacement; it is a vector of counts :math:`c`. The order of the values and their
ties never change, so one sort serves all resamples. Let :math:`C_g` be the counts summed up to and with the g-th
distinct value: its pairs then hold the doubled centred mid-rank :math:`2 R_g - (n + 1) = C_{g-1} + C_g - n`, and

.. math:: \rho = \frac{\sum_i c_i S_i G_i}{\sqrt{\tfrac13 (n^3 - \sum_g s_g^3) \; \tfrac13 (n^3 - \sum_g t_g^3)}}

with S and G the doubled centred mid-ranks of similarity and gold, and s, t the sizes of their ties in the resample.
Every sum is one of whole numbers below 2^53 up to 200,000 pairs, so nothing is rounded before the last division.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from pcclab.evaluation.correlation import Undefined, check

Seed = int | Sequence[int]
"""One number, or several that together name a stream: `(seed, task)` gives each task its own."""

_CELLS = 2**16  # pairs times resamples of a block: half a MiB of counts, which a core's cache holds


def resampled(
    similarities: Float[np.ndarray, "models pairs"],
    gold: Float[np.ndarray, " pairs"],
    *,
    resamples: int = 10_000,
    seed: Seed = 0,
) -> Float[np.ndarray, "models resamples"]:
    """Spearman's correlation of each model on each bootstrap resample; every model sees the same resamples.

    Args:
        similarities: (models, pairs) finite scores, one row a model.
        gold: (pairs,) finite ratings.
        resamples: how many times n of the n pairs are drawn.
        seed: of `numpy.random.default_rng`; the r-th resample is `default_rng(seed).integers(0, n, (resamples, n),
            dtype=uint32)[r]`, however the work is cut into blocks.

    Returns: (models, resamples) correlations in -1..1, as scipy computes them on the pairs drawn.
    Raises: as `spearman` does on the whole; Undefined when a resample is constant on one side, which happens with few
        pairs or few distinct values; ValueError when `resamples` is below 1.

    >>> ramp = np.arange(50.0)
    >>> resampled(np.stack([ramp, -ramp]), ramp, resamples=3)
    array([[ 1.,  1.,  1.],
           [-1., -1., -1.]])
    """
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: draw at least 1, and 1,000 or more for an interval")
    for similarity in similarities:
        check(similarity, gold)
    sides, rated = [Side.of(similarity) for similarity in similarities], Side.of(gold)
    total, values, done = len(gold), np.empty((len(sides), resamples)), 0
    for counts in draws(total, resamples, seed):
        here = slice(done, done + counts.shape[1])
        gold_ranks, gold_spread = rated.ranks(counts[rated.order])
        for model, side in enumerate(sides):
            drawn = counts[side.order]
            ranks, spread = side.ranks(drawn)
            refuse_constant(spread, gold_spread)
            drawn *= gold_ranks[rated.place[side.order]]
            agreement = np.einsum("gr,gr->r", side.grouped(drawn), ranks)
            values[model, here] = 3 * agreement / np.sqrt(spread * gold_spread)
        done = here.stop
    return np.clip(values, -1, 1, out=values)


@dataclass(frozen=True)
class Side:
    """One side's values, sorted once.

    Args:
        order: the pairs from the lowest value to the highest.
        starts: where in `order` each distinct value begins.
        place: which distinct value each pair holds, lowest first.
    """

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    place: NDArray[np.int64]

    @classmethod
    def of(cls, values: np.ndarray) -> Side:
        _, place, sizes = np.unique(values, return_inverse=True, return_counts=True)
        return cls(np.argsort(place, kind="stable"), np.cumsum(sizes) - sizes, place)

    def grouped(self, rows: np.ndarray) -> np.ndarray:
        """Sorted rows (pairs, resamples) summed over each distinct value."""
        return rows if len(self.starts) == len(rows) else np.add.reduceat(rows, self.starts, axis=0)

    def ranks(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Doubled centred mid-ranks (values, resamples) and n^3 less the cubed ties, from the sorted counts."""
        sizes = self.grouped(counts)
        ranks = np.cumsum(sizes, axis=0)
        total = ranks[-1].copy()  # of all pairs it is the same in every resample, of a part of them it is not
        ranks *= 2
        ranks -= sizes
        ranks -= total
        return ranks, total**3 - np.einsum("gr,gr,gr->r", sizes, sizes, sizes)


def draws(pairs: int, resamples: int, seed: Seed) -> Iterator[NDArray[np.float64]]:
    """How often each pair is drawn, (pairs, resamples) in blocks of bounded memory."""
    generator = np.random.default_rng(seed)
    block = max(1, _CELLS // pairs)
    for start in range(0, resamples, block):
        width = min(block, resamples - start)
        cells = generator.integers(0, pairs, (width, pairs), dtype=np.uint32).astype(np.int64)
        cells *= width
        cells += np.arange(width)[:, None]
        yield np.bincount(cells.ravel(), minlength=pairs * width).reshape(pairs, width).astype(np.float64)


def refuse_constant(spread: np.ndarray, gold_spread: np.ndarray) -> None:
    for name, values in (("similarity", spread), ("gold", gold_spread)):
        if not values.all():
            raise Undefined(
                f"{name} is constant on {int((values == 0).sum())} of {len(values)} resamples: a bootstrap needs more "
                "pairs, or more that differ"
            )
