"""Stage 2 judged honestly: each run's one look at the tests, and what looking at every checkpoint would promise."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from pcclab import data, encoders, runs, training, vault
from pcclab.data import ScoredPairs
from pcclab.parameters.leakage import LeakageParameters
from pcclab.runs import Run
from pcclab.training import FitSettings
from pcclab.workflows.grid import Cell
from pcclab.workflows.models import load_models

JUDGING: Mapping[str, Any] = {"stage2": "", "levels": [], "least": 30, "resamples": 1000}
"""What a training does not depend on, made the same for all cells, so that another judgement trains nothing anew."""


def stage2_looks(run: Run, tests: Mapping[str, ScoredPairs]) -> dict[str, list[vault.Look]]:
    """What the vault of each stage-2 run says of the tests, and before it the encoder's they started from.

    A run that is missing is run first; one whose vault holds its look is not embedded again.

    Args:
        run: notebook 10's, with `stage2`, `levels` and `seeds`.
        tests: the tables of the look.

    Returns:
        "baseline" -> one look, in the vault of `run`; then each level -> a look a seed.

    Raises: ValueError where there are no runs to judge, or one has other data or did not start from `encoder`.
    """
    p = run.parameters
    assert isinstance(p, LeakageParameters)
    if not p.levels:
        raise ValueError("stage2 and levels are empty, so there are no runs to judge: name a set of notebook 03")
    for place in p.stands_on():
        if (other := runs.spoken(place).parameters.source) != p.source:
            raise ValueError(f"{place!r} has source {other!r} and this run {p.source!r}: judge it on its own data")
    start = _start(p)
    found = {"baseline": [vault.look(run, start, tests)]}
    for level in p.levels:
        found[level] = []
        for place, model in zip(p.places(level), load_models(p.places(level)).values(), strict=True):
            assert model.run is not None
            known = json.loads((model.run.checkpoints / "training.json").read_text(encoding="utf8"))
            if known["encoder"] != start.fingerprint:
                raise ValueError(f"{place!r} started from other weights than encoder = {p.encoder!r}: name its start")
            found[level].append(vault.look(model.run, model.load(), tests))
    return found


def with_looks(run: Run, shared: dict[str, Any]) -> Cell:
    """Stage 2 with the step chosen on clean pairs, and at every look its score on random pairs of each test.

    Args:
        run: with one entry in `selected` and in `seeds`.
        shared: keeps the tables for the next cell.

    Returns:
        `looks`: step -> dev and the tests with their average, all Spearman x 100; step 0 is the encoder as it was and
        is never chosen. `step`: the one chosen on the development pairs. `tests`: its scores.

    Source: Pcc-tuning, section 5; its published code names its checkpoints beside their test scores.
    """
    p = run.parameters
    assert isinstance(p, LeakageParameters)
    (level,), (seed,) = p.selected, p.seeds
    train = data.stage2_pairs(leakage=level, source=p.source)
    if "dev" not in shared:
        tests = data.sts_tests(source=p.source)
        shared["dev"] = data.dev_pairs(source=p.source)
        shared["tests"] = {name: drawn(table, p.look_pairs, name=name, seed=p.seed) for name, table in tests.items()}
    dev, watched = shared["dev"], shared["tests"]
    settings = replace(FitSettings.of(p), seed=seed)
    encoder = _start(p)
    run.record(
        data={"train": train.fingerprint, "dev": dev.fingerprint, **{n: t.fingerprint for n, t in watched.items()}},
        encoder={"name": encoder.settings.name, "fingerprint": encoder.fingerprint},
    )
    history = training.fit(encoder, train, "pearson", parameters=settings, run=run, dev=dev, watched=watched)
    looks = {str(line["step"]): _look(line) for line in history.steps if "dev_spearman" in line}
    return {
        "step": history.best_step,
        "tests": looks[str(history.best_step)],
        "looks": looks,
        "seconds": history.seconds,
    }


def drawn(table: ScoredPairs, pairs: int, *, name: str, seed: int) -> ScoredPairs:
    """So many random pairs of a test, in their order, the same for every training; all of them for 0 or fewer rows."""
    if not 0 < pairs < len(table):
        return table
    rows = np.random.default_rng((seed, zlib.crc32(name.encode()))).choice(len(table), pairs, replace=False)
    return table.select(np.sort(rows))


def choices(cells: pd.DataFrame) -> pd.DataFrame:
    """What each rule of choosing would report, a row a training.

    Args:
        cells: of the grid over `with_looks`: selected, seeds and columns "looks/<step>/dev", "looks/<step>/average" ...

    Returns:
        Columns leakage, seed; `dev`, `last` and `test`: average over the tests at the step chosen on the development
        pairs, at the last step, and at the step where that average itself is highest; `task`: the mean of each task's
        own highest; `dev_step`, `test_step`, and the number of `looks` chosen among; `optimism` = test - dev and
        `optimism_task` = task - dev. Both are never negative, whatever the data: the scores that chose are reported.
    """
    rows = []
    for _, cell in cells.iterrows():
        looks = looked(cell)
        after = looks[looks.index > 0]
        by_dev, by_test = int(after["dev"].idxmax()), int(after["average"].idxmax())
        row = {"leakage": cell["selected"], "seed": cell["seeds"], "dev": after.loc[by_dev, "average"]}
        row |= {"last": after["average"].iloc[-1], "test": after["average"].max()}
        row |= {"task": after.drop(columns=["dev", "average"]).max().mean()}
        row |= {"dev_step": by_dev, "test_step": by_test, "looks": len(after)}
        row |= {"optimism": row["test"] - row["dev"], "optimism_task": row["task"] - row["dev"]}
        rows.append(row)
    return pd.DataFrame(rows)


def looked(cell: pd.Series) -> pd.DataFrame:
    """The looks of one training: a row a step, columns dev, the tests and their average.

    Args:
        cell: its row of the grid.
    """
    parts = [(name.split("/"), value) for name, value in cell.items() if str(name).startswith("looks/")]
    frame = pd.DataFrame([(int(step), score, value) for (_, step, score), value in parts if not pd.isna(value)],
                         columns=["step", "score", "value"])  # fmt: skip
    order = list(frame["score"].unique())
    return frame.pivot(index="step", columns="score", values="value")[order].sort_index().astype(float)


def _look(line: Mapping[str, Any]) -> dict[str, float]:
    scores = {name.removesuffix("_spearman"): score for name, score in line.items() if name.endswith("_spearman")}
    tests = [score for name, score in scores.items() if name != "dev"]
    if len(tests) < len(data.STS_TASKS):
        raise ValueError(
            f"at step {line['step']} the embeddings collapsed: some test has constant cosines; lower the learning rate"
        )
    return {**scores, "average": sum(tests) / len(tests)}


def _start(p: LeakageParameters) -> encoders.Encoder:
    (model,) = load_models((p.encoder,)).values()
    return model.load(**p.loading())
