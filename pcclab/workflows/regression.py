"""STS-Regression: a linear node on two embeddings, in two phases from a trained trunk and in one from an untrained."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pcclab import data, encoders, evaluation, training
from pcclab.data import ScoredPairs
from pcclab.encoders.heads import SiameseHead
from pcclab.parameters.comparisons import RegressionParameters
from pcclab.runs import Run
from pcclab.training import FitSettings, Remembered
from pcclab.workflows.grid import Cell, told

ORDERED = ("stsb", "sickr")
"""Tasks on which a head's dependence on the order of a pair is measured."""


def two_phase(run: Run, shared: dict[str, Any]) -> Cell:
    """Head alone on NLI with the trunk frozen, then both on the filtered pairs; or InfoNCE on the pairs rated high.

    Args:
        run: with one entry in `objectives` and in `seeds`.
        shared: keeps the frozen trunk's embeddings for the next cell.

    Returns:
        The chosen step, its score on the clean development pairs, seconds, and the tests by cosine ("tests"); by head
        ("head") and the head's dependence on the order ("order") where there is one.

    Source: STS-Regression, section 4.2 and table 3.
    """
    p, objective, seed, settings = _read(run, "objectives")
    encoder = encoders.load(p.encoder, **p.loading(), seed=seed)
    pairs, dev = data.stage2_pairs(leakage="filter", source=p.source), data.dev_pairs(source=p.source)
    _record(run, encoder, pairs, dev)
    if objective == "contrast":
        positives = pairs.select(pairs.gold >= 4)
        options = {"temperature": p.temperature}
        history = training.fit(encoder, positives, "info_nce", parameters=settings, run=run, dev=dev, options=options)
        return _judged(p, encoder, history, None)
    nli = data.nli_pairs(source=p.source, limit=p.nli_pairs or None, seed=p.seed).rated(spacing=p.spacing)
    head = SiameseHead(encoder.dim, features=p.features, start=float(nli.gold.mean()), seed=seed)
    frozen = shared.setdefault(encoder.fingerprint, Remembered(encoder))
    first = replace(settings, learning_rate=p.head_learning_rate, epochs=p.head_epochs, layer_decay=1.0, max_steps=-1)
    training.fit_frozen(
        frozen, nli, objective, parameters=first, head=head,
        options=_options(p, objective, p.spacing),
    )  # fmt: skip
    # The trunk changes now: what it gave before must not be taken for what it gives.
    shared[encoder.fingerprint] = frozen.detached()
    history = training.fit(
        encoder, pairs, objective, parameters=settings, run=run, dev=dev, head=head, options=_options(p, objective, 1.0)
    )
    return _judged(p, encoder, history, head)


def from_scratch(run: Run, shared: dict[str, Any]) -> Cell:
    """Classification or regression on the NLI pairs alone, from a trunk whose upper layers know nothing.

    Args:
        run: with one entry in `scratch` and in `seeds`.
        shared: not used.

    Source: STS-Regression, section 4.1 and table 1.
    """
    p, objective, seed, settings = _read(run, "scratch")
    encoder = encoders.load(p.encoder, **p.loading(), seed=seed, layers=p.scratch_layers, fresh=p.scratch_fresh)
    pairs = data.nli_pairs(source=p.source, limit=p.scratch_pairs or None, seed=p.seed).rated(spacing=p.scratch_spacing)
    dev = data.dev_pairs(source=p.source)
    _record(run, encoder, pairs, dev)
    levels = sorted(set(pairs.gold)) if objective == "cross_entropy" else None
    head = SiameseHead(encoder.dim, features=p.features, levels=levels, start=float(pairs.gold.mean()), seed=seed)
    settings = replace(settings, learning_rate=p.scratch_learning_rate, epochs=p.scratch_epochs)
    options = _options(p, objective, p.scratch_spacing)
    history = training.fit(encoder, pairs, objective, parameters=settings, run=run, dev=dev, head=head, options=options)
    return _judged(p, encoder, history, head)


def _read(run: Run, axis: str) -> tuple[RegressionParameters, str, int, FitSettings]:
    p = run.parameters
    assert isinstance(p, RegressionParameters)
    (objective,), (seed,) = getattr(p, axis), p.seeds
    return p, objective, seed, replace(FitSettings.of(p), seed=seed)


def _options(p: RegressionParameters, objective: str, interval: float) -> dict[str, Any]:
    """Buffer and slope of the losses that have them; the buffer is a share of the label interval."""
    slopes = {"smooth_k2": p.slope, "translated_relu": p.relu_slope}
    if objective not in slopes:
        return {}
    return {"slope": slopes[objective], "threshold": p.threshold * interval, "interval": interval}


def _record(run: Run, encoder: encoders.Encoder, pairs: ScoredPairs, dev: ScoredPairs) -> None:
    run.record(
        data={"train": pairs.fingerprint, "dev": dev.fingerprint},
        encoder={"name": encoder.settings.name, "fingerprint": encoder.fingerprint},
    )


def _judged(
    p: RegressionParameters, encoder: encoders.Encoder, history: training.History, head: SiameseHead | None
) -> Cell:
    still = Remembered(encoder)
    cell: Cell = {"dev": history.best_dev, "step": history.best_step, "seconds": history.seconds}
    cell["tests"] = told(evaluation.sts(still, source=p.source))
    if head is not None:
        cell["head"] = told(evaluation.sts(still, source=p.source, score=head.score))
        tests = data.sts_tests(source=p.source)
        tables = {name: tests[name] for name in ORDERED}
        order = evaluation.order_sensitivity(still, tables, score=head.score)
        cell["order"] = order.to_dict("index")
    return cell
