"""The lists behind RankCSE's ranking tasks, and the two measures of one list's order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from pcclab.evaluation.correlation import Undefined

if TYPE_CHECKING:
    from pcclab.data.pairs import ScoredPairs


@dataclass(frozen=True, eq=False)
class Query:
    """One sentence and all that it was rated against.

    Args:
        text: the sentence.
        partners: the distinct other sides of its pairs, in the order in which they first occur.
        gold: the rating of each, float64; a partner rated more than once has the mean of its ratings.
        merged: how many ratings went into a partner's mean beyond its first.
    """

    text: str
    partners: tuple[str, ...]
    gold: Float[np.ndarray, " partners"]
    merged: int = 0


def queries(pairs: ScoredPairs, *, more_than: int = 3) -> tuple[Query, ...]:
    """The sentences with more than so many scored partners, in the order in which they first occur.

    A sentence is a query whichever side it stands on, a pair of a sentence with itself makes it its own partner, and
    the texts are compared as they stand.

    Args:
        pairs: one STS set, subsets pooled.
        more_than: a query has more distinct partners than this.

    Source: RankCSE, appendix G.
    Departs: the paper counts pairs; here a partner rated more than once counts once, with the mean of its ratings,
        because one score of the encoder cannot follow two ratings. `Query.merged` counts them.

    >>> from pcclab.data import ScoredPairs
    >>> table = ScoredPairs(("a", "b", "a", "a"), ("b", "a", "c", "d"), [4.0, 5.0, 1.0, 0.0])
    >>> [(query.text, query.partners, query.gold.tolist(), query.merged) for query in queries(table, more_than=2)]
    [('a', ('b', 'c', 'd'), [4.5, 1.0, 0.0], 1)]
    """
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for first, second, gold in zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True):
        found[first][second].append(gold)
        if first != second:
            found[second][first].append(gold)
    return tuple(
        Query(
            text,
            tuple(rated),
            np.array([sum(golds) / len(golds) for golds in rated.values()]),
            sum(map(len, rated.values())) - len(rated),
        )
        for text, rated in found.items()
        if len(rated) > more_than
    )


def linked(lists: Sequence[Query]) -> tuple[int, ...]:
    """The group of each list, counted from 0: lists that share a sentence, directly or through others, are one group.

    Such lists are no independent draws: where a caption was rated against six others, each of the seven is a query.

    >>> from pcclab.data import ScoredPairs
    >>> table = ScoredPairs(("a", "a", "b", "d"), ("b", "c", "c", "e"), [4.0, 5.0, 1.0, 0.0])
    >>> linked(queries(table, more_than=0))
    (0, 0, 0, 1, 1)
    """
    above: dict[str, str] = {}

    def root(text: str) -> str:
        while above.setdefault(text, text) != text:
            above[text] = above[above[text]]
            text = above[text]
        return text

    for row in lists:
        for partner in row.partners:
            above[root(partner)] = root(row.text)
    number: dict[str, int] = {}
    return tuple(number.setdefault(root(row.text), len(number)) for row in lists)


def kendall(scores: Float[np.ndarray, "lists partners"], gold: Float[np.ndarray, "lists partners"]) -> np.ndarray:
    r"""Kendall's tau-b of each list, as `scipy.stats.kendalltau`, many lists of one length at a time.

    .. math:: \tau_b = \sum_{i<j} \mathrm{sgn}(s_i - s_j)\,\mathrm{sgn}(y_i - y_j) /
        \sqrt{\textstyle\sum_{i<j} \mathrm{sgn}^2(s_i - s_j) \sum_{i<j} \mathrm{sgn}^2(y_i - y_j)}

    Args:
        scores, gold: (lists, partners), finite.

    Returns: (lists,), in -1..1.

    Raises: Undefined when a list's scores or gold are all tied; leave such lists out before.

    >>> kendall(np.array([[0.9, 0.2, 0.5]]), np.array([[5.0, 1.0, 4.0]])).tolist()
    [1.0]
    """
    model, people = (np.sign(side[:, :, None] - side[:, None, :]) for side in (scores, gold))
    ties = (model**2).sum((1, 2)) * (people**2).sum((1, 2))
    if (ties == 0).any():
        raise Undefined(f"list {int(np.argmax(ties == 0))} is all ties: it has no tau; leave it out")
    return np.clip((model * people).sum((1, 2)) / np.sqrt(ties), -1.0, 1.0)


def ndcg(scores: Float[np.ndarray, "lists partners"], gold: Float[np.ndarray, "lists partners"]) -> np.ndarray:
    r"""Normalised discounted cumulative gain of each list, as `sklearn.metrics.ndcg_score`.

    .. math:: \sum_i y_i / \log_2(1 + r_i) \;\Big/\; \max_{\text{orders}} \sum_i y_i / \log_2(1 + r_i)

    The gain is the rating itself, not :math:`2^y - 1`; partners tied in score share the mean discount of their places.

    Args:
        scores, gold: (lists, partners), finite; gold at or above 0.

    Returns: (lists,), in 0..1; a list of like ratings gets 1.

    Relations: high for any encoder, because no order of these lists loses much gain, and moved by the zero of the
        scale: 1..5 gives more than 0..5. Read it against a constant scorer, and Kendall first.

    Raises: Undefined when all of a list's gold is 0; ValueError when some is below 0.

    >>> ndcg(np.array([[0.9, 0.2, 0.5]]), np.array([[5.0, 1.0, 4.0]])).tolist()
    [1.0]
    """
    if (gold < 0).any():
        raise ValueError(f"a rating is {gold.min():g}: a gain is at or above 0; use `rescaled(0, 5)` on the pairs")
    places = 1.0 / np.log2(np.arange(gold.shape[1]) + 2.0)
    sums = np.concatenate([[0.0], np.cumsum(places)])
    above = (scores[:, None, :] > scores[:, :, None]).sum(2)
    alike = (scores[:, None, :] == scores[:, :, None]).sum(2)
    gained = (gold * (sums[above + alike] - sums[above]) / alike).sum(1)
    best = -np.sort(-gold, axis=1) @ places
    if (best == 0).any():
        raise Undefined(f"all gold of list {int(np.argmax(best == 0))} is 0: nothing to gain; leave it out")
    return gained / best
