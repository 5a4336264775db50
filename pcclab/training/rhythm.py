"""When a training looks at the development set, saves, and says how far it is."""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from pcclab.progress import Progress
from pcclab.training.settings import FitSettings

NEVER = 10**9


def arguments(settings: FitSettings, folder: Path, rows: int, least: int, device: torch.device) -> TrainingArguments:
    """The Trainer's arguments; everything about its own logging, saving and evaluating is left to `Rhythm`."""
    rest = rows % settings.batch_size
    steps = total_steps(settings, rows, least)
    warmup = round(settings.warmup_share * steps) if settings.warmup_share else settings.warmup_steps
    chosen = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=settings.batch_size,
        num_train_epochs=settings.epochs,
        max_steps=settings.max_steps,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        warmup_steps=warmup,
        max_grad_norm=settings.max_grad_norm,
        lr_scheduler_type="linear",
        optim="adamw_torch_fused",
        bf16=settings.dtype == "bfloat16",
        seed=settings.seed,
        data_seed=settings.seed,
        use_cpu=device.type == "cpu",
        # A last batch too small for the loss is left out of the epoch, and the history says so.
        dataloader_drop_last=0 < rest < least,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
        logging_strategy="steps",
        logging_steps=1,
        logging_nan_inf_filter=False,
        eval_strategy="no",
        save_strategy="steps",
        save_steps=NEVER,
        metric_for_best_model="eval_spearman",
        greater_is_better=True,
        disable_tqdm=True,
        report_to="none",
        log_level="error",
    )
    if warmup >= steps > 1:
        warnings.warn(
            f"warmup_steps is {warmup} and the training has {steps} steps: the learning rate never reaches its peak",
            stacklevel=4,
        )
    # One process, one device: several go through a launcher, not through torch's DataParallel.
    _ = chosen.device
    chosen._n_gpu = min(chosen.n_gpu, 1)
    return chosen


def recompute(trunk: PreTrainedModel, wanted: bool) -> None:
    """Have the layers' activations computed again on the way back, or kept."""
    # Earlier versions have only the other name, of which later ones warn.
    name = "activation_checkpointing" if hasattr(trunk, "activation_checkpointing_enable") else "gradient_checkpointing"
    if wanted:
        getattr(trunk, f"{name}_enable")({"use_reentrant": False})
    elif getattr(trunk, f"is_{name}"):
        getattr(trunk, f"{name}_disable")()


def total_steps(settings: FitSettings, rows: int, least: int) -> int:
    """Optimiser steps of a training on so many rows, where a last batch of fewer than `least` is left out."""
    if settings.max_steps > 0:
        return settings.max_steps
    whole, rest = divmod(rows, settings.batch_size)
    return math.ceil(settings.epochs * max(1, whole + (rest >= max(1, least))))


class Rhythm(TrainerCallback):
    """Looks every so many steps and at the end; saves after so many seconds. (A new best is saved by the look.)

    Args:
        look: whether there is a development set.
        keep: whether checkpoints outlive the training.
        tell: whether this process says how far the training is.
    """

    def __init__(self, settings: FitSettings, *, look: bool, keep: bool, tell: bool = True) -> None:
        self.settings, self.look, self.keep, self.title = settings, look, keep, "training" if tell else None
        self.began = self.saved = time.monotonic()
        self.loss = self.dev = ""
        self._progress: Progress | None = None

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self.saved = time.monotonic()
        self._progress = Progress(self.title, state.max_steps, "steps").__enter__()
        self._progress.done = state.global_step

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        last = state.global_step >= state.max_steps
        every = self.settings.evaluate_every
        control.should_evaluate = self.look and (last or bool(every and state.global_step % every == 0))
        due = time.monotonic() - self.saved >= self.settings.checkpoint_seconds
        # The last step needs none: the trained encoder is saved right behind it.
        control.should_save = self.keep and due and not last
        if self._progress is not None:
            self._progress.advance(1, f"{self.loss} {self.dev}".strip())

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        logs = kwargs.get("logs") or {}
        if "loss" in logs:
            self.loss = f"loss {logs['loss']:.4f}"

    def on_train_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kw: Any) -> None:
        if self._progress is not None:
            self._progress.__exit__(None, None, None)
