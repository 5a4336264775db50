"""Folders travel to sentence-transformers and back, whatever version wrote them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling

from pcclab import encoders

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
    deeper = SentenceTransformer(modules=[trunk, Pooling(64), Dense(64, 32)], device="cpu")
    deeper.save(str(tmp_path / "dense"))
    with pytest.raises(ValueError, match="adds Dense behind its pooling"):
        encoders.load(tmp_path / "dense")


def test_first_last_pooling_stays_here_and_leaves_nothing_behind(tmp_path):
    with pytest.raises(ValueError, match="first-last pooling is unknown to sentence-transformers"):
        encoders.load("tiny", pooling="first-last").to_sentence_transformer(tmp_path / "new" / "out")
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
