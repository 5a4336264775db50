"""What the losses on rated pairs share: checks of a batch, ranks with ties, and sums over pairs of pairs in blocks."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

# Entries of the largest table made at once: all pairs of 2048 rows, 16 MiB in float32.
TABLE = 2**22


def rated(values: Tensor, gold: Tensor, *, least: int = 2, what: str = "similarity") -> tuple[Tensor, Tensor]:
    """Both sides of a rated batch in one dtype of at least float32, once they are found fit to be compared.

    Args:
        values: the model's side, one row a pair.
        gold: one rating a pair.
        least: the number of pairs below which the batch is refused.
        what: one row of `values` is called so in messages.

    Raises: ValueError when the shapes differ, when fewer pairs than `least` are given, or when a rating is not finite.
    """
    if gold.ndim != 1 or values.shape[:1] != gold.shape or values.ndim != (1 if what == "similarity" else 2):
        raise ValueError(f"shapes {tuple(values.shape)} and {tuple(gold.shape)}: one {what} and one gold a pair")
    if len(gold) < least:
        raise ValueError(f"{len(gold)} pair(s): this loss needs at least {least}; raise the batch size")
    if not torch.isfinite(gold).all():
        raise ValueError("gold holds NaN or infinity: drop or mend those pairs before training")
    wide = torch.promote_types(torch.promote_types(values.dtype, gold.dtype), torch.float32)
    return values.to(wide), gold.to(wide)


def above_zero(number: float, name: str, usual: float) -> None:
    """Refuse a temperature or scale that is not a finite number above 0; `usual` is one that works."""
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} is {number}: it divides, give a finite number above 0 such as {usual}")


def midranks(values: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
    """Ranks from 1 in ascending order; equal values share the mean of their ranks, as in scipy's ``rankdata``.

    >>> midranks(torch.tensor([0.5, 0.1, 0.5])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, group, count = torch.unique(values, return_inverse=True, return_counts=True)
    # The group's last rank, less half the way back to its first. Always in float64: half ranks are exact in it.
    ranks = count.cumsum(0) - (count.double() - 1) / 2
    return ranks[group].to(torch.promote_types(values.dtype, torch.float32))


def by_rows(block: Callable[[slice], Tensor], rows: int) -> Tensor:
    """Values of all rows, computed in blocks whose tables of rows x rows stay within `TABLE` entries.

    Args:
        block: the values of the rows of a slice, one a row, from a table of that many rows and `rows` columns.
        rows: their number.

    Returns:
        One value a row. Above 2048 rows the tables are made again in the backward pass instead of being kept.
    """
    step = max(1, TABLE // max(1, rows))
    if step >= rows:
        return block(slice(0, rows))
    slices = (slice(start, min(start + step, rows)) for start in range(0, rows, step))
    return torch.cat([checkpoint(block, part, use_reentrant=False, preserve_rng_state=False) for part in slices])
