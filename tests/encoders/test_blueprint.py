"""An encoder's blueprint: the sizes of what would be loaded, from its config alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel, LlamaConfig

from pcclab import encoders
from pcclab.encoders import tiny_causal
from pcclab.encoders.blueprint import BACKBONES, blueprint

LORA = {"rank": 4, "alpha": 8.0, "dropout": 0.05}
TEXTS = ["a grey heron waits.", "!", "the tide went out and it waited there " * 4]
PUBLISHED = {
    # weights of the model without its head over the vocabulary, and of LoRA of rank 64 on every linear layer
    "facebook/opt-6.7b": (6_658_473_984, 32 * 64 * (4 * 2 * 4096 + 2 * (4096 + 16384))),
    "huggyllama/llama-7b": (6_738_415_616 - 32000 * 4096, 32 * 64 * (4 * 2 * 4096 + 3 * (4096 + 11008))),
    "meta-llama/Llama-2-7b-hf": (6_738_415_616 - 32000 * 4096, 32 * 64 * (4 * 2 * 4096 + 3 * (4096 + 11008))),
    "mistralai/Mistral-7B-v0.1": (
        7_241_732_096 - 32000 * 4096,
        32 * 64 * (2 * 2 * 4096 + 2 * (4096 + 1024) + 3 * (4096 + 14336)),
    ),
}


@pytest.mark.parametrize("adapter", [None, LORA])
@pytest.mark.parametrize("family", list(tiny_causal.FAMILIES))
def test_a_language_models_weights_are_those_of_the_built_one(family: str, adapter: Any) -> None:
    built = encoders.load(family, prompt="STH", adapter=adapter, device="cpu")
    sizes = blueprint(family, prompt="STH", adapter=adapter).sizes()
    trained = [weights for weights in built.trunk.parameters() if weights.requires_grad]
    assert sizes.trained == sum(weights.numel() for weights in trained)
    assert sizes.trained + sizes.frozen == sum(weights.numel() for weights in built.trunk.parameters())
    assert sizes.trained_bytes == sum(weights.numel() * weights.element_size() for weights in trained)


@pytest.mark.parametrize("name", ["tiny", "minilm"])
def test_a_masked_encoders_weights_are_those_of_the_built_one(name: str) -> None:
    built = encoders.load(name, device="cpu")
    drawn = blueprint(name)
    assert drawn.sizes().trained == sum(weights.numel() for weights in built.trunk.parameters())
    assert drawn.sizes().frozen == 0 and not drawn.reads_on and drawn.width == built.dim


@pytest.mark.parametrize("name", ["minilm", "tiny", "tiny-mistral", "tiny-opt"])
def test_texts_are_as_long_as_training_reads_them(name: str) -> None:
    prompt = "EOL" if name in tiny_causal.FAMILIES else None
    built, drawn = encoders.load(name, prompt=prompt, device="cpu"), blueprint(name, prompt=prompt)
    with pytest.warns(UserWarning, match="were cut"):
        rows = built.tokenize(TEXTS, max_tokens=12)
    lengths = drawn.lengths(TEXTS, 12)
    assert lengths is not None and lengths.tolist() == [len(row) for row in rows]


@pytest.mark.parametrize("name", list(BACKBONES))
def test_the_papers_backbones_have_their_published_weights(name: str) -> None:
    drawn = blueprint(name, prompt="EOL", adapter={"rank": 64}, quantization="nf4", cuda=True)
    sizes = drawn.sizes()
    assert (sizes.frozen, sizes.trained) == PUBLISHED[name]
    assert drawn.origin.startswith("published") and drawn.depth == 32 and drawn.width == 4096
    assert all(weights.device.type == "meta" for weights in drawn.trunk(2).parameters())
    # QLoRA's own figure: half a byte and 0.127 bits a weight; embeddings and norms stay in two bytes.
    outside = {"facebook/opt-6.7b": 50272 + 2050}.get(name, 32000) * 4096
    assert sizes.frozen_bytes == pytest.approx((sizes.frozen - outside) * (0.5 + 0.127 / 8) + 2 * outside, rel=2e-3)


@pytest.mark.filterwarnings("ignore")
def test_nf4_takes_what_bitsandbytes_takes() -> None:
    from bitsandbytes.nn import Linear4bit

    built = encoders.load("tiny-llama", prompt="STH", adapter=LORA, quantization="nf4", device="cpu")
    packed = [module for module in built.trunk.modules() if type(module) is Linear4bit]
    scales = 0
    for module in packed:
        state: Any = module.weight.quant_state
        scales += state.absmax.numel() * state.absmax.element_size() + state.state2.absmax.numel() * 4
    frozen = sum(w.numel() * w.element_size() for w in built.trunk.parameters() if not w.requires_grad)
    drawn = blueprint("tiny-llama", prompt="STH", adapter=LORA, quantization="nf4")
    assert drawn.dtype is torch.bfloat16 and len(packed) == 14
    assert drawn.sizes().frozen_bytes == pytest.approx(frozen + scales, rel=2e-3)


def test_a_folder_without_weights_is_enough_and_nothing_else_is(tmp_path: Path) -> None:
    config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=8, num_attention_heads=8)
    config.save_pretrained(tmp_path)
    drawn = blueprint(str(tmp_path), prompt="EOL", adapter=LORA)
    with torch.device("meta"):
        assert drawn.sizes().frozen == sum(weights.numel() for weights in AutoModel.from_config(config).parameters())
    assert drawn.origin == "its folder" and drawn.reads_on and drawn.lengths(TEXTS, 32) is None
    assert drawn.overhead() == 12  # the eleven words and marks of EOL, and what begins a text
    with pytest.raises(ValueError, match="unknown encoder 'no/such-model'"):
        blueprint("no/such-model")
