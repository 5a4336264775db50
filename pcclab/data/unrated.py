"""Text to train on that no one rated: inference pairs with their labels, and plain sentences without any."""

from __future__ import annotations

from typing import TypeVar, cast

import numpy as np

from pcclab.data.leakage import fold
from pcclab.data.loading import SourceLike, dev_pairs, load, resolve, sts_tests
from pcclab.data.pairs import NLIPairs, Sentences, Table

T = TypeVar("T", bound=Table)


def nli_pairs(*, source: SourceLike = None, limit: int | None = None, seed: int = 0) -> NLIPairs:
    """Premise, hypothesis and label: SNLI's development and test parts.

    Args:
        source: see `resolve`; not "hub", whose triplets have no neutral pairs.
        limit: draw at most so many rows; None takes all. They keep the corpus's order.
        seed: of the draw.

    Raises:
        ValueError: the source is the hub, or the limit is below 1.

    Source: STS-Regression trains on SNLI and MultiNLI; SentEval's folder holds these 19,666 pairs of SNLI.

    Example:
        >>> len(nli_pairs(source="synthetic", limit=30).rated())
        30
    """
    if resolve(source).kind == "hub":
        raise ValueError(
            "source='hub' has no labelled inference pairs: its nli_for_simcse are triplets, which lost their neutral "
            "pairs; take a SentEval folder (`pcclab data fetch FOLDER` makes one) or source='synthetic', or train on "
            "the triplets with nli_triplets(source='hub')"
        )
    return _drawn(cast(NLIPairs, load("nli", source=source)), limit, seed)


def sentences(*, source: SourceLike = None, limit: int | None = None, seed: int = 0) -> Sentences:
    """Distinct sentences for unsupervised training, none of which the lab tests or selects on.

    Both sides of the inference pairs, each sentence once (case and spaces make no other sentence), less those that
    occur in a test set of the seven tasks or in the clean development pairs. The hub's are its million of Wikipedia
    instead; they are made distinct only, because the hub has no SICK-R to hold them against.

    Args:
        source: see `resolve`; the test sets are those of the same source.
        limit: draw at most so many sentences; None takes all. They keep the corpus's order.
        seed: of the draw.

    Raises:
        ValueError: no source, the limit is below 1, or no sentence is left.

    Source: RankCSE and SimCSE train on the Wikipedia sentences; offline, SNLI's stand in for them.
    """
    if resolve(source).kind == "hub":
        wiki = cast(Sentences, load("wiki1m", source=source))
        texts, barred, told = wiki.text, set[str](), "not held against the tests, of which the hub lacks SICK-R"
        provenance = wiki.provenance
    else:
        pairs = cast(NLIPairs, load("nli", source=source))
        texts, provenance = pairs.premise + pairs.hypothesis, pairs.provenance
        known = [*sts_tests(source=source).values(), dev_pairs(source=source)]
        barred = {fold(text) for table in known for text in table.first + table.second}
        told = "seen in a test or in the clean development pairs"
    distinct: dict[str, str] = {}
    for text in texts:
        distinct.setdefault(fold(text), text)
    left = tuple(text for key, text in distinct.items() if key not in barred)
    if not left:
        raise ValueError(f"all {len(distinct):,} sentences occur in the tests: nothing is left to train on")
    if barred:
        told = f"{len(distinct) - len(left):,} of them dropped: {told}"
    note = f"{len(distinct):,} distinct sentences of {len(texts):,}; {told}"
    return _drawn(Sentences(left, provenance=provenance).with_note(note), limit, seed)


def _drawn(table: T, limit: int | None, seed: int) -> T:
    """At most `limit` rows, drawn without replacement, in the table's order."""
    if limit is None:
        return table
    if limit < 1:
        raise ValueError(f"limit is {limit}: give at least 1, or None for all {len(table):,} rows")
    if limit >= len(table):
        return table
    rows = np.sort(np.random.default_rng(seed).choice(len(table), limit, replace=False))
    return table.select(rows).with_note(f"{limit:,} of {len(table):,} rows drawn with seed {seed}")
