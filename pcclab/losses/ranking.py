"""Listwise objectives: each row is one sentence's similarities to the others, and what counts is how it ranks them.

`listnet` and `listmle` share three rules. Of a square matrix the diagonal is the positive pair, a sentence beside
itself, and ``positive="drop"`` takes it out of both lists; a matrix that is not square has no such diagonal and keeps
every item. Where the teacher holds NaN there is no item (padding of a shorter list): it leaves both lists, whatever
the student holds there. A list with fewer than two items left ranks nothing and leaves the mean over the lists; where
that is true of all of them, the loss is 0 with a zero gradient. The teacher gets no gradient and is never written to.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from pcclab.losses.batches import above_zero

Positive = Literal["drop", "keep"]


def ranking_consistency(
    first: Float[Tensor, "lists items"],
    second: Float[Tensor, "lists items"],
    *,
    temperature: float = 0.05,
    variant: Literal["jensen_shannon", "published"] = "jensen_shannon",
) -> Float[Tensor, ""]:
    r"""Jensen-Shannon divergence between the top-one distributions of two views' similarity lists.

    .. math:: \tfrac12 \mathrm{KL}(P \,\|\, M) + \tfrac12 \mathrm{KL}(Q \,\|\, M),\quad
        P = \sigma(s / \tau),\; Q = \sigma(s' / \tau),\; M = (P + Q) / 2

    Args:
        first: cosines of each sentence's first view with the second views of the batch, the positive pair included.
        second: cosines of its second view with the first views.
        temperature: the cosines are divided by it; above 0.
        variant: ``"published"`` is minus the mean entropy of P and Q: what the public port computes in its place.

    Returns:
        A scalar, never narrower than float32, the mean over the lists: in [0, log 2], 0 where P = Q. The published
        variant is in [-log(items), 0].

    Source: RankCSE, equation 2.
    Departs: the paper writes a sum over the batch, of InfoNCE too; ours are means, so the weights between them stay.
        The public port clamps log M, which is never positive, to a positive number; its loss then no longer compares
        the views, is not 0 where they agree, and only flattens both lists.
    Relations: symmetric, and both views get a gradient; of `listnet`'s two sides one is right. Blind to a shift of a
        row.
    Raises: ValueError when the shapes differ, a list has fewer than two items, or the temperature is not above 0.

    >>> views = torch.tensor([[0.9, 0.1]]), torch.tensor([[0.1, 0.9]])
    >>> round(float(ranking_consistency(*views, temperature=0.01)), 4)    # log 2: they agree on nothing
    0.6931
    """
    if variant not in ("jensen_shannon", "published"):
        raise ValueError(f"variant is {variant!r}: give 'jensen_shannon' or 'published'")
    _check_lists(first, second, "both views must score the same items of the same lists")
    above_zero(temperature, "temperature", 0.05)
    wide = torch.promote_types(torch.promote_types(first.dtype, second.dtype), torch.float32)
    p, q = (torch.log_softmax(side.to(wide) / temperature, dim=1) for side in (first, second))
    if variant == "published":
        return ((p.exp() * p + q.exp() * q) / 2).sum(1).mean()
    # log(P / M) as a function of log Q - log P alone: exactly 0 where the views agree, finite where either underflows.
    zero = torch.zeros_like(p)
    divergence = p.exp() * (math.log(2) - torch.logaddexp(zero, q - p))
    divergence = divergence + q.exp() * (math.log(2) - torch.logaddexp(zero, p - q))
    return divergence.sum(1).mean() / 2


def listnet(
    student: Float[Tensor, "lists items"],
    teacher: Float[Tensor, "lists items"],
    *,
    student_temperature: float = 0.025,
    teacher_temperature: float = 0.0125,
    positive: Positive = "drop",
) -> Float[Tensor, ""]:
    r"""Cross-entropy of the student's top-one distribution under the teacher's.

    .. math:: -\sum_j \sigma(t / \tau_3)_j \log \sigma(s / \tau_2)_j

    Args:
        student: its similarities of each sentence to the items.
        teacher: the teacher's similarities of the same; NaN marks padding.
        student_temperature: the student's similarities are divided by it; above 0.
        teacher_temperature: the teacher's are divided by it; above 0. Half the student's is the paper's best.
        positive: whether the diagonal of a square matrix leaves both lists, as the module says.

    Returns:
        A scalar, never narrower than float32, the mean over the lists. Its minimum is the entropy of the teacher's
        distribution, reached where s / student_temperature and t / teacher_temperature differ by a constant a row.

    Source: RankCSE, equation 4, its footnote (the positive pair) and table 9 (BERT-base); Cao et al. 2007.
    Departs: a mean over the lists where the paper writes a sum. The public port's value is ours, but it writes minus
        infinity over the diagonal of the teacher's matrix, which whoever reads that matrix next then meets.
    Relations: mostly about the top of a list; `listmle` weighs every rank and reads no distance of the teacher.
    Raises: ValueError when the shapes differ, a list has fewer than two items, the teacher holds infinity or NaN alone,
        or a temperature is not above 0.

    >>> teacher = torch.tensor([[0.5, 0.5, float("nan")]])    # two items, and a place left empty
    >>> round(float(listnet(torch.tensor([[0.2, 0.2, 0.9]]), teacher)), 4)    # log 2
    0.6931
    """
    above_zero(student_temperature, "student_temperature", 0.025)
    above_zero(teacher_temperature, "teacher_temperature", 0.0125)
    kept, scores, target = _lists(student, teacher, positive)
    # Below every number rather than minus infinity: a row without items would be NaN.
    nothing = torch.finfo(scores.dtype).min
    guess = torch.log_softmax((scores / student_temperature).masked_fill(~kept, nothing), dim=1)
    truth = torch.softmax((target / teacher_temperature).masked_fill(~kept, nothing), dim=1)
    return _mean_over_lists(-(truth * guess).masked_fill(~kept, 0).sum(1), kept)


def listmle(
    student: Float[Tensor, "lists items"],
    teacher: Float[Tensor, "lists items"],
    *,
    temperature: float = 0.05,
    positive: Positive = "drop",
    variant: Literal["mean", "sum", "published"] = "mean",
) -> Float[Tensor, ""]:
    r"""Negative log-likelihood, under the student, of the order into which the teacher puts the items.

    .. math:: -\log P(\pi) = -\sum_i \log \frac{e^{s_{\pi(i)} / \tau}}{\sum_{j \ge i} e^{s_{\pi(j)} / \tau}}

    Args:
        student: its similarities of each sentence to the items.
        teacher: the teacher's similarities of the same, of which only the order counts; NaN marks padding. Items it
            ties compete with each other (Breslow's form): none of them is asked to come first, and their order in
            the row does not matter.
        temperature: the student's similarities are divided by it; above 0.
        positive: whether the diagonal of a square matrix leaves both lists, as the module says.
        variant: ``"mean"`` divides each list's sum by its number of items, ``"sum"`` does not; ``"published"`` is the
            public port's: the sum, with the positive pair kept whatever `positive` says.

    Returns:
        A scalar of at least 0, never narrower than float32, the mean over the lists. At equal similarities of n items
        and no ties it is log(n!) / n, near log(n) - 1, and so of InfoNCE's size.

    Source: RankCSE, equation 5 and table 9 (BERT-base); Xia et al. 2008. Ties: Breslow 1974.
    Departs: the paper writes the sum over the list; at batch 128 it starts at log 128! = 496 where InfoNCE starts at
        4.9, and drowns it at equal weights. The paper drops the positive pair from ListNet; we drop it here too.
    Relations: weighs every rank alike where `listnet` looks at the top; blind to a monotone map of the teacher.
    Raises: ValueError when the shapes differ, a list has fewer than two items, the teacher holds infinity or NaN alone,
        or the temperature is not above 0.

    >>> student, teacher = torch.zeros(1, 3), torch.tensor([[0.9, 0.5, 0.1]])
    >>> round(float(listmle(student, teacher, variant="sum")), 4)    # log 3!
    1.7918
    """
    above_zero(temperature, "temperature", 0.05)
    if variant not in ("mean", "sum", "published"):
        raise ValueError(f"variant is {variant!r}: give 'mean', 'sum' or 'published'")
    kept, scores, target = _lists(student, teacher, "keep" if variant == "published" else positive)
    scores = (scores / temperature).masked_fill(~kept, torch.finfo(scores.dtype).min)
    rating, order = target.masked_fill(~kept, -math.inf).sort(dim=1, descending=True)
    ranked = scores.gather(1, order)
    competing = ranked.flip(1).logcumsumexp(1).flip(1)
    # A tied item competes from the first place of its tie on.
    new = torch.ones_like(kept)
    new[:, 1:] = rating[:, 1:] != rating[:, :-1]
    place = torch.arange(kept.shape[1], device=kept.device).expand_as(order)
    start = place.masked_fill(~new, 0).cummax(1).values
    cost = (competing.gather(1, start) - ranked).masked_fill(~kept.gather(1, order), 0).sum(1)
    return _mean_over_lists(cost / kept.sum(1).clamp(min=1) if variant == "mean" else cost, kept)


def _lists(student: Tensor, teacher: Tensor, positive: Positive) -> tuple[Tensor, Tensor, Tensor]:
    """Which items count, and both sides in one dtype of at least float32; what does not count may be anything."""
    if positive not in ("drop", "keep"):
        raise ValueError(f"positive is {positive!r}: give 'drop' or 'keep'")
    _check_lists(student, teacher, "the teacher must score the student's items of the student's lists")
    teacher = teacher.detach()
    kept = ~teacher.isnan()
    if teacher.isinf().any():
        raise ValueError("teacher holds infinity: give finite similarities, and NaN where a list has no item")
    if not kept.any():
        raise ValueError("teacher holds NaN alone: NaN marks padding, so no item is left; look at the teacher's output")
    if positive == "drop" and teacher.shape[0] == teacher.shape[1]:
        kept = kept & ~torch.eye(len(kept), dtype=torch.bool, device=kept.device)
    wide = torch.promote_types(torch.promote_types(student.dtype, teacher.dtype), torch.float32)
    return kept, student.to(wide), teacher.to(wide)


def _mean_over_lists(cost: Tensor, kept: Tensor) -> Tensor:
    ranks = kept.sum(1) >= 2
    return cost.masked_fill(~ranks, 0).sum() / ranks.sum().clamp(min=1)


def _check_lists(one: Tensor, other: Tensor, must: str) -> None:
    if one.shape != other.shape or one.ndim != 2:
        raise ValueError(f"shapes {tuple(one.shape)} and {tuple(other.shape)}: {must}, one row a list")
    if min(one.shape) == 0 or one.shape[1] < 2:
        raise ValueError(
            f"{min(one.shape)} pair(s) in {len(one)} list(s): a ranking needs at least 2 items; raise the batch size"
        )
