"""A rehearsed micro-batch against a real one: bytes kept, bytes at the most, operations."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, LlamaConfig

from pcclab.encoders import adapters
from pcclab.encoders.blueprint import Blueprint, blueprint
from pcclab.training import rhythm
from pcclab.training.rehearsal import Live, Way, rehearse

LORA = {"rank": 4, "alpha": 8.0, "dropout": 0.05}


def drawn_as(name: str) -> Blueprint:
    return blueprint(name, prompt="EOL", adapter=LORA) if "-" in name else blueprint(name)


def measured(drawn: Blueprint, texts: int, width: int, way: Way) -> tuple[int, int, int, int]:
    """Bytes that autograd was given to keep, bytes at the most, and operations of both ways, of the real model."""
    pooler = {} if drawn.reads_on else {"add_pooling_layer": False}
    trunk = AutoModel.from_config(type(drawn.config).from_dict(drawn.config.to_dict()), **pooler)
    if drawn.adapter is not None:
        adapters.attach(trunk, drawn.adapter, base="", revision="", seed=0)
    trunk.train()
    rhythm.recompute(trunk, way.recompute)
    for weights in trunk.parameters():
        weights.grad = torch.zeros_like(weights) if weights.requires_grad else None
    own = [*trunk.parameters(), *trunk.buffers(), *(w.grad for w in trunk.parameters() if w.grad is not None)]
    known, kept = {tensor.untyped_storage().data_ptr() for tensor in own}, {}
    ids = torch.randint(5, 300, (texts, width))
    options = {"use_cache": False} if drawn.reads_on else {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    flops = FlopCounterMode(display=False)
    with Live([*own, ids]) as live, nullcontext() if way.recompute else flops:
        half = torch.autocast("cpu", dtype=torch.bfloat16, enabled=way.half)
        with half, torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            vectors = trunk(input_ids=ids, **options).last_hidden_state.mean(1)
        forward = flops.get_total_flops()
        vectors.backward(torch.ones_like(vectors))
    return sum(kept.values()), live.peak, forward, flops.get_total_flops() - forward


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["tiny", "tiny-llama", "tiny-mistral", "tiny-opt", "tiny-gemma", "tiny-qwen"])
def test_kept_activations_and_peak_are_those_of_the_real_model(name: str, half: bool) -> None:
    drawn = drawn_as(name)
    for texts, width in ((8, 24), (32, 24)):
        way = Way(half=half, recompute=False, cuda=False)
        cost, (kept, peak, forward, back) = rehearse(drawn, texts, width, way), measured(drawn, texts, width, way)
        assert cost.kept == pytest.approx(kept, rel=0.02)
        assert cost.peak == pytest.approx(peak, rel=0.02)
        assert (cost.forward, cost.back) == pytest.approx((forward, back), rel=0.01)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["tiny", "tiny-mistral", "tiny-opt"])
def test_recomputing_needs_what_the_real_model_needs(name: str) -> None:
    drawn, peaks = drawn_as(name), []
    for texts, width in ((8, 24), (32, 24)):
        way = Way(half=False, recompute=True, cuda=False)
        cost, (_, peak, _, _) = rehearse(drawn, texts, width, way), measured(drawn, texts, width, way)
        assert cost.peak == pytest.approx(peak, rel=0.03)
        peaks.append(cost.peak)
        plain = rehearse(drawn, texts, width, Way(half=False, recompute=False, cuda=False))
        assert cost.kept < 0.2 * plain.kept and cost.back == plain.back + plain.forward
    assert peaks[0] < peaks[1]


def test_a_deep_model_follows_from_two_short_ones(tmp_path: Path) -> None:
    sizes: dict[str, Any] = {"hidden_size": 128, "intermediate_size": 352, "num_attention_heads": 4, "vocab_size": 500}
    LlamaConfig(**sizes, num_hidden_layers=9).save_pretrained(tmp_path)
    drawn = blueprint(str(tmp_path), prompt="EOL", adapter=LORA)
    for recompute in (False, True):
        way = Way(half=False, recompute=recompute, cuda=False)
        cost, (kept, peak, forward, _) = rehearse(drawn, 16, 20, way), measured(drawn, 16, 20, way)
        assert cost.peak == pytest.approx(peak, rel=0.03)
        assert recompute or (cost.kept, cost.forward) == pytest.approx((kept, forward), rel=0.02)


def test_an_evaluation_keeps_nothing_and_quantised_weights_keep_no_input() -> None:
    drawn = drawn_as("tiny-llama")
    reading = rehearse(drawn, 16, 20, Way(half=False, recompute=False, cuda=False, trains=False))
    way = Way(half=False, recompute=False, cuda=False)
    assert reading.kept == 0 and reading.back == 0 and 0 < reading.peak < rehearse(drawn, 16, 20, way).peak
    kept = {}
    for quantization in ("none", "nf4", "int8"):
        packed = blueprint("tiny-llama", prompt="EOL", adapter=LORA, quantization=quantization, cuda=True)
        kept[quantization] = rehearse(packed, 16, 20, Way(half=True, recompute=False, cuda=True)).kept
    assert kept["nf4"] < kept["int8"] and kept["nf4"] <= kept["none"]


def test_a_graphic_card_keeps_no_attention_matrix_and_norms_in_full() -> None:
    narrow, wide = ({cuda: rehearse(drawn_as("tiny"), 8, width, Way(False, False, cuda)).kept for cuda in (True, False)}
                    for width in (16, 64))  # fmt: skip
    assert wide[True] == pytest.approx(4 * narrow[True], rel=0.02) and wide[False] > 4.5 * narrow[False]
    half = blueprint("tiny-opt", prompt="EOL", adapter=LORA, cuda=True)
    opt = {cuda: rehearse(half, 8, 24, Way(True, False, cuda)).kept for cuda in (True, False)}
    assert opt[True] > opt[False]
