"""Choosing a step by rated pairs that no test set holds."""

from __future__ import annotations

import numpy as np
from scipy import stats

from pcclab.data import ScoredPairs
from pcclab.encoders import Encoder


class Development:
    """Rated pairs, and how well an encoder's cosines rank them.

    Raises: ValueError when all ratings are equal: there is no order to select by.
    """

    def __init__(self, encoder: Encoder, pairs: ScoredPairs) -> None:
        if pairs.gold.min() == pairs.gold.max():
            raise ValueError(
                f"all {len(pairs)} development ratings are {pairs.gold[0]:g}: there is no order to select by"
            )
        self.encoder, self.pairs = encoder, pairs

    def score(self) -> float:
        """Spearman x 100; minus infinity where the cosines are constant, so that such a step is never chosen."""
        vectors = self.encoder.encode([*self.pairs.first, *self.pairs.second], normalize=True, progress=None)
        return ranked((vectors[: len(self.pairs)] * vectors[len(self.pairs) :]).sum(1), self.pairs.gold)


def ranked(similarity: np.ndarray, gold: np.ndarray) -> float:
    """Spearman x 100 of cosines with ratings; minus infinity where the cosines are constant."""
    if similarity.max() - similarity.min() <= 1e-6:
        return float("-inf")
    return 100 * float(stats.spearmanr(similarity, gold).statistic)
