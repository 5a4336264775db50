"""Where models put sentences, and how binary their scores are: each model measured once and kept."""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pcclab import data, evaluation, files
from pcclab.evaluation import Undefined
from pcclab.evaluation.sts import load_tasks
from pcclab.parameters.geometry import GeometryParameters
from pcclab.runs import Run
from pcclab.training import Remembered
from pcclab.workflows.grid import CELL
from pcclab.workflows.models import TRAINED, Model, trained

if TYPE_CHECKING:
    import pandas as pd

    from pcclab.data import ScoredPairs

AS_IT_COMES = "as it comes"
MEASURED = "measured"
"""Folder beside the notebook's runs with a file for each model, data and settings."""


@dataclass(frozen=True)
class Geometry:
    """What was measured, as tidy tables.

    Args:
        points: a row a model: family, method (the name without its seed), alignment, uniformity, its error, mean cosine
            and first_share (anisotropy), measured (average over the seven tasks where all were asked for), recorded
            (that in the run of the model) and average (measured, else recorded); NaN where there is none.
        levels: a row a model and task: what `effective_levels` and `levels_interval` give.
        cosines: a row a pair of STS-B dev and compared model: group, similarity, gold.
        undefined: what has no value, each in one sentence.
    """

    points: pd.DataFrame
    levels: pd.DataFrame
    cosines: pd.DataFrame
    undefined: tuple[str, ...]


def other_models(run: Run, models: Mapping[str, Model]) -> dict[str, Model]:
    """Where the run asks for them, the models this checkout trained on its source that are not among `models`.

    A name that `models` has already gets its run's id.

    Args:
        run: whose parameters ask.
        models: those that are compared anyway, by name.
    """
    p = _parameters(run)
    if p.also == "nothing":
        return {}
    known = {model.run.id for model in models.values() if model.run is not None}
    more = [model for model in trained(run.root, source=p.source).values() if model.run and model.run.id not in known]
    named = (replace(m, name=f"{m.name}, run {m.run.id}") if m.name in models and m.run else m for m in more)
    return {model.name: model for model in named}


def geometry(run: Run, models: Mapping[str, Model], more: Mapping[str, Model] | None = None) -> Geometry:
    """Measure every model on STS-B dev; effective levels on the run's tasks, for `more` on STS-B alone.

    What was measured lies beside the notebook's runs under the fingerprints of model and data: a broken run goes on
    there, and one that is run again for new models measures these alone.

    Args:
        run: of notebook 05.
        models: compared in detail, by name.
        more: further ones, embedded on STS-B alone; their average is the one their run recorded.

    Raises: ValueError with the model's name where its embeddings have no direction or are not finite.
    """
    import pandas as pd

    p = _parameters(run)
    dev = data.load("stsb", split="dev", source=p.source)
    tests = load_tasks(p.tasks, p.source)
    brief = load_tasks(("stsb",), p.source)
    run.record(data={"dev": dev.fingerprint, **{name: table.fingerprint for name, table in {**tests, **brief}.items()}})
    points, levels, cosines, undefined = {}, [], [], []
    every = [(model, True) for model in models.values()] + [(model, False) for model in (more or {}).values()]
    for number, (model, whole) in enumerate(every, start=1):
        began = time.monotonic()
        found, known = _measured(run, model, dev, tests if whole else brief)
        points[model.name] = _point(p, model, found)
        for task, row in found["levels"].items():
            if "undefined" in row:
                undefined.append(f"{model.name} on {task}: {row['undefined']}")
            else:
                levels.append({"model": model.name, "task": task, **row})
        if whole:
            groups = evaluation.similarity_by_group(np.asarray(found["similarity"]), dev.gold)
            cosines.append(groups.assign(model=model.name))
        told = "done before" if known else f"{time.monotonic() - began:,.0f} s"
        plane = f"alignment {found['alignment']:.3f}, uniformity {found['uniformity']:.3f}"
        print(f"{number} of {len(every)}: {model.name}: {plane} ({told})", flush=True)
    frame = pd.DataFrame.from_dict(points, orient="index").rename_axis("model")
    return Geometry(frame, pd.DataFrame(levels), pd.concat(cosines, ignore_index=True), tuple(undefined))


def _parameters(run: Run) -> GeometryParameters:
    assert isinstance(run.parameters, GeometryParameters)
    return run.parameters


