"""Losses on pairs of pairs: slow loops, sentence-transformers and scipy as references, and what each is blind to."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pcclab import losses
from pcclab.losses import batches

seeds = st.integers(0, 9999)


def batch(rows: int, seed: int, dim: int = 5, levels: int = 6) -> SimpleNamespace:
    """Embeddings, features, similarities and ratings in whole levels (as steps and as 0.2 of them), with ties."""
    generator = torch.Generator().manual_seed(seed)
    first, second = torch.randn(2, rows, dim, generator=generator, dtype=torch.float64)
    sides = [torch.nn.functional.normalize(side, dim=-1) for side in (first, second)]
    steps = torch.randint(0, levels, (rows,), generator=generator).double()
    return SimpleNamespace(
        first=first,
        second=second,
        features=sides[0] * sides[1],
        similarity=(sides[0] * sides[1]).sum(1),
        steps=steps,
        gold=steps / 5,
    )


def slow_cosent(similarity, gold, temperature):
    n = range(len(gold))
    above = [math.exp(float(similarity[j] - similarity[i]) / temperature) for i in n for j in n if gold[i] > gold[j]]
    return math.log(1 + sum(above))


@given(st.integers(2, 12), seeds, st.sampled_from([0.05, 0.3, 1.0]))
def test_cosent_equals_two_loops(rows, seed, temperature):
    b = batch(rows, seed)
    value = losses.cosent(b.similarity, b.gold, temperature=temperature)
    assert float(value) == pytest.approx(slow_cosent(b.similarity, b.gold, temperature), abs=1e-9)


@pytest.mark.parametrize("rows", [2, 9, 100])
def test_cosent_equals_sentence_transformers(rows):
    from sentence_transformers.sentence_transformer.losses import CoSENTLoss

    b = batch(rows, seed=1, dim=8)
    ours, theirs = [(b.first.clone().requires_grad_(), b.second.clone()) for _ in range(2)]
    value = losses.cosent(torch.cosine_similarity(*ours), b.gold)
    reference = CoSENTLoss(torch.nn.Identity()).compute_loss_from_embeddings(list(theirs), b.gold)
    assert_close(value, reference)
    value.backward()
    reference.backward()
    assert_close(ours[0].grad, theirs[0].grad)


@pytest.mark.parametrize("dim", [8, 7])
@pytest.mark.parametrize("rows", [2, 9, 100])
def test_angle_equals_sentence_transformers(rows, dim):
    from sentence_transformers.sentence_transformer.losses import AnglELoss

    b = batch(rows, seed=2, dim=dim)
    ours, theirs = [(b.first.clone().requires_grad_(), b.second.clone()) for _ in range(2)]
    value = losses.angle(*ours, b.gold)
    reference = AnglELoss(torch.nn.Identity()).compute_loss_from_embeddings(list(theirs), b.gold)
    assert_close(value, reference)
    value.backward()
    reference.backward()
    assert_close(ours[0].grad, theirs[0].grad)


@given(st.integers(2, 9), seeds)
def test_angle_adds_its_weighted_terms(rows, seed):
    b = batch(rows, seed)
    gold = b.steps  # 0..5: some are positives, of at least 4
    total = losses.angle(
        b.first, b.second, gold, cosine_weight=0.7, contrast_weight=0.3, other_temperature=0.1, positive_from=4
    )
    logits = torch.cosine_similarity(b.first[:, None], b.second[None], dim=2) / 0.1
    found = [float(-logits[i].log_softmax(0)[i]) for i in range(rows) if gold[i] >= 4]
    contrast = sum(found) / len(found) if found else 0.0
    expected = losses.angle(b.first, b.second, gold) + 0.7 * losses.cosent(b.similarity, gold, temperature=0.1)
    assert float(total) == pytest.approx(float(expected) + 0.3 * contrast)


def test_contrast_alone_is_info_nce_where_all_pairs_are_positives():
    b = batch(6, seed=0)
    gold = torch.full((6,), 5.0, dtype=torch.float64)  # tied: both ordering terms are 0
    value = losses.angle(b.first, b.second, gold, contrast_weight=1.0)
    assert_close(value, losses.info_nce(b.first, b.second))


def test_contrast_keeps_its_digits_under_autocast():
    b = batch(6, seed=0)
    sides = (b.first.float(), b.second.float(), b.steps.float())
    with torch.autocast("cpu", torch.bfloat16):
        value = losses.angle(*sides, contrast_weight=1.0)
    assert_close(value, losses.angle(*sides, contrast_weight=1.0))


@given(seeds, st.floats(0.1, 50))
def test_angle_is_blind_to_length_and_sees_a_swap(seed, scale):
    b = batch(8, seed)
    value = losses.angle(b.first, b.second, b.gold)
    assert_close(losses.angle(b.first * scale, b.second / scale, b.gold), value)
    if len(set(b.gold.tolist())) > 1:
        assert not torch.isclose(losses.angle(b.second, b.first, b.gold), value, rtol=1e-9)


@pytest.mark.parametrize("weights", [(-1, 0), (0, -0.1), (float("nan"), 0), (0, float("inf"))])
def test_weights_below_zero_are_refused(weights):
    b = batch(3, seed=0)
    with pytest.raises(ValueError, match="weights are"):
        losses.angle(b.first, b.second, b.gold, cosine_weight=weights[0], contrast_weight=weights[1])


def slow_kendall(similarity, gold, temperature):
    n = range(len(gold))
    found = [
        math.tanh(float(similarity[i] - similarity[j]) / temperature) * (1 if gold[i] > gold[j] else -1)
        for i in n
        for j in n
        if gold[i] != gold[j]
    ]
    return 1 - (sum(found) / len(found) if found else 0)


@given(st.integers(2, 12), seeds, st.sampled_from([0.01, 0.2, 1.0]))
def test_kendall_equals_two_loops(rows, seed, temperature):
    b = batch(rows, seed)
    value = losses.kendall(b.similarity, b.gold, temperature=temperature)
    assert float(value) == pytest.approx(slow_kendall(b.similarity, b.gold, temperature), abs=1e-9)


@given(st.integers(2, 30), seeds)
def test_kendall_tends_to_tau_b_where_gold_is_untied(rows, seed):
    b = batch(rows, seed)
    gold = torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).double()
    value = losses.kendall(b.similarity, gold, temperature=1e-9)
    assert float(value) == pytest.approx(1 - stats.kendalltau(b.similarity, gold).statistic, abs=1e-6)


@given(st.integers(2, 30), seeds)
def test_kendall_tends_to_somers_d_and_so_to_tau_b_over_a_constant_where_gold_is_tied(rows, seed):
    b = batch(rows, seed)
    value = float(losses.kendall(b.similarity, b.gold, temperature=1e-9))
    counts = [int((b.gold == level).sum()) for level in set(b.gold.tolist())]
    untied = 1 - sum(c * (c - 1) for c in counts) / (rows * (rows - 1))
    if untied == 0:
        assert value == 1
        return
    tau_b = stats.kendalltau(b.similarity, b.gold).statistic
    assert value == pytest.approx(1 - tau_b / math.sqrt(untied), abs=1e-6)
    assert value == pytest.approx(1 - stats.somersd(b.gold.numpy(), b.similarity.numpy()).statistic, abs=1e-6)


@given(st.integers(2, 12), seeds, st.floats(-3, 3))
def test_cosent_and_kendall_are_blind_to_a_map_of_gold_and_a_shift(rows, seed, shift):
    b = batch(rows, seed)
    for loss in (losses.cosent, losses.kendall):
        moved = loss(b.similarity + shift, b.gold.exp() * 3 - 1)
        assert_close(moved, loss(b.similarity, b.gold), atol=1e-9, rtol=0)


def test_perfect_agreement_is_free_where_the_gaps_are_wide():
    gold = torch.arange(5.0)
    for loss in (losses.cosent, losses.kendall):
        assert loss(2 * gold, gold) < 1e-6 < 1 < loss(-2 * gold, gold)


def test_cosent_heeds_the_worst_inversion_and_kendall_does_not():
    gold = torch.tensor([0.0, 1.0, 2.0])
    plain, gross = torch.tensor([0.5, 0.2, 0.9]), torch.tensor([0.5, -0.9, 0.9])
    assert losses.cosent(gross, gold) > 3 * losses.cosent(plain, gold)
    assert abs(losses.kendall(gross, gold) - losses.kendall(plain, gold)) < 0.05


def test_cosent_of_equal_similarities_is_the_logarithm_of_the_unequal_pairs():
    value = losses.cosent(torch.full((4,), 0.3), torch.tensor([0.0, 0.0, 1.0, 2.0]))
    assert float(value) == pytest.approx(math.log(1 + 5))


def slow_rank_n_contrast(features, gold, temperature):
    """The paper's equation as three loops."""
    n = range(len(gold))
    total = 0.0
    for i in n:
        for j in n:
            if i == j:
                continue
            candidates = [k for k in n if k != i and abs(gold[i] - gold[k]) >= abs(gold[i] - gold[j])]
            close = [-float((features[i] - features[k]).norm()) / temperature for k in candidates]
            own = -float((features[i] - features[j]).norm()) / temperature
            total -= own - math.log(sum(math.exp(c) for c in close))
    return total / (len(gold) * (len(gold) - 1))


