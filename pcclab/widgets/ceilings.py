"""The ceiling under sliders."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pcclab import ceiling as ceilings
from pcclab.plots import explorations
from pcclab.widgets.controls import Steps, linear, powers
from pcclab.widgets.exploring import captioned

DISTINCT = Steps((0, 2, 3, 5, 6, 11, 26, 51), "distinct gold values, as many pairs of each; 0: no gold is tied")


def ceiling_points(*, n: int, share: float, levels: int, hardness: float, distinct: int) -> pd.DataFrame:
    """What a hardening scorer reaches, and what the best scorers of two and of more levels do on the same gold.

    Args: as `ceiling`.
    Returns: columns scorer, formula and spearman; "paper" (equation 2) only where no gold is tied, as it asks for.
    """
    gold = _gold(n, distinct)
    k = _similar(n, share)
    called = (np.arange(n) >= n - k).astype(float)
    most = np.unique(gold).size
    scorers = {
        f"sigmoid, $h = {hardness:g}$": ceilings.spearman(_scores(gold, hardness, k), gold),
        f"two levels, {k:,} of {n:,}": ceilings.spearman(called, gold),
        "two levels at best": _best(gold, 2),
        f"{levels} levels at best": _best(gold, min(levels, most)),
    }
    rows = [(name, "midrank", value) for name, value in scorers.items()]
    if most == n:
        # Of scorers made of levels, with all gold distinct: equation 2 on their mid-ranks.
        rows += [(name, "paper", (1 + value**2) / 2) for name, value in list(scorers.items())[1:]]
    return pd.DataFrame(rows, columns=["scorer", "formula", "spearman"])


def ceiling(
    *,
    n: Annotated[int, powers(4, 10_000, "sentence pairs")],
    share: Annotated[float, linear(0.02, 0.98, 0.02, "share of the pairs the scorer calls similar")],
    levels: Annotated[int, linear(2, 12, 1, "scores another scorer may tell apart")],
    hardness: Annotated[float, powers(1.0, 1e6, "slope of the sigmoid: a step where it is large")],
    distinct: Annotated[int, DISTINCT] = 0,
) -> Figure:
    """How high scorers of few levels come, and how a sigmoid falls onto them as it hardens to a step.

    Args:
        n: pairs.
        share: of them called similar.
        levels: of the scorer that may tell more than two apart; no more than there are distinct gold values.
        hardness: slope of the sigmoid, as `pcclab.ceiling.sigmoid_scorer` takes it.
        distinct: different gold values, each held by as many pairs; 0 for no ties.

    Source: Pcc-tuning, section 2, equations 2 to 7.
    """
    points = ceiling_points(n=n, share=share, levels=levels, hardness=hardness, distinct=distinct)
    gold = _gold(n, distinct)
    curve = pd.DataFrame({"gold": gold, "score": _scores(gold, hardness, _similar(n, share))})
    told = points[points["formula"] == "midrank"]
    said = "; ".join(f"{row.scorer}: {row.spearman:.4f}" for row in told.itertuples()).replace("$", "")
    return captioned(explorations.scorer_ceilings(curve, points), said)


def _gold(n: int, distinct: int) -> np.ndarray:
    """Ratings from 0 to 5 in ascending order."""
    different = min(distinct, n) if distinct else n
    return np.floor(np.arange(n) * different / n) * 5 / (different - 1)


def _similar(n: int, share: float) -> int:
    return min(max(round(share * n), 1), n - 1)


def _scores(gold: np.ndarray, hardness: float, k: int) -> np.ndarray:
    return ceilings.sigmoid_scorer(gold, hardness, share=k / gold.size)


def _best(gold: np.ndarray, levels: int) -> float:
    """The best scorer of so many levels: `ceiling.on_gold`, which untied gold need not be searched for."""
    n = gold.size
    if np.unique(gold).size < n:
        return ceilings.on_gold(gold, levels).value
    if levels == n:
        return 1.0
    sizes = np.diff(np.linspace(0, n, levels + 1).round())
    return ceilings.from_shares(sizes / n) / float(np.sqrt(1 - 1 / n**2))
