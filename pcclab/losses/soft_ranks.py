"""Ranks that have a gradient, and Spearman's correlation on them."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from pcclab.losses.batches import above_zero, by_rows, midranks, rated
from pcclab.losses.correlation import _standardise

Method = Literal["sigmoid", "projection"]


def soft_spearman(
    similarity: Float[Tensor, " pairs"],
    gold: Float[Tensor, " pairs"],
    *,
    temperature: float = 0.1,
    method: Method = "sigmoid",
) -> Float[Tensor, ""]:
    r"""One minus the Pearson correlation of soft ranks of the similarities with the ranks of the ratings.

    .. math:: 1 - \cos(r - \bar r,\; R(g) - \bar R), \quad r = \mathrm{soft\_ranks}(s)

    Args:
        similarity: cosines of the pairs.
        gold: human ratings of the same pairs; only their order counts, and equal ones share their mean rank.
        temperature: of `soft_ranks`, in units of the similarity: cosines closer than it are not fully told apart.
        method: of `soft_ranks`.

    Returns:
        A scalar in [0, 2], never narrower than float32; 1 with a zero gradient where one side is constant.

    Source: Qin, Liu and Li 2010 (sigmoids); Blondel et al. 2020, arXiv 2002.08871 (projection).
    Departs: the projection's strength is 4 temperature / n, so that one temperature serves every batch size (see
        `soft_ranks`).
    Relations: one minus scipy's ``spearmanr``, ties included, as the temperature falls; `pearson_ranks` as it rises.
        Blind to any monotone map of the gold and to a shift of the similarities. Only in the limit is it blind to a
        monotone map of the similarities, and there its gradient is gone.
    Raises: ValueError when the shapes differ, when fewer than two pairs are given, when a rating is not finite, when
        the temperature is not above 0, or when the method is unknown.

    >>> similarity, gold = torch.tensor([0.1, 0.2, 0.9]), torch.tensor([0.0, 4.0, 5.0])
    >>> [round(float(soft_spearman(similarity, gold, temperature=t)), 4) for t in (0.1, 0.01)]
    [0.0342, 0.0]
    """
    similarity, gold = rated(similarity, gold)
    ranks = soft_ranks(similarity, temperature=temperature, method=method)
    return 1 - (_standardise(ranks) * _standardise(midranks(gold))).sum()


def soft_ranks(
    values: Float[Tensor, " pairs"], *, temperature: float = 0.1, method: Method = "sigmoid"
) -> Float[Tensor, " pairs"]:
    r"""Ascending ranks from 1 to n with a gradient; equal values share theirs.

    With sigmoids a value counts how many others it exceeds, each by degrees:

    .. math:: r_i = \tfrac12 + \sum_j \sigma((v_i - v_j) / t)

    By projection, r is the point of the permutahedron of (1, ..., n) closest to v n / (4 t). Both ranks rise by at most
    n / (4 t) per unit of v, so a temperature means the same in both and at any n.

    Args:
        values: what to rank.
        temperature: t, in units of the values; above 0.
        method: "sigmoid" takes time and tables of n^2, the tables in bounded blocks; its gradient never vanishes.
            "projection" takes n log n; values further apart than their ranks ask for get hard ranks, with no gradient.

    Returns:
        The ranks in the dtype of the values, but never narrower than float32. They sum to n (n + 1) / 2.

    Source: Qin, Liu and Li 2010; Blondel et al. 2020, arXiv 2002.08871, section 4.
    Raises: ValueError when the temperature is not above 0, or when the method is unknown.

    >>> soft_ranks(torch.tensor([0.5, 0.1, 0.5]), temperature=0.01).tolist()
    [2.5, 1.0, 2.5]
    """
    above_zero(temperature, "temperature", usual=0.1)
    if method not in get_args(Method):
        raise ValueError(f"unknown method {method!r}: known are {', '.join(get_args(Method))}")
    values = values.to(torch.promote_types(values.dtype, torch.float32))
    size = len(values)
    if method == "projection":
        ranks: Tensor = _Projection.apply(values * (size / (4 * temperature)))
        return ranks

    def block(part: slice) -> Tensor:
        # Sigmoids as hyperbolic tangents: their sums are small where the ranks hardly differ, and keep their digits.
        return (((values[part, None] - values) / (2 * temperature)).tanh() / 2).sum(1)

    return (size + 1) / 2 + by_rows(block, size)


class _Projection(torch.autograd.Function):
    """The closest point of the permutahedron of (1, ..., n): least squares under a decreasing order, solved in blocks.

    In descending order the solution gives each block of pooled neighbours the mean of its ranks, and leaves the
    deviations of its values from their mean as they are. Its Jacobian is therefore the centring within blocks.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        order = values.argsort(descending=True)
        ranks = torch.arange(len(values), 0, -1, dtype=values.dtype, device=values.device)
        # In float64: scaled values outgrow the ranks, and sums over a large block lose their last digits in float32.
        wide = values.double()
        blocks = _pooled((wide[order] - ranks).tolist()).to(values.device)
        block = torch.empty_like(blocks)
        block[order] = blocks
        ctx.save_for_backward(block)
        placed = torch.empty_like(wide)
        placed[order] = ranks.double()
        return (_means(placed, block) + _centred(wide, block)).to(values.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (block,) = ctx.saved_tensors
        return _centred(gradients[0], block)


def _pooled(targets: list[float]) -> Tensor:
    """Number of the block of each target in the decreasing sequence closest to them: pool adjacent violators."""
    sums: list[float] = []
    sizes: list[int] = []
    for target in targets:
        total, size = target, 1
        # A block whose mean is no smaller than the one before it breaks the order: the two become one.
        while sums and total * sizes[-1] >= sums[-1] * size:
            total, size = total + sums.pop(), size + sizes.pop()
        sums.append(total)
        sizes.append(size)
    return torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes, dtype=torch.long))


def _means(values: Tensor, block: Tensor) -> Tensor:
    """The mean of each value's block."""
    total = values.new_zeros(len(values)).index_add(0, block, values)
    count = values.new_zeros(len(values)).index_add(0, block, torch.ones_like(values))
    return (total / count.clamp(min=1))[block]


def _centred(values: Tensor, block: Tensor) -> Tensor:
    return values - _means(values, block)
