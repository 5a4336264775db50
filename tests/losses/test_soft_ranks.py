"""Soft ranks against slow references, and soft Spearman's way to scipy's as the temperature falls."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.isotonic import isotonic_regression
from torch.testing import assert_close

from pcclab import losses
from pcclab.losses import batches
from pcclab.losses.soft_ranks import soft_ranks

METHODS = ["sigmoid", "projection"]
# Cosines on a grid, ties included, and the temperature below which neither method mixes neighbours on it.
grids = st.lists(st.integers(-50, 50), min_size=2, max_size=30)
COLD = 0.0002


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@pytest.mark.parametrize("method", METHODS)
@given(grids, st.data())
def test_tends_to_scipy_as_the_temperature_falls(method, steps, data):
    gold = data.draw(st.lists(st.integers(0, 25), min_size=len(steps), max_size=len(steps)))
    value = losses.soft_spearman(tensor(steps) / 50, tensor(gold) / 5, temperature=COLD, method=method)
    undefined = len(set(steps)) == 1 or len(set(gold)) == 1
    reference = 1.0 if undefined else 1 - stats.spearmanr(steps, gold).statistic
    assert float(value) == pytest.approx(reference, abs=1e-7)


@pytest.mark.parametrize("method", METHODS)
@given(grids)
def test_cold_ranks_are_scipys(method, steps):
    ranks = soft_ranks(tensor(steps) / 50, temperature=COLD, method=method)
    assert_close(ranks, tensor(stats.rankdata(steps)), atol=1e-7, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@given(grids, st.floats(0.001, 10), st.floats(-3, 3))
def test_ranks_keep_order_sum_and_bounds_and_ignore_a_shift(method, steps, temperature, shift):
    values, size = tensor(steps) / 50, len(steps)
    ranks = soft_ranks(values, temperature=temperature, method=method)
    assert float(ranks.sum()) == pytest.approx(size * (size + 1) / 2)
    assert ranks.min() >= 1 - 1e-9 and ranks.max() <= size + 1e-9
    assert (ranks[values.argsort()].diff() >= -1e-9).all()
    assert_close(soft_ranks(values + shift, temperature=temperature, method=method), ranks, atol=1e-8, rtol=0)


@pytest.mark.parametrize("method", METHODS)
@given(st.lists(st.integers(-50, 50), min_size=3, max_size=20, unique=True), st.integers(0, 99))
def test_tends_to_pearson_ranks_as_the_temperature_rises(method, steps, seed):
    values = tensor(steps) / 50
    gold = torch.rand(len(steps), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    hot = losses.soft_spearman(values, gold, temperature=1000, method=method)
    assert_close(hot, losses.pearson_ranks(values, gold), atol=1e-5, rtol=0)


@given(grids, st.floats(0.01, 10))
def test_sigmoid_ranks_equal_two_loops(steps, temperature):
    values = tensor(steps) / 50
    slow = [0.5 + sum(1 / (1 + np.exp((b - a) / temperature)) for b in values.numpy()) for a in values.numpy()]
    assert_close(soft_ranks(values, temperature=temperature), tensor(slow), atol=1e-8, rtol=0)


@given(grids, st.floats(0.01, 10))
def test_projection_equals_scikit_learns_isotonic_regression(steps, temperature):
    # Proposition 3 of Blondel et al.: sort, regress what is left of the values, put back.
    values = np.array(steps) / 50 * len(steps) / (4 * temperature)
    order = np.argsort(-values, kind="stable")
    regressed = isotonic_regression(values[order] - np.arange(len(steps), 0, -1), increasing=False)
    reference = values.copy()
    reference[order] -= regressed
    ranks = soft_ranks(tensor(steps) / 50, temperature=temperature, method="projection")
    assert_close(ranks, tensor(reference), atol=1e-7, rtol=0)


@given(st.lists(st.floats(-1, 1), min_size=3, max_size=3), st.sampled_from([0.05, 0.2, 1.0]))
def test_projection_is_the_closest_point_of_the_permutahedron(values, temperature):
    target = np.array(values) * 3 / (4 * temperature)
    # The permutahedron of (1, 2, 3): the ranks sum to 6, and no subset of k of them to more than its k largest.
    subsets = [([0], 3), ([1], 3), ([2], 3), ([0, 1], 5), ([0, 2], 5), ([1, 2], 5)]
    limits = [{"type": "ineq", "fun": lambda r, s=s, top=top: top - r[s].sum()} for s, top in subsets]
    limits.append({"type": "eq", "fun": lambda r: r.sum() - 6})
    solved = optimize.minimize(lambda r: ((r - target) ** 2).sum(), np.full(3, 2.0), constraints=limits, tol=1e-12)
    ranks = soft_ranks(tensor(values), temperature=temperature, method="projection")
    assert_close(ranks, tensor(solved.x), atol=1e-4, rtol=0)


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5, 5.0])
@pytest.mark.parametrize("method", METHODS)
def test_gradient_is_the_derivative(method, temperature):
    generator = torch.Generator().manual_seed(3)
    values = torch.rand(12, generator=generator, dtype=torch.float64).requires_grad_()
    gold = torch.randint(0, 5, (12,), generator=generator).double()
    assert torch.autograd.gradcheck(lambda v: soft_ranks(v, temperature=temperature, method=method), values)
    assert torch.autograd.gradcheck(
        lambda v: losses.soft_spearman(v, gold, temperature=temperature, method=method), values
    )


def test_hard_ranks_of_the_projection_have_no_gradient_where_sigmoids_keep_one():
    found = {}
    for method in METHODS:
        values = tensor([0.0, 0.5, 0.2]).requires_grad_()
        losses.soft_spearman(values, tensor([0.0, 1.0, 5.0]), temperature=0.05, method=method).backward()
        found[method] = float(values.grad.abs().max())
    assert found["projection"] == 0 < 0.01 < found["sigmoid"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rows", [8, 512])
def test_the_default_temperature_sorts_a_small_and_a_large_batch(rows, method):
    # Similarities of half the right order, moved along the gradient: the true Spearman correlation rises.
    generator = torch.Generator().manual_seed(1)
    gold = torch.rand(rows, generator=generator) * 5
    similarity = (0.5 + 0.1 * gold / 5 + 0.1 * torch.randn(rows, generator=generator)).requires_grad_()
    before = stats.spearmanr(similarity.detach(), gold).statistic
    optimizer = torch.optim.Adam([similarity], lr=0.01)
    for _ in range(30):
        optimizer.zero_grad()
        losses.soft_spearman(similarity, gold, method=method).backward()
        optimizer.step()
    after = stats.spearmanr(similarity.detach(), gold).statistic
    assert before < 0.7 and after > 0.9


@pytest.mark.parametrize("method", METHODS)
def test_a_large_batch_in_float32_agrees_with_float64(method):
    values = 0.5 + 0.2 * torch.randn(512, generator=torch.Generator().manual_seed(0))
    wide = soft_ranks(values.double(), method=method)
    assert_close(soft_ranks(values, method=method).double(), wide, atol=2e-3, rtol=0)


@pytest.mark.parametrize("method", METHODS)
def test_512_pairs_take_less_than_a_second(method):
    similarity, gold = torch.rand(512, requires_grad=True), torch.rand(512)
    start = time.perf_counter()
    losses.soft_spearman(similarity, gold, method=method).backward()
    assert time.perf_counter() - start < 1


def test_blocks_of_rows_change_nothing(monkeypatch):
    found = []
    for entries in (2**22, 50):
        monkeypatch.setattr(batches, "TABLE", entries)
        values = torch.linspace(-1, 1, 23, dtype=torch.float64).sin().requires_grad_()
        value = losses.soft_spearman(values, torch.arange(23.0) % 5)
        value.backward()
        found.append((value.detach(), values.grad))
    assert_close(found[0], found[1])


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="unknown method 'sort': known are sigmoid, projection"):
        losses.soft_spearman(torch.rand(3), torch.rand(3), method="sort")
