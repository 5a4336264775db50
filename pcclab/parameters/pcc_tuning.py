"""Parameters of notebooks 01 to 03.

Source: Pcc-tuning, section 5 and appendix A, for the values of the `paper` sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from pcclab.parameters.base import Parameters, Training, Tupled

Leakage = Literal["keep", "filter", "strict"]
Levels = Annotated[tuple[Leakage, ...], Tupled]
PairLoss = Literal["pearson", "pearson_ranks", "ccc", "cosine_mse", "soft_spearman", "cosent", "angle", "kendall",
                   "rank_n_contrast", "info_nce"]  # fmt: skip
"""Losses of rated pairs that ask for no head and no teacher."""


class CeilingParameters(Parameters):
    """01_ceiling: the ceiling derived, measured on gold values, and reached by a hardening sigmoid."""

    n: int = Field(ge=4, le=100_000, description="sentence pairs of the worked example")
    share: float = Field(gt=0, lt=1, description="share of pairs the two-level scorer calls similar")
    levels: int = Field(ge=2, le=100, description="largest number of levels on the m-level curve")
    hardness: float = Field(gt=0, le=1e4, description="slope of the sigmoid, per share of the ranking")


class TrainingParameters(Training):
    """What both stages of Pcc-tuning take."""

    prompt: Literal["", "EOL", "SUM", "STH"] = Field(description="template around each sentence; empty for none")
    quantization: Literal["none", "nf4", "int8"] = Field(description="storage of the frozen weights")
    lora_rank: int = Field(ge=0, le=4096, description="rank of the adapter; 0 trains all weights")
    lora_alpha: float = Field(gt=0, description="scale of the adapter")
    lora_dropout: float = Field(ge=0, lt=1, description="dropout in front of the adapter")
    warmup_steps: int = Field(ge=0, description="steps over which the learning rate rises")
    recompute: bool = Field(
        description="whether each layer's activations are computed again on the way back instead of kept: less memory, "
        "one more forward"
    )

    LATER: ClassVar[Mapping[str, Any]] = {"recompute": False}

    def loading(self) -> dict[str, Any]:
        adapter = {"rank": self.lora_rank, "alpha": self.lora_alpha, "dropout": self.lora_dropout}
        return {
            **super().loading(),
            "prompt": self.prompt,
            "quantization": self.quantization,
            "adapter": adapter if self.lora_rank else None,
            "seed": self.seed,
        }

    @model_validator(mode="after")
    def _agree(self) -> Self:
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
        return self


class Stage1Parameters(TrainingParameters):
    """02_stage1_contrastive: InfoNCE with hard negatives on NLI triplets."""

    temperature: float = Field(gt=0, le=10, description="temperature of InfoNCE")


class Stage2Parameters(TrainingParameters):
    """03_stage2_pcc_tuning: Pearson's correlation on scored pairs, from stage 1 or from the encoder as it is."""

    LATER: ClassVar[Mapping[str, Any]] = {**TrainingParameters.LATER, "loss": "pearson"}

    stage1: str = Field(description="parameter file of 02_stage1_contrastive to continue, from the repository's root; "
                        "empty: the encoder as it is")  # fmt: skip
    loss: PairLoss = Field(description="what is minimised; the paper's is pearson, the others are its rivals")
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

    def stands_on(self) -> tuple[str, ...]:
        return (f"02 {quote(self.stage1)}",) if self.stage1 else ()
