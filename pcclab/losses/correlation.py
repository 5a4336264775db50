"""Objectives that are a correlation of the batch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def pearson(similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"]) -> Float[Tensor, ""]:
    r"""One minus the Pearson correlation of a batch: 0 is perfect agreement, 2 perfect disagreement.

    .. math:: 1 - \cos(s - \bar s,\; g - \bar g)

    Args:
        similarity: cosines of the pairs, any scale.
        gold: human ratings of the same pairs, any scale.

    Returns:
        A scalar in [0, 2], never narrower than float32. Where one side is constant the correlation is undefined and
        the loss is 1 with a zero gradient: such a batch teaches nothing and breaks nothing.

    Source: Pcc-tuning, equation 9.
    Departs: the published code divides a mean over n by deviations over n - 1, so its minimum is 1/n, and it is NaN
        on constant cosines; ours is 0 and 1.
    Relations: blind to the scale and shift of both sides; `info_nce` sees no rating at all.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, or when a rating is not finite.

    >>> gold = torch.tensor([0.0, 2.0, 5.0])
    >>> round(float(pearson(gold / 5, gold)), 6), round(float(pearson(-gold, gold)), 6)
    (0.0, 2.0)
    """
    if similarity.shape != gold.shape or similarity.ndim != 1:
        raise ValueError(
            f"shapes {tuple(similarity.shape)} and {tuple(gold.shape)}: one similarity and one gold a pair"
        )
    if len(gold) < 2:
        raise ValueError(f"{len(gold)} pair(s): a correlation needs at least 2; raise the batch size")
    if not torch.isfinite(gold).all():
        raise ValueError("gold holds NaN or infinity: drop or mend those pairs before training")
    wide = torch.promote_types(torch.promote_types(similarity.dtype, gold.dtype), torch.float32)
    return 1 - _standardise(similarity.to(wide)) @ _standardise(gold.to(wide))


def _standardise(values: Tensor) -> Tensor:
    """Values less their mean, over the length of that; zeros without a gradient where all values are equal."""
    centred = values - values.mean()
    largest = centred.detach().abs().max()
    # The mean of equal numbers is off by a rounding error; divided by its own size, that error would steer the model.
    if largest <= 4 * torch.finfo(values.dtype).eps * values.detach().abs().max():
        return values * 0
    # Dividing by the largest entry first keeps the squares of small deviations from underflowing.
    scaled = centred / largest
    return scaled / scaled.norm()
