"""Fast inference: each distinct text once, batches without padding, results in the caller's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from pcclab.encoders.batching import pad, plan_batches
from pcclab.progress import Progress

Tokens = Sequence[Sequence[int]]
Embed = Callable[[Tensor, Tensor], Tensor]


def distinct(texts: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The distinct texts in order of first appearance, and for each text its position among them."""
    position: dict[str, int] = {}
    inverse = np.fromiter((position.setdefault(text, len(position)) for text in texts), np.int64, len(texts))
    return list(position), inverse


def run(
    embed: Embed,
    tokens: Tokens,
    *,
    pad_id: int,
    padding_side: str,
    budget: int,
    device: torch.device,
    title: str | None = "encoding",
) -> np.ndarray:
    """Embed token rows in length-sorted batches of at most `budget` padded tokens.

    Args:
        embed: from ids and mask, both (texts, tokens), to embeddings (texts, dim).
        tokens: one row of token ids a text.
        budget: padded tokens of one batch.
        title: first word of the progress line; None is silent.

    Returns:
        float32 (texts, dim), row i for tokens[i].
    """
    batches = plan_batches([len(row) for row in tokens], budget)
    result: np.ndarray | None = None
    with torch.inference_mode(), Progress(title, len(tokens), "texts") as progress:
        for batch in batches:
            ids, mask = pad([tokens[i] for i in batch], pad_id, side=padding_side)
            vectors = embed(ids.to(device, non_blocking=True), mask.to(device, non_blocking=True)).float().cpu().numpy()
            if result is None:
                result = np.empty((len(tokens), vectors.shape[1]), dtype=np.float32)
            result[batch] = vectors
            progress.advance(len(batch))
    assert result is not None
    return result


def token_budget(device: torch.device) -> int:
    """Padded tokens of one inference batch: what keeps a CPU's caches warm, or a GPU's units busy."""
    return 2048 if device.type == "cpu" else 65536


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode inside, the mode it had before outside."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)
