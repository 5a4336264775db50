"""The loss race: the same data, the same budget, a learning rate of its own for each loss, several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from pcclab import losses
from pcclab.parameters.comparisons import ComparisonParameters
from pcclab.training import FitSettings
from pcclab.workflows.bench import Bench, Trial, frozen, rated

PAIR_LOSSES = (
    "pearson",
    "pearson_ranks",
    "soft_spearman",
    "soft_spearman(method='projection')",
    "ccc",
    "cosine_mse",
    "cosent",
    "angle",
    "kendall",
    "rank_n_contrast",
    "info_nce",
    "pearson + 0.1 * info_nce",
    "l1",
    "mse",
    "translated_relu",
    "smooth_k2",
    "cross_entropy",
)
"""Everything in the catalogue that can be trained on rated pairs."""


def race(
    bench: Bench,
    names: Sequence[str],
    *,
    settings: FitSettings,
    learning_rates: Sequence[float],
    seeds: Sequence[int],
) -> pd.DataFrame:
    """Run what is not run yet, and give one row a training.

    Each loss is trained with every learning rate on the first seed; the one with the best development score is then
    trained on the other seeds too. Only these, `chosen`, ever see a test.

    Args:
        bench: data, encoder, and the CSV that keeps the rows.
        names: losses, or sums of them.
        settings: the budget all have in common.
        learning_rates: the grid.
        seeds: of rows, heads and dropout; the intervals are over them.

    Returns:
        Columns loss, learning_rate, seed, chosen, dev, step, seconds, the tests and their average, and `error` where a
        training broke. A loss that broke with every learning rate has no chosen row.

    Raises: ValueError for an unknown loss, one that rated pairs cannot train, or no seed, before anything is trained.
    """
    for name in names:
        for term in losses.parse(name):
            losses.by_name(term.name)
    if not seeds or not learning_rates:
        raise ValueError(f"seeds {list(seeds)}, learning_rates {list(learning_rates)}: give at least one of each")
    for name in names:
        bench.check(_trial(name, settings, learning_rates[0], seeds[0]))
    rows: list[dict[Any, Any]] = []
    for number, name in enumerate(names, start=1):
        tried = {rate: _trial(name, settings, rate, seeds[0]) for rate in learning_rates}
        found = {rate: bench.measure(trial, tests=False) for rate, trial in tried.items()}
        known = {rate: row["dev"] for rate, row in found.items() if "dev" in row}
        best = max(known, key=lambda rate: known[rate]) if known else None
        rows += [{**row, "chosen": False} for rate, row in found.items() if rate != best]
        if best is not None:
            done = [bench.measure(_trial(name, settings, best, seed)) for seed in seeds]
            # Another seed may break where the first did not: it counts no more than a rate that broke.
            rows += [{**row, "chosen": "error" not in row} for row in done]
            scores = [row["average"] for row in done if "error" not in row]
            tests = f"tests {sum(scores) / len(scores):.2f}" if scores else "broke on the tests"
            broken = f", {len(done) - len(scores)} of {len(done)} seeds broke" if len(scores) < len(done) else ""
            print(f"{number} of {len(names)}: {name}: lr {best:g}, {tests}{broken}", flush=True)
            for rate in tried:
                bench.forget(tried[rate])
        else:
            print(f"{number} of {len(names)}: {name}: broke with every learning rate", flush=True)
    return pd.DataFrame(rows)


def race_of(p: ComparisonParameters, folder: Path, shared: dict[Any, Any]) -> pd.DataFrame:
    """The race of a parameter set, its rows kept in the folder's `race.csv`.

    Args:
        p: parameters of notebook 04.
        folder: of the CSV; races of any parameters may share it.
        shared: keeps the frozen embeddings for the ablations.
    """
    place = {"place": p.encoder, "loading": p.loading()}
    bench = rated(frozen(p, shared), source=p.source, form=p.form, file=folder / "race.csv", **place)
    settings = FitSettings.of(p)
    return race(bench, p.losses, settings=settings, learning_rates=p.learning_rates, seeds=p.seeds)


def standing(rows: pd.DataFrame) -> pd.DataFrame:
    """The race's table: one row a loss, best first.

    Args:
        rows: one a training, as the bench's file holds them.

    Returns:
        Columns learning_rate, seeds, dev and average (means over seeds), low and high (Student's 95 % interval of the
        average; missing for one seed), and seconds of one training.

    Raises: ValueError where no loss has a chosen row.
    """
    from scipy import stats

    if not rows["chosen"].any():
        raise ValueError(f"no loss was trained to its end: {rows['error'].iloc[0]}")
    chosen = rows[rows["chosen"]].groupby("loss", sort=False)
    table = chosen.agg(
        learning_rate=("learning_rate", "first"),
        seeds=("seed", "count"),
        dev=("dev", "mean"),
        average=("average", "mean"),
        seconds=("seconds", "mean"),
    )
    spread, count = chosen["average"].std(), table["seeds"]
    half = stats.t.ppf(0.975, (count - 1).clip(lower=1)) * spread / count**0.5
    return table.assign(low=table["average"] - half, high=table["average"] + half).sort_values(
        "average", ascending=False
    )


def _trial(name: str, settings: FitSettings, rate: float, seed: int) -> Trial:
    return Trial(name, replace(settings, learning_rate=rate, seed=seed))
