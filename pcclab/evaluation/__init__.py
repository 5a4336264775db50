"""Judging an encoder. Everything here sees it through one method: `encode(list of texts) -> array`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pcclab.evaluation.correlation import Undefined, cosine, pearson, spearman

# Three modules have the name of their function: imported here, the name is the function's whatever is imported later.
from pcclab.evaluation.rank_tasks import case, rank_pairs, rank_tasks
from pcclab.evaluation.results import Results, TaskScore
from pcclab.evaluation.sts import judged, order_sensitivity, similarities, sts, sts_pairs
from pcclab.evaluation.transfer import transfer

if TYPE_CHECKING:
    from pcclab.evaluation.answers import accuracy_interval, compare_answers
    from pcclab.evaluation.comparisons import gain_blocks
    from pcclab.evaluation.geometry import align_uniform, alignment, anisotropy, uniformity
    from pcclab.evaluation.groups import similarity_by_group
    from pcclab.evaluation.level_intervals import levels_interval
    from pcclab.evaluation.levels import effective_levels, untied_ceiling
    from pcclab.evaluation.list_intervals import compare_ranks, rank_intervals, widest
    from pcclab.evaluation.seen import seen_gains, seen_unseen
    from pcclab.evaluation.significance import holm, williams
    from pcclab.evaluation.statistics import bootstrap, compare, compare_tasks, seeds

_HOME = {
    "answers": ("accuracy_interval", "compare_answers"),
    "comparisons": ("gain_blocks",),
    "geometry": ("align_uniform", "alignment", "anisotropy", "uniformity"),
    "groups": ("similarity_by_group",),
    "level_intervals": ("levels_interval",),
    "levels": ("effective_levels", "untied_ceiling"),
    "list_intervals": ("compare_ranks", "rank_intervals", "widest"),
    "significance": ("holm", "williams"),
    "seen": ("seen_gains", "seen_unseen"),
    "statistics": ("bootstrap", "compare", "compare_tasks", "seeds"),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Results",
    "TaskScore",
    "Undefined",
    "accuracy_interval",
    "align_uniform",
    "alignment",
    "anisotropy",
    "bootstrap",
    "case",
    "compare",
    "compare_answers",
    "compare_ranks",
    "compare_tasks",
    "cosine",
    "effective_levels",
    "gain_blocks",
    "holm",
    "judged",
    "levels_interval",
    "order_sensitivity",
    "pearson",
    "rank_intervals",
    "rank_pairs",
    "rank_tasks",
    "seeds",
    "seen_gains",
    "seen_unseen",
    "similarities",
    "similarity_by_group",
    "spearman",
    "sts",
    "sts_pairs",
    "transfer",
    "uniformity",
    "untied_ceiling",
    "widest",
    "williams",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use: judging by cosine alone needs none of them."""
    if name not in _WHERE:
        raise AttributeError(f"module 'pcclab.evaluation' has no attribute {name!r}")
    value = getattr(import_module(f"pcclab.evaluation.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
