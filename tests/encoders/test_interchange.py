"""Folders travel to sentence-transformers and back, whatever version wrote them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, Pooling
from torch import nn

from pcclab import data, encoders, evaluation, training

TEXTS = ["a wren", "a crow in the rain, and a second crow", 'quotes "and" lines\nof two', "x " * 60]


@pytest.mark.parametrize("pooling", ["cls", "mean", "last"])
def test_an_export_gives_the_same_embeddings_there_and_back(tmp_path, pooling):
    encoder = encoders.load("tiny", pooling=pooling, max_tokens=40)
    with pytest.warns(UserWarning, match="longer than 40 tokens"):
        ours = encoder.encode(TEXTS, normalize=True)
    folder = encoder.to_sentence_transformer(tmp_path / "out", card={"leakage": "filter"})
    theirs = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    np.testing.assert_allclose(theirs, ours, atol=1e-5)
    again = encoders.load(folder)
    assert (again.settings.pooling, again.settings.max_tokens) == (pooling, 40)
    with pytest.warns(UserWarning, match="longer than 40 tokens"):
        np.testing.assert_allclose(again.encode(TEXTS, normalize=True), ours, atol=1e-6)
    card = (folder / "README.md").read_text(encoding="utf8")
    assert "- **base model**: tiny" in card and "- **leakage**: filter" in card


@pytest.mark.parametrize(("mode", "pooling"), [("cls", "cls"), ("mean", "mean"), ("lasttoken", "last")])
def test_reads_what_the_installed_version_writes(tmp_path, mode, pooling):
    encoders.load("tiny").save(tmp_path / "trunk")
    trunk = Transformer(str(tmp_path / "trunk"), max_seq_length=30)
    theirs = SentenceTransformer(modules=[trunk, Pooling(64, pooling_mode=mode), Normalize()], device="cpu")
    theirs.save(str(tmp_path / "theirs"))
    ours = encoders.load(tmp_path / "theirs")
    assert (ours.settings.pooling, ours.settings.max_tokens) == (pooling, 30)
    np.testing.assert_allclose(ours.encode(TEXTS[:3], normalize=True), theirs.encode(TEXTS[:3]), atol=1e-5)


def test_what_it_cannot_read_it_refuses(tmp_path):
    encoders.load("tiny").save(tmp_path / "trunk")
    trunk = Transformer(str(tmp_path / "trunk"))
    max_pooled = SentenceTransformer(modules=[trunk, Pooling(64, pooling_mode=("max", "mean"))], device="cpu")
    max_pooled.save(str(tmp_path / "max"))
    with pytest.raises(ValueError, match="pools by max and mean: this lab has cls, mean, lasttoken"):
        encoders.load(tmp_path / "max")
    assert encoders.load(tmp_path / "max", pooling="cls").settings.pooling == "cls"
    turned = SentenceTransformer(modules=[trunk, Pooling(64), Normalize(), Dense(64, 32)], device="cpu")
    turned.save(str(tmp_path / "turned"))
    with pytest.raises(ValueError, match="Transformer, Pooling, Normalize, Dense in this order"):
        encoders.load(tmp_path / "turned")
    dropped = SentenceTransformer(modules=[trunk, Pooling(64), Dropout(0.1)], device="cpu")
    dropped.save(str(tmp_path / "dropped"))
    with pytest.raises(ValueError, match="adds Dropout: only trunk, pooling, dense layers, normalisation"):
        encoders.load(tmp_path / "dropped")
    with pytest.raises(ValueError, match=r"applies torch.nn.modules.activation.Softplus: .* one of"):
        with_dense(tmp_path / "soft", Dense(64, 32, activation_function=nn.Softplus()))
    with pytest.raises(ValueError, match="has a residual"):
        with_dense(tmp_path / "residual", Dense(64, 32, use_residual=True))
    with pytest.raises(ValueError, match="takes vectors of 32 and is given 64"):
        with_dense(tmp_path / "narrow", Dense(32, 32))
    with_dense(tmp_path / "old", Dense(64, 32))
    (tmp_path / "old" / "2_Dense" / "model.safetensors").rename(tmp_path / "old" / "2_Dense" / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"has no model.safetensors: .* nothing else is read"):
        encoders.load(tmp_path / "old")


def with_dense(folder, *dense):
    """A folder as sentence-transformers writes it, with dense layers, read again: theirs and ours."""
    encoders.load("tiny").save(folder.with_suffix(".trunk"))
    modules = [Transformer(str(folder.with_suffix(".trunk"))), Pooling(64, pooling_mode="cls"), *dense, Normalize()]
    theirs = SentenceTransformer(modules=modules, device="cpu")
    theirs.save(str(folder))
    return theirs, encoders.load(folder)


@pytest.mark.parametrize("layers", [[(64, 32, nn.Tanh())], [(64, 96, None), (96, 16, nn.GELU())]])
def test_dense_layers_are_read_trained_saved_and_exported(tmp_path, layers):
    dense = [
        Dense(*sizes, activation_function=activation, bias=at == 0) for at, (*sizes, activation) in enumerate(layers)
    ]
    theirs, ours = with_dense(tmp_path / "theirs", *dense)
    width = layers[-1][1]
    assert ours.dim == width and ours.settings.pooling == "cls"
    vectors = ours.encode(TEXTS[:3], normalize=True)
    assert vectors.shape == (3, width)
    np.testing.assert_allclose(vectors, theirs.encode(TEXTS[:3]), atol=1e-5)
    names = [name for name, weights in ours.trunk.named_parameters() if weights.requires_grad]
    assert any(name.startswith("projection.") for name in names)  # what trains the trunk trains them
    again = encoders.load(ours.save(tmp_path / "saved"))
    assert again.fingerprint == ours.fingerprint != encoders.load(tmp_path / "theirs.trunk").fingerprint
    there = SentenceTransformer(str(ours.to_sentence_transformer(tmp_path / "out")), device="cpu")
    np.testing.assert_allclose(there.encode(TEXTS[:3]), vectors, atol=1e-5)
    np.testing.assert_allclose(encoders.load(tmp_path / "out").encode(TEXTS[:3], normalize=True), vectors, atol=1e-5)


def test_dense_layers_learn(tmp_path):
    _, encoder = with_dense(tmp_path / "theirs", Dense(64, 8))
    before = encoder.trunk.projection[0].linear.weight.detach().clone()
    training.fit(encoder, data.load("stsb", split="train", source="synthetic"), "pearson",
                 parameters={"max_steps": 2, "batch_size": 16, "learning_rate": 0.01})  # fmt: skip
    assert not torch.equal(encoder.trunk.projection[0].linear.weight, before)


@pytest.mark.real_data
def test_an_export_of_minilm_scores_the_same_in_sentence_transformers(tmp_path, senteval):
    encoder, table = encoders.load("minilm"), data.load("stsb", source=senteval)
    ours = evaluation.sts_pairs(encoder, {"stsb": table}).average
    there = SentenceTransformer(str(encoder.to_sentence_transformer(tmp_path / "out")), device="cpu")
    theirs = evaluation.sts_pairs(there, {"stsb": table}).average
    back = evaluation.sts_pairs(encoders.load(tmp_path / "out"), {"stsb": table}).average
    assert theirs == pytest.approx(ours, abs=0.01) and back == pytest.approx(ours, abs=0.01)
    assert ours == pytest.approx(82.03, abs=0.01)


def test_first_last_pooling_stays_here_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="first-last pooling is unknown to sentence-transformers"):
        encoders.load("tiny", pooling="first-last").to_sentence_transformer(tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()


TEMPLATES = ["EOL", "STH", "Say [X] in a word:", "A word for [X]", ""]


@pytest.mark.parametrize("family", ["tiny-llama", "tiny-mistral", "tiny-opt", "tiny-gemma"])
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_prompted_model_reads_the_same_there_and_back(tmp_path, family, template):
    encoder = encoders.load(family, prompt=template)
    texts = ["a wren", "It rained.", 'quotes "and" lines\nof two', "x " * 60, "a bird \N{BIRD}"]
    ours = encoder.encode(texts, normalize=True)
    folder = encoder.to_sentence_transformer(tmp_path / "out")
    there = SentenceTransformer(str(folder), device="cpu")
    np.testing.assert_allclose(there.encode(texts), ours, atol=1e-5)
    again = encoders.load(folder)
    assert (again.settings.template, again.settings.pooling) == (template, "last")
    assert again.tokenize(texts, max_tokens=200) == encoder.tokenize(texts, max_tokens=200)
    np.testing.assert_allclose(again.encode(texts, normalize=True), ours, atol=1e-6)
    plain = encoders.load(folder, prompt="")
    assert (np.abs(plain.encode(texts, normalize=True) - ours).max() > 1e-3) == bool(template)


def test_an_adapter_is_merged_before_it_leaves(tmp_path):
    adapted = encoders.load("tiny-llama", prompt="SUM", adapter={"rank": 4})
    with pytest.raises(ValueError, match="has an adapter, which an export would leave out: merge it first"):
        adapted.to_sentence_transformer(tmp_path / "new" / "out")
    assert not (tmp_path / "new").exists()
    ours = adapted.encode(TEXTS[:3], normalize=True)
    there = SentenceTransformer(str(adapted.merged().to_sentence_transformer(tmp_path / "out")), device="cpu")
    np.testing.assert_allclose(there.encode(TEXTS[:3]), ours, atol=1e-5)


def test_a_family_whose_tokenizer_is_built_anew_keeps_its_template_here(tmp_path):
    """transformers takes Qwen2's own class for this model whatever the folder says, and it drops the normaliser."""
    prompted = encoders.load("tiny-qwen", prompt="EOL")
    with pytest.raises(ValueError, match=r"Qwen2Tokenizer, which others take .* reads 'It rained.' as 'It rained.'"):
        prompted.to_sentence_transformer(tmp_path / "new" / "out")
    assert list((tmp_path / "new").iterdir()) == []


