"""Language models as encoders: the template's last token is the embedding, alone, in any batch, under any padding."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from transformers import AutoModel

from pcclab import encoders
from pcclab.encoders import LoRA, adapters, prompts, templates, tiny_causal
from pcclab.encoders.batching import pad

TEXTS = [
    "a grey heron waits.",
    "!",
    'She said "stay", and left\nthe room',
    "emoji 🙂👩‍🚀 and ümlaut — all of it is text",
    "<s> looks like a token </s>",
    "one",
    " ".join(["long"] * 90),
]


@pytest.fixture(params=list(tiny_causal.FAMILIES))
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def encoder(family: str) -> encoders.CausalEncoder:
    loaded = encoders.load(family, prompt="STH")
    assert isinstance(loaded, encoders.CausalEncoder)
    return loaded


def test_an_embedding_is_the_same_alone_in_any_batch_and_under_either_padding(encoder: Any) -> None:
    together = encoder.encode(TEXTS)
    assert together.shape == (len(TEXTS), encoder.dim) and np.isfinite(together).all()
    rows = encoder.tokenize(TEXTS)
    for side in ("left", "right"):
        ids, mask = pad(rows, encoder.tokenizer.pad_token_id, side=side)
        with torch.no_grad():
            assert_allclose(encoder.embed(ids, mask).numpy(), together, atol=1e-5)
    for text, row in zip(TEXTS, together, strict=True):
        assert_allclose(encoder.encode([text])[0], row, atol=1e-5)


def test_it_is_the_plain_forward_at_the_templates_last_token(encoder: Any) -> None:
    for text in TEXTS[:6]:
        plain = encoder.tokenizer(prompts.fill("STH", text), return_tensors="pt")
        assert plain["input_ids"][0].tolist() == encoder.tokenize([text])[0]
        assert encoder.tokenizer.decode(plain["input_ids"][0, -5:]).endswith("something")
        with torch.no_grad():
            hidden = encoder.trunk(**plain).last_hidden_state[0, -1]
        assert_allclose(encoder.encode([text])[0], hidden.numpy(), atol=1e-5)


def test_id_0_is_a_real_token_that_counts(encoder: Any) -> None:
    """The published code takes id 0 for padding and masks it away."""
    assert encoder.tokenizer.convert_ids_to_tokens(0) == "!"
    one, two = encoder.encode(["stop", "stop!"])
    assert np.abs(one - two).max() > 1e-3
    assert encoder.tokenizer.pad_token_id != 0


def test_a_text_begins_as_the_family_begins_it(encoder: Any, family: str) -> None:
    first = encoder.tokenizer.convert_ids_to_tokens(encoder.tokenize(["a"])[0][0])
    assert first == (tiny_causal.FAMILIES[family][2] or "T")


@pytest.mark.parametrize("template", ["EOL", "SUM", "STH", "Say [X] in a word:", ""])
def test_the_sentence_is_cut_and_never_the_template(template: str) -> None:
    encoder: Any = encoders.load("tiny-llama", prompt=template)
    long = " ".join(["heron"] * 10_000)
    with pytest.warns(
        UserWarning, match=r"1 of 2 texts are longer than 32 tokens \(the longest has \d+\) and were cut"
    ):
        short, cut = encoder.tokenize(["heron", long], max_tokens=32)
    end = prompts.fill(template, "").split('"')[-1] if template in prompts.TEMPLATES else ""
    assert encoder.tokenizer.decode(cut).endswith(end)
    around = templates.overhead(encoder.tokenizer, template)
    assert around < len(short)
    assert len(cut) == 32 + around
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (fits,) = encoder.tokenize([" ".join(["heron"] * 8)], max_tokens=32)
    assert len(fits) <= 32 + around
    with pytest.warns(UserWarning, match="were cut"):
        assert np.isfinite(encoder.encode([long])).all()


def test_a_token_of_sentence_and_template_is_the_templates() -> None:
    encoder: Any = encoders.load("tiny-llama", prompt="STH")
    whole = encoder.tokenizer.convert_ids_to_tokens(encoder.tokenize(["It rained."])[0])
    assert '."' in whole
    with pytest.warns(UserWarning, match="were cut"):
        (cut,) = encoder.tokenize(["It rained."], max_tokens=1)
    assert encoder.tokenizer.decode(cut) == '<s>This sentence : "I." means something'


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_sentence_is_refused(empty: str) -> None:
    with pytest.raises(ValueError, match="text 1 is .* an empty text has no embedding"):
        encoders.load("tiny-opt", prompt="EOL").encode(["a", empty])


def test_both_ways_reads_what_follows() -> None:
    one, other = ("first word and an ending", "first word and a middle")
    models: Any = {way: encoders.load("tiny-gemma", attention=way) for way in ("causal", "bidirectional")}
    seen = {}
    for way, encoder in models.items():
        states = []
        for text in (one, other):
            ids = torch.tensor([encoder.tokenize([text])[0]])
            with torch.no_grad():
                states.append(encoder.trunk(input_ids=ids).last_hidden_state[0, 2])
        seen[way] = float((states[0] - states[1]).abs().max())
        padded = encoder.encode([one, "x"])
        assert_allclose(encoder.encode([one])[0], padded[0], atol=1e-5)
    assert seen["causal"] < 1e-6 < 1e-3 < seen["bidirectional"]
    assert models["causal"].fingerprint != models["bidirectional"].fingerprint


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prompt": "no slot"}, r"has 0 slots \[X\]"),
        ({"prompt": "[X] and [X]"}, "has 2 slots"),
        ({"pooling": "cls"}, "pooling='cls' says nothing of a model that reads left to right"),
        ({"attention": "bidirectional"}, "attention='bidirectional' is not offered for llama"),
        ({"attention": "both"}, "choose causal or bidirectional"),
        ({"quantization": "fp4"}, "quantization='fp4': choose one of none, nf4, int8"),
        ({"adapter": {"rank": 0}}, "adapter has rank 0"),
        ({"adapter": {"r": 4}}, "give a LoRA, or a mapping with rank, alpha and dropout"),
        ({"max_tokens": 600, "prompt": "STH"}, r"max_tokens is 600: tiny-llama takes 3 to 489"),
        ({"layers": 1}, "layers=1 is for a masked encoder, and tiny-llama is a language model"),
    ],
)
def test_what_does_not_fit_is_told(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        encoders.load("tiny-llama", **options)


class TestSaved:
    def test_a_whole_model_comes_back_and_transformers_reads_it(self, encoder: Any, tmp_path: Path) -> None:
        encoder.save(tmp_path / "m")
        again: Any = encoders.load(tmp_path / "m")
        assert_array_equal(again.encode(TEXTS), encoder.encode(TEXTS))
        assert again.settings.template == "STH" and again.fingerprint == encoder.fingerprint
        assert AutoModel.from_pretrained(tmp_path / "m").config.hidden_size == encoder.dim
        assert encoders.load(tmp_path / "m", prompt="EOL").fingerprint != encoder.fingerprint

    def test_a_folder_of_transformers_is_taken_for_a_language_model(self, family: str, tmp_path: Path) -> None:
        letters = tiny_causal.tokenizer(family)
        tiny_causal.trunk(family, len(letters), 3).save_pretrained(tmp_path)
        letters.save_pretrained(tmp_path)
        loaded: Any = encoders.load(tmp_path, prompt="SUM")
        assert isinstance(loaded, encoders.CausalEncoder)
        assert_allclose(loaded.encode(TEXTS), encoders.load(family, prompt="SUM", seed=3).encode(TEXTS), atol=1e-6)

    @pytest.mark.parametrize("quantization", ["none", "nf4", "int8"])
    def test_an_adapter_is_saved_alone_and_goes_on(self, quantization: Any, tmp_path: Path) -> None:
        encoder: Any = encoders.load(
            "tiny-mistral", prompt="EOL", adapter=LoRA(rank=4, alpha=8), quantization=quantization, seed=5
        )
        for weights in encoder.weights:
            torch.nn.init.normal_(weights.data, std=0.2, generator=torch.Generator().manual_seed(1))
        encoder.save(tmp_path / "a")
        files = {path.name for path in (tmp_path / "a").iterdir()}
        assert {"adapter_model.safetensors", "adapter_config.json"} < files and "model.safetensors" not in files
        told = json.loads((tmp_path / "a" / "adapter_config.json").read_text())
        assert told["base_model_name_or_path"] == "tiny-mistral" and told["r"] == 4
        again: Any = encoders.load(tmp_path / "a")
        assert again.settings.adapter == {"rank": 4, "alpha": 8.0, "dropout": 0.05}
        assert again.settings.quantization == quantization and again.settings.base == "tiny-mistral"
        assert again.fingerprint == encoder.fingerprint
        assert_allclose(again.encode(TEXTS), encoder.encode(TEXTS), atol=0.05 if quantization != "none" else 0)
        assert all(ours.equal(theirs) for ours, theirs in zip(again.weights, encoder.weights, strict=True))
        # Asked for by name the base may be stored in another way.
        plain: Any = encoders.load(tmp_path / "a", quantization="none", dtype="float32")
        assert plain.settings.quantization == "none"
        with pytest.raises(ValueError, match="holds LoRA.*rank=4.*was asked for"):
            encoders.load(tmp_path / "a", adapter={"rank": 8})

    def test_merged_it_gives_the_same_and_is_saved_whole(self, family: str, tmp_path: Path) -> None:
        encoder: Any = encoders.load(family, prompt="STH", adapter={"rank": 4, "dropout": 0.0})
        for weights in encoder.weights:
            torch.nn.init.normal_(weights.data, std=0.1, generator=torch.Generator().manual_seed(2))
        before = encoder.encode(TEXTS)
        merged = encoder.merged()
        assert_allclose(merged.encode(TEXTS), before, atol=1e-4)
        merged.save(tmp_path / "m")
        assert not (tmp_path / "m" / "adapter_config.json").exists()
        assert_allclose(encoders.load(tmp_path / "m").encode(TEXTS), before, atol=1e-4)
        with pytest.raises(ValueError, match="only an adapter on weights that are not quantised can be merged"):
            merged.merged()

    def test_a_damaged_or_foreign_adapter_is_told(self, tmp_path: Path) -> None:
        encoder: Any = encoders.load("tiny-llama", adapter={"rank": 2})
        encoder.save(tmp_path / "a")
        with pytest.raises(ValueError, match=r"cannot be read \(.* tensors differ"):
            adapters.restore(encoders.load("tiny-opt", adapter={"rank": 2}).trunk, tmp_path / "a")
        with pytest.raises(ValueError, match="cannot be read"):
            adapters.restore(encoders.load("tiny-llama", adapter={"rank": 3}).trunk, tmp_path / "a")
        file = tmp_path / "a" / "adapter_model.safetensors"
        file.write_bytes(file.read_bytes()[:-100])
        with pytest.raises(ValueError, match="save the adapter again"):
            encoders.load(tmp_path / "a")

    def test_quantised_weights_alone_have_nothing_to_save(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="has nothing that was trained"):
            encoders.load("tiny-llama", quantization="nf4").save(tmp_path / "a")
        assert not (tmp_path / "a").exists()


def test_a_new_adapter_changes_nothing_and_covers_every_linear_layer(family: str) -> None:
    plain, fitted = encoders.load(family), encoders.load(family, adapter={"rank": 4, "dropout": 0.0})
    assert_allclose(fitted.encode(TEXTS), plain.encode(TEXTS), atol=1e-6)
    linear = [name for name, module in plain.trunk.named_modules() if isinstance(module, torch.nn.Linear)]
    assert len(fitted.weights) == 2 * len(linear)
    assert all(weights.dtype == torch.float32 for weights in fitted.weights)


def test_loading_leaves_the_random_state_alone(family: str) -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    encoders.load(family, adapter={"rank": 2})
    assert before.equal(torch.get_rng_state())
