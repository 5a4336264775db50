"""The Trainer's loop with this lab's step, look and checkpoint in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer

from pcclab import files
from pcclab.encoders import Encoder
from pcclab.encoders.heads import SiameseHead
from pcclab.training import cached, checkpoints, rhythm
from pcclab.training.groups import Trained, parameter_groups
from pcclab.training.history import History
from pcclab.training.objectives import Objective
from pcclab.training.ranks import Ranks
from pcclab.training.selection import Development
from pcclab.training.settings import FitSettings

LINES = "lines.json"


class Run(Protocol):
    """What training asks of a run: a folder for checkpoints, and a line for every step."""

    @property
    def checkpoints(self) -> Path: ...

    def log(self, step: int, **metrics: Any) -> None: ...


class Loop(Trainer):
    """The Trainer's loop; the step, the look at the development set and the checkpoint are this lab's."""

    def __init__(
        self,
        encoder: Encoder,
        objective: Objective,
        columns: list[list[list[int]]],
        settings: FitSettings,
        folder: Path,
        development: Development | None,
        run: Run | None,
        ranks: Ranks,
        live: Callable[[dict[str, Any]], bool] | None = None,
    ) -> None:
        self.live = live
        self.encoder, self.bound, self.columns, self.settings = encoder, objective, columns, settings
        self.folder, self.development, self.run, self.ranks = folder, development, run, ranks
        self.lines: dict[int, dict[str, Any]] = {}
        rhythm.recompute(encoder.trunk, settings.recompute)
        super().__init__(
            model=Trained(encoder.trunk, objective.head),
            args=rhythm.arguments(settings, folder, len(objective), objective.least, encoder.device),
            train_dataset=range(len(objective)),
            data_collator=lambda rows: {"rows": torch.tensor(rows)},
            callbacks=[
                watch := rhythm.Rhythm(
                    settings, look=development is not None, keep=run is not None, tell=ranks.leads and live is None
                )
            ],
        )
        self.remove_callback(PrinterCallback)
        self.watch = watch

    def fit(self) -> History:
        """Train from the newest checkpoint or from the start, and leave the encoder with the selected weights."""
        began = time.monotonic()
        checkpoint = self._newest()
        resumed, before = (checkpoints.step_of(checkpoint) if checkpoint else 0), 0.0
        if checkpoint is not None:
            earlier = json.loads((checkpoint / LINES).read_text(encoding="utf8"))
            self.lines, before = {line["step"]: line for line in earlier["lines"]}, earlier["seconds"]
        elif self.development is not None:
            self.evaluate()
        self.watch.began = began - before
        self.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        best = self._select()
        self.encoder.trunk.eval()
        history = History(
            steps=tuple(self.lines[step] for step in sorted(self.lines)),
            best_step=best,
            best_dev=self.state.best_metric if self.development is not None else None,
            seconds=round(time.monotonic() - self.watch.began, 3),
            resumed_from=resumed,
            left_out=len(self.bound) % self.settings.batch_size if self.args.dataloader_drop_last else 0,
        )
        if self.run is not None and self.ranks.leads:
            history.save(self.folder / "history.json")
            if self.bound.head is not None:
                self.bound.head.save(self.folder / "head")  # type: ignore[operator]
            self.encoder.save(self.folder / "final")
            checkpoints.keep_only(self.folder, set())
        return history

    def _newest(self) -> Path | None:
        """The checkpoint to go on from, the same for all processes; one of them tidies the folder."""
        found = checkpoints.newest(self.folder) if self.ranks.leads else None
        step = int(self.ranks.agree(checkpoints.step_of(found) if found else 0))
        return self.folder / f"{checkpoints.PREFIX}{step}" if step else None

    def _select(self) -> int:
        if self.development is None:
            return self.state.global_step
        if self.state.best_global_step is None:
            raise ValueError(
                "the development score was undefined at every look: the embeddings collapsed; lower the learning rate"
            )
        best: int = self.state.best_global_step
        self.ranks.wait()  # until the leading one has written it
        if best != self.state.global_step:
            self._load_from_checkpoint(str(self.folder / f"{checkpoints.PREFIX}{best}"))
        self.ranks.wait()
        return best

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        if self.optimizer is None and self.settings.layer_decay < 1:
            trained: Any = self.model
            decayed = set(self.get_decay_parameter_names(trained))
            groups = parameter_groups(trained, self.settings, decayed)
            kind, options = self.get_optimizer_cls_and_kwargs(self.args, trained)
            self.optimizer = kind(groups, **options)
        return super().create_optimizer(model)

    def training_step(self, model: nn.Module, inputs: dict[str, Tensor], num_items_in_batch: Any = None) -> Tensor:
        model.train()
        rows = inputs["rows"].tolist()
        if self.ranks.world > 1:  # each process draws dropout of its own, the same again after a resume
            torch.manual_seed(
                (self.settings.seed * 2**20 + self.state.global_step) * self.ranks.world + self.ranks.rank
            )

        def embed(ids: Tensor, mask: Tensor) -> Tensor:
            with self.autocast_smart_context_manager():
                return self.encoder.embed(ids, mask)

        return cached.backward(
            embed,
            [column[row] for column in self.columns for row in rows],
            self.bound.loss(rows),
            pad_id=self.encoder.tokenizer.pad_token_id,
            padding_side=self.encoder.tokenizer.padding_side,
            device=self.args.device,
            micro_tokens=self.settings.micro_tokens,
            keep_tokens=self.settings.keep_tokens,
            scale=self.accelerator.backward,
            ranks=self.ranks,
            weights=[weights for weights in model.parameters() if weights.requires_grad],
        )

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Spearman x 100 on the development set; a new best is checkpointed."""
        assert self.development is not None
        score = self.ranks.agree(self.development.score() if self.ranks.leads else 0.0)
        self.note(self.state.global_step, dev_spearman=score, **self.development.also())
        self.watch.dev = f"dev {score:.2f}"
        best = self.state.best_metric if self.state.best_metric is not None else float("-inf")
        if 0 < self.state.global_step < self.state.max_steps and score > best:
            self.control.should_save = True
        self.control.should_evaluate = False
        return {"eval_spearman": score}

    def _get_learning_rate(self) -> float:
        # The top's: the first group, whose rate the Trainer would tell, may be the embeddings' slower one.
        assert self.lr_scheduler is not None
        return float(max(self.lr_scheduler.get_last_lr()))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        names = ("loss", "grad_norm", "learning_rate")
        if metrics := {name: logs[name] for name in names if name in logs}:
            self.note(self.state.global_step, **metrics)

    def note(self, step: int, **metrics: float) -> None:
        """Remember metrics of a step, and pass them on to the run."""
        self.lines.setdefault(step, {"step": step}).update(metrics)
        if self.run is not None and self.ranks.leads:
            self.run.log(step, **metrics)
        if self.live is not None and not self.live(dict(self.lines[step])):
            self.control.should_training_stop = True
            # A look at where it ends, unless this is one: without any there would be no step to choose.
            self.control.should_evaluate = self.development is not None and "loss" in metrics

    def _save(self, output_dir: str | None = None, state_dict: dict[str, Any] | None = None) -> None:
        # Weights only: the Trainer would add a pickle of its arguments, which nobody here reads.
        folder = Path(output_dir or self.folder)
        self.encoder.write_weights(folder)
        if self.bound.head is not None:
            self.bound.head.save(folder)  # type: ignore[operator]

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: nn.Module | None = None) -> None:
        folder = Path(resume_from_checkpoint)
        self.encoder.read_weights(folder)
        if self.bound.head is not None:
            self.bound.head.load_state_dict(SiameseHead.load(folder).state_dict())

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        if not self.ranks.leads:
            return
        super()._save_checkpoint(model, trial)
        step = self.state.global_step
        target = self.folder / f"{checkpoints.PREFIX}{step}"
        earlier = {"lines": list(self.lines.values()), "seconds": time.monotonic() - self.watch.began}
        files.write_json(target / LINES, earlier)
        files.close_folder(target)
        # Only now that this one is whole may older ones go.
        checkpoints.keep_only(self.folder, {step, self.state.best_global_step or step})
        self.watch.saved = time.monotonic()
