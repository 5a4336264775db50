"""Choosing a step by rated pairs that no test set holds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import stats

from pcclab.data import ScoredPairs
from pcclab.encoders import Encoder


class Development:
    """Rated pairs, and how well an encoder's cosines rank them.

    Args:
        encoder: as training has it.
        pairs: what the step is chosen on.
        watched: further tables by name, scored at every look; they choose nothing.

    Raises: ValueError when all ratings of a table are equal: there is no order to select by.
    """

    def __init__(self, encoder: Encoder, pairs: ScoredPairs, watched: Mapping[str, ScoredPairs] | None = None) -> None:
        self.encoder, self.pairs, self.watched = encoder, pairs, dict(watched or {})
        for name, table in {"development": pairs, **self.watched}.items():
            if table.gold.min() == table.gold.max():
                raise ValueError(
                    f"all {len(table)} {name} ratings are {table.gold[0]:g}: there is no order to select by"
                )

    def score(self) -> float:
        """Spearman x 100; minus infinity where the cosines are constant, so that such a step is never chosen."""
        vectors = self.encoder.encode([*self.pairs.first, *self.pairs.second], normalize=True, progress=None)
        return ranked((vectors[: len(self.pairs)] * vectors[len(self.pairs) :]).sum(1), self.pairs.gold)

    def also(self) -> dict[str, float]:
        """Spearman x 100 on each watched table, as "<name>_spearman"; one that is undefined is left out."""
        texts = [text for table in self.watched.values() for text in (*table.first, *table.second)]
        if not texts:
            return {}
        vectors, scores, at = self.encoder.encode(texts, normalize=True, progress=None), {}, 0
        for name, table in self.watched.items():
            sides = vectors[at : at + 2 * len(table)].reshape(2, len(table), -1)
            scores[f"{name}_spearman"] = ranked((sides[0] * sides[1]).sum(1), table.gold)
            at += 2 * len(table)
        return {name: score for name, score in scores.items() if score > float("-inf")}


def ranked(similarity: np.ndarray, gold: np.ndarray) -> float:
    """Spearman x 100 of cosines with ratings; minus infinity where the cosines are constant."""
    if similarity.max() - similarity.min() <= 1e-6:
        return float("-inf")
    return 100 * float(stats.spearmanr(similarity, gold).statistic)
