"""The batches of a training before it begins: how many, of how many tokens, cut into which micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pcclab import data
from pcclab.encoders.batching import plan_batches
from pcclab.encoders.blueprint import Blueprint
from pcclab.training.cached import balanced
from pcclab.training.ranks import Ranks
from pcclab.training.rhythm import total_steps
from pcclab.training.settings import FitSettings

DRAWN = 24
"""Batches that are looked at."""
NLI_TRIPLETS, PAIRS = 275_601, {"keep": 10_249, "filter": 5_398, "strict": 834}
DEV_TEXTS, STS_TEXTS = 1_627, 26_083
"""Rows and distinct texts of the papers' corpora, for a plan without the data."""
ASSUMED = {3: 16.0, 2: 14.0}
"""Mean tokens of a sentence of a triplet and of a rated pair where no text or no tokenizer is at hand."""


@dataclass(frozen=True)
class Work:
    """One training of a notebook.

    Args:
        label: of the training, where a notebook has several.
        steps: optimiser steps.
        rows: of the table.
        texts: that a step embeds.
        tokens: padded tokens of a step, on average.
        largest: texts and width of the heaviest micro-batch of one process.
        kept: share of the steps whose graph is kept: no second forward.
        share: of a step's tokens that falls to the process with most of them.
        counted: whether rows and tokens were counted on the texts; else declared and assumed.
    """

    label: str
    steps: int
    rows: int
    texts: int
    tokens: float
    largest: tuple[int, int]
    kept: float
    share: float
    counted: str


def works(notebook: str, p: Any, blueprint: Blueprint, *, world: int, mean: float | None) -> list[Work]:
    """The trainings of notebook 02 or 03 with these parameters.

    Args:
        notebook: 02_stage1_contrastive or 03_stage2_pcc_tuning.
        p: its parameters.
        blueprint: of the encoder.
        world: processes.
        mean: tokens of a sentence on average, the template aside; None counts them where it can, or assumes.
    """
    return [_work(level, p, blueprint, world, mean) for level in _levels(notebook, p)]


def lengths_of(notebook: str, p: Any, blueprint: Blueprint, *, mean: float | None = None) -> list[list[int]]:
    """Tokens of the texts of some steps of a notebook's first training: those that `works` looks at."""
    return _drawn(blueprint, p.source, p.seed, p.batch_size, p.max_tokens, mean, _levels(notebook, p)[0])[2]


def _levels(notebook: str, p: Any) -> tuple[str | None, ...]:
    return (None,) if notebook.startswith("02") else p.levels


def _work(level: str | None, p: Any, blueprint: Blueprint, world: int, mean: float | None) -> Work:
    settings = FitSettings.of(p)
    rows, texts, lengths, counted = _drawn(blueprint, p.source, p.seed, p.batch_size, p.max_tokens, mean, level)
    steps = [graph(step, settings, world) for step in lengths]
    shapes, totals, kept, shares = zip(*steps, strict=True)
    largest = max(shapes, key=lambda shape: (shape[0] * shape[1], shape[1]))
    return Work(
        level or "stage 1", total_steps(settings, rows, 2), rows, texts, float(np.mean(totals)), largest,
        float(np.mean(kept)), float(np.mean(shares)), counted,
    )  # fmt: skip


@lru_cache(maxsize=16)
def _drawn(
    blueprint: Blueprint, source: str, seed: int, batch_size: int, max_tokens: int, mean: float | None,
    level: str | None,
) -> tuple[int, int, list[list[int]], str]:  # fmt: skip
    """Rows of the table, texts of a step, the lengths of some batches' texts, and where they come from."""
    table, counted = _table(source, seed, level)
    sides = 2 if level else 3
    rows = len(table) if table is not None else PAIRS[level] if level else NLI_TRIPLETS
    draw = np.random.default_rng(seed)
    size = min(batch_size, rows)
    batches = [draw.choice(rows, size, replace=False) for _ in range(DRAWN)]
    lengths = None
    if table is not None and mean is None:
        columns = _columns(table)
        texts = [column[row] for batch in batches for column in columns for row in batch]
        lengths = blueprint.lengths(texts, max_tokens)
    if lengths is None:
        mean = mean or ASSUMED[sides]
        # Lengths of sentences spread about half as far as their mean, to one side: micro-batches depend on that.
        sentence = draw.gamma(4.0, mean / 4.0, DRAWN * size * sides).round().clip(2, max_tokens)
        lengths = sentence.astype(np.int64) + blueprint.overhead()
        counted += f"; tokens assumed: {mean:g} a sentence and {blueprint.overhead()} around it"
    return rows, size * sides, lengths.reshape(DRAWN, -1).tolist(), counted


def graph(lengths: Sequence[int], settings: FitSettings, world: int = 1) -> tuple[tuple[int, int], int, bool, float]:
    """Largest graph of one step on one process, its padded tokens, whether it is kept, the largest process's share."""
    batches = plan_batches(lengths, balanced(lengths, settings.micro_tokens, world))
    sizes = [len(batch) * max(lengths[i] for i in batch) for batch in batches]
    total = sum(sizes)
    loads = [sum(sizes[i] for i in Ranks(rank, world).share(sizes)) for rank in range(world)]
    kept = total <= settings.keep_tokens * world or (world == 1 and len(batches) == 1)
    if kept:
        width = max(1, round(total / len(lengths)))
        return (-(-max(loads) // width), width), total, True, max(loads) / total
    heaviest = int(np.argmax(sizes))
    width = sizes[heaviest] // len(batches[heaviest])
    return (len(batches[heaviest]), width), total, False, max(loads) / total


def _table(source: str, seed: int, level: Any) -> tuple[Any, str]:
    """The table that will be trained on, where it is at hand, and what is to be said of it."""
    if source == "hub":
        return None, "rows as declared, the hub is not asked"
    try:
        if level is None:
            return data.nli_triplets(source=source, seed=seed), f"counted on {data.describe(source)}"
        return data.stage2_pairs(leakage=level, source=source), f"counted on {data.describe(source)}"
    except (ValueError, OSError) as error:
        return None, f"rows as declared, the data are not at hand ({str(error).split(':')[0]})"


def _columns(table: Any) -> list[Sequence[str]]:
    if hasattr(table, "anchor"):
        return [table.anchor, table.positive, table.negative]
    return [table.first, table.second]
