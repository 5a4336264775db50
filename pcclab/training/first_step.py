"""What a loss says of one batch before anything is trained: its value, and how hard it pulls."""

from __future__ import annotations

from typing import Any

import torch

from pcclab.encoders import Encoder
from pcclab.encoders.heads import SiameseHead
from pcclab.training import cached
from pcclab.training.objectives import Loss, bind
from pcclab.training.quantities import Trainable
from pcclab.training.settings import FitSettings
from pcclab.training.teachers import Teachers


def first_step(
    encoder: Encoder,
    table: Trainable,
    loss: str | Loss,
    *,
    parameters: Any,
    options: dict[str, Any] | None = None,
    head: SiameseHead | None = None,
    teachers: Teachers | None = None,
) -> tuple[float, float]:
    """Loss and length of its gradient over the encoder's weights, on the table's first batch, in training mode.

    Terms of a sum can be weighed so before hours go into them: one whose gradient is a hundredth of another's changes
    nothing.

    Args:
        encoder: left as it is, but for its gradients, which are gone afterwards.
        table, loss, parameters, options, head, teachers: as `fit` takes them.

    Raises: as `fit` before its first step.
    """
    settings = FitSettings.of(parameters)
    objective = bind(table, loss, options, head=head, teachers=teachers)
    rows = list(range(min(settings.batch_size, len(objective))))
    columns = [encoder.tokenize([column[row] for row in rows], max_tokens=settings.max_tokens) for column in
               objective.columns]  # fmt: skip
    training = encoder.trunk.training
    with torch.random.fork_rng():
        torch.manual_seed(settings.seed)
        encoder.trunk.train()
        encoder.trunk.zero_grad()
        value = cached.backward(
            encoder.embed,
            [ids for column in columns for ids in column],
            objective.loss(rows),
            pad_id=encoder.tokenizer.pad_token_id,
            padding_side=encoder.tokenizer.padding_side,
            device=encoder.device,
            micro_tokens=settings.micro_tokens,
            keep_tokens=settings.keep_tokens,
        )
    squares = [float(weights.grad.square().sum()) for weights in encoder.weights if weights.grad is not None]
    encoder.trunk.zero_grad()
    encoder.trunk.train(training)
    return float(value), sum(squares) ** 0.5
