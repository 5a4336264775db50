"""Pooling: the right vector, wherever padding lies, and a refusal where a mask would be misread."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from pcclab.encoders import POOLINGS
from pcclab.encoders.pooling import pool

FIRST, LAST = torch.randn(2, 2, 4, 3, generator=torch.Generator().manual_seed(0))
RIGHT = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
LEFT = RIGHT.flip(1)


@pytest.mark.parametrize("mask", [RIGHT, LEFT], ids=["right", "left"])
def test_mean_averages_real_tokens_only(mask):
    expected = torch.stack([LAST[i][mask[i].bool()].mean(0) for i in range(2)])
    assert_close(pool("mean", (LAST,), mask), expected)


@pytest.mark.parametrize("mask", [RIGHT, LEFT], ids=["right", "left"])
def test_first_last_averages_both_layers(mask):
    expected = torch.stack([(FIRST[i] + LAST[i])[mask[i].bool()].mean(0) / 2 for i in range(2)])
    assert_close(pool("first-last", (FIRST, LAST), mask), expected)


@pytest.mark.parametrize("mask", [RIGHT, LEFT], ids=["right", "left"])
def test_last_is_the_last_real_token(mask):
    expected = torch.stack([LAST[i][mask[i].bool()][-1] for i in range(2)])
    assert_close(pool("last", (LAST,), mask), expected)


def test_cls_is_the_first_token_and_refuses_padding_there():
    assert_close(pool("cls", (LAST,), RIGHT), LAST[:, 0])
    with pytest.raises(ValueError, match="cls pooling reads the first position"):
        pool("cls", (LAST,), LEFT)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize(
    ("mask", "reason"),
    [([[1, 1, 1, 1], [0, 0, 0, 0]], "without a token"), ([[1, 0, 1, 1], [1, 1, 1, 1]], "has holes")],
)
def test_a_mask_that_would_be_misread_is_refused(pooling, mask, reason):
    with pytest.raises(ValueError, match=reason):
        pool(pooling, (FIRST, LAST), torch.tensor(mask))


def test_first_last_needs_two_layers_and_names_are_checked():
    with pytest.raises(ValueError, match="needs the outputs of two layers"):
        pool("first-last", (LAST,), RIGHT)
    with pytest.raises(ValueError, match="unknown pooling 'max': choose one of cls, mean"):
        pool("max", (LAST,), RIGHT)
