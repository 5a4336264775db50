"""Parameters of notebook 11: the value at which each slider begins."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from pcclab.parameters.base import Names, Parameters
from pcclab.parameters.geometry import Task
from pcclab.parameters.pcc_tuning import Leakage
from pcclab.parameters.places import speaks_of_a_run

Rival = Literal["pearson", "pearson_ranks", "soft_spearman", "kendall", "cosent", "ccc", "cosine_mse"]


class PlaygroundParameters(Parameters):
    """11_playground: one view after another, each beginning at these values."""

    n: int = Field(ge=4, le=100_000, description="sentence pairs under the ceiling")
    share: float = Field(gt=0, lt=1, description="share of pairs the two-level scorer calls similar")
    levels: int = Field(ge=2, le=100, description="scores that another scorer may tell apart")
    hardness: float = Field(gt=0, le=1e6, description="slope of the sigmoid, per share of the ranking")
    distinct: int = Field(ge=0, le=1000, description="distinct gold values; 0: no gold is tied")
    slope: float = Field(gt=0, le=100, description="k of smooth_k2")
    relu_slope: float = Field(gt=0, le=100, description="k of translated_relu")
    threshold: float = Field(ge=0, description="x0 of both: errors below it are free; at most half of spacing")
    spacing: float = Field(gt=0, le=100, description="label interval d: the labels are 0, d and 2d")
    label: int = Field(ge=0, le=2, description="the pair's class; its gold is label times spacing")
    ends: Literal["both", "none", "published"] = Field(description="what is forgiven beyond the first and last label")
    row: int = Field(ge=0, lt=16, description="sentence whose list of similarities is shown, of sixteen")
    view: float = Field(ge=-1, le=1, description="cosine of that sentence's two dropout views")
    temperature: float = Field(gt=0, le=10, description="temperature of InfoNCE")
    student_temperature: float = Field(gt=0, le=10, description="temperature of ListNet's student side")
    teacher_temperature: float = Field(gt=0, le=10, description="temperature of ListNet's teacher side")
    listmle_temperature: float = Field(gt=0, le=10, description="temperature of ListMLE")
    pairs: int = Field(ge=4, le=1000, description="pairs of the scatter")
    noise: float = Field(ge=0, le=10, description="standard deviation of the scatter's noise")
    bend: float = Field(gt=0, le=100, description="power of the scatter's monotone map; 1 is a line")
    outlier: float = Field(ge=0, le=10, description="how far one similarity of the scatter is pushed down")
    loss: Rival = Field(description="loss whose pulls the scatter shows, and which stage 2 trains")
    first: str = Field(min_length=1, description="a sentence")
    second: str = Field(min_length=1, description="a sentence to compare it with")
    encoders: Names = Field(
        min_length=1,
        max_length=4,
        description="what compares them: names encoders.load takes, or runs such as 03 real; the first is the student "
        "of the list's view, the last its teacher",
    )
    test: Task = Field(description="test set whose leaks are shown")
    encoder: str = Field(min_length=1, description="small encoder that stage 2 trains: minilm, tiny, a folder, a name")
    learning_rate: float = Field(gt=0, le=1, description="peak of stage 2's learning rate")
    batch_size: int = Field(ge=2, le=4096, description="rated pairs its loss sees at once")
    leakage: Leakage = Field(description="its training pairs seen in a test: keep, filter (pairs), strict (sentences)")
    steps: int = Field(ge=1, le=10_000, description="its optimiser steps")
    max_tokens: int = Field(ge=4, le=8192, description="tokens a text is cut at in its training")
    run: str = Field(description="finished run to open, such as 01_ceiling/39ce265ba976; empty: the first there is")
    figure: int = Field(ge=1, le=100, description="which of its figures")

    def stands_on(self) -> tuple[str, ...]:
        return tuple(place for place in self.encoders if speaks_of_a_run(place))

    @model_validator(mode="after")
    def _half(self) -> Self:
        if self.threshold > self.spacing / 2:
            raise ValueError(
                f"threshold = {self.threshold:g} is more than half of spacing = {self.spacing:g}, so that a free "
                f"prediction would round to another label: give at most {self.spacing / 2:g}"
            )
        return self
