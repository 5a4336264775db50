"""Every loss of the catalogue, and the sums the papers train on, keep their exact gradients when a batch is cut up."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from pcclab import encoders, losses
from pcclab.data import ScoredPairs, Sentences, Triplets
from pcclab.encoders.heads import SiameseHead
from pcclab.training import bind, cached, teachers

ROWS = 8
WORDS = ["stone", "river", "under", "seven", "geese"]


def texts(start):
    return tuple(" ".join((WORDS[(start + i) % 5 :] + WORDS)[: 1 + (start * i) % 6]) + f" {start}{i}" for i in range(8))


PAIRS = ScoredPairs(texts(1), texts(2), np.array([0.0, 4.5, 1.0, 5.0, 2.5, 4.0, 3.0, 4.5]))
TRIPLETS = Triplets(texts(1), texts(2), texts(3))
SENTENCES = Sentences(texts(2))
RANKCSE = "info_nce(temperature=0.05) + 0.1 * ranking_consistency(temperature=0.05)"
CASES = {
    **{name: (name, PAIRS) for name in losses.CATALOGUE},
    **{name: (name, SENTENCES) for name in ("ranking_consistency", "listnet", "listmle")},
    "info_nce on triplets": ("info_nce", TRIPLETS),
    "info_nce on two views": ("info_nce", SENTENCES),
    "angle in full": ("angle(cosine_weight=1.0, contrast_weight=1.0)", PAIRS),
    "pearson with contrast": ("pearson + 0.1 * info_nce", PAIRS),
    "head and cosine": ("smooth_k2 + 0.5 * pearson", PAIRS),
    "RankCSE with ListNet": (f"{RANKCSE} + listnet", SENTENCES),
    "RankCSE with ListMLE": (f"{RANKCSE} + listmle", SENTENCES),
}


def head_for(expression, dim):
    """The head the terms ask for, wide enough that one gradient of it is never another's."""
    asked = {a for term in losses.parse(expression) for a in inspect.signature(losses.by_name(term.name)).parameters}
    if not asked & {"prediction", "logits"}:
        return None
    return SiameseHead(dim, levels=(0, 2.5, 5) if "logits" in asked else None).double()


def gradients(expression, table, backward):
    """Loss, and gradients of trunk and head by name, of fresh weights after one backward pass without dropout."""
    encoder = encoders.load("tiny", dtype="float64")
    encoder.trunk.eval()
    head = head_for(expression, encoder.dim)
    taught = teachers.gather([encoders.load("tiny", seed=1)], SENTENCES.text) if table is SENTENCES else None
    objective = bind(table, expression, head=head, teachers=taught)
    tokens = [row for column in objective.columns for row in encoder.tokenize(column)]
    loss = backward(encoder, tokens, objective.loss(range(ROWS)))
    parts = {"trunk": encoder.trunk, **({"head": head} if head is not None else {})}
    named = {f"{part}.{name}": p.grad for part, model in parts.items() for name, p in model.named_parameters()}
    return loss, {name: gradient for name, gradient in named.items() if gradient is not None}


def plain(encoder, tokens, loss):
    """One graph over the whole padded batch."""
    batch = encoder.tokenizer.pad({"input_ids": tokens}, return_tensors="pt")
    value = loss(encoder.embed(batch["input_ids"], batch["attention_mask"]))
    value.backward()
    return value.detach()


def cut_up(encoder, tokens, loss):
    calls = []

    def embed(ids, mask):
        calls.append(len(ids))
        return encoder.embed(ids, mask)

    value = cached.backward(embed, tokens, loss, pad_id=0, micro_tokens=40, keep_tokens=0)
    assert sum(calls) == 2 * len(tokens) and len(calls) >= 6  # twice, in several parts each time
    return value


@pytest.mark.parametrize("case", CASES)
def test_two_passes_in_small_parts_are_one_graph_over_the_whole_batch(case):
    expression, table = CASES[case]
    whole_loss, whole = gradients(expression, table, plain)
    loss, ours = gradients(expression, table, cut_up)
    assert_close(loss, whole_loss, atol=1e-9, rtol=0)
    assert ours.keys() == whole.keys()
    asks = {"prediction", "logits"} & {
        a for term in losses.parse(expression) for a in inspect.signature(losses.by_name(term.name)).parameters
    }
    assert ("head.linear.weight" in ours) == bool(asks)
    for name in whole:
        assert_close(ours[name], whole[name], atol=1e-9, rtol=0, msg=lambda told, name=name: f"{name}: {told}")
    # Two zeros would agree as well. (Two views without dropout are the same, so their lists agree already.)
    if case != "ranking_consistency":
        assert max(gradient.abs().max() for name, gradient in whole.items() if name.startswith("trunk")) > 1e-6
        assert all(gradient.any() for name, gradient in whole.items() if name.startswith("head"))


def test_no_loss_of_the_catalogue_is_left_out():
    assert set(losses.CATALOGUE) <= {term.name for expression, _ in CASES.values() for term in losses.parse(expression)}


def test_the_consistency_of_two_views_keeps_its_gradient_under_dropout():
    # Only dropout makes the views differ; the parts' masks are drawn in the parts' order, as one graph over them does.
    found = []
    for keep in (0, 10**6):
        encoder = encoders.load("tiny")
        encoder.trunk.train()
        loss = bind(SENTENCES, "ranking_consistency").loss(range(ROWS))
        tokens = encoder.tokenize(SENTENCES.text) * 2
        torch.manual_seed(5)
        cached.backward(encoder.embed, tokens, loss, pad_id=0, micro_tokens=40, keep_tokens=keep)
        found.append({name: p.grad for name, p in encoder.trunk.named_parameters()})
    assert max(gradient.abs().max() for gradient in found[0].values() if gradient is not None) > 1e-4
    for name, gradient in found[0].items():
        assert_close(gradient, found[1][name], atol=1e-5, rtol=1e-4)
