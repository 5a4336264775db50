"""Where a gain comes from: scores on the test pairs that stood in the training data, and on those that did not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pcclab.data import leakage
from pcclab.data.leakage import Level
from pcclab.evaluation.correlation import Undefined, spearman
from pcclab.evaluation.resampling import resampled
from pcclab.evaluation.statistics import AVERAGE, bootstrap, seeds
from pcclab.evaluation.sts import Encodes, similarities

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from pcclab.data.pairs import ScoredPairs

PARTS = ("seen", "unseen", "all")
LEAST = 30
"""Pairs below which the interval of a Spearman spans tens of points and says nothing."""

Similarities = Mapping[str, np.ndarray]
"""A score a pair, (pairs,), by the name of the test."""
Tests = Mapping[str, "ScoredPairs"]


def seen_unseen(
    model: Encodes | Similarities,
    tests: Tests,
    train: ScoredPairs,
    *,
    level: Level = "pair",
    least: int = LEAST,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """A model's Spearman on the seen and on the unseen pairs of each test, with bootstrap intervals.

    A part has its own ranks: its score says how its pairs are ordered among themselves. The parts of a test differ in
    more than having been seen, so a model's two scores are not to be compared with each other, but with another model's
    on the same part.

    Args:
        model: an encoder, or its similarities as `similarities` gives them.
        tests: tables by name.
        train: what makes a test pair seen, whatever the model was trained on.
        level: "pair": the same two sentences stand in `train`; "sentence": at least one of them does.
        least: parts with fewer pairs are undefined.
        resamples, seed: of the bootstrap; each part of each test has its own stream.

    Returns:
        One row a test and part ("seen", "unseen", "all"): task, part, pairs, spearman, low, high (x 100), reason: why
        a score is undefined (NaN), else empty.

    >>> from pcclab import data
    >>> train, tests = data.stage2_pairs(leakage="keep", source="synthetic"), data.sts_tests(source="synthetic")
    >>> frame = seen_unseen({name: table.gold for name, table in tests.items()}, tests, train, resamples=100)
    >>> frame.groupby("part")["pairs"].sum().to_dict()
    {'all': 1960, 'seen': 485, 'unseen': 1475}
    """
    import pandas as pd

    known = model if isinstance(model, Mapping) else similarities(model, tests)
    rows = []
    for task, part, mask, stream in _parts(tests, train, level, seed):
        row = _blank(task, part, mask)
        try:
            _enough(mask, least)
            gold = tests[task].gold[mask]
            found = bootstrap(known[task][mask], gold, resamples=resamples, seed=stream)
            row |= {"spearman": found.value, "low": found.low, "high": found.high}
        except Undefined as error:
            row |= {"spearman": np.nan, "low": np.nan, "high": np.nan, "reason": str(error)}
        rows.append(row)
    return pd.DataFrame(rows)


def seen_gains(
    after: Sequence[Similarities],
    before: Sequence[Similarities],
    tests: Tests,
    train: ScoredPairs,
    *,
    level: Level = "pair",
    least: int = LEAST,
    resamples: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """What one training gains over another, or over none, on the seen and on the unseen pairs of each test.

    Two intervals stand side by side, for two questions: `low`, `high` are the paired bootstrap over test pairs of the
    mean over the seeds (other test pairs, these trainings); `seed_low`, `seed_high` are Student's over the seeds (these
    test pairs, other trainings).

    Args:
        after: similarities of the trained models, one a seed.
        before: of what they are held against, seed by seed; a single one, such as the untrained encoder's, serves all.
        tests, train, level, least, resamples, seed: as in `seen_unseen`; calls with the same ones use the same
            resamples.

    Returns:
        One row a test and part, then "average" for each part: task, part, pairs, before, after, gain, low, high,
        seed_low, seed_high (x 100; NaN for one seed), each (the gain of each seed), reason. The averages of "seen" and
        of "unseen" are over the tests that have both, that of "all" is over all tests.

    Raises: ValueError for no models, or a number of `before` that is neither 1 nor that of `after`.
    """
    import pandas as pd

    models, pick = paired(after, before)
    rows, drawn = [], {}
    for task, part, mask, stream in _parts(tests, train, level, seed):
        row = _blank(task, part, mask)
        try:
            _enough(mask, least)
            gold = tests[task].gold[mask]
            stack = np.stack([model[task][mask] for model in models])
            scores = np.array([100 * spearman(one, gold) for one in stack])
            resample = 100 * resampled(stack, gold, resamples=resamples, seed=stream)
        except Undefined as error:
            row |= {"each": (), "reason": str(error)}
        else:
            drawn[task, part] = pick(resample)
            row |= {"before": scores[-len(before) :].mean(), "after": scores[: len(after)].mean()}
            row |= told(pick(scores[:, None])[:, 0], drawn[task, part])
        rows.append(row)
    frame = pd.DataFrame(rows)
    return pd.concat([frame, pd.DataFrame(_averages(frame, drawn))], ignore_index=True)


def paired(after: Sequence[Similarities], before: Sequence[Similarities]) -> tuple[list[Similarities], Any]:
    """The models of both sides, and a function from an array (models, ...) to the differences (seeds, ...)."""
    if not after or len(before) not in (1, len(after)):
        raise ValueError(f"{len(after)} models after and {len(before)} before: give one each a seed, or one before all")
    return [*after, *before], lambda values: values[: len(after)] - values[len(after) :]


def told(each: np.ndarray, drawn: np.ndarray) -> dict[str, Any]:
    """The figures of a gain: its mean over seeds, the interval over pairs (seeds, resamples) and that over seeds."""
    spread = seeds(each)
    low, high = np.quantile(drawn.mean(axis=0), (0.025, 0.975))
    ends = {"seed_low": spread.low, "seed_high": spread.high}
    known = {name: np.nan if value is None else value for name, value in ends.items()}
    return {"gain": spread.mean, "low": float(low), "high": float(high), **known, "each": tuple(map(float, each))}


def stream(seed: int, task: str, part: str) -> tuple[int, int, int]:
    """The bootstrap's stream of one part of a test, which depends on nothing that stands beside it."""
    return (seed, zlib.crc32(task.encode()), zlib.crc32(part.encode()))


