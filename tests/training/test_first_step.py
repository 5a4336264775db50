"""What one batch says before training: the loss and gradient of the plain computation, and nothing left behind."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from pcclab import data, encoders, losses
from pcclab.training import first_step

SETTINGS = {"batch_size": 12, "micro_tokens": 60, "keep_tokens": 0, "seed": 3}


def test_it_is_the_plain_loss_and_its_gradient() -> None:
    encoder, pairs = encoders.load("tiny", dtype="float64"), data.stage2_pairs(source="synthetic")
    for module in encoder.trunk.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    value, length = first_step(encoder, pairs, "pearson", parameters=SETTINGS)
    ids = encoder.tokenize([*pairs.first[:12], *pairs.second[:12]])
    batch = encoder.tokenizer.pad({"input_ids": ids}, return_tensors="pt")
    first, second = encoder.embed(batch["input_ids"], batch["attention_mask"]).split(12)
    gold = torch.tensor(pairs.gold[:12].tolist(), dtype=torch.float64)
    plain = losses.pearson(functional.cosine_similarity(first, second), gold)
    plain.backward()
    squares = sum(p.grad.square().sum() for p in encoder.trunk.parameters() if p.grad is not None)
    assert value == pytest.approx(float(plain.detach()), abs=1e-9)
    assert length == pytest.approx(float(squares) ** 0.5, rel=1e-9)


def test_nothing_is_left_behind_and_the_seed_is_its_own() -> None:
    encoder, sentences = encoders.load("tiny"), data.sentences(source="synthetic")
    before, state = encoder.fingerprint, torch.get_rng_state()
    once, again = (first_step(encoder, sentences, "info_nce", parameters=SETTINGS) for _ in range(2))
    other = first_step(encoder, sentences, "info_nce", parameters={**SETTINGS, "seed": 4})
    assert once == again != other
    assert torch.get_rng_state().equal(state)
    assert encoder.fingerprint == before and not encoder.trunk.training
    assert all(weights.grad is None for weights in encoder.weights)


def test_a_table_that_does_not_fit_is_told() -> None:
    with pytest.raises(ValueError, match="pearson takes"):
        first_step(encoders.load("tiny"), data.sentences(source="synthetic"), "pearson", parameters=SETTINGS)
