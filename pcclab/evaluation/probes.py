"""SentEval's own classifier, trained for all folds and regularisation strengths of a task at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.folds import SEED, Fit, check

if TYPE_CHECKING:
    import torch

BATCH, TENACITY, EPOCHS, MAX_EPOCHS, HELD_OUT = 64, 5, 4, 200, 0.05
RATE, DECAYS, TINY = 1e-3, (0.9, 0.999), 1e-8
"""Adam's defaults, which SentEval leaves as they are."""
WORKING = 200_000
"""Numbers in the batches of one loop: more spill out of a processor's cache, fewer leave it waiting for Python."""


def senteval(
    features: Float[np.ndarray, "rows dim"],
    labels: Int[np.ndarray, " rows"],
    fits: Sequence[Fit],
    strengths: Float[np.ndarray, "fits strengths"],
    *,
    seed: int = SEED,
) -> list[Int[np.ndarray, "strengths test"]]:
    r"""The classes that SentEval's PyTorch logistic regression gives each fit's test rows. A `folds.Solver`.

    One linear layer and the mean cross-entropy of batches of 64, Adam at its defaults with the strength as its weight
    decay (:math:`g + \lambda \theta`, the intercept too). After every 4 epochs the accuracy on `dev` is taken; the
    weights of the best one are kept, and the sixth time that it is not above the best so far, in all and not in a row,
    ends the training, as 204 epochs do. Where `dev` is None the first 5 % of a shuffle of `train` take its place.

    Every classifier is seeded anew, so all begin with the same weights and fits of as many rows go through them in the
    same order: these are stepped together, which changes nothing but the order in which products are summed.

    Args:
        features: float32 is what is computed in.
        labels: 0, 1, ...
        fits: which rows train, stop and test.
        strengths: lambda of each problem.
        seed: of torch for the weights and of numpy's RandomState for the order; both are left as they were found.

    Source: SentEval (Conneau and Kiela 2018), its `nhid` 0 and its toolkit's default settings.
    Departs: the toolkit asks for a loss summed over the batch in a way that torch has not heeded since 0.4.1; what it
        computes today is the mean, and so does this.

    Raises: Undefined when a fit lacks a class or has too few rows to hold 5 % out.
    """
    import torch

    classes = check(labels, fits)
    rows = torch.from_numpy(np.column_stack([features, np.ones(len(features))]).astype(np.float32))
    answers = torch.from_numpy(np.array(labels, dtype=np.int64))
    groups: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for at, fit in enumerate(fits):
        groups[len(fit.train), fit.dev is None].append(at)
    predicted: list[np.ndarray] = [np.empty(0)] * len(fits)
    together = max(1, WORKING // (BATCH * rows.shape[1]))
    with torch.inference_mode():
        start = _first_weights(rows.shape[1] - 1, classes, seed)
        for members in groups.values():
            for begin in range(0, len(members), together):
                chosen = members[begin : begin + together]
                decay = torch.from_numpy(np.array(strengths[chosen], dtype=np.float32))
                best = _train(rows, answers, [fits[at] for at in chosen], decay, start, seed)
                for at, weights in zip(chosen, best, strict=True):
                    predicted[at] = _answers(rows[fits[at].test], weights, len(strengths[at])).numpy()
    return predicted


def _first_weights(dim: int, classes: int, seed: int) -> torch.Tensor:
    """What torch draws for a linear layer, (dim + 1, classes) with the intercept last."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(dim, classes)
    return torch.cat([layer.weight.detach().T, layer.bias.detach()[None]])


def _train(
    rows: torch.Tensor,
    answers: torch.Tensor,
    fits: Sequence[Fit],
    decay: torch.Tensor,
    start: torch.Tensor,
    seed: int,
) -> torch.Tensor:
    """The best weights, (fits, dim + 1, strengths * classes), of fits with as many training rows each."""
    import torch

    draw = np.random.RandomState(seed)
    train, dev = _held_out(fits, draw)
    count, strengths, classes = len(fits), decay.shape[1], start.shape[1]
    weights = start.repeat(1, strengths).repeat(count, 1, 1)
    shrink = decay.repeat_interleave(classes, dim=1)[:, None, :]
    first, second, taken = torch.zeros_like(weights), torch.zeros_like(weights), 0
    best, reached = weights.clone(), torch.full((count, strengths), -1.0)
    failures, running = torch.zeros(count, strengths), torch.ones(count, strengths, dtype=torch.bool)
    going = torch.arange(count)
    for _ in range(0, MAX_EPOCHS + 1, EPOCHS):
        for _ in range(EPOCHS):
            order = torch.from_numpy(draw.permutation(train.shape[1]))
            for batch in order.split(BATCH):
                seen = train[:, batch]
                inputs = rows.index_select(0, seen.flatten()).view(len(seen), len(batch), -1)
                logits = torch.bmm(inputs, weights).view(len(seen), len(batch), strengths, classes)
                error = logits.softmax(dim=-1)
                wanted = answers[seen][:, :, None, None].expand(-1, -1, strengths, 1)
                error.scatter_add_(3, wanted, error.new_full((1,), -1.0).expand_as(wanted))
                error /= len(batch)
                gradient = torch.bmm(inputs.transpose(1, 2), error.view(len(seen), len(batch), -1))
                gradient.addcmul_(weights, shrink)
                taken += 1
                _adam(weights, gradient, first, second, taken)
        for place, at in enumerate(going.tolist()):
            right = _answers(rows[dev[at]], weights[place], strengths) == answers[dev[at]]
            accuracy = right.sum(dim=1) / len(dev[at])
            better = running[at] & (accuracy > reached[at])
            reached[at, better] = accuracy[better]
            kept = better.repeat_interleave(classes)
            best[at, :, kept] = weights[place][:, kept]
            failures[at] += ~better
            running[at] &= better | (failures[at] <= TENACITY)
        still = running[going].any(dim=1)
        if not still.any():
            break
        if not still.all():  # a fit that has stopped with every strength needs no more steps
            going = going[still]
            train, weights, shrink, first, second = (part[still] for part in (train, weights, shrink, first, second))
    return best


def _held_out(fits: Sequence[Fit], draw: np.random.RandomState) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Training rows (fits, rows), and the rows that each fit stops on."""
    import torch

    train = np.stack([fit.train for fit in fits])
    if fits[0].dev is not None:
        return torch.from_numpy(train), [torch.from_numpy(fit.dev) for fit in fits if fit.dev is not None]
    shuffle, cut = draw.permutation(train.shape[1]), int(HELD_OUT * train.shape[1])
    if not cut:
        raise Undefined(f"5 % of {train.shape[1]} training rows are none to stop on: give at least 20")
    return torch.from_numpy(train[:, shuffle[cut:]]), list(torch.from_numpy(train[:, shuffle[:cut]]))


def _adam(weights: torch.Tensor, gradient: torch.Tensor, first: torch.Tensor, second: torch.Tensor, taken: int) -> None:
    """One step of torch's Adam, in place."""
    first.lerp_(gradient, 1 - DECAYS[0])
    second.mul_(DECAYS[1]).addcmul_(gradient, gradient, value=1 - DECAYS[1])
    below = (second.sqrt() / (1 - DECAYS[1] ** taken) ** 0.5).add_(TINY)
    weights.addcdiv_(first, below, value=-RATE / (1 - DECAYS[0] ** taken))


def _answers(inputs: torch.Tensor, weights: torch.Tensor, strengths: int) -> torch.Tensor:
    """The class of each row with each strength, (strengths, rows)."""
    return (inputs @ weights).view(len(inputs), strengths, -1).argmax(dim=-1).T
