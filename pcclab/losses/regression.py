"""Objectives of a regression head, forgiving beyond both ends of the label range, and of its classifying rival.

The four regression losses share two options. `label_range` names the first and the last label; a gold outside it is
refused. `ends` says what happens beyond them: ``"both"`` forgives a prediction beyond the last (first) label where the
gold is that label, and every other prediction keeps its cost and its gradient; without a `label_range` no label is
known to be the last, so nothing is forgiven. ``"none"`` forgives nothing. ``"published"`` does as the published code:
the prediction passes a ReLU and the gold int(), so any prediction below 0 counts as 0 and has no gradient even where
the gold is 2, nothing is forgiven beyond the last label, and a rating of 4.8 is learned as 4. It takes 0 for the first
label, whatever `label_range` says.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

Ends = Literal["both", "published", "none"]


def l1(
    prediction: Float[Tensor, " pairs"],
    gold: Float[Tensor, " pairs"],
    *,
    label_range: tuple[float, float] | None = None,
    ends: Ends = "both",
) -> Float[Tensor, ""]:
    r"""Mean distance between prediction and gold.

    .. math:: |\hat y - y|

    Args:
        prediction: output of a regression head, in the scale of the gold.
        gold: labels or ratings of the same pairs.
        label_range: first and last label, such as (0, 5); None where the labels have no ends.
        ends: what happens beyond them, as the module says.

    Returns:
        A scalar of at least 0, never narrower than float32.

    Source: STS-Regression, table 1 (baseline).
    Departs: the published code forgives the left end only and cuts labels to whole numbers: ``ends="published"``.
    Relations: `translated_relu` of slope 1 and threshold 0; its gradient does not grow with the error, that of `mse`
        does; a shift or scale of the prediction costs, where `pearson` is blind to both.
    Raises: ValueError when shapes differ, no pair is given, a gold is not finite or outside the label range.

    >>> float(l1(torch.tensor([2.5, 0.5]), torch.tensor([2.0, 0.0]), label_range=(0, 2)))
    0.25
    """
    return _distance(prediction, gold, label_range, ends).mean()


def mse(
    prediction: Float[Tensor, " pairs"],
    gold: Float[Tensor, " pairs"],
    *,
    label_range: tuple[float, float] | None = None,
    ends: Ends = "both",
) -> Float[Tensor, ""]:
    r"""Mean squared distance between prediction and gold.

    .. math:: (\hat y - y)^2

    Args:
        prediction: output of a regression head, in the scale of the gold.
        gold: labels or ratings of the same pairs.
        label_range: first and last label, such as (0, 5); None where the labels have no ends.
        ends: what happens beyond them, as the module says.

    Returns:
        A scalar of at least 0, never narrower than float32.

    Source: STS-Regression, table 1 (baseline).
    Departs: the published code forgives the left end only and cuts labels to whole numbers: ``ends="published"``.
    Relations: `smooth_k2` of slope 1 and threshold 0; `cosine_mse` is the same on a cosine instead of a head.
    Raises: ValueError when shapes differ, no pair is given, a gold is not finite or outside the label range.

    >>> float(mse(torch.tensor([2.5, 0.5]), torch.tensor([2.0, 0.0]), label_range=(0, 2)))
    0.125
    """
    return _distance(prediction, gold, label_range, ends).square().mean()


def translated_relu(
    prediction: Float[Tensor, " pairs"],
    gold: Float[Tensor, " pairs"],
    *,
    slope: float = 2.5,
    threshold: float = 0.25,
    interval: float = 1.0,
    label_range: tuple[float, float] | None = None,
    ends: Ends = "both",
) -> Float[Tensor, ""]:
    r"""Distance beyond a buffer zone: free and without gradient up to the threshold, a line of the slope after it.

    .. math:: \max(0,\; k (|\hat y - y| - x_0))

    Args:
        prediction: output of a regression head, in the scale of the gold.
        gold: labels or ratings of the same pairs.
        slope: k, above 0. The paper's: 2.5 for BERT, 1 for RoBERTa.
        threshold: x0, from 0 to half the interval: at half a prediction rounds to its label, the rest is a margin.
        interval: d, the spacing of the labels.
        label_range: first and last label, such as (0, 2); None where the labels have no ends.
        ends: what happens beyond them, as the module says.

    Returns:
        A scalar of at least 0, never narrower than float32; the mean over the pairs.

    Source: STS-Regression, equation 1 and the last paragraph of section 3.3 (the ends).
    Departs: the published code forgives the left end only and cuts labels to whole numbers: ``ends="published"``.
    Relations: `l1` with a buffer zone; `smooth_k2` is its square over the slope, with a gradient that starts at 0.
    Raises: ValueError when shapes differ, no pair is given, a gold is not finite or outside the label range, the slope
        is not above 0, or the threshold is not in [0, interval / 2].

    >>> float(translated_relu(torch.tensor([1.2, 2.0]), torch.tensor([1.0, 1.0]), slope=2, threshold=0.25))
    0.75
    """
    _check_buffer(slope, threshold, interval)
    return slope * functional.relu(_distance(prediction, gold, label_range, ends) - threshold).mean()


def smooth_k2(
    prediction: Float[Tensor, " pairs"],
    gold: Float[Tensor, " pairs"],
    *,
    slope: float = 2.0,
    threshold: float = 0.25,
    interval: float = 1.0,
    label_range: tuple[float, float] | None = None,
    ends: Ends = "both",
) -> Float[Tensor, ""]:
    r"""Squared distance beyond a buffer zone: free up to the threshold, then a parabola that leaves it without a kink.

    .. math:: k \max(0,\; |\hat y - y| - x_0)^2

    Args:
        prediction: output of a regression head, in the scale of the gold.
        gold: labels or ratings of the same pairs.
        slope: k, above 0; the gradient is 2 k times the distance beyond the threshold. The paper's: 2 for BERT, 3 for
            RoBERTa and Nomic, 3.5 for Jina.
        threshold: x0, from 0 to half the interval. The paper's: 0.25 on NLI, 0.2 for contrastively trained encoders.
        interval: d, the spacing of the labels.
        label_range: first and last label, such as (0, 2); None where the labels have no ends.
        ends: what happens beyond them, as the module says.

    Returns:
        A scalar of at least 0, never narrower than float32; the mean over the pairs.

    Source: STS-Regression, equation 2 and the last paragraph of section 3.3 (the ends).
    Departs: the published code forgives the left end only and cuts labels to whole numbers: ``ends="published"``.
    Relations: `mse` with a buffer zone; `translated_relu` jumps to its full gradient at the threshold.
    Raises: ValueError when shapes differ, no pair is given, a gold is not finite or outside the label range, the slope
        is not above 0, or the threshold is not in [0, interval / 2].

    >>> float(smooth_k2(torch.tensor([1.2, 2.0]), torch.tensor([1.0, 1.0]), slope=2, threshold=0.25))
    0.5625
    """
    _check_buffer(slope, threshold, interval)
    return slope * functional.relu(_distance(prediction, gold, label_range, ends) - threshold).square().mean()


def cross_entropy(logits: Float[Tensor, "pairs classes"], label: Int[Tensor, " pairs"]) -> Float[Tensor, ""]:
    r"""Mean negative log-probability of each pair's class: what the regression losses are measured against.

    .. math:: -\log \frac{e^{z_y}}{\sum_c e^{z_c}}

    Args:
        logits: output of a classification head, one column a class.
        label: number of each pair's class, whole, from 0 to classes - 1.

    Returns:
        A scalar of at least 0, never narrower than float32; log(classes) where all logits are equal.

    Source: STS-Regression, table 1 (baseline).
    Relations: blind to the order of the classes: taking 0 for 2 costs no more than taking 1 for 2, to `mse` it does.
    Raises: ValueError when the shapes do not fit, no pair or fewer than two classes are given, or a label is not whole
        or no class of the head.

    >>> round(float(cross_entropy(torch.zeros(2, 3), torch.tensor([0, 2]))), 4)    # log 3
    1.0986
    """
    if logits.ndim != 2 or label.shape != logits.shape[:1]:
        raise ValueError(
            f"shapes {tuple(logits.shape)} and {tuple(label.shape)}: one row of logits and one label a pair"
        )
    if len(label) == 0:
        raise ValueError("0 pair(s): a mean needs at least 1; give a batch that is not empty")
    classes = logits.shape[1]
    if classes < 2:
        raise ValueError(f"logits have {classes} class(es): a choice needs at least 2; widen the head")
    if label.is_floating_point() or label.is_complex() or label.dtype == torch.bool:
        raise ValueError(f"label holds {label.dtype}: a class is a whole number; give int64, such as label.long()")
    low, high = int(label.min()), int(label.max())
    if low < 0 or high >= classes:
        wrong = low if low < 0 else high
        raise ValueError(
            f"label {wrong} is outside 0 to {classes - 1}: the head has {classes} classes; widen or map it"
        )
    return functional.cross_entropy(logits.to(torch.promote_types(logits.dtype, torch.float32)), label.long())


def _check_buffer(slope: float, threshold: float, interval: float) -> None:
    if not 0 < interval < float("inf"):
        raise ValueError(f"interval is {interval}: it is the spacing of the labels, give a number above 0 such as 1")
    if not 0 < slope < float("inf"):
        raise ValueError(f"slope is {slope}: it multiplies the cost, give a number above 0 such as 2")
    if not 0 <= threshold <= interval / 2:
        raise ValueError(
            f"threshold is {threshold}: it must lie from 0 to half the label interval, {interval / 2:g}, or a free "
            f"prediction rounds to the wrong label; lower it to 0.25 x {interval:g} or raise the interval"
        )


def _distance(prediction: Tensor, gold: Tensor, label_range: tuple[float, float] | None, ends: Ends) -> Tensor:
    """How far each prediction is from its gold, after what `ends` forgives."""
    if ends not in ("both", "published", "none"):
        raise ValueError(f"ends is {ends!r}: give 'both', 'published' or 'none'")
    if prediction.shape != gold.shape or gold.ndim != 1:
        raise ValueError(
            f"shapes {tuple(prediction.shape)} and {tuple(gold.shape)}: one prediction and one gold a pair"
        )
    if len(gold) == 0:
        raise ValueError("0 pair(s): a mean needs at least 1; give a batch that is not empty")
    if not torch.isfinite(gold).all():
        raise ValueError("gold holds NaN or infinity: drop or mend those pairs before training")
    wide = torch.promote_types(torch.promote_types(prediction.dtype, gold.dtype), torch.float32)
    prediction, rating = prediction.to(wide), gold.to(wide)
    error = prediction - rating
    if label_range is not None:
        low, high = label_range
        if not -float("inf") < low < high < float("inf"):
            raise ValueError(f"label_range is {label_range}: give the first and the last label, such as (0, 5)")
        # Rounded as the gold was, or a last label such as 0.6 would never be met by a float32 gold.
        first, last = torch.tensor([low, high], dtype=gold.dtype if gold.is_floating_point() else wide).to(rating)
        outside = gold[(rating < first) | (rating > last)]
        if len(outside):
            raise ValueError(
                f"gold {outside[0].item():g} is outside label_range {low:g} to {high:g}: map it or widen it"
            )
        if ends == "both":
            forgiven = ((rating == last) & (error > 0)) | ((rating == first) & (error < 0))
            error = error.masked_fill(forgiven, 0)
    if ends == "published":
        error = functional.relu(prediction) - rating.trunc()
    return error.abs()
