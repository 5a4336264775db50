"""The correlations are scipy's and scikit-learn's, with what each is blind to and where each is free."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import mean_squared_error
from torch.testing import assert_close

from pcclab import losses
from pcclab.losses.batches import midranks


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


@given(scored_batches())
def test_midranks_equal_scipy(batch):
    assert midranks(batch.gold).tolist() == stats.rankdata(batch.gold.numpy()).tolist()
    assert midranks(batch.gold.half()).dtype == torch.float32


@given(scored_batches())
def test_pearson_ranks_equals_scipy(batch):
    reference = 1 - stats.pearsonr(batch.similarity.numpy(), stats.rankdata(batch.gold.numpy())).statistic
    assert float(losses.pearson_ranks(batch.similarity, batch.gold)) == pytest.approx(reference, abs=1e-9)


@given(scored_batches(), st.floats(0.01, 100), st.floats(-10, 10))
def test_pearson_ranks_is_blind_to_a_monotone_map_of_gold(batch, scale, shift):
    moved = losses.pearson_ranks(scale * batch.similarity + shift, batch.gold.exp() - 7)
    assert_close(moved, losses.pearson_ranks(batch.similarity, batch.gold), atol=1e-9, rtol=0)


def test_pearson_ranks_is_not_blind_to_a_monotone_map_of_similarities():
    gold = torch.arange(5.0)
    assert losses.pearson_ranks(gold, gold) < 1e-6 < 0.05 < losses.pearson_ranks(gold.exp(), gold)


@given(scored_batches())
def test_pearson_ranks_of_ranks_is_one_minus_spearman(batch):
    reference = 1 - stats.spearmanr(batch.similarity.numpy(), batch.gold.numpy()).statistic
    assert float(losses.pearson_ranks(midranks(batch.similarity), batch.gold)) == pytest.approx(reference, abs=1e-9)


def slow_ccc(similarity, gold, scale):
    """Lin's coefficient by numpy's moments over n."""
    s, y = similarity.numpy(), gold.numpy() / scale
    covariance = np.cov(s, y, bias=True)[0, 1]
    return 2 * covariance / (s.var() + y.var() + (s.mean() - y.mean()) ** 2)


@given(scored_batches(), st.sampled_from([1.0, 4.0, 5.0]))
def test_ccc_equals_its_formula_and_never_passes_pearson(batch, scale):
    value = losses.ccc(batch.similarity, batch.gold, scale=scale)
    assert float(value) == pytest.approx(1 - slow_ccc(batch.similarity, batch.gold, scale), abs=1e-9)
    assert abs(1 - value) <= abs(1 - losses.pearson(batch.similarity, batch.gold)) + 1e-9


@given(scored_batches())
def test_ccc_is_pearson_where_mean_and_variance_agree(batch):
    target = batch.gold / 5
    similarity = (batch.similarity - batch.similarity.mean()) / batch.similarity.std() * target.std() + target.mean()
    assert_close(losses.ccc(similarity, batch.gold), losses.pearson(similarity, batch.gold), atol=1e-9, rtol=0)


@given(scored_batches())
def test_ccc_and_cosine_mse_are_free_at_the_rating_and_nowhere_else(batch):
    for loss in (losses.ccc, losses.cosine_mse):
        assert_close(loss(batch.gold / 5, batch.gold), torch.tensor(0.0, dtype=torch.float64))
        assert loss(batch.gold / 5 + 0.1, batch.gold) > 1e-4
        assert loss(batch.gold / 10, batch.gold) > 1e-4


def test_ccc_learns_a_spread_where_pearson_sees_none():
    similarity = torch.full((4,), 0.5, requires_grad=True)
    losses.ccc(similarity, torch.tensor([0.0, 1.0, 4.0, 5.0])).backward()
    assert (similarity.grad[:2] > 0).all() and (similarity.grad[2:] < 0).all()


@given(scored_batches())
def test_cosine_mse_equals_scikit_learn(batch):
    reference = mean_squared_error(batch.gold.numpy() / 4, batch.similarity.numpy())
    assert float(losses.cosine_mse(batch.similarity, batch.gold, scale=4)) == pytest.approx(reference)


@pytest.mark.parametrize("scale", [0, -5.0, float("nan"), float("inf")])
def test_a_scale_that_is_not_above_zero_is_refused(scale):
    for loss in (losses.ccc, losses.cosine_mse):
        with pytest.raises(ValueError, match="scale is"):
            loss(torch.rand(3), torch.rand(3), scale=scale)
