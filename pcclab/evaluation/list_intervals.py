"""How sure a rank task is: bootstrap over its lists, one model, two models, and the lists they differ on most."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from pcclab.evaluation.significance import holm

if TYPE_CHECKING:
    import pandas as pd

    from pcclab.evaluation.rank_tasks import RankResults, RankScore

Over = Literal["lists", "groups"]
AVERAGE = "average"
MEASURES: dict[str, str] = {"kendall": "taus", "ndcg": "gains"}
"""Each measure, and where a `RankScore` keeps it list by list."""


def rank_intervals(
    results: Mapping[str, RankResults],
    *,
    over: Over = "lists",
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """Kendall and NDCG x 100 of each model on each set with the percentile interval of its bootstrap over the lists.

    Args:
        results: model -> what `rank_tasks` measured, all on the same sets.
        over: what is drawn with replacement: "lists" takes them as independent; "groups" draws whole groups of lists
            that share sentences, which is honest where lists overlap and coarse where a set has few groups.
        resamples, seed, level: of the bootstrap; every model sees the same draws, each set has a stream of its own.

    Returns: columns task, model, measure, value, low, high, lists (those that have a value), groups and, for NDCG,
        constant: what a scorer without any order gets. A set without a value has NaN. The average's rows come last,
        over the sets' r-th resamples; a set without a value leaves it undefined.

    Raises: ValueError for models judged on different sets, a `level` outside 0..1, or `resamples` below 1.

    Source: Efron 1979, percentile interval; RankCSE gives none.
    """
    import pandas as pd

    ends = _ends(level, resamples)
    rows: list[dict[str, Any]] = []
    for measure, kept in MEASURES.items():
        drawn: dict[str, list[np.ndarray]] = {name: [] for name in results}
        for task in _tasks(results):
            for name, result in results.items():
                score = result.tasks[task]
                values = _values(score, kept)
                means = _resampled(values, score.groups, over, resamples, (seed, zlib.crc32(task.encode())))
                drawn[name].append(means)
                row = {"task": task, "model": name, "measure": measure, **_interval(_mean(values), means, ends)}
                constant = np.nan if score.constant is None or measure == "kendall" else score.constant
                defined = [group for group, value in zip(score.groups, values, strict=True) if not np.isnan(value)]
                rows.append({**row, "lists": len(defined), "groups": len(set(defined)), "constant": constant})
        for name, result in results.items():
            mine = [row for row in rows if row["model"] == name and row["measure"] == measure]
            value = getattr(result, measure)
            whole = _interval(np.nan if value is None else value, np.mean(drawn[name], axis=0), ends)
            sums = {key: sum(row[key] for row in mine) for key in ("lists", "groups")}
            constant = float(np.mean([row["constant"] for row in mine]))
            rows.append({"task": AVERAGE, "model": name, "measure": measure, **whole, **sums, "constant": constant})
    frame = pd.DataFrame(rows)
    last = frame["task"] == AVERAGE
    return pd.concat([frame[~last], frame[last]], ignore_index=True)


def compare_ranks(
    first: RankResults,
    second: RankResults,
    *,
    over: Over = "lists",
    resamples: int = 10_000,
    seed: int = 0,
    level: float = 0.95,
) -> pd.DataFrame:
    """First model less second on the same lists: the paired bootstrap, with Holm's correction over the sets.

    Args:
        first, second: of the same sets; a list counts where both have a value.
        over, resamples, seed, level: as in `rank_intervals`.

    Returns: columns task, measure, difference, low, high (x 100), p, p_holm, lists and `differs` (p_holm below
        1 - level), one row a measure and set, then its average, whose p_holm is its p. NaN where no list is shared.

    Raises: as `rank_intervals`.
    """
    import pandas as pd

    ends = _ends(level, resamples)
    rows: list[dict[str, Any]] = []
    for measure, kept in MEASURES.items():
        drawn: list[np.ndarray] = []
        found: list[dict[str, Any]] = []
        for task in _tasks({"first": first, "second": second}):
            sides = first.tasks[task], second.tasks[task]
            differences = _values(sides[0], kept) - _values(sides[1], kept)
            means = _resampled(differences, sides[0].groups, over, resamples, (seed, zlib.crc32(task.encode())))
            lists = int((~np.isnan(differences)).sum())
            found.append({"task": task, "measure": measure, **_difference(_mean(differences), means, ends)})
            found[-1]["lists"] = lists
            drawn.append(means)
        defined = [row for row in found if not np.isnan(row["p"])]
        for row, corrected in zip(defined, holm([row["p"] for row in defined]) if defined else (), strict=True):
            row["p_holm"] = float(corrected)
        value = float(np.mean([row["difference"] for row in found]))
        whole = {"task": AVERAGE, "measure": measure, **_difference(value, np.mean(drawn, axis=0), ends)}
        rows += [*found, {**whole, "p_holm": whole["p"], "lists": sum(row["lists"] for row in found)}]
    frame = pd.DataFrame(rows)
    frame["differs"] = frame["p_holm"] < 1 - level
    return frame


def widest(results: Mapping[str, RankResults], *, count: int = 3) -> pd.DataFrame:
    """The lists to look at: where the first two models' tau-b differ most; of one model, where its tau-b is lowest.

    Equal ones stand in the order of the sets and of their lists.

    Args:
        results: model -> what `rank_tasks` measured, all on the same sets.
        count: how many lists.

    Returns: columns task, query, and tau-b x 100 of every model; as many rows as asked for, or as there are.

    Raises: ValueError for no models, models judged on different sets, or `count` below 1.
    """
    import pandas as pd

    if count < 1:
        raise ValueError(f"count is {count}: ask for at least 1 list")
    frames = []
    for task in _tasks(results):
        taus = {name: _values(result.tasks[task], "taus") for name, result in results.items()}
        asked = next(iter(results.values())).tasks[task].queries
        frames.append(pd.DataFrame({"task": task, "query": list(asked), **taus}))
    names = list(results)[:2]
    whole = pd.concat(frames, ignore_index=True).dropna(subset=names)
    rule = -(whole[names[0]] - whole[names[1]]).abs() if len(names) == 2 else whole[names[0]]
    return whole.loc[rule.sort_values(kind="stable").index[:count]].reset_index(drop=True)


def _tasks(results: Mapping[str, RankResults]) -> tuple[str, ...]:
    """The sets, once every model is seen to have been judged on the same lists of them."""
    if not results:
        raise ValueError("no models: give the results of at least one")
    (name, first), *others = results.items()
    for other, result in others:
        if list(result.tasks) != list(first.tasks):
            sets = f"{other} was judged on {list(result.tasks)} and {name} on {list(first.tasks)}"
            raise ValueError(f"{sets}: judge alike")
        for task, score in result.tasks.items():
            if score.queries != first.tasks[task].queries:
                raise ValueError(f"{other} and {name} have other lists in {task}: judge both on the same tables")
    return tuple(first.tasks)


def _values(score: RankScore, kept: str) -> np.ndarray:
    values: Iterable[float | None] = getattr(score, kept)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _resampled(
    values: np.ndarray, groups: tuple[int, ...], over: Over, resamples: int, seed: tuple[int, int]
) -> np.ndarray:
    """The mean of the defined values in each resample, (resamples,); NaN where it drew none."""
    if over not in ("lists", "groups"):
        raise ValueError(f"over is {over!r}: draw 'lists' or 'groups'")
    if not len(values):
        return np.full(resamples, np.nan)
    unit = np.arange(len(values)) if over == "lists" else np.asarray(groups)
    units = int(unit.max()) + 1
    there = ~np.isnan(values)
    totals = np.bincount(unit, np.where(there, values, 0.0), units)
    counts = np.bincount(unit, there.astype(float), units)
    draws = np.random.default_rng(seed).multinomial(units, np.full(units, 1 / units), size=resamples).astype(float)
    weights = draws @ counts
    return np.divide(draws @ totals, weights, out=np.full(resamples, np.nan), where=weights > 0)


def _interval(value: float, drawn: np.ndarray, ends: tuple[float, float]) -> dict[str, float]:
    low, high = _quantiles(drawn, ends) if not np.isnan(value) else (np.nan, np.nan)
    return {"value": value, "low": low, "high": high}


def _difference(value: float, drawn: np.ndarray, ends: tuple[float, float]) -> dict[str, float]:
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(known):
        return {**dict.fromkeys(("difference", "low", "high", "p", "p_holm"), float("nan"))}
    # One more resample on either side: no finite number of them shows a probability of 0.
    rarer = 1 + min(int((known <= 0).sum()), int((known >= 0).sum()))
    low, high = _quantiles(drawn, ends)
    return {"difference": value, "low": low, "high": high, "p": min(1.0, 2 * rarer / (len(known) + 1))}


def _quantiles(drawn: np.ndarray, ends: tuple[float, float]) -> tuple[float, float]:
    known = drawn[~np.isnan(drawn)]
    low, high = np.quantile(known, ends) if len(known) else (np.nan, np.nan)
    return float(low), float(high)


def _ends(level: float, resamples: int) -> tuple[float, float]:
    if not 0 < level < 1:
        raise ValueError(f"level={level}: give a probability between 0 and 1, such as 0.95")
    if resamples < 1:
        raise ValueError(f"resamples={resamples}: draw at least 1, and 1,000 or more for an interval")
    return (1 - level) / 2, (1 + level) / 2