def _measured(
    run: Run, model: Model, dev: ScoredPairs, tests: Mapping[str, ScoredPairs]
) -> tuple[dict[str, Any], bool]:
    """The model's figures, and whether they were there."""
    p = _parameters(run)
    encoder = model.load()
    stand: list[Any] = [
        encoder.fingerprint,
        dev.fingerprint,
        {name: table.fingerprint for name, table in tests.items()},
    ]
    stand += [p.sample, p.resamples, p.seed]
    key = hashlib.sha256(json.dumps(stand, sort_keys=True).encode()).hexdigest()[:16]
    file = run.folder.parent / MEASURED / f"{key}.json"
    if file.is_file():
        try:
            return dict(json.loads(file.read_text(encoding="utf8"))), True
        except ValueError:
            raise ValueError(f"{file} is damaged: delete it to measure {model.name} again") from None
    tables = [dev, *tests.values()]
    still = Remembered(encoder)
    still.encode([text for table in tables for text in (*table.first, *table.second)])
    try:
        found = _look(still, p, dev, tests)
    except ValueError as error:
        raise type(error)(f"{model.name}: {error}") from error
    file.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(file, {"model": model.name, **found})
    return found, False


def _look(
    encoder: Remembered, p: GeometryParameters, dev: ScoredPairs, tests: Mapping[str, ScoredPairs]
) -> dict[str, Any]:
    plane = evaluation.align_uniform(encoder, dev, sample=p.sample or None, seed=p.seed)
    shape = evaluation.anisotropy(encoder.encode(list(dict.fromkeys((*dev.first, *dev.second)))))
    similarity = evaluation.cosine(encoder.encode(dev.first), encoder.encode(dev.second))
    levels: dict[str, Any] = {}
    for name, table in tests.items():
        scores = evaluation.cosine(encoder.encode(table.first), encoder.encode(table.second))
        try:
            levels[name] = _levels(scores, table.gold, p)
        except Undefined as error:
            levels[name] = {"undefined": str(error)}
    return {
        "alignment": plane.alignment,
        "uniformity": plane.uniformity.value,
        "uniformity_error": plane.uniformity.error,
        "pairs": plane.uniformity.pairs,
        "positives": plane.positives,
        "sentences": plane.sentences,
        "mean_cosine": shape.cosine,
        "first_share": shape.first_share,
        "levels": levels,
        "similarity": similarity.tolist(),
    }


def _levels(scores: np.ndarray, gold: np.ndarray, p: GeometryParameters) -> dict[str, Any]:
    found = evaluation.effective_levels(scores, gold)
    ends = evaluation.levels_interval(scores, gold, resamples=p.resamples, seed=p.seed)
    if math.isinf(found.levels):
        raise Undefined("more levels than are tried: its scores are the gold's own order")
    row = asdict(found)
    for name in ("spearman", "levels", "share_within"):
        row[f"{name}_low"], row[f"{name}_high"] = getattr(ends, name) or (None, None)
    return row


def _point(p: GeometryParameters, model: Model, found: Mapping[str, Any]) -> dict[str, Any]:
    scores = [row.get("spearman") for row in found["levels"].values()]
    measured = None
    if set(found["levels"]) == set(data.STS_TASKS) and None not in scores:
        measured = float(np.mean(scores))
    recorded = recorded_average(model, p.source)
    return {
        "family": TRAINED[model.run.notebook][0] if model.run else AS_IT_COMES,
        "method": re.sub(r", seed \d+", "", model.name),
        **{name: found[name] for name in ("alignment", "uniformity", "uniformity_error", "mean_cosine", "first_share")},
        "average": next((score for score in (measured, recorded) if score is not None), math.nan),
        "measured": math.nan if measured is None else measured,
        "recorded": math.nan if recorded is None else recorded,
    }


def recorded_average(model: Model, source: str) -> float | None:
    """The average over the seven tasks that the model's run wrote down, on the same source of data."""
    run = model.run
    if run is None or run.parameters.source != source:
        return None
    cell = run.folder / CELL
    told = json.loads(cell.read_text(encoding="utf8"))["tests"] if cell.is_file() else run.result.get("after", {})
    average = told.get("average")
    return float(average) if isinstance(average, float | int) else None
