"""The cached path gives the full batch's gradients, for any loss, with and without dropout, in bounded memory."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.nn import functional
from torch.testing import assert_close

from pcclab import encoders, losses
from pcclab.training import cached

TEXTS = [" ".join(["stone", "river", "under", "seven"][: 1 + i % 4] * (1 + i % 5)) + f" {i}" for i in range(24)]
GOLD = torch.linspace(0, 5, 12, dtype=torch.float64).roll(5)


def pearson(embeddings):
    first, second = embeddings.split(12)
    return losses.pearson(functional.cosine_similarity(first, second), GOLD.to(embeddings.dtype))


def info_nce(embeddings):
    return losses.info_nce(*embeddings.split(8), temperature=0.1)


def third(embeddings):
    """A random smooth loss in which every embedding meets every other."""
    generator = torch.Generator().manual_seed(3)
    mixing = torch.randn(len(embeddings), len(embeddings), generator=generator).to(embeddings.dtype)
    return ((mixing @ embeddings).tanh() * embeddings).logsumexp(0).square().mean()


LOSSES = [pearson, info_nce, third]


def gradients(dtype, objective, *, train, one_pass=False, **limits):
    """Loss and gradients of a fresh tiny encoder after one backward."""
    encoder = encoders.load("tiny", dtype=dtype)
    encoder.trunk.train(train)
    tokens = encoder.tokenize(TEXTS)
    torch.manual_seed(11)
    if one_pass:
        batch = encoder.tokenizer.pad({"input_ids": tokens}, return_tensors="pt")
        loss = objective(encoder.embed(batch["input_ids"], batch["attention_mask"]))
        loss.backward()
    else:
        loss = cached.backward(encoder.embed, tokens, objective, pad_id=0, **limits)
    after = torch.get_rng_state()
    return loss.detach(), {name: p.grad for name, p in encoder.trunk.named_parameters() if p.grad is not None}, after


@pytest.mark.parametrize("keep", [0, 10**6], ids=["embedded twice", "graph kept"])
@pytest.mark.parametrize("objective", LOSSES)
def test_equals_the_plain_full_batch_without_dropout(objective, keep):
    plain_loss, plain, _ = gradients("float64", objective, train=False, one_pass=True)
    loss, ours, _ = gradients("float64", objective, train=False, micro_tokens=60, keep_tokens=keep)
    assert_close(loss, plain_loss, atol=1e-10, rtol=0)
    assert plain.keys() == ours.keys()
    for name in plain:
        assert_close(ours[name], plain[name], atol=1e-10, rtol=0)


@pytest.mark.parametrize("objective", LOSSES)
def test_dropout_is_replayed(objective):
    # One graph over the same micro-batches is the plain full batch; a second pass must draw the same masks.
    plain_loss, plain, after_plain = gradients("float32", objective, train=True, micro_tokens=60, keep_tokens=10**6)
    loss, ours, after = gradients("float32", objective, train=True, micro_tokens=60, keep_tokens=0)
    assert_close(loss, plain_loss, atol=1e-5, rtol=0)
    for name in plain:
        assert_close(ours[name], plain[name], atol=1e-5, rtol=1e-5)
    assert torch.equal(after, after_plain)  # and the next step goes on with the same random numbers


@pytest.mark.parametrize("objective", LOSSES)
def test_with_dropout_one_micro_batch_equals_the_padded_batch(objective, monkeypatch):
    # In one micro-batch and the caller's order the masks are those of the plain padded batch, entry by entry.
    import numpy as np

    monkeypatch.setattr(cached, "plan_batches", lambda lengths, budget: [np.arange(len(lengths))])
    plain_loss, plain, _ = gradients("float32", objective, train=True, one_pass=True)
    loss, ours, _ = gradients("float32", objective, train=True)
    assert_close(loss, plain_loss, atol=1e-5, rtol=0)
    for name in plain:
        assert_close(ours[name], plain[name], atol=1e-5, rtol=1e-5)


def test_without_the_replay_the_gradients_are_wrong(monkeypatch):
    _, plain, _ = gradients("float32", info_nce, train=True, micro_tokens=60, keep_tokens=10**6)
    monkeypatch.setattr(cached.torch, "set_rng_state", lambda state: None)
    _, ours, _ = gradients("float32", info_nce, train=True, micro_tokens=60, keep_tokens=0)
    assert max((ours[name] - plain[name]).abs().max() for name in plain) > 1e-3


def test_gradients_accumulate_and_weights_of_the_loss_learn_too():
    encoder = encoders.load("tiny")
    head = torch.nn.Linear(encoder.dim, 1)
    tokens = encoder.tokenize(TEXTS)
    for _ in range(2):
        cached.backward(
            encoder.embed, tokens, lambda e: head(e).square().mean(), pad_id=0, micro_tokens=60, keep_tokens=0
        )
    twice = head.weight.grad.clone()
    head.weight.grad = None
    cached.backward(encoder.embed, tokens, lambda e: head(e).square().mean(), pad_id=0, micro_tokens=60, keep_tokens=0)
    assert_close(twice, 2 * head.weight.grad)


def test_a_batch_that_fits_is_embedded_once():
    encoder = encoders.load("tiny")
    tokens, calls = encoder.tokenize(TEXTS), []

    def embed(ids, mask):
        calls.append(len(ids))
        return encoder.embed(ids, mask)

    cached.backward(embed, tokens, third, pad_id=0, micro_tokens=60, keep_tokens=10**6)
    assert sum(calls) == len(TEXTS)
    calls.clear()
    cached.backward(embed, tokens, third, pad_id=0, micro_tokens=60, keep_tokens=0)
    assert sum(calls) == 2 * len(TEXTS)


@pytest.mark.parametrize("keep", [0, 10**6])
def test_a_loss_that_is_not_finite_changes_no_gradient(keep):
    encoder = encoders.load("tiny")
    with pytest.raises(ValueError, match="the loss is nan: lower the learning rate"):
        cached.backward(
            encoder.embed, encoder.tokenize(TEXTS), lambda e: e.sum() * float("nan"), pad_id=0, keep_tokens=keep
        )
    assert all(p.grad is None for p in encoder.trunk.parameters())


PEAK = """
import resource, sys, torch
from torch.nn import functional
from pcclab import encoders, losses
from pcclab.training import cached
torch.set_num_threads(1)
pairs, kind = int(sys.argv[1]), sys.argv[2]
encoder = encoders.load("minilm")
encoder.trunk.train()
optimizer = torch.optim.AdamW(encoder.trunk.parameters(), lr=1e-5)
words = "north seven quiet harbour bridge carries wooden late every small market green".split()
texts = [" ".join(words[(i * 7 + j) % 12] for j in range(8 + i % 12)) for i in range(pairs * 2)]
gold = torch.rand(pairs)
def loss(embeddings):
    first, second = embeddings.split(pairs)
    if kind == "info_nce":
        return losses.info_nce(first, second)
    return losses.pearson(functional.cosine_similarity(first, second), gold)
for _ in range(1 if pairs > 1000 else 2):
    cached.backward(encoder.embed, encoder.tokenize(texts), loss, pad_id=0)
    optimizer.step()
    optimizer.zero_grad()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pearson", "info_nce"])
def test_peak_memory_at_2048_pairs_is_at_most_1_3_times_that_at_64(kind):
    peaks = [
        int(subprocess.run([sys.executable, "-c", PEAK, n, kind], capture_output=True, check=True, text=True).stdout)
        for n in ("64", "2048")
    ]
    print(f"{kind}: peak {peaks[0] // 1024} MiB at 64 pairs, {peaks[1] // 1024} MiB at 2,048")
    assert peaks[1] <= 1.3 * peaks[0], f"{kind}: {peaks} kB"
