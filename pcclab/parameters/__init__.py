"""One strict model a notebook: every parameter typed, bounded and described, nothing inherited, nothing guessed."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import yaml
from pydantic import ValidationError

from pcclab.complaints import explain, unknown
from pcclab.parameters.base import SOURCES, Parameters
from pcclab.parameters.comparisons import ComparisonParameters, RankingParameters, RegressionParameters
from pcclab.parameters.geometry import GeometryParameters
from pcclab.parameters.leakage import LeakageParameters
from pcclab.parameters.paper import PaperParameters
from pcclab.parameters.pcc_tuning import CeilingParameters, Stage1Parameters, Stage2Parameters
from pcclab.parameters.places import notebook_named, parameter_file, words
from pcclab.parameters.playground import PlaygroundParameters
from pcclab.parameters.rank_tasks import RankTaskParameters
from pcclab.parameters.transferring import TransferParameters
from pcclab.values import read_assignments, read_yaml

MODELS: dict[str, type[Parameters]] = {
    "01_ceiling": CeilingParameters,
    "02_stage1_contrastive": Stage1Parameters,
    "03_stage2_pcc_tuning": Stage2Parameters,
    "04_ablations": ComparisonParameters,
    "05_alignment_uniformity": GeometryParameters,
    "06_regression": RegressionParameters,
    "07_rankcse": RankingParameters,
    "08_transfer": TransferParameters,
    "09_rank_tasks": RankTaskParameters,
    "10_leakage": LeakageParameters,
    "11_playground": PlaygroundParameters,
    "12_paper": PaperParameters,
}


def model_of(notebook: str) -> type[Parameters]:
    """The model of a notebook's parameters.

    Args:
        notebook: name without `.ipynb`.

    Raises: ValueError naming the known notebooks where there is no such one.
    """
    if notebook not in MODELS:
        raise ValueError(unknown("notebook", notebook, MODELS))
    return MODELS[notebook]


def validate(
    notebook: str, values: Mapping[str, Any], *, origin: str | None = None, places: Mapping[str, str] | None = None
) -> Parameters:
    """Values to the notebook's frozen parameters.

    Args:
        notebook: its name, without `.ipynb`.
        values: name to value; all of them, none more.
        origin: where they came from, for the error; the notebook's name where None.
        places: for single names a closer place, such as the line of the file.

    Raises: ValueError with one line for each fault: the parameter, its value, the limit and the mend.

    >>> validate("01_ceiling", dict(source="synthetic", seed=0, n=10, share=0.5, levels=5, hardness=3)).hardness
    3.0
    """
    model = model_of(notebook)
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        message = explain(error, model, origin=origin or notebook, places=places or {})
    raise ValueError(message)


def load_file(notebook: str, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Parameters:
    """A parameter file, validated.

    Args:
        notebook: name without `.ipynb`.
        path: of the YAML file.
        overrides: values in place of the file's, as papermill's `-p` gives them.

    Raises: ValueError and FileNotFoundError that name the file and the value.
    """
    values, lines = read_yaml(path)
    given = dict(overrides or {})
    places = {**{name: f"{path}, line {line}" for name, line in lines.items()}, **dict.fromkeys(given, "-p")}
    return validate(notebook, {**values, **given}, origin=str(path), places=places)


def load_recorded(notebook: str, path: str | os.PathLike[str]) -> Parameters:
    """The parameters a run wrote down, at whatever version: one that was added since has the value it had then.

    Args:
        notebook: name without `.ipynb`.
        path: of the run's file.
    """
    values, _ = read_yaml(path)
    return validate(notebook, {**model_of(notebook).LATER, **values}, origin=str(path))


def load_spoken(root: Path, place: str) -> tuple[str, Parameters]:
    """A run as it is spoken of, such as "03 real leakage=keep", to its notebook and validated parameters.

    Args:
        root: the checkout, which holds the sets.
        place: notebook, set, assignments.

    Raises: as `load_file`, and ValueError for a place that names no run.
    """
    beginning, named, assignments = words(place)
    notebook = notebook_named(beginning, MODELS)
    path = root / parameter_file(root, notebook, named)
    return notebook, load_file(notebook, path, read_overrides(notebook, assignments))


def nearest_set(root: Path, notebook: str, mine: Parameters) -> tuple[str, list[str]]:
    """The notebook's set that is nearest to some parameters, and what differs from it as `name=value`.

    Args:
        root: the checkout.
        notebook: name without `.ipynb`.
        mine: the parameters.

    Raises: FileNotFoundError where the checkout has no set of the notebook.
    """
    values = mine.model_dump(mode="json")
    changes: dict[str, list[str]] = {}
    for file in sorted((root / "parameters" / notebook).glob("*.yaml")):
        theirs = load_file(notebook, file).model_dump(mode="json")
        changes[file.stem] = [f"{name}={_listed(value)}" for name, value in values.items() if value != theirs[name]]
    if not changes:
        raise FileNotFoundError(f"no sets in {root / 'parameters' / notebook}: run from a checkout")
    nearest = min(changes, key=lambda name: len(changes[name]))
    return nearest, changes[nearest]


def _listed(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def read_overrides(notebook: str, texts: Iterable[str]) -> dict[str, Any]:
    """Texts from a command line, as values for `load_file`'s overrides.

    Args:
        notebook: name without `.ipynb`, whose parameters they are.
        texts: each `name=value`, the value as YAML writes it.

    Raises: ValueError for a text that is no assignment; names are checked by `load_file`.
    """
    kinds = {name: field.annotation for name, field in model_of(notebook).model_fields.items()}
    lists = {name for name, kind in kinds.items() if get_origin(kind) is tuple}
    words = {name for name, kind in kinds.items() if kind is str or get_origin(kind) is Literal}
    numbers = {name for name in lists if _item(kinds[name]) in (int, float)}
    return read_assignments(texts, words=words, lists=lists, numbers=numbers)


def _item(kind: Any) -> Any:
    """The type of a list's items, without what is annotated to it."""
    item = get_args(kind)[0]
    return get_args(item)[0] if get_origin(item) is Annotated else item


def identifier(notebook: str, parameters: Parameters, *, on: tuple[str, ...] = ()) -> str:
    """Twelve hex digits that stay the same as long as notebook, parameters and the runs it stands on do.

    Args:
        notebook: its name.
        parameters: its validated parameters.
        on: identifiers of the runs it continues, so that a changed stage 1 makes another stage 2.
    """
    values = parameters.model_dump(mode="json")
    values = {name: value for name, value in values.items() if (name, value) not in parameters.LATER.items()}
    content = {"notebook": notebook, "parameters": values, "on": list(on)}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf8")).hexdigest()[:12]


def to_yaml(parameters: Parameters) -> str:
    """The parameters as a YAML file that `load_file` reads back to the same.

    Args:
        parameters: validated ones.
    """
    return str(yaml.safe_dump(parameters.model_dump(mode="json"), sort_keys=False, allow_unicode=True))


__all__ = [
    "MODELS",
    "SOURCES",
    "Parameters",
    "identifier",
    "load_file",
    "load_recorded",
    "load_spoken",
    "model_of",
    "nearest_set",
    "notebook_named",
    "parameter_file",
    "read_overrides",
    "to_yaml",
    "validate",
]