@given(st.integers(2, 9), seeds, st.sampled_from([0.01, 0.1, 2.0]))
def test_rank_n_contrast_equals_three_loops(rows, seed, temperature):
    b = batch(rows, seed)
    # The loops see whole numbers, whose distances tie exactly; in steps of 0.2 rounding would split them.
    value = losses.rank_n_contrast(b.features, b.gold.float().double(), temperature=temperature)
    reference = slow_rank_n_contrast(b.features, b.steps.long().tolist(), temperature)
    assert float(value) == pytest.approx(reference, abs=1e-7)


@given(st.integers(2, 12), seeds, st.floats(0.1, 9), st.floats(-3, 3))
def test_rank_n_contrast_is_blind_to_turns_and_shifts(rows, seed, scale, shift):
    b = batch(rows, seed)
    turn = torch.linalg.qr(torch.randn(5, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).Q
    moved = losses.rank_n_contrast(b.features @ turn + shift, scale * b.gold + shift)
    assert_close(moved, losses.rank_n_contrast(b.features, b.gold), atol=1e-7, rtol=0)


def test_rank_n_contrast_of_equal_features_is_the_mean_logarithm_of_the_candidates():
    features = torch.full((3, 4), 0.1, requires_grad=True)
    value = losses.rank_n_contrast(features, torch.tensor([0.0, 1.0, 5.0]))
    value.backward()
    assert float(value.detach()) == pytest.approx(
        math.log(2) / 2
    )  # the nearer of two has two candidates, the farther one
    assert not features.grad.any()


def test_rank_n_contrast_survives_rows_that_coincide():
    features = torch.rand(6, 4, generator=torch.Generator().manual_seed(0)).repeat(2, 1).requires_grad_()
    losses.rank_n_contrast(features, torch.arange(12.0)).backward()
    assert torch.isfinite(features.grad).all() and features.grad.any()


@pytest.mark.parametrize("dim", [384, 768, 4096])
def test_products_of_normalised_embeddings_lie_as_far_apart_as_the_default_temperature_assumes(dim):
    b = batch(64, seed=0, dim=dim)
    distance = torch.cdist(b.features, b.features)[~torch.eye(64, dtype=torch.bool)].mean()
    assert 0.8 < distance * math.sqrt(dim) < 2


@pytest.mark.parametrize("dim", [384, 4096])
@pytest.mark.parametrize("rows", [8, 512])
def test_the_default_temperature_sees_an_order_of_that_size_and_the_papers_does_not(rows, dim):
    b = batch(rows, seed=0)
    ordered = b.gold[:, None] / math.sqrt(dim)  # the ratings themselves, at most 1 / sqrt(dim) apart
    for temperature, seen in ((0.01, True), (2.0, False)):
        blank = losses.rank_n_contrast(0 * ordered, b.gold, temperature=temperature)
        saved = blank - losses.rank_n_contrast(ordered, b.gold, temperature=temperature)
        assert (saved > 0.1) if seen else (saved < 0.01)


LARGE = {
    "cosent": losses.cosent,
    "kendall": losses.kendall,
    "soft_spearman": losses.soft_spearman,
    "rank_n_contrast": lambda similarity, gold: losses.rank_n_contrast(similarity[:, None], gold),
}


@pytest.mark.parametrize("name", LARGE)
def test_blocks_of_rows_change_nothing(name, monkeypatch):
    b, found = batch(23, seed=5), []
    for entries in (2**22, 50):
        monkeypatch.setattr(batches, "TABLE", entries)
        similarity = b.similarity.clone().requires_grad_()
        value = LARGE[name](similarity, b.gold)
        value.backward()
        found.append((value.detach(), similarity.grad))
    assert_close(found[0], found[1])


@pytest.mark.parametrize("name", LARGE)
def test_512_pairs_take_less_than_a_second(name):
    b = batch(512, seed=0)
    similarity = b.similarity.float().requires_grad_()
    start = time.perf_counter()
    LARGE[name](similarity, b.gold.float()).backward()
    assert time.perf_counter() - start < 1


class Largest(TorchDispatchMode):
    """Notes the number of entries of the largest tensor that any operation returns."""

    entries = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.entries = max(self.entries, *sizes, 0)
        return result


@pytest.mark.parametrize("name", LARGE)
def test_4096_pairs_stay_within_bounded_memory(name):
    b = batch(4096, seed=0, dim=2)
    similarity = b.similarity.float().requires_grad_()
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            value = LARGE[name](similarity, b.gold.float())
        value.backward()
    assert largest.entries <= 2**22 < 4096**2  # no table of all pairs, in either direction
    assert sum(kept) < 2**20  # and none of its blocks waits for the backward pass
    assert torch.isfinite(similarity.grad).all() and similarity.grad.any()
