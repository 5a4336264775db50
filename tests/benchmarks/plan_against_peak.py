"""What `pcclab plan` says of a training step and of an evaluation, beside what they take: plan, measured, ratio.

On a GPU: Mistral-7B from its config, random weights in NF4, LoRA of rank 64, stage 1 (224 triplets) or 2 (216 pairs):

python tests/benchmarks/plan_against_peak.py 1            # and 2
python tests/benchmarks/plan_against_peak.py 2 -p recompute=true -p keep_tokens=34048

Without one a LLaMA of about 50 million weights takes its place, counted on the CPU by a tally of live tensors, and the
output says so. Needs torch, transformers, peft, pydantic and, for nf4, bitsandbytes; no data, hub or run.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import AutoModel, LlamaConfig

sys.path.insert(0, str(Path(__file__).parent))
from _measure import keep

from pcclab import losses
from pcclab.encoders import adapters, blueprint
from pcclab.encoders.pooling import pool
from pcclab.parameters import load_file, read_overrides
from pcclab.training import FitSettings, cached, cards, rhythm
from pcclab.training.rehearsal import Live
from pcclab.workflows import batches, planning

NOTEBOOKS = {1: "02_stage1_contrastive", 2: "03_stage2_pcc_tuning"}
BATCH = {1: 224, 2: 216}
SMALL = {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8, "num_attention_heads": 8}
ROOT = Path(__file__).resolve().parents[2]
HOW = (
    "the training step of pcclab.training.cached with AdamW, gradients clipped, on the lengths the plan drew, its "
    "heaviest batch among them; random weights and token ids; plan: bytes of tensors at the most, nothing added for "
    "what is around; measured: torch.cuda.max_memory_allocated on a GPU, on a CPU live tensors by a dispatch mode"
)


def made(drawn: Any, device: torch.device) -> nn.Module:
    """The model of a blueprint with random weights, quantised as the blueprint says."""
    torch.manual_seed(0)
    with torch.device("meta"):
        trunk = AutoModel.from_config(drawn.config, dtype=drawn.dtype)
    for name, weights in list(trunk.named_parameters()):
        owner, _, last = name.rpartition(".")
        module = trunk.get_submodule(owner)
        values = torch.randn(weights.shape, device=device, dtype=weights.dtype) * 0.02
        if drawn.quantization == "nf4" and isinstance(module, nn.Linear):
            if last == "weight":
                _pack(trunk, owner, module, values, device)
            continue
        setattr(module, last, nn.Parameter(values))
    # What a config computes for itself, such as the frequencies of positions, a model on meta has no values of.
    small = AutoModel.from_config(type(drawn.config).from_dict({**drawn.config.to_dict(), "num_hidden_layers": 1}))
    for name, buffer in small.named_buffers():
        owner, _, last = name.rpartition(".")
        trunk.get_submodule(owner).register_buffer(last, buffer.to(device), persistent=False)
    if drawn.adapter is not None:
        trunk.is_loaded_in_4bit = drawn.quantization == "nf4"
        adapters.attach(trunk, drawn.adapter, base="random", revision="", seed=0)
        trunk.to(device) if drawn.quantization == "none" else None
        for weights in adapters.trained(trunk).values():
            weights.data = weights.data.to(device)
    return trunk


def _pack(trunk: nn.Module, name: str, linear: nn.Linear, values: torch.Tensor, device: torch.device) -> None:
    from bitsandbytes.nn import Linear4bit, Params4bit

    packed = Linear4bit(linear.in_features, linear.out_features, linear.bias is not None, compute_dtype=values.dtype,
                        quant_type="nf4", device="meta")  # fmt: skip
    stored = Params4bit(values, requires_grad=False, quant_type="nf4", compress_statistics=True)
    packed.weight = stored.to(device)
    if linear.bias is not None:
        packed.bias = nn.Parameter(torch.zeros(linear.out_features, device=device, dtype=values.dtype))
    trunk.set_submodule(name, packed)


def objective(stage: int, rows: int, temperature: float) -> Any:
    """The stage's loss of a batch's embeddings."""

    def loss(embeddings: torch.Tensor) -> torch.Tensor:
        sides = embeddings.float().split(rows)
        if stage == 1:
            return losses.info_nce(*sides, temperature=temperature)
        gold = torch.linspace(0, 5, rows, device=embeddings.device)
        return losses.pearson(functional.cosine_similarity(*sides), gold)

    return loss


def measure(stage: int, plan: planning.Plan, lengths: list[list[int]]) -> dict[str, Any]:
    """Peaks of training steps and of an evaluation, and seconds of a step, beside the plan's."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trunk, settings = made(plan.blueprint, device), FitSettings.of(plan.parameters)
    rhythm.recompute(trunk, settings.recompute)
    weights = [*trunk.parameters(), *trunk.buffers()]
    resident = sum(w.numel() * w.element_size() for w in weights)
    trained = [w for w in trunk.parameters() if w.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-5, fused=True)
    half = torch.autocast(device.type, dtype=torch.bfloat16, enabled=settings.dtype == "bfloat16")

    def embed(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        with half if torch.is_grad_enabled() or trunk.training else nullcontext():
            return pool("last", (trunk(input_ids=ids, use_cache=False).last_hidden_state,), mask)

    rows = len(lengths[0]) // (3 if stage == 1 else 2)
    seconds = []
    trunk.train()
    counted: Any = nullcontext() if device.type == "cuda" else Live(weights)
    with counted:
        for step in lengths:
            tokens = [torch.randint(5, 400, (n,)).tolist() for n in step]
            began = _now(device)
            cached.backward(embed, tokens, objective(stage, rows, 0.05), pad_id=0, device=device,
                            micro_tokens=settings.micro_tokens, keep_tokens=settings.keep_tokens)  # fmt: skip
            nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            optimizer.zero_grad()
            seconds.append(_now(device) - began)
        stepped = _peak(counted, resident)
        trunk.eval()
        each = max(1, round(plan.works[0].tokens / plan.works[0].texts))
        ids = torch.randint(5, 400, (plan.card.budget // each, each), device=device)
        with torch.inference_mode():
            embed(ids, torch.ones_like(ids))
        judged = _peak(counted, resident)
    told = {"a step": (plan.moments()["in a step"], stepped)}
    # The optimiser is still held here, as at a look at the development set.
    told["an evaluation"] = (plan.moments()["in the tests"] + 2 * plan.sizes.trained_bytes, judged)
    whole = sorted(seconds[1:] or seconds)[len(seconds[1:]) // 2]
    peaks = {what: {"plan": a / 2**30, "measured": b / 2**30, "ratio": a / b} for what, (a, b) in told.items()}
    # Of all steps but the first, which also finds its kernels; the operations are those of a mean step.
    done = plan.operations(plan.works[0])
    return {
        "peaks_gib": peaks,
        "seconds_a_step": round(whole, 3),
        "tokens_a_second": round(plan.works[0].tokens / whole, 1),
        "tflops": round(done / whole / 1e12, 4),
    }  # fmt: skip


def _now(device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def _peak(counted: Any, resident: int) -> int:
    """Largest bytes since the last call."""
    if not isinstance(counted, Live):
        peak = torch.cuda.max_memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return int(peak)
    peak, counted.peak = counted.peak + resident, counted.now
    return peak


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("stage", type=int, choices=(1, 2))
    asked.add_argument("--set", default="paper_mistral_eol")
    asked.add_argument("-p", action="append", default=[], metavar="NAME=VALUE")
    asked.add_argument("--steps", type=int, default=4)
    asked.add_argument("--keep", action="store_true", help="write figures/benchmarks/plan_against_peak_stage*.json")
    given = asked.parse_args()
    name, gpu = NOTEBOOKS[given.stage], torch.cuda.is_available()
    small = [] if gpu else ["quantization=none", "batch_size=16", "micro_tokens=512", "keep_tokens=0", "dtype=float32"]
    values = {"batch_size": BATCH[given.stage], **read_overrides(name, small), **read_overrides(name, given.p)}
    p = load_file(name, ROOT / "parameters" / name / f"{given.set}.yaml", values)
    if not gpu:
        print("no GPU here: a LLaMA of about 50 million weights on the CPU, live tensors counted; the 7B needs a GPU")
        blueprint.BACKBONES[p.encoder] = (LlamaConfig, {**SMALL, "vocab_size": 32000})
    plan = planning.plan(name, p, cards.here(), rate=1e12, cards=1)
    steps = batches.lengths_of(name, p, plan.blueprint)
    heaviest = max(steps, key=lambda step: np.prod(batches.graph(step, FitSettings.of(p))[0]))
    result = measure(given.stage, plan, [*steps[: given.steps - 1], heaviest])
    model = p.encoder if gpu else "LLaMA of 50 million weights"
    print(f"{plan.card.name}, torch {torch.__version__}, {model}, {p.quantization}, batch of {p.batch_size}, {given}")
    for what, told in result["peaks_gib"].items():
        print(
            f"{what:<14} plan {told['plan']:8.3f} GiB  measured {told['measured']:8.3f} GiB  ratio {told['ratio']:.3f}"
        )
    print({name: value for name, value in result.items() if name != "peaks_gib"})
    if given.keep:
        print(keep(f"plan_against_peak_stage{given.stage}", HOW, {"device": plan.card.name, **result}))


if __name__ == "__main__":
    main()
