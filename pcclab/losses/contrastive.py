"""Contrastive objectives: they tell similar from dissimilar and nothing finer."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional


def info_nce(
    anchor: Float[Tensor, "pairs dim"],
    positive: Float[Tensor, "pairs dim"],
    negative: Float[Tensor, "pairs dim"] | None = None,
    *,
    temperature: float = 0.05,
) -> Float[Tensor, ""]:
    r"""Mean cross-entropy of finding each anchor's own positive among all positives and hard negatives of the batch.

    .. math:: -\log \frac{e^{\cos(a_i, p_i)/\tau}}{\sum_j e^{\cos(a_i, p_j)/\tau} + \sum_j e^{\cos(a_i, n_j)/\tau}}

    Args:
        anchor: embeddings of the anchors; they need not be normalised.
        positive: row i is the positive of anchor i and a negative of every other anchor.
        negative: row i is the hard negative of anchor i and a negative of every other anchor as well; None leaves
            the second sum out.
        temperature: the cosines are divided by it; above 0.

    Returns:
        A scalar in the dtype of the embeddings, but never narrower than float32: at least 0, and the logarithm of
        the number of candidates when all cosines are equal.

    Source: Pcc-tuning, equations 1 and 8.
    Relations: `pearson` uses graded ratings where this one knows two classes; blind to the length of every embedding.
    Raises: ValueError when shapes differ, when there are fewer than two pairs and no hard negative, or when the
        temperature is not above 0.

    >>> a = torch.eye(3)
    >>> round(float(info_nce(a, a, temperature=1.0)), 4)    # log(e + 2) - 1
    0.5514
    """
    if not temperature > 0:
        raise ValueError(f"temperature is {temperature}: it divides the cosines, give a number above 0 such as 0.05")
    sides = [anchor, positive] if negative is None else [anchor, positive, negative]
    if any(side.shape != anchor.shape for side in sides):
        raise ValueError(
            f"shapes differ: {[tuple(side.shape) for side in sides]}; give one row an anchor on every side"
        )
    if len(anchor) < 2 and (negative is None or len(anchor) == 0):
        raise ValueError(
            f"{len(anchor)} pair(s): InfoNCE needs at least 2, for the others are its negatives; raise the batch size"
        )
    anchor, positive, *hard = (functional.normalize(_at_least_float32(side), dim=-1) for side in sides)
    with torch.autocast(anchor.device.type, enabled=False):  # it would round the cosines to 8 bits
        logits = anchor @ torch.cat([positive, *hard]).T / temperature
    return functional.cross_entropy(logits, torch.arange(len(anchor), device=anchor.device))


def _at_least_float32(values: Tensor) -> Tensor:
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values
