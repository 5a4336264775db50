"""Parameters of notebook 05: which models are looked at, and how closely."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pcclab.parameters.base import Names, Parameters, Tupled, distinct
from pcclab.parameters.places import speaks_of_a_run

Task = Literal["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
Tasks = Annotated[tuple[Task, ...], Tupled, AfterValidator(distinct)]


class GeometryParameters(Parameters):
    """05_alignment_uniformity: alignment, uniformity, cosines by rating and effective levels of several models."""

    models: Names = Field(
        min_length=1,
        max_length=6,
        description="models to tell apart, at most six: what encoders.load takes, or runs such as 03 real leakage=keep",
    )
    also: Literal["nothing", "trained"] = Field(
        description="trained: every other model this checkout's runs trained on the same source, as points of their own"
    )
    tasks: Tasks = Field(min_length=1, description="STS tasks on which effective levels of `models` are taken")
    sample: int = Field(
        ge=0, le=10**9, description="pairs of sentences drawn for uniformity; 0: every pair, exactly, and no error"
    )
    resamples: int = Field(ge=100, le=100_000, description="resamples of the intervals of Spearman and levels")

    def stands_on(self) -> tuple[str, ...]:
        return tuple(place for place in self.models if speaks_of_a_run(place))
