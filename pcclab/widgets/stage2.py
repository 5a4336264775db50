"""A small stage 2, trained while one looks on."""

from __future__ import annotations

from typing import Annotated, Any

import pandas as pd
from matplotlib.figure import Figure

from pcclab.plots import explorations
from pcclab.widgets.controls import FIXED, Steps, choices
from pcclab.widgets.exploring import captioned
from pcclab.widgets.live import Show
from pcclab.widgets.objectives import RIVALS

LOOK_PAIRS = 60
"""Pairs of each test, and of the development set, that a look scores: looks must not be what the time goes into."""


def stage2(
    *,
    show: Show,
    encoder: str,
    loss: Annotated[str, choices(RIVALS, "what is trained")],
    learning_rate: Annotated[float, Steps((1e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3), "its peak")],
    batch_size: Annotated[int, Steps((4, 8, 16, 32, 64, 128), "rated pairs the loss sees at once")],
    leakage: Annotated[str, choices(("strict", "filter", "keep"), "training pairs that a test holds")],
    steps: Annotated[int, Steps((5, 10, 20, 50, 100, 200), "optimiser steps")],
    source: Annotated[str, FIXED],
    seed: int = 0,
    max_tokens: int = 32,
) -> Figure:
    """Stage 2 of Pcc-tuning on a small encoder: its loss, and the scores on clean pairs and on the tests.

    Training starts from the encoder as it comes, every time anew; nothing is kept of it.

    Args:
        show: as `Live` gives it.
        encoder: what `encoders.load` takes; a small one, trained in all its weights.
        loss: of `pcclab.losses.CATALOGUE`, on a cosine and a rating.
        learning_rate, batch_size, steps, max_tokens, seed: as `training.fit` takes them; five looks over the steps.
        leakage: level of `data.stage2_pairs`.
        source: of the data.

    Raises: as `encoders.load`, `data.stage2_pairs` and `training.fit`.
    Source: Pcc-tuning, section 3.
    """
    from pcclab import data, encoders, training
    from pcclab.workflows.leakage import drawn

    train = data.stage2_pairs(leakage=leakage, source=source)  # type: ignore[arg-type]
    tests = {name: drawn(table, LOOK_PAIRS, name=name, seed=seed) for name, table in data.sts_tests(source=source).items()}  # fmt: skip  # noqa: E501
    dev = drawn(data.dev_pairs(source=source), 5 * LOOK_PAIRS, name="dev", seed=seed)
    lines: dict[int, dict[str, Any]] = {}

    def picture() -> Figure:
        return captioned(explorations.live_curves(_scored(lines), steps=steps), f"step {max(lines)} of {steps}")

    def live(line: dict[str, Any]) -> bool:
        lines[line["step"]] = line
        return show(picture)

    settings = {"learning_rate": learning_rate, "batch_size": batch_size, "max_steps": steps, "max_tokens": max_tokens}
    settings |= {"seed": seed, "evaluate_every": max(1, steps // 5), "warmup_share": 0.1 if steps >= 10 else 0.0}
    history = training.fit(encoders.load(encoder), train, loss, parameters=settings, dev=dev, watched=tests, live=live)
    scores = _scored(lines)
    looks = scores.dropna(subset=["dev"])
    first, last = looks.iloc[0], looks.iloc[-1]
    said = (
        f"{loss} on {len(train):,} pairs ({leakage}), {int(last['step'])} steps in {history.seconds:.0f} s: "
        f"clean pairs {first['dev']:.1f} to {last['dev']:.1f}, tests {first['tests']:.1f} to {last['tests']:.1f}"
    )
    return captioned(explorations.live_curves(scores, steps=steps), said)


def _scored(lines: dict[int, dict[str, Any]]) -> pd.DataFrame:
    """Columns step, loss, dev and tests (their mean), NaN where no look was taken."""
    rows = []
    for step in sorted(lines):
        line = lines[step]
        tests = [score for name, score in line.items() if name.endswith("_spearman") and name != "dev_spearman"]
        mean = sum(tests) / len(tests) if tests else float("nan")
        rows.append({"step": step, "loss": line.get("loss"), "dev": line.get("dev_spearman"), "tests": mean})
    return pd.DataFrame(rows).astype(float)
