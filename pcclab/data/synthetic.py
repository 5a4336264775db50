"""Generated corpora with a known truth: what every pair means, how alike the meanings are, which pairs were leaked.

Every table is a function of the seed alone: the same bytes in every process and on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pcclab.data import synthetic_texts
from pcclab.data.catalogue import STS_TASKS, get, verify
from pcclab.data.leakage import fold
from pcclab.data.lexicon import TAKES
from pcclab.data.pairs import Provenance, ScoredPairs, Table
from pcclab.data.scenes import ROLES, Scene, draw, edit, similarity
from pcclab.data.wording import say

GENERATOR = 1
"""Version of the grammar and the procedure; it stands in every table's revision."""

RATERS, DEVIATION = 5, 0.6
"""Each of five raters gives the whole number nearest to the truth plus noise of this deviation; gold is their mean."""

DOMAINS: Mapping[str, tuple[Mapping[str, str], tuple[str, ...]]] = {
    "sts12": ({"clips": "captions", "local-news": "reports", "glosses": "definitions"}, ("prepare", "consume", "use")),
    "sts13": ({"headlines": "headlines", "glosses": "definitions"}, ("restore", "move", "rest")),
    "sts14": (
        {
            "board": "forum",
            "headlines": "headlines",
            "pictures": "captions",
            "glosses": "definitions",
            "posts": "notices",
        },
        ("observe", "restore", "travel", "noise"),
    ),
    "sts15": (
        {"replies": "answers", "beliefs": "beliefs", "headlines": "headlines", "pictures": "captions"},
        ("consume", "move", "travel", "use"),
    ),
    "sts16": (
        {"asked": "questions", "replies": "answers", "headlines": "headlines", "retold": "reports"},
        ("prepare", "observe", "restore", "noise"),
    ),
    "stsb": ({"pictures": "captions", "news": "reports", "boards": "forum"}, tuple(TAKES)),
    "sickr": ({"": "plain"}, tuple(TAKES)),
}
"""Test set -> its subsets with the style of each, and the families of actions its scenes are about."""

ROWS = {
    **{(name, "test"): 280 for name in STS_TASKS},
    ("stsb", "train"): 700,
    ("sickr", "train"): 500,
    ("stsb", "dev"): 200,
    ("sickr", "dev"): 100,
}
"""Number of pairs of each part."""

LEAKED: Mapping[tuple[str, str], Mapping[str, int]] = {
    ("stsb", "train"): {"sts12": 84, "sts13": 112, "sts14": 140, "sts15": 98, "sts16": 42, "stsb": 3},
    ("stsb", "dev"): {"sts12": 22, "sts13": 14, "sts14": 14, "sts15": 56, "sts16": 6, "stsb": 1},
    ("sickr", "train"): {"sickr": 6},
    ("sickr", "dev"): {"sickr": 1},
}
"""How many of a part's pairs are planted copies of pairs of each test; about the shares found in the real corpora."""

SHARED = {("stsb", "train"): 40, ("stsb", "dev"): 10, ("sickr", "train"): 240, ("sickr", "dev"): 30}
"""How many further pairs of a part hold one sentence of a test, in a pair that is new; all others share none."""

SWAPPED, RESPACED = 3, 4
"""Of the planted copies every third has its order swapped, and every fourth its case and spaces changed."""


@dataclass(frozen=True)
class Pair:
    """A generated pair with what the tables do not tell: the true similarity, 0..1, and the two meanings."""

    first: str
    second: str
    scenes: tuple[Scene, Scene]
    subset: str
    gold: float

    @property
    def truth(self) -> float:
        """Similarity of the two meanings before the raters."""
        return similarity(*self.scenes)

    @property
    def key(self) -> tuple[str, ...]:
        """The pair without order, case and spaces."""
        return tuple(sorted((fold(self.first), fold(self.second))))


def load(name: str, split: str, *, seed: int = 0) -> Table:
    """One split of a synthetic corpus, named as the corpus it stands in for.

    Raises: ValueError for a split that the synthetic corpus does not have.
    """
    provenance = (Provenance(name, split, "synthetic", f"generator {GENERATOR}, seed {seed}"),)
    corpus = get(name)
    if corpus.kind == "pairs":
        rows = pairs(name, split, seed=seed)
        table = ScoredPairs(
            tuple(row.first for row in rows),
            tuple(row.second for row in rows),
            np.array([row.gold for row in rows]),
            tuple(row.subset for row in rows),
            corpus.scale,
            provenance=provenance,
        )
        verify(len(table), f"synthetic {name}", split, ROWS[name, split], f"generator {GENERATOR}")
        return table if corpus.scale == (0.0, 5.0) else table.rescaled(0.0, 5.0)
    return synthetic_texts.load(corpus, split, f"{GENERATOR}/{seed}", provenance)


def declared(name: str, split: str) -> int:
    """How many rows a split of a synthetic corpus has."""
    return {**ROWS, **synthetic_texts.declared()}[name, split]


