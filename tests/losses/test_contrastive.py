"""InfoNCE: a slow double loop and sentence-transformers as references, and what it is blind to."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from pcclab import losses


def embeddings(rows: int, sides: int, seed: int, dim: int = 6) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, dim, generator=generator, dtype=torch.float64) for _ in range(sides)]


def slow(anchor, positive, negative, temperature):
    """Equations 1 and 8 as two loops."""

    def cos(a, b):
        return float(a @ b / (a.norm() * b.norm()))

    total = 0.0
    for i in range(len(anchor)):
        sums = sum(math.exp(cos(anchor[i], p) / temperature) for p in positive)
        if negative is not None:
            sums += sum(math.exp(cos(anchor[i], n) / temperature) for n in negative)
        total -= math.log(math.exp(cos(anchor[i], positive[i]) / temperature) / sums)
    return total / len(anchor)


@given(st.integers(2, 7), st.integers(0, 999), st.sampled_from([0.05, 0.5, 1.0]), st.booleans())
def test_equals_two_loops(rows, seed, temperature, hard):
    anchor, positive, negative = embeddings(rows, 3, seed)
    sides = (anchor, positive, negative if hard else None)
    fast = losses.info_nce(*sides, temperature=temperature)
    assert float(fast) == pytest.approx(slow(*sides, temperature), abs=1e-9)


@given(st.integers(2, 7), st.integers(0, 999), st.floats(0.1, 50))
def test_blind_to_the_length_of_embeddings(rows, seed, scale):
    anchor, positive, negative = embeddings(rows, 3, seed)
    assert_close(
        losses.info_nce(anchor * scale, positive / scale, negative * 3), losses.info_nce(anchor, positive, negative)
    )


@pytest.mark.parametrize(("hard", "candidates"), [(False, 5), (True, 10)])
def test_equal_cosines_cost_the_logarithm_of_the_candidates(hard, candidates):
    same = torch.ones(5, 3)
    value = losses.info_nce(same, same, same if hard else None)
    assert float(value) == pytest.approx(math.log(candidates), abs=1e-5)


def test_hard_negatives_of_other_rows_count_too():
    anchor, positive, negative = embeddings(4, 3, seed=0)
    other = negative.clone()
    other[0] = anchor[2]  # only anchor 2 is close to it
    assert losses.info_nce(anchor, positive, other) > losses.info_nce(anchor, positive, negative)


def test_one_anchor_is_enough_with_a_hard_negative():
    anchor, positive, negative = embeddings(1, 3, seed=0)
    assert torch.isfinite(losses.info_nce(anchor, positive, negative))


@pytest.mark.parametrize("temperature", [0, -0.1, float("nan")])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature):
    with pytest.raises(ValueError, match="temperature is"):
        losses.info_nce(*embeddings(3, 2, seed=0), temperature=temperature)


@pytest.mark.parametrize("hard", [False, True])
def test_equals_sentence_transformers(hard):
    # Their loss on embeddings alone: MultipleNegativesRankingLoss with a model that hands them through.
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    sides = [side.float() for side in embeddings(6, 3 if hard else 2, seed=1)]
    theirs = MultipleNegativesRankingLoss(torch.nn.Identity(), scale=20.0)
    reference = theirs.compute_loss_from_embeddings(sides, None)
    assert_close(losses.info_nce(*sides, temperature=0.05), reference)
