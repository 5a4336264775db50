r"""A Spearman taken apart, exactly, into the comparisons of seen and of unseen pairs.

A correlation is no mean over pairs, so a gain cannot be handed out to pairs one by one. But the doubled centred
mid-rank of a pair is a sum of signs, :math:`S_i = \sum_j \operatorname{sgn}(s_i - s_j)`, and with G the gold's

.. math:: \rho = \frac{\sum_{i<j} \operatorname{sgn}(s_i - s_j) (G_i - G_j)}{\sqrt{\sum_i S_i^2 \sum_i G_i^2}}

is a sum over all comparisons of two test pairs: which of both the model holds to be more alike, weighted by how far
apart the gold ranks are. Each comparison is of two seen pairs, of a seen and an unseen one, or of two unseen ones, and
the three sums add up to the score, as the three differences of two models add up to the gain. What two unseen pairs
bring involves no pair of the training data. (A seen pair that moves changes no sign between two unseen ones: that is
why this sum is taken, and not a sum over pairs of their ranks, which all move when one does.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from pcclab.data import leakage
from pcclab.data.leakage import Level
from pcclab.evaluation.correlation import check
from pcclab.evaluation.resampling import Side, draws, refuse_constant
from pcclab.evaluation.seen import Similarities, Tests, paired, stream, told
from pcclab.evaluation.statistics import AVERAGE

if TYPE_CHECKING:
    import pandas as pd

    from pcclab.data.pairs import ScoredPairs

BLOCKS = ("both seen", "one seen", "none seen")


def comparisons(
    similarities: Float[np.ndarray, "models pairs"],
    gold: Float[np.ndarray, " pairs"],
    seen: Bool[np.ndarray, " pairs"],
    *,
    resamples: int = 0,
    seed: int | Sequence[int] = 0,
) -> Float[np.ndarray, "models blocks columns"]:
    """What comparisons of two seen, of a seen and an unseen, and of two unseen pairs add to each model's Spearman.

    Args:
        similarities: (models, pairs) finite scores, one row a model.
        gold: (pairs,) finite ratings.
        seen: (pairs,) which pairs count as seen.
        resamples: further columns, each from pairs drawn with replacement, as `resampled` draws them.
        seed: as in `resampled`.

    Returns: (models, 3, 1 + resamples): the data as they are, then the resamples; the three sum to the Spearman.
    Raises: as `spearman`; Undefined when a resample is constant on one side.
    Relations: `seen_unseen` ranks each part by itself; its unseen part is the third block on a scale of its own.

    >>> values = comparisons(np.array([[1.0, 2.0, 4.0, 3.0]]), np.arange(4.0), np.array([True, True, False, False]))
    >>> values[0, :, 0].round(2), float(values.sum().round(2))
    (array([ 0.1,  0.8, -0.1]), 0.8)
    """
    for similarity in similarities:
        check(similarity, gold)
    rated, parts = Side.of(gold), (np.flatnonzero(seen), np.flatnonzero(~seen))
    whole = [Side.of(similarity) for similarity in similarities]
    inside = [[Side.of(similarity[rows]) for rows in parts] for similarity in similarities]
    found: list[np.ndarray] = []
    for counts in _with_the_data(len(gold), resamples, seed):
        gold_ranks, gold_spread = rated.ranks(counts[rated.order])
        of_pair = gold_ranks[rated.place]
        block = np.empty((len(similarities), 3, counts.shape[1]))
        for model, side in enumerate(whole):
            total, spread = _agreement(side, counts, of_pair)
            refuse_constant(spread, gold_spread)
            seen_part, unseen_part = (
                _agreement(part, counts[rows], of_pair[rows])[0] if len(rows) else np.zeros(counts.shape[1])
                for part, rows in zip(inside[model], parts, strict=True)
            )
            sums = np.stack([seen_part, total - seen_part - unseen_part, unseen_part])
            block[model] = 3 * sums / np.sqrt(spread * gold_spread)
        found.append(block)
    return np.concatenate(found, axis=2)


def gain_blocks(
    after: Sequence[Similarities],
    before: Sequence[Similarities],
    tests: Tests,
    train: ScoredPairs,
    *,
    level: Level = "pair",
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """A gain as the sum of what both-seen, one-seen and none-seen comparisons bring, on each test and on average.

    Args:
        after, before, tests, train, level, resamples, seed: as in `seen_gains`.

    Returns:
        One row a test and block of `BLOCKS`, then "average": task, block, possible (what a perfect order would have
        there; the three sum to 100), before, after, gain, low, high, seed_low, seed_high (x 100), each. The gains of a
        test's blocks sum to its gain.

    Raises: as `seen_gains` and `comparisons`, with the test's name.
    """
    import pandas as pd

    models, pick = paired(after, before)
    rows: list[dict[str, Any]] = []
    drawn: dict[str, np.ndarray] = {}
    for task, table in tests.items():
        hit = leakage.seen(table, train, level=level)
        try:
            stack = np.stack([model[task] for model in models])
            values = 100 * comparisons(stack, table.gold, hit, resamples=resamples, seed=stream(seed, task, "all"))
        except ValueError as error:
            raise type(error)(f"{task}: {error}") from error
        possible = 100 * comparisons(np.asarray(table.gold)[None], table.gold, hit)[0, :, 0]
        drawn[task] = pick(values)
        levels = {"before": values[len(after) :, :, 0].mean(0), "after": values[: len(after), :, 0].mean(0)}
        rows += [_row(task, place, possible, levels, drawn[task]) for place in range(len(BLOCKS))]
    frame = pd.DataFrame(rows)
    means = {
        name: frame.groupby("block", sort=False)[name].mean().to_numpy() for name in ("possible", "before", "after")
    }
    whole = np.mean(list(drawn.values()), axis=0)
    rows += [_row(AVERAGE, place, means["possible"], means, whole) for place in range(len(BLOCKS))]
    return pd.DataFrame(rows)


def _row(
    task: str, place: int, possible: np.ndarray, levels: Mapping[str, np.ndarray], drawn: np.ndarray
) -> dict[str, Any]:
    row = {"task": task, "block": BLOCKS[place], "possible": float(possible[place])}
    row |= {name: float(levels[name][place]) for name in ("before", "after")}
    return {**row, **told(drawn[:, place, 0], drawn[:, place, 1:])}


def _agreement(side: Side, counts: np.ndarray, gold_ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sum over a part's comparisons of signed gold rank distances, (resamples,), and the spread of its ranks."""
    sorted_counts = counts[side.order]
    ranks, spread = side.ranks(sorted_counts)
    return np.einsum("gr,gr->r", side.grouped(sorted_counts * gold_ranks[side.order]), ranks), spread


def _with_the_data(pairs: int, resamples: int, seed: int | Sequence[int]) -> Iterable[np.ndarray]:
    yield np.ones((pairs, 1))
    if resamples:
        yield from draws(pairs, resamples, seed)
