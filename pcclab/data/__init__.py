"""Typed tables of text with their provenance, from three sources behind one `load`; the ledger of leaks between them.

>>> from pcclab import data
>>> data.load("stsb", source="synthetic").provenance[0].source
'synthetic'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pcclab.data import leakage as leakage
    from pcclab.data.catalogue import CORPORA, STS_TASKS
    from pcclab.data.desk import check, fetch, show
    from pcclab.data.loading import describe, dev_pairs, load, nli_triplets, resolve, stage2_pairs, sts_tests
    from pcclab.data.pairs import NLI_RATINGS, LabelledTexts, NLIPairs, ScoredPairs, Sentences, Triplets
    from pcclab.data.ranked import rank_tables
    from pcclab.data.table import Provenance, Table
    from pcclab.data.unrated import nli_pairs, sentences

_HOME = {
    "catalogue": ("CORPORA", "STS_TASKS"),
    "desk": ("check", "fetch", "show"),
    "loading": ("describe", "dev_pairs", "load", "nli_triplets", "resolve", "stage2_pairs", "sts_tests"),
    "pairs": ("NLI_RATINGS", "LabelledTexts", "NLIPairs", "ScoredPairs", "Sentences", "Triplets"),
    "ranked": ("rank_tables",),
    "table": ("Provenance", "Table"),
    "unrated": ("nli_pairs", "sentences"),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}
_MODULES = ("leakage",)

__all__ = [
    "CORPORA",
    "NLI_RATINGS",
    "STS_TASKS",
    "LabelledTexts",
    "NLIPairs",
    "Provenance",
    "ScoredPairs",
    "Sentences",
    "Table",
    "Triplets",
    "check",
    "describe",
    "dev_pairs",
    "fetch",
    "leakage",
    "load",
    "nli_pairs",
    "nli_triplets",
    "rank_tables",
    "resolve",
    "sentences",
    "show",
    "stage2_pairs",
    "sts_tests",
]


def __getattr__(name: str) -> Any:
    """Import a name's module at its first use, so that importing `pcclab.data` costs nothing."""
    if name in _MODULES:
        return import_module(f"pcclab.data.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module 'pcclab.data' has no attribute {name!r}")
    value = getattr(import_module(f"pcclab.data.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
