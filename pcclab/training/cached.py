"""Exact gradients of a loss over a whole batch in the memory of a small one.

A loss such as InfoNCE or Pearson's correlation needs all embeddings of a batch at once, but not all activations. So the
batch is embedded in micro-batches of nearly equal length without a graph, the loss gives the gradient of each
embedding, and each micro-batch is then embedded again, with the random state it had, to carry its gradient back to the
weights. Where the whole batch fits, the graphs of the first pass are kept and there is no second one.

Source: gradient caching, arXiv 2101.06983; the replayed random state and the cut by length are this lab's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from pcclab.encoders.batching import pad, plan_batches
from pcclab.training.ranks import Ranks

Embed = Callable[[Tensor, Tensor], Tensor]
Objective = Callable[[Tensor], Tensor]
Backward = Callable[[Tensor], None]


def backward(
    embed: Embed,
    tokens: Sequence[Sequence[int]],
    objective: Objective,
    *,
    pad_id: int,
    padding_side: str = "right",
    device: torch.device | str = "cpu",
    micro_tokens: int = 2048,
    keep_tokens: int = 8192,
    scale: Backward = torch.Tensor.backward,
    ranks: Ranks | None = None,
    weights: Sequence[nn.Parameter] = (),
) -> Tensor:
    """Add the gradient of `objective(embeddings)` to every weight that `embed` and `objective` use.

    Args:
        embed: from token ids and mask, both (texts, tokens), to embeddings (texts, dim); may draw random numbers.
        tokens: token ids of each text of the batch, any number of texts a pair.
        objective: from all embeddings (texts, dim), row i for tokens[i], to a scalar.
        pad_id, padding_side: how micro-batches are padded.
        device: where `embed` wants its input.
        micro_tokens: padded tokens of one forward.
        keep_tokens: a batch of at most so many padded tokens keeps its graph; 0 always embeds twice.
        scale: how the loss is sent backward; accelerate's `backward` where gradients are scaled.
        ranks: the processes that train together, each called with the same batch; None is this one alone.
        weights: what `embed` and `objective` train, whose gradients the processes add up.

    Returns:
        The loss, detached. It and the gradients are those of one plain pass over the same micro-batches.

    Raises: ValueError when the loss is not finite, before any gradient is changed.
    """
    ranks = ranks or Ranks()
    lengths = [len(row) for row in tokens]
    batches = plan_batches(lengths, balanced(lengths, micro_tokens, ranks.world))
    sizes = [len(batch) * max(lengths[i] for i in batch) for batch in batches]
    mine = [batches[i] for i in ranks.share(sizes)]
    # A process without a share of a small batch has an empty one: it takes part in every exchange.
    rows = torch.from_numpy(np.concatenate(mine) if mine else np.empty(0, np.int64)).to(device)

    def forward(batch: np.ndarray) -> Tensor:
        ids, mask = pad([tokens[i] for i in batch], pad_id, side=padding_side)
        return embed(ids.to(device, non_blocking=True), mask.to(device, non_blocking=True))

    padded = sum(sizes)
    if ranks.world == 1 and (padded <= keep_tokens or len(batches) == 1):
        loss = objective(torch.cat([forward(batch) for batch in batches])[torch.argsort(rows)])
        scale(_finite(loss))
        return loss.detach()

    kept = padded <= keep_tokens * ranks.world
    states, parts = [], []
    with torch.set_grad_enabled(kept):
        for batch in mine:
            states.append(random_state(device))
            parts.append(forward(batch))
    own = torch.cat(parts).detach() if parts else _nothing(tokens, forward)
    embeddings = ranks.whole(own, rows, len(tokens)).requires_grad_()
    loss = objective(embeddings)
    scale(_finite(loss))
    assert embeddings.grad is not None
    if ranks.rank:  # what the loss itself trains, such as a head, has its whole gradient on every process
        for parameter in weights:
            parameter.grad = None
    gradients = embeddings.grad[rows].split([len(batch) for batch in mine])
    if kept:
        torch.autograd.backward(parts, list(gradients))
    else:
        with replaying(device) as replay:
            for batch, state, gradient in zip(mine, states, gradients, strict=True):
                replay(state)
                forward(batch).backward(gradient)
    ranks.add_up(weights)
    return loss.detach()


def balanced(lengths: Sequence[int], micro_tokens: int, world: int) -> int:
    """Token budget of a micro-batch that leaves every process some of a small batch."""
    return micro_tokens if world == 1 else max(max(lengths), min(micro_tokens, -(-sum(lengths) // world)))


def _nothing(tokens: Sequence[Sequence[int]], forward: Callable[[np.ndarray], Tensor]) -> Tensor:
    """No embeddings, of the width they would have."""
    with torch.no_grad():
        return forward(np.array([int(np.argmin([len(row) for row in tokens]))]))[:0]


RandomState = tuple[Tensor, Tensor | None]


def random_state(device: torch.device | str) -> RandomState:
    """State of the generators that dropout draws from: the CPU's, and the GPU's where the work is there."""
    cuda = torch.cuda.get_rng_state(device) if torch.device(device).type == "cuda" else None
    return torch.get_rng_state(), cuda


@contextmanager
def replaying(device: torch.device | str) -> Iterator[Callable[[RandomState], None]]:
    """Yield a function that sets an earlier random state; on leaving, the present one comes back."""

    def set_state(state: RandomState) -> None:
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state(state[1], device)

    present = random_state(device)
    try:
        yield set_state
    finally:
        set_state(present)


def _finite(loss: Tensor) -> Tensor:
    if not bool(torch.isfinite(loss)):
        raise ValueError(
            f"the loss is {float(loss.detach())}: lower the learning rate, or look for NaN in embeddings and ratings"
        )
    return loss
