"""Rates by depth: the head and the top at the full rate, each layer below slower, the embeddings slowest."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import Trainer

from pcclab import encoders
from pcclab.encoders.heads import SiameseHead
from pcclab.training import FitSettings
from pcclab.training.groups import Trained, parameter_groups

SETTINGS = FitSettings(learning_rate=1.0, layer_decay=0.5, weight_decay=0.1)


def grouped(model, decayed=(), settings=SETTINGS):
    """Name of every parameter to its rate and weight decay; each must be in just one group."""
    names = {id(weights): name for name, weights in model.named_parameters()}
    found = {}
    for group in parameter_groups(model, settings, set(decayed)):
        for weights in group["params"]:
            assert names[id(weights)] not in found
            found[names[id(weights)]] = (group["lr"], group["weight_decay"])
    return found


@pytest.fixture(scope="module")
def model():
    encoder = encoders.load("tiny")
    return Trained(encoder.trunk, SiameseHead(encoder.dim))


def test_rates_fall_from_the_head_to_the_embeddings(model):
    rates = grouped(model)
    assert set(rates) == {name for name, _ in model.named_parameters()}  # none lost
    expected = {"head.": 1.0, "trunk.encoder.layer.1.": 1.0, "trunk.encoder.layer.0.": 0.5, "trunk.embeddings.": 0.25}
    for part, rate in expected.items():
        within = {value for name, (value, _) in rates.items() if name.startswith(part)}
        assert within == {rate}, part
    assert all(name.startswith(tuple(expected)) for name in rates)


def test_a_decay_of_one_gives_every_depth_the_full_rate(model):
    assert {rate for rate, _ in grouped(model, settings=FitSettings(learning_rate=3e-5)).values()} == {3e-5}


def test_weight_decay_is_split_within_every_depth(model):
    decayed = set(Trainer.get_decay_parameter_names(None, model))
    found = grouped(model, decayed)
    assert {name for name, (_, decay) in found.items() if decay == 0.1} == decayed
    assert all(decay in (0.0, 0.1) for _, decay in found.values())
    assert "trunk.encoder.layer.0.attention.self.query.weight" in decayed and "head.linear.weight" in decayed
    assert not any(name.endswith("bias") or "LayerNorm" in name for name in decayed)
    assert len(parameter_groups(model, SETTINGS, decayed)) == 2 * 3  # full, half, quarter, each with and without


def test_frozen_weights_are_in_no_group():
    trunk = encoders.load("tiny").trunk
    trunk.embeddings.requires_grad_(False)
    found = grouped(Trained(trunk, None))
    assert not any("embeddings" in name for name in found) and len(found) == sum(
        weights.requires_grad for weights in trunk.parameters()
    )


def named(*names):
    """A module whose parameters have these names."""
    root = nn.Module()
    for name in names:
        *path, last = name.split(".")
        place = root
        for part in path:
            if part not in dict(place.named_children()):
                place.add_module(part, nn.Module())
            place = getattr(place, part)
        place.register_parameter(last, nn.Parameter(torch.zeros(1)))
    return root


def test_names_of_other_trunks_are_read():
    llama = named(
        "trunk.embed_tokens.weight",
        *(f"trunk.layers.{i}.mlp.weight" for i in range(11)),
        "trunk.norm.weight",
        "head.linear.weight",
    )
    rates = {name: rate for name, (rate, _) in grouped(llama).items()}
    assert rates["trunk.layers.10.mlp.weight"] == rates["trunk.norm.weight"] == rates["head.linear.weight"] == 1
    assert rates["trunk.layers.2.mlp.weight"] == 0.5**8  # by number, not by the letters of it
    assert rates["trunk.embed_tokens.weight"] == 0.5**11
    distilled = grouped(named("trunk.transformer.layer.0.ffn.weight", "trunk.transformer.layer.1.ffn.weight"))
    assert [rate for rate, _ in distilled.values()] == [0.5, 1]


def test_a_trunk_whose_names_tell_no_layer_is_refused():
    with pytest.raises(ValueError, match=r"layer_decay is 0\.\d+ and no layers can be told .*set layer_decay to 1"):
        grouped(named("trunk.embeddings.weight", "trunk.out.weight"))
