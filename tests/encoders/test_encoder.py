"""An encoder's promises: order, repeats, independence of the batch, round trips, and clear refusals."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from pcclab import encoders
from pcclab.encoders import engine

TEXTS = [
    "a grey heron waits",
    "Two engineers are arguing about a very small bridge near the harbour wall.",
    "rain",
    "a grey heron waits",
    "“curly quotes”, tabs\tand emoji 🙂 — all of it is text",
]


@pytest.fixture(scope="module", params=["mean", "cls", "first-last", "last"])
def encoder(request):
    return encoders.load("tiny", pooling=request.param)


def test_encodes_in_the_callers_order(encoder):
    together = encoder.encode(TEXTS)
    assert together.shape == (5, encoder.dim) and together.dtype == np.float32
    for text, row in zip(TEXTS, together, strict=True):
        assert_allclose(encoder.encode([text])[0], row, atol=1e-5)


def test_an_embedding_does_not_depend_on_its_batch(encoder, monkeypatch):
    texts = [" ".join(["word"] * (1 + i % 40)) + f" {i}" for i in range(300)]
    whole = encoder.encode(texts)
    monkeypatch.setattr(engine, "token_budget", lambda device: 64)
    assert_allclose(encoder.encode(texts), whole, atol=1e-5)


def test_equals_the_plain_padded_forward(encoder):
    batch = encoder.tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        plain = encoder.embed(batch["input_ids"], batch["attention_mask"]).numpy()
    assert_allclose(encoder.encode(TEXTS), plain, atol=1e-5)


def test_each_distinct_text_is_embedded_once(encoder, monkeypatch):
    seen = []
    original = encoders.Encoder.embed
    monkeypatch.setattr(
        encoders.Encoder, "embed", lambda self, ids, mask: seen.append(len(ids)) or original(self, ids, mask)
    )
    encoder.encode(TEXTS * 50)
    assert sum(seen) == len(set(TEXTS))


def test_encode_draws_no_dropout_and_restores_the_mode(encoder):
    encoder.trunk.train()
    assert_allclose(encoder.encode(TEXTS), encoder.encode(TEXTS), atol=0)
    assert encoder.trunk.training
    encoder.trunk.eval()


def test_normalized_rows_have_length_one_and_no_text_gives_no_row(encoder):
    assert_allclose(np.linalg.norm(encoder.encode(TEXTS, normalize=True), axis=1), 1, atol=1e-6)
    assert encoder.encode([]).shape == (0, encoder.dim)


def test_save_and_load_round_trip_exactly(encoder, tmp_path):
    again = encoders.load(encoder.save(tmp_path / "saved"))
    assert (again.settings.pooling, again.settings.max_tokens) == (
        encoder.settings.pooling,
        encoder.settings.max_tokens,
    )
    assert np.array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
    assert again.fingerprint == encoder.fingerprint


def test_tiny_is_its_seed_and_leaves_the_random_state_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    same, other = encoders.load("tiny", seed=1), encoders.load("tiny", seed=2)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(same.encode(TEXTS), encoders.load("tiny", seed=1).encode(TEXTS))
    assert not np.allclose(same.encode(TEXTS), other.encode(TEXTS))


def test_bfloat16_is_close_and_still_returns_float32():
    half, whole = encoders.load("tiny", dtype="bfloat16"), encoders.load("tiny")
    vectors = half.encode(TEXTS, normalize=True)
    assert vectors.dtype == np.float32
    assert ((vectors * whole.encode(TEXTS, normalize=True)).sum(1) > 0.99).all()


def test_texts_over_the_limit_are_cut_and_counted():
    short = encoders.load("tiny", max_tokens=8)
    with pytest.warns(UserWarning, match=r"3 of 4 texts are longer than 8 tokens \(the longest has \d+\)"):
        vectors = short.encode(TEXTS)
    assert np.isfinite(vectors).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        short.encode(["rain"])


@pytest.mark.parametrize("bad", ["", "   ", None, 3])
def test_empty_text_is_refused_by_its_position(bad):
    with pytest.raises(ValueError, match="text 1 is .*drop it or give it words"):
        encoders.load("tiny").encode(["fine", bad])


def test_minilm_reads_its_own_settings():
    encoder = encoders.load("minilm")
    assert (encoder.dim, encoder.settings.pooling, encoder.settings.max_tokens) == (384, "mean", 256)


def test_minilm_equals_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    from pcclab.encoders.masked import _package_folder

    theirs = SentenceTransformer(_package_folder(), device="cpu").encode(TEXTS)
    assert_allclose(encoders.load("minilm").encode(TEXTS, normalize=True), theirs, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "minilmm"}, "unknown encoder 'minilmm'.*give 'minilm', 'tiny', a folder"),
        ({"name": "tiny", "pooling": "max"}, "unknown pooling 'max'"),
        ({"name": "tiny", "max_tokens": 513}, "max_tokens is 513: tiny takes 3 to 512"),
        (
            {"name": "tiny", "prompt": "EOL"},
            "prompt='EOL' is for a language model, which tiny is not",
        ),
        ({"name": "tiny", "quantization": "nf4"}, "quantization='nf4' is for"),
        ({"name": "tiny", "dtype": "float8"}, "dtype is 'float8'"),
    ],
)
def test_bad_arguments_are_told(arguments, message):
    with pytest.raises(ValueError, match=message):
        encoders.load(**arguments)


def test_a_folder_without_weights_or_with_broken_ones_is_told(tmp_path):
    folder = encoders.load("tiny").save(tmp_path / "saved")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="weights of .* cannot be read .*truncated"):
        encoders.load(folder)
    weights.unlink()
    with pytest.raises(ValueError, match=r"has no weights \(\*\.safetensors\)"):
        encoders.load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(ValueError, match="has no config.json"):
        encoders.load(folder)


def test_missing_tensors_are_not_filled_with_random_numbers(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = encoders.load("tiny").save(tmp_path / "saved")
    tensors = load_file(folder / "model.safetensors")
    tensors.pop("encoder.layer.1.output.dense.weight")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ValueError, match="no weights for 1 tensors, the first is .*layer.1.output.dense.weight"):
        encoders.load(folder)


def test_a_sentence_transformers_folder_with_more_modules_is_refused(tmp_path):
    folder = encoders.load("tiny").save(tmp_path / "saved")
    (folder / "pcclab.json").unlink()
    (folder / "modules.json").write_text(json.dumps([{"type": "sentence_transformers.models.LSTM"}]))
    with pytest.raises(ValueError, match="adds LSTM: only trunk, pooling, dense layers"):
        encoders.load(folder)


def test_a_full_disk_leaves_the_old_save_alone(tmp_path, monkeypatch):
    encoder = encoders.load("tiny")
    folder = encoder.save(tmp_path / "models" / "saved")
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("usage", (), {"free": 1000})())
    with pytest.raises(OSError, match="MB free: make room"):
        encoder.save(folder)
    assert np.array_equal(encoders.load(folder).encode(TEXTS), encoder.encode(TEXTS))
    assert [p.name for p in folder.parent.iterdir()] == ["saved"]
