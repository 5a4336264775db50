"""Batches by token budget: nothing lost, nothing over the budget, almost no padding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pcclab.encoders.batching import pad, plan_batches

lengths = st.lists(st.integers(1, 60), min_size=1, max_size=80)


def cost(batches, sizes, overhead):
    return sum(len(b) * max(sizes[i] for i in b) + overhead for b in batches)


@given(lengths, st.integers(1, 400))
def test_every_text_is_in_exactly_one_batch_within_the_budget(sizes, budget):
    batches = plan_batches(sizes, budget)
    assert sorted(np.concatenate(batches)) == list(range(len(sizes)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(sizes[i] for i in batch) <= budget


@given(st.lists(st.integers(1, 9), min_size=1, max_size=7), st.integers(0, 12))
def test_no_other_cut_of_the_sorted_texts_is_cheaper(sizes, overhead):
    ordered = sorted(range(len(sizes)), key=lambda i: -sizes[i])
    best = min(
        cost([ordered[a:b] for a, b in itertools.pairwise((0, *cuts, len(sizes)))], sizes, overhead)
        for many in range(len(sizes))
        for cuts in itertools.combinations(range(1, len(sizes)), many)
    )
    assert cost(plan_batches(sizes, 10_000, overhead=overhead), sizes, overhead) == best


def test_padding_is_under_two_percent_on_lengths_like_those_of_sts():
    sizes = np.random.default_rng(0).gamma(4, 4, 5000).astype(int).clip(3, 60).tolist()
    batches = plan_batches(sizes, 2048)
    assert cost(batches, sizes, 0) < 1.02 * sum(sizes)
    in_order = [range(i, min(i + 32, 5000)) for i in range(0, 5000, 32)]
    assert cost(in_order, sizes, 0) > 2 * sum(sizes)  # what batches in the caller's order would compute


@pytest.mark.parametrize("side", ["right", "left"])
def test_pad_fills_the_other_side(side):
    ids, mask = pad([[5, 6, 7], [8]], 0, side=side)
    assert torch.equal(ids[mask.bool()], torch.tensor([5, 6, 7, 8]))
    assert mask[1].tolist() == ([1, 0, 0] if side == "right" else [0, 0, 1])


def test_a_budget_below_one_is_refused():
    with pytest.raises(ValueError, match="token budget is 0"):
        plan_batches([3], 0)
