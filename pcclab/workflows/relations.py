"""Whether what is measured of models orders them as their scores do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from pcclab import evaluation
from pcclab.evaluation import Undefined

if TYPE_CHECKING:
    import pandas as pd

FEW = 4
"""Models below which an order over them says nothing: of three, one order in six is perfect by chance."""

PERMUTATIONS = 9999


def relations(points: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """How alignment, uniformity and the average STS score order the models: Spearman over methods, with p and n.

    Seeds of one method are no models of their own: each method counts once, by the means over its seeds.

    Args:
        points: as `Geometry.points`; a model without an average counts only where none is asked for.
        seed: of the permutations.

    Returns: a row a pair of quantities: spearman (-1..1; NaN where undefined), p (two-sided, by permutation), n, why
        (empty where it is defined).
    Relations: p takes the methods as independent; those trained from one encoder are not, and it is too small.
    """
    import pandas as pd

    means = points.groupby("method", sort=False)[["alignment", "uniformity", "mean_cosine", "average"]].mean()
    rows: dict[str, dict[str, Any]] = {}
    pairs = [
        ("alignment", "average"),
        ("uniformity", "average"),
        ("mean_cosine", "average"),
        ("alignment", "uniformity"),
    ]
    for one, other in pairs:
        both = means[[one, other]].dropna()
        row: dict[str, Any] = {"spearman": math.nan, "p": math.nan, "n": len(both), "why": ""}
        x, y = (both[name].to_numpy(dtype=float) for name in (one, other))
        try:
            if len(both) < FEW:
                raise Undefined(f"n = {len(both)}: an order takes {FEW} methods or more")
            row["spearman"] = evaluation.spearman(x, y)
            row["p"] = _permuted(x, y, row["spearman"], np.random.default_rng(seed))
        except Undefined as error:
            row["why"] = str(error)
        rows[f"{one} and {other}"] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("quantities")


def _permuted(x: np.ndarray, y: np.ndarray, found: float, generator: np.random.Generator) -> float:
    """Two-sided p of a Spearman: how often a random pairing is as far from 0, the one found counted in."""
    first, second = (stats.rankdata(side) - (len(side) + 1) / 2 for side in (x, y))
    drawn = generator.permuted(np.tile(first, (PERMUTATIONS, 1)), axis=1) @ second
    as_far = np.abs(drawn) / math.sqrt(float((first @ first) * (second @ second))) >= abs(found) - 1e-9
    return (1 + int(as_far.sum())) / (1 + PERMUTATIONS)
