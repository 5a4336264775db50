"""The ledger of leaks: which training pairs occur in which test set, and training tables without them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from pcclab.data.pairs import ScoredPairs

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

Level = Literal["pair", "sentence"]

TRAIN_SETS = (("stsb", "train"), ("stsb", "dev"), ("sickr", "train"), ("sickr", "dev"))
"""The rows of the matrix: what an experiment may train or select on."""


def fold(text: str) -> str:
    """A sentence without the differences that make no other sentence of it: case and spaces.

    Example:
        >>> fold("  A  Dog barks ")
        'a dog barks'
    """
    return " ".join(text.lower().split())


def keys(pairs: ScoredPairs) -> list[tuple[str, str]]:
    """The identity of each pair: its two folded sentences, whichever stands first."""
    folded = zip(map(fold, pairs.first), map(fold, pairs.second), strict=True)
    return [(a, b) if a <= b else (b, a) for a, b in folded]


def seen(rows: ScoredPairs, others: ScoredPairs | Iterable[ScoredPairs], *, level: Level = "pair") -> NDArray[np.bool_]:
    """Which rows of a table occur in others; order, case and spaces do not matter.

    Args:
        rows: the table asked about: training pairs (which of them are in a test?) or a test (which were trained on?).
        others: one table or several.
        level: "pair": the same two sentences; "sentence": at least one sentence in common.

    Returns:
        Boolean array of shape (pairs,).

    Example:
        >>> train = ScoredPairs(("A cat", "a cow"), ("a dog", "a pig"), [1, 2])
        >>> test = ScoredPairs(("a dog", "a hen"), ("a  cat", "a cow"), [1, 3])
        >>> seen(train, test).tolist(), seen(train, test, level="sentence").tolist()
        ([True, False], [True, True])
    """
    if level not in ("pair", "sentence"):
        raise ValueError(f"level is {level!r}: take 'pair' or 'sentence'")
    tables = [others] if isinstance(others, ScoredPairs) else list(others)
    known = {key for table in tables for key in keys(table)}
    if level == "pair":
        hits = [key in known for key in keys(rows)]
    else:
        sentences = {sentence for key in known for sentence in key}
        hits = [a in sentences or b in sentences for a, b in keys(rows)]
    return np.array(hits, dtype=bool)


def drop_seen(
    train: ScoredPairs, tests: ScoredPairs | Iterable[ScoredPairs] | Mapping[str, ScoredPairs], *, level: Level = "pair"
) -> ScoredPairs:
    """The training pairs that do not occur in any of the tests.

    Args:
        train: the pairs to filter.
        tests: one table, several, or several by name.
        level: "pair" drops the same two sentences; "sentence" drops whatever shares one sentence with a test.

    Raises:
        ValueError: nothing is left.
    """
    others = tests if isinstance(tests, ScoredPairs) else list(tests.values() if isinstance(tests, Mapping) else tests)
    hit = seen(train, others, level=level)
    if hit.all():
        raise ValueError(f"all {len(train):,} pairs occur in the tests at {level} level: nothing is left to train on")
    return train.select(~hit).with_note(
        f"{int(hit.sum()):,} of all {len(train):,} rows dropped: seen in a test at {level} level"
    )


def shares(
    trains: Mapping[str, ScoredPairs], tests: Mapping[str, ScoredPairs], *, level: Level = "pair"
) -> pd.DataFrame:
    """Percent of each test's pairs that occur in each training table: rows are training tables, columns tests."""
    import pandas as pd

    percent = {
        test: [100.0 * float(seen(pairs, train, level=level).mean()) for train in trains.values()]
        for test, pairs in tests.items()
    }
    return pd.DataFrame(percent, index=pd.Index(list(trains), name="train"))


def matrix(*, source: str | os.PathLike[str] | None = None, level: Level = "pair") -> pd.DataFrame:
    """Percent of the test pairs of each of the seven tasks that occur in each training and development set.

    Args:
        source: see `loading.resolve`.
        level: "pair", or "sentence": the test pair shares at least one sentence with the training set.

    Returns:
        Frame with rows "stsb train", "stsb dev", "sickr train", "sickr dev" and a column for each task.
    """
    from pcclab.data.loading import load, sts_tests

    trains = {f"{name} {split}": load(name, split=split, source=source) for name, split in TRAIN_SETS}
    pairs = {name: table for name, table in trains.items() if isinstance(table, ScoredPairs)}
    return shares(pairs, sts_tests(source=source), level=level)
