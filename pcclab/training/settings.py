"""How long, how fast and in what memory to train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal


@dataclass(frozen=True)
class FitSettings:
    """What `fit` needs to know beside encoder, table and loss; every field can come from a notebook's parameters.

    Args:
        epochs: passes over the table; may be a fraction.
        max_steps: optimiser steps whatever the epochs say; -1 by epochs.
        batch_size: rows whose loss is computed together, whatever the memory.
        learning_rate: peak, reached after `warmup_steps` and falling linearly to 0.
        weight_decay: AdamW's.
        warmup_steps: optimiser steps.
        warmup_share: the same as a share of all steps; one of the two.
        layer_decay: factor on the learning rate from each layer of the trunk to the one below it; 1 for none.
        max_grad_norm: length the gradient is clipped at.
        evaluate_every: steps between two looks at the development set; 0 looks at the end only.
        max_tokens: longer texts are cut there in training; None, or more than the encoder reads, is its own limit.
        micro_tokens: padded tokens of one forward.
        keep_tokens: a batch of at most so many padded tokens is embedded once, a larger one twice.
        dtype: of activations; weights and optimiser stay float32.
        recompute: computes each layer's activations a second time on the way back instead of keeping them.
        seed: of the order of rows and of dropout.
        checkpoint_seconds: time between two checkpoints, beside those of a new best.
    """

    epochs: float = 1.0
    max_steps: int = -1
    batch_size: int = 64
    learning_rate: float = 2e-5
    weight_decay: float = 0.0
    warmup_steps: int = 0
    warmup_share: float = 0.0
    layer_decay: float = 1.0
    max_grad_norm: float = 1.0
    evaluate_every: int = 0
    max_tokens: int | None = None
    micro_tokens: int = 2048
    keep_tokens: int = 8192
    dtype: Literal["float32", "bfloat16"] = "float32"
    recompute: bool = False
    seed: int = 0
    checkpoint_seconds: float = 300.0

    def __post_init__(self) -> None:
        limits: dict[str, tuple[float, str]] = {
            "epochs": (1e-9, "above 0"),
            "batch_size": (2, "at least 2: one row alone has no rank and no negatives"),
            "warmup_share": (0, "from 0 to below 1"),
            "layer_decay": (1e-12, "above 0, at most 1"),
            "learning_rate": (1e-12, "above 0"),
            "max_grad_norm": (1e-12, "above 0"),
            "micro_tokens": (1, "at least 1"),
            "weight_decay": (0, "at least 0"),
            "warmup_steps": (0, "at least 0"),
            "evaluate_every": (0, "at least 0"),
            "keep_tokens": (0, "at least 0"),
            "checkpoint_seconds": (0, "at least 0"),
        }
        for name, (least, mend) in limits.items():
            value = getattr(self, name)
            if not isinstance(value, int | float) or not value >= least:
                raise ValueError(f"{name} is {value!r}: give a number {mend}")
        if self.max_steps != -1 and self.max_steps < 1:
            raise ValueError(f"max_steps is {self.max_steps}: give at least 1, or -1 to train by epochs")
        if self.warmup_share >= 1 or (self.warmup_share and self.warmup_steps):
            raise ValueError(
                f"warmup_share is {self.warmup_share} and warmup_steps {self.warmup_steps}: give one of them, a share "
                "below 1"
            )
        if self.layer_decay > 1:
            raise ValueError(f"layer_decay is {self.layer_decay}: give at most 1, lower layers learn more slowly")
        if self.dtype not in ("float32", "bfloat16"):
            raise ValueError(f"dtype is {self.dtype!r}: choose float32 or bfloat16")

    @classmethod
    def of(cls, parameters: Any) -> FitSettings:
        """The settings among a notebook's parameters, or those of a mapping, where unknown names are refused."""
        if isinstance(parameters, cls):
            return parameters
        names = [field.name for field in fields(cls)]
        if isinstance(parameters, Mapping):
            if unknown := [name for name in parameters if name not in names]:
                raise ValueError(f"unknown training parameter {unknown[0]!r}: known are {', '.join(names)}")
            return cls(**parameters)
        return cls(**{name: getattr(parameters, name) for name in names if hasattr(parameters, name)})