def _parts(
    tests: Tests, train: ScoredPairs, level: Level, seed: int
) -> Iterator[tuple[str, str, NDArray[np.bool_], tuple[int, int, int]]]:
    if not tests or AVERAGE in tests:
        raise ValueError(f'tests {list(tests)}: give at least one, and none named "{AVERAGE}", the last rows\' name')
    for task, table in tests.items():
        hit = leakage.seen(table, train, level=level)
        for part, mask in zip(PARTS, (hit, ~hit, np.ones_like(hit)), strict=True):
            yield task, part, mask, stream(seed, task, part)


def _averages(frame: pd.DataFrame, drawn: Mapping[tuple[str, str], np.ndarray]) -> list[dict[str, Any]]:
    rows = []
    both = {task for task, part in drawn if part == "seen"} & {task for task, part in drawn if part == "unseen"}
    for part in PARTS:
        here = [task for task, kind in drawn if kind == part and (part == "all" or task in both)]
        whole = frame[(frame["part"] == part) & frame["task"].isin(here)]
        row: dict[str, Any] = {"task": AVERAGE, "part": part, "pairs": int(whole["pairs"].sum()), "reason": ""}
        if here:
            row |= {name: float(whole[name].mean()) for name in ("before", "after")}
            each = np.mean([whole["each"].iloc[place] for place in range(len(whole))], axis=0)
            row |= told(each, np.mean([drawn[task, part] for task in here], axis=0))
        else:
            row |= {"each": (), "reason": "no test has both parts"}
        rows.append({**row, "tests": len(here)})
    return rows


def _blank(task: str, part: str, mask: NDArray[np.bool_]) -> dict[str, Any]:
    return {"task": task, "part": part, "pairs": int(mask.sum()), "reason": ""}


def _enough(mask: NDArray[np.bool_], least: int) -> None:
    if mask.sum() < least:
        raise Undefined(f"{int(mask.sum())} pairs: fewer than {least}")
