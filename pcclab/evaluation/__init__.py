"""Judging an encoder. Everything here sees it through one method: `encode(list of texts) -> array`."""

from __future__ import annotations

from pcclab.evaluation.correlation import Undefined, cosine, pearson, spearman
from pcclab.evaluation.results import Results, TaskScore
from pcclab.evaluation.sts import order_sensitivity, sts, sts_pairs

__all__ = [
    "Results",
    "TaskScore",
    "Undefined",
    "cosine",
    "order_sensitivity",
    "pearson",
    "spearman",
    "sts",
    "sts_pairs",
]
