"""How an encoder's cosines lie in each group of human ratings."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from pcclab.evaluation.correlation import Undefined, matched

if TYPE_CHECKING:
    import pandas as pd

EDGES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0)


def similarity_by_group(
    similarity: Float[np.ndarray, " pairs"], gold: Float[np.ndarray, " pairs"], *, edges: Sequence[float] = EDGES
) -> pd.DataFrame:
    """The cosine of each pair beside the group of its rating, tidy, for the distribution per group.

    Args:
        similarity, gold: (pairs,) cosines and ratings.
        edges: ascending ends of the groups; a rating on an edge belongs above it, the highest edge to the last group.

    Returns: columns group ("0-1", ...; an ordered category that keeps empty groups), similarity, gold.
    Raises: Undefined without pairs; ValueError for NaN, fewer than two or not ascending edges, or a rating outside
        them.
    Source: RankCSE, appendix E, figure 5.
    Relations: cosines that are all the same have no Spearman but are a distribution: a collapsed encoder is shown.

    >>> similarity_by_group(np.array([0.2, 0.9, 0.8]), np.array([0.5, 5.0, 4.0])).group.tolist()
    ['0-1', '4-5', '4-5']
    """
    import pandas as pd

    matched(similarity, gold)
    if not len(gold):
        raise Undefined("no pairs have no cosines: give at least 1")
    ends = np.asarray(edges, dtype=np.float64)
    if ends.ndim != 1 or len(ends) < 2 or not (np.diff(ends) > 0).all():
        raise ValueError(f"edges={ends.tolist()}: give two or more, ascending")
    for row in np.flatnonzero((gold < ends[0]) | (gold > ends[-1])):
        raise ValueError(f"gold of pair {row} is {gold[row]:g}, outside edges {ends[0]:g}..{ends[-1]:g}: widen them")
    names = [f"{low:g}-{high:g}" for low, high in itertools.pairwise(ends)]
    group = np.minimum(np.searchsorted(ends, gold, side="right") - 1, len(names) - 1)
    labels = pd.Categorical.from_codes(group, categories=names, ordered=True)
    return pd.DataFrame({"group": labels, "similarity": similarity, "gold": gold})
