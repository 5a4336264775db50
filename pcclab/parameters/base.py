"""What every notebook's parameters have in common."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator

from pcclab.complaints import near

Tupled = BeforeValidator(lambda value: tuple(value) if type(value) is list else value)
"""A list, as YAML and papermill have it, kept as a tuple so that parameters stay frozen."""

SOURCES = ("synthetic", "senteval", "hub")


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


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values, each of which may stand once."""
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"names {twice!r} twice: name each once")
    return values


Seeds = Annotated[tuple[Annotated[int, Field(ge=0, lt=2**32)], ...], Tupled, AfterValidator(distinct)]
Names = Annotated[tuple[str, ...], Tupled, AfterValidator(distinct)]
Pooling = Literal["default", "cls", "mean", "first-last", "last"]
