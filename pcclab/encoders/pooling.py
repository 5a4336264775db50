"""From the hidden states of a sentence's tokens to one vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

Pooling = Literal["cls", "mean", "first-last", "last"]
POOLINGS: tuple[str, ...] = get_args(Pooling)

Hidden = tuple[Float[Tensor, "texts tokens width"], ...]


def pool(pooling: Pooling, hidden: Hidden, mask: Int[Tensor, "texts tokens"]) -> Float[Tensor, "texts width"]:
    """Reduce hidden states to one vector a text.

    Args:
        pooling: `cls` the first token; `mean` the mean of the last layer over real tokens; `first-last` the same over
            the mean of the first and the last transformer layer; `last` the last real token, wherever padding lies.
        hidden: for `first-last` the outputs of the first and of the last layer, otherwise the last layer alone.
        mask: 1 where a token is real, 0 where it is padding.

    Raises: ValueError when a text has no token, when the mask is not made of one run of ones, when `cls` meets padding
        on the left, or when the pooling has no such name.
    """
    if pooling not in _POOLERS:
        raise ValueError(f"unknown pooling {pooling!r}: choose one of {', '.join(POOLINGS)}")
    _check(mask)
    return _POOLERS[pooling](hidden, mask)


def _check(mask: Tensor) -> None:
    if mask.numel() == 0 or bool((mask.sum(1) == 0).any()):
        raise ValueError("a text without a token cannot be pooled: give every text at least one token")
    holes = (mask[:, 1:] != mask[:, :-1]).sum(1) + mask[:, 0] + mask[:, -1]
    if bool((holes > 2).any()):
        raise ValueError("the attention mask has holes: real tokens must stand together, padding on one side")


def _cls(hidden: Hidden, mask: Tensor) -> Tensor:
    if bool((mask[:, 0] == 0).any()):
        raise ValueError("cls pooling reads the first position, which is padding here: pad on the right")
    return hidden[-1][:, 0]


def _mean(hidden: Hidden, mask: Tensor) -> Tensor:
    weights = mask.to(hidden[-1].dtype).unsqueeze(-1)
    return (hidden[-1] * weights).sum(1) / weights.sum(1)


def _first_last(hidden: Hidden, mask: Tensor) -> Tensor:
    if len(hidden) < 2:
        raise ValueError(
            "first-last pooling needs the outputs of two layers: load the encoder with pooling='first-last'"
        )
    return _mean(((hidden[0] + hidden[-1]) / 2,), mask)


def _last(hidden: Hidden, mask: Tensor) -> Tensor:
    positions = torch.arange(mask.shape[1], device=mask.device)
    last = (mask * positions).argmax(1)
    return hidden[-1][torch.arange(len(mask), device=mask.device), last]


_POOLERS: dict[str, Callable[[Hidden, Tensor], Tensor]] = {
    "cls": _cls,
    "mean": _mean,
    "first-last": _first_last,
    "last": _last,
}