def test_files_are_of_the_form_that_every_version_reads(tmp_path):
    folder = encoders.load("tiny", pooling="last").to_sentence_transformer(tmp_path / "out")
    config = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert config["pooling_mode_lasttoken"] and sum(value is True for value in config.values()) == 1
    assert [m["type"].rsplit(".", 1)[-1] for m in json.loads((folder / "modules.json").read_text())] == [
        "Transformer",
        "Pooling",
        "Normalize",
    ]


def cached(home, name, folder):
    """A hub cache that holds a model as the hub's own client lays it down."""
    place = home / "hub" / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    shutil.copytree(folder, place / "snapshots" / ("0" * 40))


LOOK = """
import sys
from pcclab import encoders
encoder = encoders.load("someone/model")
print(encoder.settings.pooling, encoder.settings.max_tokens, encoder.dim, encoder.settings.revision)
"""


def test_a_hub_model_is_read_with_the_pooling_and_layers_it_declares(tmp_path):
    _, encoder = with_dense(tmp_path / "theirs", Dense(64, 8))
    cached(tmp_path / "home", "someone/model", encoder.to_sentence_transformer(tmp_path / "out"))
    offline = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", LOOK], env=offline, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["cls", str(encoder.settings.max_tokens), "8", "0" * 40], done.stderr
