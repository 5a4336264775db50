"""One strict model a notebook: every parameter typed, bounded and described, nothing inherited, nothing guessed.

Source: Pcc-tuning, section 5 and appendix A, for the values of the `paper` sets.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, get_origin

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from pcclab.complaints import explain, near, unknown
from pcclab.values import read_assignments, read_yaml

SOURCES = ("synthetic", "senteval", "hub")
Leakage = Literal["keep", "filter", "strict"]
Levels = Annotated[tuple[Leakage, ...], BeforeValidator(lambda value: tuple(value) if type(value) is list else value)]


class Parameters(BaseModel):
    """What every notebook takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    source: str = Field(description="where the data come from: synthetic, senteval (at PCCLAB_DATA), hub, or a folder")
    seed: int = Field(ge=0, lt=2**32, description="seed of everything random")

    @field_validator("source")
    @classmethod
    def _known_source(cls, value: str) -> str:
        # A folder is told from a mistyped name by its slash, so that a file means the same on every machine.
        if value not in SOURCES and "/" not in value and os.sep not in value:
            raise ValueError(f"no such source: {near(value, SOURCES)} A folder is written with a slash: ./{value}")
        return value

    def stands_on(self) -> dict[str, str]:
        """Notebooks whose finished runs this one continues, each with its parameter file."""
        return {}


class CeilingParameters(Parameters):
    """01_ceiling: the ceiling derived, measured on gold values, and reached by a hardening sigmoid."""

    n: int = Field(ge=4, le=100_000, description="sentence pairs of the worked example")
    share: float = Field(gt=0, lt=1, description="share of pairs the two-level scorer calls similar")
    levels: int = Field(ge=2, le=100, description="largest number of levels on the m-level curve")
    hardness: float = Field(gt=0, le=1e4, description="slope of the sigmoid, per share of the ranking")


class TrainingParameters(Parameters):
    """What both stages of Pcc-tuning take."""

    encoder: str = Field(min_length=1, description="minilm, tiny, a folder with weights, or a hub name")
    pooling: Literal["default", "cls", "mean", "first-last", "last"] = Field(
        description="how token states become one vector; default: as the encoder says"
    )
    prompt: Literal["", "EOL", "SUM", "STH"] = Field(description="template around each sentence; empty for none")
    quantization: Literal["none", "nf4", "int8"] = Field(description="storage of the frozen weights")
    lora_rank: int = Field(ge=0, le=4096, description="rank of the adapter; 0 trains all weights")
    lora_alpha: float = Field(gt=0, description="scale of the adapter")
    lora_dropout: float = Field(ge=0, lt=1, description="dropout in front of the adapter")
    max_tokens: int = Field(ge=4, le=8192, description="tokens a text is cut at in training")
    learning_rate: float = Field(gt=0, le=1, description="peak of the learning rate")
    weight_decay: float = Field(ge=0, lt=1, description="decay of the weights, by AdamW")
    warmup_steps: int = Field(ge=0, description="steps over which the learning rate rises")
    batch_size: int = Field(ge=2, le=65_536, description="pairs the loss sees at once; one alone has no rank")
    epochs: float = Field(gt=0, le=1000, description="passes over the training data")
    max_steps: int = Field(ge=-1, description="optimiser steps, whatever the epochs say; -1: by epochs")
    max_grad_norm: float = Field(gt=0, description="length the gradient is clipped at")
    evaluate_every: int = Field(ge=0, description="steps between two looks at the development set; 0: at the end only")
    micro_tokens: int = Field(ge=4, description="tokens embedded at once, padding included: bounds the memory")
    keep_tokens: int = Field(ge=0, description="a batch up to this many tokens keeps its graph: no second forward")
    dtype: Literal["float32", "bfloat16"] = Field(description="number format of activations in training")

    def loading(self) -> dict[str, Any]:
        """The keyword arguments of `pcclab.encoders.load` among these parameters."""
        return {
            "pooling": None if self.pooling == "default" else self.pooling,
            "prompt": self.prompt,
            "quantization": self.quantization,
            "seed": self.seed,
        }

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.max_steps == 0:
            raise ValueError("max_steps = 0 trains nothing: give -1 (by epochs) or at least 1")
        if 0 < self.max_steps <= self.warmup_steps:
            raise ValueError(
                f"warmup_steps = {self.warmup_steps} leaves none of max_steps = {self.max_steps} at full learning "
                "rate: lower warmup_steps or raise max_steps"
            )
        if self.prompt and self.pooling not in ("default", "last"):
            raise ValueError(
                f"prompt = {self.prompt!r} ends in the token to read, pooling = {self.pooling!r} reads others: "
                "set pooling to last, or prompt to ''"
            )
        if self.quantization != "none" and self.lora_rank == 0:
            raise ValueError(
                f"quantization = {self.quantization!r} freezes the weights and lora_rank = 0 adds none to train: "
                "set lora_rank (the paper: 64), or quantization to none"
            )
        if self.micro_tokens < self.max_tokens:
            raise ValueError(
                f"micro_tokens = {self.micro_tokens} cannot hold one text of max_tokens = {self.max_tokens}: "
                f"raise micro_tokens to {self.max_tokens} or more"
            )
        return self


