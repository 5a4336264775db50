"""The models a notebook compares: encoders as they come, and what this lab's runs trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pcclab import encoders, files, runs
from pcclab.parameters import load_recorded
from pcclab.parameters.places import speaks_of_a_run
from pcclab.runs import Run

WEIGHTS = "final"
"""Folder among a run's checkpoints with the encoder that training chose."""
TRAINED: dict[str, tuple[str, tuple[str, ...]]] = {
    "02_stage1_contrastive": ("stage 1", ()),
    "03_stage2_pcc_tuning": ("stage 2", ("leakage",)),
    "06_regression": ("regression", ("objectives", "scratch")),
    "07_rankcse": ("RankCSE", ("methods",)),
}
"""Notebooks that leave an encoder behind: what their models are called, and the parameters that belong to the name."""


@dataclass(frozen=True)
class Model:
    """One encoder under comparison.

    Attributes:
        name: what tables and figures call it.
        place: what `encoders.load` takes.
        run: the run that trained it; None for an encoder as it comes.
        seed: of that run; None without one.
    """

    name: str
    place: str | Path
    run: Run | None = None
    seed: int | None = None

    def load(self, **options: Any) -> encoders.Encoder:
        """The encoder; `options` as `encoders.load` takes them."""
        return encoders.load(self.place, **options)


def load_models(places: Sequence[str]) -> dict[str, Model]:
    """Each named model by its name, in the order given; a run that is missing is run first, and that is said.

    Args:
        places: what `encoders.load` takes (`minilm`, a folder, a hub's name), or a run as it is spoken of on the
            command line, such as "02 real" or "03 real leakage=keep seed=1".

    Raises: ValueError for a run that trains no encoder or a place named twice, before anything is run;
        `batch.RunFailed` when a missing run fails.
    """
    if twice := [place for place, count in Counter(places).items() if count > 1]:
        raise ValueError(f"models name {twice[0]!r} twice: name each once")
    found = [(place, runs.spoken(place) if speaks_of_a_run(place) else None) for place in places]
    for place, run in found:
        if run is not None and run.notebook not in TRAINED:
            raise ValueError(f"{place!r} trains no encoder: name a run of {', '.join(TRAINED)}")
    return _named([Model(_short(place), place) if run is None else _of(_complete(run, place)) for place, run in found])


def trained(root: Path, *, source: str | None = None) -> dict[str, Model]:
    """Every model that this checkout's finished runs trained and whose weights are there, by its name.

    Args:
        root: the checkout.
        source: only runs on this source of data; None for all.
    """
    models = []
    for notebook in TRAINED:
        for folder in sorted((root / "runs" / notebook).glob("*/checkpoints")):
            file = folder.parent / "parameters.yaml"
            if not file.is_file() or not files.is_complete(folder / WEIGHTS):
                continue
            try:
                run = Run(notebook, load_recorded(notebook, file), root)
            except ValueError:
                continue  # a run of an older version, whose parameters mean nothing now
            if run.folder == folder.parent and run.finished and source in (None, run.parameters.source):
                models.append(_of(run))
    return _named(models)


def _complete(run: Run, place: str) -> Run:
    """The run with its weights: a finished one whose weights were deleted is run again."""
    done = runs.complete(run, named=place)
    if not files.is_complete(done.folder / "checkpoints" / WEIGHTS):
        raise FileNotFoundError(
            f"run {done.name} is finished but its weights are gone from {done.folder / 'checkpoints'}: "
            f"pcclab run {place.split()[0]} --again trains them anew"
        )
    return done


def _of(run: Run) -> Model:
    title, says = TRAINED[run.notebook]
    values = run.parameters.model_dump()
    says += tuple(name for name, usual in run.parameters.LATER.items() if values[name] != usual)
    told = [str(entry) for name in says for entry in _entries(values[name])]
    seed = int(_entries(values.get("seeds", values["seed"]))[0])
    return Model(" ".join([title, *told]), run.folder / "checkpoints" / WEIGHTS, run, seed)


def _named(models: Sequence[Model]) -> dict[str, Model]:
    """By name; models of one name are told apart by their seeds, and where these are the same by their runs."""
    named = list(models)
    for tell in (lambda model: f"seed {model.seed}", lambda model: f"run {model.run.id}" if model.run else model.place):
        often = Counter(model.name for model in named)
        named = [replace(m, name=f"{m.name}, {tell(m)}") if often[m.name] > 1 else m for m in named]
    return {model.name: model for model in named}


def _entries(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _short(place: str) -> str:
    return place.rstrip("/").rsplit("/", 1)[-1]
