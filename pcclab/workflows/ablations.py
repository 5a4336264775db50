"""The papers' ablations in small: one setting changes, all else stays, a projection is trained on frozen embeddings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from pcclab import data, encoders
from pcclab.encoders.heads import PARTS
from pcclab.encoders.prompts import TEMPLATES, Prompted
from pcclab.parameters.comparisons import ComparisonParameters
from pcclab.training import FitSettings, Remembered, teachers
from pcclab.workflows.bench import Bench, Trial, frozen, rated
from pcclab.workflows.ranking import METHODS, PRINTED

SLOPES = {"smooth_k2": (2.0, 2.5, 3.0, 3.5, 4.0), "translated_relu": (1.0, 1.5, 2.0, 2.5)}
THRESHOLDS = (0.15, 0.2, 0.25)
TEMPERATURES = (0.0125, 0.025, 0.05)
"""The grids of STS-Regression's table 5 and of RankCSE's appendix A."""


def ablate(section: str, p: ComparisonParameters, folder: Path, shared: dict[Any, Any]) -> pd.DataFrame:
    """Run one section, or read what is measured already.

    Args:
        section: a name of `SECTIONS`.
        p: the notebook's parameters.
        folder: where each section keeps its CSV.
        shared: keeps embeddings for the next section.

    Returns:
        One row a setting and seed: what varies, loss, seed, dev and average (Spearman x 100 over the seven tests).
    """
    settings = replace(FitSettings.of(p), learning_rate=p.ablation_rate)
    rows = []
    for seed in p.seeds:
        for bench, trial, labels in SECTIONS[section](p, replace(settings, seed=seed), folder, shared):
            rows.append({**bench.measure(trial, **labels), **labels})
    frame = pd.DataFrame(rows)
    if "average" not in frame:
        raise ValueError(f"{section}: every training broke: {frame['error'].iloc[0]}")
    averages = frame["average"].dropna()
    print(f"{section}: {len(frame)} trainings, averages {averages.min():.2f} to {averages.max():.2f}", flush=True)
    return frame


LABELS: dict[str, tuple[str, ...]] = {
    "prompts": ("backbone", "prompt"),
    "batch size": ("batch_size",),
    "slope and threshold": ("objective", "k", "x0"),
    "concatenation": ("features",),
    "terms": ("method",),
    "teachers": ("teacher", "objective"),
    "temperatures": ("objective", "tau2", "tau3"),
}
"""What varies in each section."""


def by_setting(section: str, frame: pd.DataFrame) -> dict[str, dict[str, float]]:
    """A section's table by setting, for a result: mean and deviation over seeds, and the head's mean where it has one.

    Args:
        section: its name, as the parameters have it.
        frame: its table, a row a setting and seed.

    >>> rows = pd.DataFrame({"batch_size": [16, 16], "average": [78.0, 79.0]})
    >>> by_setting("batch size", rows)["16"]["mean"]
    78.5
    """
    found: dict[str, dict[str, float]] = {}
    for label, rows in frame.groupby(list(LABELS[section]), sort=False, dropna=False):
        name = " / ".join(f"{word}" for word in label if not pd.isna(word))
        told = rows["average"].agg(["mean", "std", "count"]).rename({"std": "deviation", "count": "seeds"})
        if "head average" in rows:
            told["head"] = rows["head average"].mean()
        found[name] = {str(key): float(value) for key, value in told.dropna().items()}
    return found


Planned = list[tuple[Bench, Trial, dict[Any, Any]]]


def _prompts(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    planned: Planned = []
    for backbone in p.backbones:
        for prompt in ("none", *TEMPLATES):
            bench = shared.get((backbone, prompt))
            if bench is None:
                encoder: Any = encoders.load(backbone, seed=p.seed)
                encoder = encoder if prompt == "none" else Prompted(encoder, prompt)
                bench = rated(Remembered(encoder), source=p.source, form="frozen", file=folder / "prompts.csv")
                shared[backbone, prompt] = bench
            labels = {"backbone": backbone, "prompt": prompt}
            planned.append((bench, Trial("pearson", settings, tag=f"{backbone} {prompt}"), labels))
    return planned


def _batch_size(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    bench = _pairs(p, folder / "batch_size.csv", shared)
    return [
        (bench, Trial("pearson", replace(settings, batch_size=size)), {"batch_size": size}) for size in p.batch_sizes
    ]


def _slope(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    bench = _pairs(p, folder / "slope_and_threshold.csv", shared)
    return [
        (bench, Trial(f"{loss}(slope={k}, threshold={x0})", settings), {"objective": loss, "k": k, "x0": x0})
        for loss, slopes in SLOPES.items()
        for k in slopes
        for x0 in THRESHOLDS
    ]


def _concatenation(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    bench = _pairs(p, folder / "concatenation.csv", shared)
    return [(bench, Trial("smooth_k2", settings, features=part), {"features": part}) for part in PARTS]  # type: ignore[arg-type]


def _terms(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    bench = _student(p, folder / "terms.csv", shared, (p.encoder,))
    written = {"contrast": "info_nce", "consistency": "ranking_consistency", "listnet": "listnet", "listmle": "listmle"}
    return [
        (bench, Trial(" + ".join(written[term] for term in METHODS[method]), settings), {"method": method})
        for method in PRINTED  # the paper's rows: what its port trains stands in no table
    ]


def _teachers(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    several = [(name,) for name in p.backbones] + ([tuple(p.backbones[:2])] if len(p.backbones) > 1 else [])
    return [
        (
            _student(p, folder / "teachers.csv", shared, names),
            Trial(f"info_nce + ranking_consistency + {loss}", settings),
            {"teacher": " + ".join(names), "objective": loss},
        )
        for names in several
        for loss in ("listnet", "listmle")
    ]


def _temperatures(p: ComparisonParameters, settings: FitSettings, folder: Path, shared: dict[Any, Any]) -> Planned:
    bench = _student(p, folder / "temperatures.csv", shared, (p.encoder,))
    rest = "info_nce + ranking_consistency"
    nets: Planned = [
        (bench, Trial(f"{rest} + listnet(student_temperature={two}, teacher_temperature={three})", settings),
         {"objective": "listnet", "tau2": two, "tau3": three})
        for two in TEMPERATURES for three in TEMPERATURES
    ]  # fmt: skip
    return nets + [
        (bench, Trial(f"{rest} + listmle(temperature={two})", settings), {"objective": "listmle", "tau2": two})
        for two in TEMPERATURES
    ]


SECTIONS: dict[str, Callable[[ComparisonParameters, FitSettings, Path, dict[Any, Any]], Planned]] = {
    "prompts": _prompts,
    "batch size": _batch_size,
    "slope and threshold": _slope,
    "concatenation": _concatenation,
    "terms": _terms,
    "teachers": _teachers,
    "temperatures": _temperatures,
}


def _pairs(p: ComparisonParameters, file: Path, shared: dict[Any, Any]) -> Bench:
    if file not in shared:
        shared[file] = rated(frozen(p, shared), source=p.source, form="frozen", file=file)
    bench: Bench = shared[file]
    return bench


def _student(p: ComparisonParameters, file: Path, shared: dict[Any, Any], taught_by: tuple[str, ...]) -> Bench:
    """A bench of unlabelled sentences: the student's embeddings, and the teachers' similarities."""
    if (file, taught_by) not in shared:
        if "student" not in shared:
            cut = encoders.load(p.encoder, **p.loading(), seed=p.seed, layers=p.student_layers)
            shared["student"] = Remembered(cut)
            shared["sentences"] = data.sentences(source=p.source, limit=p.sentences or None, seed=p.seed)
        sentences = shared["sentences"]
        known = [encoders.load(name, seed=p.seed) for name in taught_by]
        gathered = teachers.gather(known, sentences.text, cache=file.parent / "teachers")
        shared[file, taught_by] = Bench(
            shared["student"], sentences, data.dev_pairs(source=p.source), data.sts_tests(source=p.source),
            "frozen", file, teachers=gathered,
        )  # fmt: skip
    bench: Bench = shared[file, taught_by]
    return bench
