"""Objectives that are a correlation of the batch."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from pcclab.losses.batches import above_zero, midranks, rated


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
    with torch.autocast(similarity.device.type, enabled=False):  # it would round the product to 8 bits
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


def pearson_ranks(similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"]) -> Float[Tensor, ""]:
    r"""One minus the Pearson correlation of the similarities with the ranks of the ratings, ties sharing theirs.

    .. math:: 1 - \cos(s - \bar s,\; R(g) - \bar R)

    Args:
        similarity: cosines of the pairs, any scale.
        gold: human ratings of the same pairs; only their order counts.

    Returns:
        A scalar in [0, 2], never narrower than float32; 1 with a zero gradient where one side is constant. It is 0
        only where the similarities are evenly spaced by rank.

    Source: new; Spearman's correlation is Pearson's of the ranks of both sides, and this ranks one of them.
    Relations: blind to any monotone map of the gold, to the scale and shift of the similarities and to nothing more;
        `pearson` minds how far apart ratings are, `soft_spearman` ranks the similarities as well.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, or when a rating is not finite.

    >>> gold = torch.tensor([0.0, 1.0, 5.0])
    >>> round(float(pearson_ranks(torch.tensor([0.2, 0.3, 0.4]), gold)), 6)
    0.0
    """
    similarity, gold = rated(similarity, gold)
    return 1 - (_standardise(similarity) * _standardise(midranks(gold))).sum()


def ccc(similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"], *, scale: float = 5.0) -> Float[Tensor, ""]:
    r"""One minus Lin's concordance correlation: 0 only where every similarity equals its rating over the scale.

    .. math:: 1 - \frac{2\,\mathrm{cov}(s, y)}{\mathrm{var}(s) + \mathrm{var}(y) + (\bar s - \bar y)^2}, \quad y = g / c

    Args:
        similarity: cosines of the pairs.
        gold: human ratings of the same pairs, from 0 to `scale`.
        scale: c, the rating that stands for a cosine of 1.

    Returns:
        A scalar in [0, 2], never narrower than float32. All moments are over n. Where all ratings are equal the
        loss is 1 with a zero gradient.

    Source: Lin 1989, on the moments of the population.
    Relations: never further from 1 than `pearson`, and equal to it where both sides agree in mean and variance: it
        minds the scale and the shift to which that one is blind. `cosine_mse` minds them too.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, when a rating is not finite, or
        when the scale is not above 0.

    >>> gold = torch.tensor([0.0, 2.0, 5.0])
    >>> round(float(ccc(gold / 5, gold)), 6), round(float(ccc(gold / 5 + 0.3, gold)), 4)
    (0.0, 0.2104)
    """
    above_zero(scale, "scale", usual=5.0)
    similarity, gold = rated(similarity, gold)
    if gold.min() == gold.max():
        return 1 + similarity.sum() * 0
    target = gold / scale
    apart = similarity.mean() - target.mean()
    similarity, target = similarity - similarity.mean(), target - target.mean()
    spread = similarity.square().mean() + target.square().mean() + apart.square()
    return 1 - 2 * (similarity * target).mean() / spread


def cosine_mse(
    similarity: Float[Tensor, " pairs"], gold: Float[Tensor, " pairs"], *, scale: float = 5.0
) -> Float[Tensor, ""]:
    r"""Mean squared distance of each similarity from its rating over the scale.

    .. math:: \frac1n \sum_i (s_i - g_i / c)^2

    Args:
        similarity: cosines of the pairs.
        gold: human ratings of the same pairs, from 0 to `scale`.
        scale: c, the rating that stands for a cosine of 1.

    Returns:
        A scalar of at least 0, never narrower than float32.

    Source: Sentence-BERT, the regression objective.
    Relations: each pair counts by itself, so one is enough; blind to nothing, where `pearson` is blind to scale and
        shift. `mse` fits a head's prediction instead of the cosine.
    Raises: ValueError when the shapes differ, when no pair is given, when a rating is not finite, or when the scale
        is not above 0.

    >>> float(cosine_mse(torch.tensor([0.5, 0.5]), torch.tensor([0.0, 5.0])))
    0.25
    """
    above_zero(scale, "scale", usual=5.0)
    similarity, gold = rated(similarity, gold, least=1)
    return functional.mse_loss(similarity, gold / scale)