def pairs(name: str, split: str, *, seed: int = 0) -> tuple[Pair, ...]:
    """The rows of a pair corpus with their meanings, in the order of `load`."""
    return _world(seed)[name, split]


def oracle(name: str, split: str = "test", *, seed: int = 0) -> NDArray[np.float64]:
    """Gold without raters: five times the true similarity of each pair of a corpus, in the order of `load`."""
    return np.array([5.0 * pair.truth for pair in pairs(name, split, seed=seed)])


@lru_cache(maxsize=2)
def _world(seed: int) -> dict[tuple[str, str], tuple[Pair, ...]]:
    """Tests first, each pair once; then the parts to train and select on, with copies of test pairs planted."""
    rng = random.Random(f"{GENERATOR}/{seed}/pairs")
    taken: set[tuple[str, ...]] = set()
    world: dict[tuple[str, str], tuple[Pair, ...]] = {}
    for name in STS_TASKS:
        subsets, families = DOMAINS[name]
        rows = []
        for at in range(ROWS[name, "test"]):
            subset = list(subsets)[at * len(subsets) // ROWS[name, "test"]]
            rows.append(_fresh(rng, name, subset, families, taken, frozenset()))
        world[name, "test"] = tuple(rows)
    tested = frozenset(sentence for rows in world.values() for row in rows for sentence in row.key)
    order = {name: rng.sample(world[name, "test"], ROWS[name, "test"]) for name in STS_TASKS}
    for (name, split), leaks in LEAKED.items():
        copies = [order[test].pop() for test, count in leaks.items() for _ in range(count)]
        mine = [_disguised(pair, at, rng) for at, pair in enumerate(copies)]
        subsets, families = DOMAINS[name]
        while len(mine) < ROWS[name, split]:
            subset = rng.choice(list(subsets))
            if len(mine) < len(copies) + SHARED[name, split]:
                mine.append(_sharing(rng, name, subset, rng.choice(world[name, "test"]), taken, tested))
            else:
                mine.append(_fresh(rng, name, subset, families, taken, tested))
        rng.shuffle(mine)
        world[name, split] = tuple(mine)
    return world


def _fresh(
    rng: random.Random,
    name: str,
    subset: str,
    families: tuple[str, ...],
    taken: set[tuple[str, ...]],
    barred: frozenset[str],
) -> Pair:
    """A pair whose key was not taken and whose sentences are not barred."""
    style = DOMAINS[name][0][subset]
    while True:
        first = draw(rng, families)
        if rng.random() < (0.15 if name == "sickr" else 0.06):
            first = replace(first, denied=True)
        second = changed(first, rng, families)
        left = say(first, style, rng)
        pair = rated(rng, name, subset, left, say(second, style, rng, avoid=left), (first, second))
        if pair.key not in taken and pair.key[0] != pair.key[1] and not barred.intersection(pair.key):
            taken.add(pair.key)
            return pair


def _sharing(
    rng: random.Random, name: str, subset: str, test: Pair, taken: set[tuple[str, ...]], tested: frozenset[str]
) -> Pair:
    """A new pair of which one sentence is a test's and the other is not."""
    style = DOMAINS[name][0][subset]
    while True:
        second = changed(test.scenes[0], rng, DOMAINS[name][1])
        pair = rated(rng, name, subset, test.first, say(second, style, rng), (test.scenes[0], second))
        if pair.key not in taken and pair.key[0] != pair.key[1] and len(tested.intersection(pair.key)) == 1:
            taken.add(pair.key)
            return pair


def changed(scene: Scene, rng: random.Random, families: tuple[str, ...]) -> Scene:
    """A meaning to compare with: the same, one with one to three roles edited, or another scene altogether."""
    way = rng.random()
    if way < 0.22:
        return draw(rng, families)
    changes = 0 if way < 0.42 else 1 if way < 0.68 else 2 if way < 0.86 else 3
    other = scene
    for role in rng.sample(ROLES, changes):
        other = edit(other, role, rng)
    return replace(other, denied=not other.denied) if rng.random() < 0.08 else other


def rated(rng: random.Random, name: str, subset: str, first: str, second: str, scenes: tuple[Scene, Scene]) -> Pair:
    low, high = get(name).scale
    truth = low + (high - low) * similarity(*scenes)
    given = [min(max(round(truth + rng.gauss(0.0, DEVIATION)), low), high) for _ in range(RATERS)]
    return Pair(first, second, scenes, subset, round(sum(given) / RATERS, 1))


def _disguised(pair: Pair, at: int, rng: random.Random) -> Pair:
    """A copy of a test pair that only a ledger blind to order, case and spaces recognises."""
    first, second, scenes = pair.first, pair.second, pair.scenes
    if at % SWAPPED == 0:
        first, second, scenes = second, first, (scenes[1], scenes[0])
    if at % RESPACED == 0:
        first = first.upper() if rng.random() < 0.5 else first.lower()
        second = second.replace(" ", "  ", 2) + " "
    return replace(pair, first=first, second=second, scenes=scenes)
