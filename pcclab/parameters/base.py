"""What every notebook's parameters have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from pcclab.complaints import near

Tupled = BeforeValidator(lambda value: tuple(value) if type(value) is list else value)
"""A list, as YAML and papermill have it, kept as a tuple so that parameters stay frozen."""

SOURCES = ("synthetic", "senteval", "hub")


class Parameters(BaseModel):
    """What every notebook takes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    LATER: ClassVar[Mapping[str, Any]] = {}
    """Parameters that were added later, each with the value that all runs before had: there it is no part of the id."""

    source: str = Field(description="where the data come from: synthetic, senteval (at PCCLAB_DATA), hub, or a folder")
    seed: int = Field(ge=0, lt=2**32, description="seed of everything random")

    @field_validator("source")
    @classmethod
    def _known_source(cls, value: str) -> str:
        # A folder is told from a mistyped name by its slash, so that a file means the same on every machine.
        if value not in SOURCES and "/" not in value and os.sep not in value:
            raise ValueError(f"no such source: {near(value, SOURCES)} A folder is written with a slash: ./{value}")
        return value

    def stands_on(self) -> tuple[str, ...]:
        """Runs whose results this one continues, as they are spoken of: notebook, set, assignments."""
        return ()


class Training(Parameters):
    """What every training takes, one or a grid of them."""

    encoder: str = Field(min_length=1, description="minilm, tiny, a folder with weights, or a hub name")
    pooling: Literal["default", "cls", "mean", "first-last", "last"] = Field(
        description="how token states become one vector; default: as the encoder says"
    )
    max_tokens: int = Field(ge=4, le=8192, description="tokens a text is cut at in training")
    learning_rate: float = Field(gt=0, le=1, description="peak of the learning rate")
    weight_decay: float = Field(ge=0, lt=1, description="decay of the weights, by AdamW")
    batch_size: int = Field(ge=2, le=65_536, description="rows the loss sees at once; one alone has no rank")
    epochs: float = Field(gt=0, le=1000, description="passes over the training data")
    max_steps: int = Field(ge=-1, description="optimiser steps, whatever the epochs say; -1: by epochs")
    max_grad_norm: float = Field(gt=0, description="length the gradient is clipped at")
    evaluate_every: int = Field(ge=0, description="steps between two looks at the development set; 0: at the end only")
    micro_tokens: int = Field(ge=4, description="tokens embedded at once, padding included: bounds the memory")
    keep_tokens: int = Field(ge=0, description="a batch up to this many tokens keeps its graph: no second forward")
    dtype: Literal["float32", "bfloat16"] = Field(description="number format of activations in training")

    def loading(self) -> dict[str, Any]:
        """The keyword arguments of `pcclab.encoders.load` among these parameters."""
        return {"pooling": None if self.pooling == "default" else self.pooling}

    @model_validator(mode="after")
    def _trains(self) -> Self:
        if self.max_steps == 0:
            raise ValueError("max_steps = 0 trains nothing: give -1 (by epochs) or at least 1")
        if self.micro_tokens < self.max_tokens:
            raise ValueError(
                f"micro_tokens = {self.micro_tokens} cannot hold one text of max_tokens = {self.max_tokens}: "
                f"raise micro_tokens to {self.max_tokens} or more"
            )
        return self


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, each of which may stand once."""
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"names {twice!r} twice: name each once")
    return values


Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Tupled, AfterValidator(distinct)]
Names = Annotated[tuple[str, ...], Tupled, AfterValidator(distinct)]
