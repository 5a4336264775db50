"""A cut encoder: its lowest layers are the old ones, its fresh ones are new, and it saves as what it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import transformers
from numpy.testing import assert_allclose

from pcclab import encoders
from pcclab.encoders import tiny

TEXTS = ["a grey heron waits", "Two engineers argue about a small bridge.", "rain"]

SIZES = {"vocab_size": 2700, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 2, "pad_token_id": 0}
MODELS = {
    "bert": transformers.BertConfig(**SIZES, intermediate_size=64),
    "roberta": transformers.RobertaConfig(**SIZES, intermediate_size=64),
    "mpnet": transformers.MPNetConfig(**SIZES, intermediate_size=64),
    "electra": transformers.ElectraConfig(**SIZES, intermediate_size=64, embedding_size=32),
    "distilbert": transformers.DistilBertConfig(
        vocab_size=2700, dim=32, n_layers=4, n_heads=2, hidden_dim=64, pad_token_id=0
    ),
    "modernbert": transformers.ModernBertConfig(**SIZES, intermediate_size=64, cls_token_id=2, sep_token_id=3),
}


@pytest.fixture(scope="module", params=list(MODELS))
def folder(request, tmp_path_factory):
    """A random model of each family, saved by transformers itself."""
    path = tmp_path_factory.mktemp(request.param)
    with torch.random.fork_rng():
        torch.manual_seed(5)
        transformers.AutoModel.from_config(MODELS[request.param]).save_pretrained(path)
    tiny.tokenizer(500).save_pretrained(path)
    return path


def weights(encoder):
    """Weights by name, float32."""
    return {name: tensor.detach().float() for name, tensor in encoder.trunk.state_dict().items()}


def changed(encoder, other):
    """The numbers of the layers in which two encoders of the same depth differ; -1 stands for all that is no layer."""
    ours, theirs = weights(encoder), weights(other)
    assert ours.keys() == theirs.keys()
    names = [name for name in ours if not torch.equal(ours[name], theirs[name])]
    return {next((int(part) for part in name.split(".") if part.isdigit()), -1) for name in names}


@pytest.mark.parametrize("kept", [1, 3])
def test_every_family_is_cut_to_its_lowest_layers(folder, kept):
    whole, cut = encoders.load(folder, max_tokens=64), encoders.load(folder, max_tokens=64, layers=kept)
    assert cut.trunk.config.num_hidden_layers == kept
    ours, theirs = weights(cut), weights(whole)
    assert ours.keys() < theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    ids, mask = (torch.tensor(x) for x in (whole.tokenize(TEXTS[:1]), [[1] * len(whole.tokenize(TEXTS[:1])[0])]))
    with torch.no_grad():
        states = whole.trunk(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        shallow = cut.trunk(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
    assert len(shallow) == kept + 1
    assert_allclose(shallow[kept - 1], states[kept - 1], atol=1e-6)


@pytest.mark.parametrize("options", [{"layers": 2}, {"layers": 3, "fresh": 2, "seed": 4}, {"fresh": 4}])
def test_every_family_is_saved_and_loaded_as_it_was_cut(folder, options, tmp_path):
    cut = encoders.load(folder, max_tokens=64, pooling="first-last", **options)
    again = encoders.load(cut.save(tmp_path / "cut"))
    assert again.trunk.config.num_hidden_layers == options.get("layers", 4)
    assert np.array_equal(again.encode(TEXTS), cut.encode(TEXTS))
    assert again.fingerprint == cut.fingerprint
    assert not cut.trunk.training


def test_fresh_layers_are_the_uppermost_and_initialised_as_the_model_does(folder):
    old, new = (encoders.load(folder, max_tokens=64, layers=3, fresh=fresh) for fresh in (0, 2))
    assert changed(old, new) == {1, 2}
    layers = [new.trunk.get_submodule(name) for name, m in new.trunk.named_modules() if name.endswith(".2")]
    linear = [m.weight for layer in layers for m in layer.modules() if isinstance(m, torch.nn.Linear)]
    # ModernBERT scales its outputs' deviation by depth; all others draw with the config's.
    assert linear and all(0.0 < float(w.detach().std()) < 0.03 for w in linear)
    biases = [w for layer in layers for name, w in layer.named_parameters() if name.endswith("bias")]
    assert all(not bool(b.any()) for b in biases)


def test_fresh_layers_are_their_seed_and_leave_the_random_state_alone(folder):
    torch.manual_seed(7)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()
    one, same, other = (encoders.load(folder, max_tokens=64, layers=3, fresh=1, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state()) and np.array_equal(numpy_before, np.random.get_state()[1])
    assert changed(one, same) == set() and changed(one, other) == {2}


def test_tiny_can_be_cut_and_its_fresh_layers_are_new():
    whole, cut = encoders.load("tiny"), encoders.load("tiny", layers=1)
    assert cut.trunk.config.num_hidden_layers == 1 and whole.trunk.config.num_hidden_layers == 2
    assert set(weights(cut)) < set(weights(whole))
    assert changed(whole, encoders.load("tiny", fresh=1)) == {1}
    assert not np.allclose(whole.encode(TEXTS), encoders.load("tiny", fresh=2).encode(TEXTS))


def test_three_layers_of_minilm_give_its_third_hidden_state():
    whole, cut = encoders.load("minilm"), encoders.load("minilm", layers=3)
    ids = torch.tensor(whole.tokenize(TEXTS[:1]))
    with torch.no_grad():
        third = whole.trunk(input_ids=ids, output_hidden_states=True).hidden_states[3].mean(1)
    assert_allclose(cut.encode(TEXTS[:1]), third, atol=1e-5)
    fresh = encoders.load("minilm", fresh=1).trunk.encoder.layer[5].output.dense.weight.detach()
    assert math.isclose(float(fresh.std()), 0.02, rel_tol=0.01)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "minilm"),
        ({"layers": 6}, "minilm"),
        ({"layers": 3}, "minilm, first 3 of 6 layers"),
        ({"fresh": 2}, "minilm, upper 2 fresh (seed 0)"),
        ({"layers": 4, "fresh": 1, "seed": 9}, "minilm, first 4 of 6 layers, upper 1 fresh (seed 9)"),
    ],
)
def test_the_name_tells_what_was_cut(options, name):
    assert encoders.load("minilm", **options).settings.name == name


def test_other_precisions_are_cut_alike():
    half = encoders.load("minilm", layers=2, fresh=1, dtype="bfloat16")
    whole = encoders.load("minilm", layers=2, fresh=1)
    assert {p.dtype for p in half.trunk.parameters()} == {torch.bfloat16}
    assert all(torch.equal(w.bfloat16().float(), weights(half)[name]) for name, w in weights(whole).items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 0}, "layers is 0: tiny has 2 layers, give 1 to 2"),
        ({"layers": 3}, "layers is 3: tiny has 2 layers, give 1 to 2"),
        ({"layers": 1.0}, r"layers is 1\.0: tiny has 2 layers"),
        ({"fresh": 3}, "fresh is 3: 2 of the 2 layers of tiny are kept, give 0 to 2"),
        ({"layers": 1, "fresh": 2}, "fresh is 2: 1 of the 2 layers of tiny are kept, give 0 to 1"),
        ({"fresh": -1}, "fresh is -1"),
    ],
)
def test_more_layers_than_there_are_or_none_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        encoders.load("tiny", **options)


def test_a_model_whose_layers_share_their_weights_is_refused(tmp_path):
    config = transformers.AlbertConfig(**SIZES, intermediate_size=64, embedding_size=32)
    transformers.AlbertModel(config).save_pretrained(tmp_path)
    tiny.tokenizer(500).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"has a trunk of type albert without a list of its 4 layers \(they may share"):
        encoders.load(tmp_path, layers=2)
