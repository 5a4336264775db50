"""`pearson` is one minus the correlation: its theorems, and scipy as the reference."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.testing import assert_close

from pcclab import losses


@st.composite
def scored_batches(draw):
    """Similarities on a grid in [-1, 1] and gold ratings in steps of 0.2, neither of them constant."""
    size = draw(st.integers(2, 40))
    steps = st.lists(st.integers(0, 25), min_size=size, max_size=size).filter(lambda v: len(set(v)) > 1)
    gold = torch.tensor(draw(steps), dtype=torch.float64) / 5
    similarity = torch.tensor(draw(steps), dtype=torch.float64) / 12.5 - 1
    return SimpleNamespace(gold=gold, similarity=similarity)


@given(scored_batches())
def test_perfect_agreement_is_free(batch):
    assert_close(losses.pearson(batch.gold, batch.gold), torch.tensor(0.0, dtype=torch.float64))


@given(scored_batches())
def test_perfect_disagreement_costs_two(batch):
    assert_close(losses.pearson(-batch.gold, batch.gold), torch.tensor(2.0, dtype=torch.float64))


@given(scored_batches())
def test_equals_scipy(batch):
    reference = 1 - stats.pearsonr(batch.similarity.numpy(), batch.gold.numpy()).statistic
    assert float(losses.pearson(batch.similarity, batch.gold)) == pytest.approx(reference, abs=1e-9)


@given(scored_batches(), st.floats(0.01, 100), st.floats(-10, 10))
def test_blind_to_scale_and_shift(batch, scale, shift):
    moved = losses.pearson(scale * batch.similarity + shift, batch.gold / 5 - 1)
    assert_close(moved, losses.pearson(batch.similarity, batch.gold), atol=1e-9, rtol=0)


def test_not_blind_to_a_monotone_map():
    similarity, gold = torch.tensor([0.1, 0.2, 0.9]), torch.tensor([0.0, 2.5, 5.0])
    assert losses.pearson(similarity, gold) > losses.pearson(similarity.log(), gold) + 0.05


@given(scored_batches())
def test_published_variant_cannot_reach_zero(batch):
    # A mean over n divided by deviations over n - 1, as the authors' repository has it.
    n = len(batch.gold)
    covariance = ((batch.gold - batch.gold.mean()) ** 2).mean()
    published = 1 - covariance / (batch.gold.std() * batch.gold.std())
    assert_close(published, torch.tensor(1 / n, dtype=torch.float64))
    assert losses.pearson(batch.gold, batch.gold) < published


@pytest.mark.parametrize("constant", [0.0, 0.1, 0.9999999, -1.0, 1e-30])
def test_constant_similarities_teach_nothing_and_break_nothing(constant):
    similarity = torch.full((7,), constant, requires_grad=True)
    value = losses.pearson(similarity, torch.arange(7.0))
    value.backward()
    assert value == 1
    assert similarity.grad is None or not similarity.grad.any()


def test_constant_gold_teaches_nothing():
    similarity = torch.linspace(0, 1, 5, requires_grad=True)
    value = losses.pearson(similarity, torch.full((5,), 3.2))
    value.backward()
    assert value == 1 and not similarity.grad.any()


def test_tiny_spread_keeps_its_gradient_finite():
    similarity = (0.5 + 1e-5 * torch.arange(5.0)).requires_grad_()
    losses.pearson(similarity, torch.tensor([0.0, 2.0, 1.0, 4.0, 5.0])).backward()
    assert torch.isfinite(similarity.grad).all() and similarity.grad.abs().max() > 0


def test_nan_gold_is_refused():
    with pytest.raises(ValueError, match="gold holds NaN"):
        losses.pearson(torch.rand(3), torch.tensor([1.0, float("nan"), 2.0]))
