"""The tables that rank tasks take their lists from: in each, some sentences are rated against several others."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from pcclab.data.catalogue import STS_TASKS, get
from pcclab.data.leakage import fold
from pcclab.data.loading import SourceLike, load, resolve
from pcclab.data.pairs import Provenance, ScoredPairs
from pcclab.data.scenes import draw
from pcclab.data.synthetic import DOMAINS, GENERATOR, Pair, changed, rated
from pcclab.data.wording import say

LISTS = 16
"""Generated lists of each set, of 4 to 8 partners by turns."""


def rank_tables(tasks: Sequence[str] | None = None, *, source: SourceLike = None) -> dict[str, ScoredPairs]:
    """The tables whose sentences with many partners make the rank tasks.

    Of a real source these are the STS tests themselves. The generated tests hold no sentence often enough: their
    stand-ins are lists of their own, made by the same grammar and raters, and their provenance says `lists`.

    Args:
        tasks: some of `STS_TASKS`, in the order wanted; None is all seven.
        source: see `resolve`.

    Raises: ValueError for an unknown task or none at all, and as `load`.

    Source: RankCSE, appendix G.

    >>> rank_tables(["sts13"], source="synthetic")["sts13"].provenance[0].split
    'lists'
    """
    names = list(STS_TASKS if tasks is None else tasks)
    if unknown := [name for name in names if name not in STS_TASKS]:
        raise ValueError(f"unknown STS task {unknown[0]!r}: choose among {', '.join(STS_TASKS)}")
    if not names:
        raise ValueError(f"no tasks to judge: choose among {', '.join(STS_TASKS)}, or None for all")
    if resolve(source).kind == "synthetic":
        return {name: generated(name) for name in names}
    tables = {name: load(name, split="test", source=source) for name in names}
    return {name: table for name, table in tables.items() if isinstance(table, ScoredPairs)}


def generated(name: str, *, seed: int = 0) -> ScoredPairs:
    """The generated lists of one set as pairs, query first, rated 0..5; no partner stands in two lists."""
    rows = [pair for pairs in lists(name, seed=seed) for pair in pairs]
    provenance = (Provenance(name, "lists", "synthetic", f"generator {GENERATOR}, seed {seed}"),)
    table = ScoredPairs(
        tuple(row.first for row in rows),
        tuple(row.second for row in rows),
        np.array([row.gold for row in rows]),
        tuple(row.subset for row in rows),
        get(name).scale,
        provenance=provenance,
    )
    return table if table.scale == (0.0, 5.0) else table.rescaled(0.0, 5.0)


@lru_cache(maxsize=32)
def lists(name: str, *, seed: int = 0) -> tuple[tuple[Pair, ...], ...]:
    """The generated lists with the meaning of every sentence; a stream of its own, which changes no other table."""
    rng = random.Random(f"{GENERATOR}/{seed}/lists/{name}")
    subsets, families = DOMAINS[name]
    said: set[str] = set()
    return tuple(_list(rng, name, list(subsets)[at % len(subsets)], families, 4 + at % 5, said) for at in range(LISTS))


def _list(
    rng: random.Random, name: str, subset: str, families: tuple[str, ...], partners: int, said: set[str]
) -> tuple[Pair, ...]:
    """A query and its partners, none of which was said before, order, case and spaces aside."""
    style = DOMAINS[name][0][subset]
    query = draw(rng, families)
    text = say(query, style, rng)
    while fold(text) in said:
        query = draw(rng, families)
        text = say(query, style, rng)
    said.add(fold(text))
    rows: list[Pair] = []
    while len(rows) < partners:
        other = changed(query, rng, families)
        pair = rated(rng, name, subset, text, say(other, style, rng, avoid=text), (query, other))
        if fold(pair.second) not in said:
            said.add(fold(pair.second))
            rows.append(pair)
    return tuple(rows)
