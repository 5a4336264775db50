"""What judging an encoder on everything consists of: units that are computed, and kept, one by one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pcclab import data, evaluation
from pcclab.evaluation.correlation import cosine
from pcclab.evaluation.embeddings import embed
from pcclab.evaluation.intervals import accuracy_intervals, geometry_intervals, sts_intervals
from pcclab.evaluation.results import UNDEFINED
from pcclab.evaluation.transfer import TASKS, Protocol
from pcclab.evaluation.transfer_results import TransferScore

if TYPE_CHECKING:
    from pcclab.data import ScoredPairs, Table
    from pcclab.encoders import Encoder

Rows = dict[str, dict[str, Any]]
"""Row -> column -> a number, a word, or [value, low, high]."""

RESAMPLES = 10_000
POSITIVE_FROM = 4.0
"""Rating from which a pair counts as positive for alignment, as RankCSE has it."""


@dataclass(frozen=True)
class Unit:
    """One piece of the judgement.

    Args:
        name: the part it belongs to, "sts", "transfer", "rank" or "geometry"; after a slash what of it.
        tables: all the data it looks at.
        options: what else its rows depend on.
        compute: from an encoder, the folder of kept embeddings and the bootstrap's seed to the rows.
    """

    name: str
    tables: Mapping[str, Table]
    options: Mapping[str, Any]
    compute: Callable[[Encoder, Path, int], Rows]


PARTS = ("sts", "transfer", "rank", "geometry")
"""Parts of the judgement; the transfer tasks are a unit each."""


def units(
    source: str | os.PathLike[str] | None,
    *,
    protocol: Protocol = "lbfgs",
    more_than: int = 3,
    only: Collection[str] = (),
) -> list[Unit]:
    """The units, their data loaded.

    Args:
        source: as in `data.load`.
        protocol: of the transfer tasks.
        more_than: as in `evaluation.rank_tasks`.
        only: some of `PARTS`; empty for all.

    Raises: as `data.load`, before anything is embedded; ValueError for an unknown part.
    """
    if unknown := [part for part in only if part not in PARTS]:
        raise ValueError(f"unknown part {unknown[0]!r}: choose among {', '.join(PARTS)}")
    wanted, found = set(only) or set(PARTS), []
    if "sts" in wanted:
        tests = data.sts_tests(source=source)
        found.append(Unit("sts", tests, {}, partial(_sts, tests)))
    for task, (_, splits) in TASKS.items() if "transfer" in wanted else ():
        tables = {f"{task} {split}": data.load(task, split=split, source=source) for split in splits}
        compute = partial(_transfer, task, source, protocol)
        found.append(Unit(f"transfer/{task}", tables, {"protocol": protocol}, compute))
    if "rank" in wanted:
        lists = data.rank_tables(source=source)
        found.append(Unit("rank", lists, {"more_than": more_than}, partial(_rank, lists, more_than)))
    if "geometry" in wanted:
        dev = data.load("stsb", split="dev", source=source)
        found.append(Unit("geometry", {"stsb dev": dev}, {"positive_from": POSITIVE_FROM}, partial(_geometry, dev)))
    return found


def accuracies(rows: Rows, seed: int) -> Rows:
    """The transfer tasks' rows with their average, over the tasks' own resamples; undefined where a task is."""
    known = {name: row["accuracy"][0] for name, row in rows.items() if isinstance(row["accuracy"], list)}
    totals = {column: sum(row[column] for row in rows.values()) for column in ("train", "test")}
    whole: Any = UNDEFINED
    if len(known) == len(rows) > 1:
        scores = {
            name: TransferScore(rows[name]["train"], rows[name]["test"], None, accuracy)
            for name, accuracy in known.items()
        }
        frame = accuracy_intervals(scores, resamples=RESAMPLES, seed=seed)
        whole = _cells(_records(frame))["average"]
    return {**rows, "average": {**totals, "accuracy": whole}} if len(rows) > 1 else rows


def _sts(tests: Mapping[str, ScoredPairs], encoder: Encoder, cache: Path, seed: int) -> Rows:
    every = (text for table in tests.values() for text in (*table.first, *table.second))
    embedded = embed(encoder, every, cache=cache)
    scored = {
        name: (cosine(embedded.of(table.first), embedded.of(table.second)), table.gold) for name, table in tests.items()
    }
    frame = sts_intervals(scored, resamples=RESAMPLES, seed=seed)
    cells = _cells(_records(frame))
    return {row["task"]: {"pairs": int(row["number"]), "spearman": cells[row["task"]]} for row in _records(frame)}


def _transfer(
    task: str, source: str | os.PathLike[str] | None, protocol: Protocol, encoder: Encoder, cache: Path, seed: int
) -> Rows:
    score = evaluation.transfer(encoder, tasks=[task], protocol=protocol, source=source, cache=cache).tasks[task]
    frame = accuracy_intervals({task: score}, resamples=RESAMPLES, seed=seed)
    row = {"train": score.train, "test": score.test, "accuracy": _cells(_records(frame))[task]}
    row["dev"] = UNDEFINED if score.dev is None else score.dev
    if score.f1 is not None:
        row["f1"] = score.f1
    return {task: row}


def _rank(lists: Mapping[str, ScoredPairs], more_than: int, encoder: Encoder, cache: Path, seed: int) -> Rows:
    results = evaluation.rank_pairs(encoder, lists, more_than=more_than, cache=cache)
    frame = evaluation.rank_intervals({"": results}, resamples=RESAMPLES, seed=seed)
    rows: Rows = {}
    for measure in ("kendall", "ndcg"):
        part = _records(frame[frame["measure"] == measure])
        for name, cell in _cells(part).items():
            rows.setdefault(name, {"lists": next(int(row["lists"]) for row in part if row["task"] == name)})
            rows[name][measure] = cell
    for row in _records(frame[frame["measure"] == "ndcg"]):
        rows[row["task"]]["ndcg without order"] = UNDEFINED if math.isnan(row["constant"]) else row["constant"]
    return rows


def _geometry(dev: ScoredPairs, encoder: Encoder, cache: Path, seed: int) -> Rows:
    embedded = embed(encoder, (*dev.first, *dev.second), cache=cache)
    positive = np.flatnonzero(dev.gold >= POSITIVE_FROM)
    sides = [embedded.of([side[row] for row in positive]) for side in (dev.first, dev.second)]
    frame = geometry_intervals(sides[0], sides[1], embedded.vectors, seed=seed)
    cells = _cells(_records(frame))
    return {row["task"]: {"over": int(row["number"]), "value": cells[row["task"]]} for row in _records(frame)}


def _cells(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """[value, low, high] of each row, the value alone where it has no interval, or the word "undefined"."""
    found: dict[str, Any] = {}
    for row in rows:
        value, low, high = (float(row[name]) for name in ("value", "low", "high"))
        whole = value if math.isnan(low) else [value, low, high]
        found[str(row["task"])] = UNDEFINED if math.isnan(value) else whole
    return found


def _records(frame: Any) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", frame.to_dict("records"))
