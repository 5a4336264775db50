"""What the papers' methods cost: memory and time of each at its paper's length and batch, on one trunk and machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from pcclab import data, files
from pcclab.parameters.comparisons import ComparisonParameters
from pcclab.runs import Run
from pcclab.training import FitSettings, costs

NLI_TRIPLETS, NLI_PAIRS, WIKI, STAGE2 = 275_602, 942_069, 1_000_000, 10_249
"""Rows the papers train on; STS-Regression does not count its SNLI and MultiNLI pairs: these are all with a label."""


@dataclass(frozen=True)
class Recipe:
    """A method as its paper trains it.

    Args:
        table: from a source to what this lab trains it on.
        loss: as `pcclab.losses.parse` reads it.
        tokens, batch, rows, epochs: the paper's length, batch, rows of one epoch, and epochs.
        head: whether a linear node judges the pair.
        taught: whether two teachers, here of the trunk's own size, rank the batch.
    """

    table: Callable[[str], Any]
    loss: str
    tokens: int
    batch: int
    rows: int
    epochs: int
    head: bool = False
    taught: bool = False


def _pairs(triplets: data.Triplets) -> data.ScoredPairs:
    """The pairs of triplets, rated as inference labels are: the hub has no others, and they cost what others do."""
    gold = np.repeat([2.0, 0.0], len(triplets))
    second = triplets.positive + triplets.negative
    return data.ScoredPairs(triplets.anchor * 2, second, gold, scale=(0, 2), provenance=triplets.provenance)


RECIPES = {
    "SimCSE, labelled": Recipe(lambda s: data.nli_triplets(source=s), "info_nce", 100, 512, NLI_TRIPLETS, 3),
    "regression": Recipe(lambda s: _pairs(data.nli_triplets(source=s)), "smooth_k2", 256, 16, NLI_PAIRS, 1, head=True),
    "SimCSE": Recipe(lambda s: data.sentences(source=s), "info_nce", 32, 128, WIKI, 1),
    "RankCSE": Recipe(
        lambda s: data.sentences(source=s), "info_nce + ranking_consistency + listnet", 32, 128, WIKI, 4, taught=True
    ),
    "Pcc stage 1": Recipe(lambda s: data.nli_triplets(source=s), "info_nce", 32, 224, NLI_TRIPLETS, 1),
    "Pcc stage 2": Recipe(lambda s: data.stage2_pairs(leakage="keep", source=s), "pearson", 64, 224, STAGE2, 10),
}
"""Source: STS-Regression, introduction, section 4.1 and table 4; RankCSE, appendix A and table 11; Pcc-tuning, section
4 and table 5 (Mistral-7B)."""

PATHS: dict[str, dict[str, Any]] = {
    "one graph": {"micro_tokens": 2**31, "keep_tokens": 2**31},
    "cached": {"keep_tokens": 0},
}
"""The whole batch's graph kept, or every text embedded twice in micro-batches of the set's `micro_tokens`."""


COLUMNS = ["method", "texts", "path", "tokens", "batch", "memory", "seconds", "low", "high", "steps", "minutes", "once"]
COLUMNS += ["epochs", "device", "threads"]


def measure_costs(run: Run) -> pd.DataFrame:
    """Train each method a few steps on each path, or read what this run has measured already.

    Args:
        run: of notebook 04; `costs.csv` in its folder keeps the rows.

    Returns:
        One row a method, texts and path: tokens, batch, memory (GB above what the bare process held), seconds of a step
        (median, with quartiles low and high), steps and minutes of an epoch, minutes the teachers take once, epochs,
        tokens, device and threads.
    """
    p = run.parameters
    assert isinstance(p, ComparisonParameters)
    file = run.folder / "costs.csv"
    rows: list[dict[Any, Any]] = pd.read_csv(file).to_dict("records") if file.is_file() else []
    known = {(row["method"], row["texts"], row["path"]) for row in rows}
    for method in p.costs:
        for texts in p.cost_texts:
            for path in PATHS:
                if (method, texts, path) not in known:
                    rows.append({"method": method, "texts": texts, "path": path, **_measured(p, method, texts, path)})
                    files.write_text(file, pd.DataFrame(rows).to_csv(index=False))
                    told = f"{rows[-1]['memory']:.2f} GB, {rows[-1]['seconds']:.2f} s a step"
                    print(f"{method}, texts {texts}, {path}: {told}", flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def ratios(frame: pd.DataFrame) -> pd.DataFrame:
    """How the methods of one paper compare, for each kind of texts and path that both were measured on.

    Args:
        frame: what was measured, a row a method, texts and path.

    Returns:
        A column for each texts and path; rows are the peak memory of SimCSE to that of regression, the time an epoch
        of RankCSE to one of SimCSE, the time a row of stage 1 to one of stage 2. None where nothing can be compared.
    """
    at = frame.set_index(["method", "texts", "path"])
    asked = {
        "memory: SimCSE, labelled / regression": ("SimCSE, labelled", "regression", at["memory"]),
        "minutes an epoch: RankCSE / SimCSE": ("RankCSE", "SimCSE", at["minutes"]),
        "seconds a row: Pcc stage 1 / stage 2": ("Pcc stage 1", "Pcc stage 2", at["seconds"] / at["batch"]),
    }
    kinds = dict.fromkeys(zip(frame["texts"], frame["path"], strict=True))
    found = {
        f"{texts}, {path}": {
            what: figures[above, texts, path] / figures[below, texts, path]
            for what, (above, below, figures) in asked.items()
            if {(above, texts, path), (below, texts, path)} <= set(at.index)
        }
        for texts, path in kinds
    }
    return pd.DataFrame(found).dropna(axis=1, how="all").rename_axis("what")


def _measured(p: ComparisonParameters, method: str, texts: str, path: str) -> dict[str, Any]:
    recipe = RECIPES[method]
    table = recipe.table(p.source)
    # As many rows as the steps take, drawn as a shuffled epoch has them; a small corpus is gone through again.
    needed = recipe.batch * (costs.WARM_UP + p.cost_steps)
    table = table.select(np.resize(np.random.default_rng(p.seed).permutation(len(table)), needed))
    if texts == "filled":
        table = filled(table, recipe.tokens)
    settings = replace(FitSettings.of(p), batch_size=recipe.batch, max_tokens=recipe.tokens, **PATHS[path])
    cost = costs.cost(
        p.cost_encoder, table, recipe.loss, settings=settings, steps=p.cost_steps, loading=p.loading(),
        features="u,v,|u-v|" if recipe.head else None, taught_by=(p.cost_encoder,) * 2 if recipe.taught else (),
    )  # fmt: skip
    low, middle, high = np.quantile(cost.seconds, [0.25, 0.5, 0.75])
    steps = math.ceil(recipe.rows / recipe.batch)
    once = cost.before / len(set(table.text)) * recipe.rows / 60 if recipe.taught else 0.0
    return {
        "tokens": recipe.tokens, "batch": recipe.batch, "memory": cost.memory / 1e9, "seconds": middle, "low": low,
        "high": high, "steps": steps, "minutes": steps * middle / 60, "once": once, "epochs": recipe.epochs,
        "device": cost.device, "threads": cost.threads,
    }  # fmt: skip


def filled(table: Any, tokens: int) -> Any:
    """The table with every text said over until it has at least so many words, so that it is cut at `tokens`.

    >>> filled(data.Sentences(("a wren sang",)), 4).text
    ('a wren sang a',)
    """
    longer = {name: tuple(_longer(text.split(), tokens) for text in getattr(table, name)) for name in table._texts}
    return replace(table, **longer)


def _longer(words: list[str], count: int) -> str:
    return " ".join((words * math.ceil(count / len(words)))[: max(count, len(words))])