class Stage1Parameters(TrainingParameters):
    """02_stage1_contrastive: InfoNCE with hard negatives on NLI triplets."""

    temperature: float = Field(gt=0, le=10, description="temperature of InfoNCE")


class Stage2Parameters(TrainingParameters):
    """03_stage2_pcc_tuning: Pearson's correlation on scored pairs, from stage 1 or from the encoder as it is."""

    stage1: str = Field(description="parameter file of 02_stage1_contrastive to continue, from the repository's root; "
                        "empty: the encoder as it is")  # fmt: skip
    leakage: Leakage = Field(description="training pairs seen in a test set: keep, filter (pairs), strict (sentences)")
    levels: Levels = Field(description="leakage levels to train and draw; the one of `leakage` is always among them")

    @model_validator(mode="before")
    @classmethod
    def _own_level(cls, values: Any) -> Any:
        # `-p leakage keep` alone must train `keep`, whatever else the figure compares it with.
        if isinstance(values, Mapping) and isinstance(values.get("levels"), list | tuple):
            levels = list(values["levels"])
            if isinstance(values.get("leakage"), str) and values["leakage"] not in levels:
                levels.append(values["leakage"])
            return {**values, "levels": levels}
        return values

    @field_validator("levels")
    @classmethod
    def _distinct(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) < len(value):
            raise ValueError("names a level twice: name each once")
        return value

    @field_validator("stage1")
    @classmethod
    def _is_file(cls, value: str) -> str:
        if value and not value.endswith((".yaml", ".yml")):
            raise ValueError("must be empty or a YAML file, such as parameters/02_stage1_contrastive/smoke.yaml")
        return value

    def stands_on(self) -> dict[str, str]:
        return {"02_stage1_contrastive": self.stage1} if self.stage1 else {}


MODELS: dict[str, type[Parameters]] = {
    "01_ceiling": CeilingParameters,
    "02_stage1_contrastive": Stage1Parameters,
    "03_stage2_pcc_tuning": Stage2Parameters,
}


def model_of(notebook: str) -> type[Parameters]:
    """The model of a notebook's parameters.

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
    """A parameter file, validated; `overrides` replace single values, as papermill's `-p` does."""
    values, lines = read_yaml(path)
    given = dict(overrides or {})
    places = {**{name: f"{path}, line {line}" for name, line in lines.items()}, **dict.fromkeys(given, "-p")}
    return validate(notebook, {**values, **given}, origin=str(path), places=places)


def read_overrides(notebook: str, texts: Iterable[str]) -> dict[str, Any]:
    """`name=value` texts from a command line, as values for `load_file`'s overrides."""
    kinds = {name: field.annotation for name, field in model_of(notebook).model_fields.items()}
    lists = {name for name, kind in kinds.items() if get_origin(kind) is tuple}
    words = {name for name, kind in kinds.items() if kind is str or get_origin(kind) is Literal}
    return read_assignments(texts, words=words, lists=lists)


def identifier(notebook: str, parameters: Parameters, *, on: tuple[str, ...] = ()) -> str:
    """Twelve hex digits that stay the same as long as notebook, parameters and the runs it stands on do.

    Args:
        notebook: its name.
        parameters: its validated parameters.
        on: identifiers of the runs it continues, so that a changed stage 1 makes another stage 2.
    """
    content = {"notebook": notebook, "parameters": parameters.model_dump(mode="json"), "on": list(on)}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf8")).hexdigest()[:12]


def to_yaml(parameters: Parameters) -> str:
    """The parameters as a YAML file that `load_file` reads back to the same."""
    return str(yaml.safe_dump(parameters.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
