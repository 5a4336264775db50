"""A 7B on one GPU: steps of stage 1 and 2 and STS inference, this lab's way against the published one.

python tests/benchmarks/seven_billion.py --keep          # on an H100 or H200; about 10 minutes, 45 GB of disk and GPU
python tests/benchmarks/seven_billion.py --small         # a tiny model on the CPU, seconds: shows only that it runs

`--only stage1` (stage2, inference) does one part, `--folder F` keeps the random model there for the next call. What is
measured is written after each part, to `--out` and, with `--keep`, to figures/benchmarks/seven_billion.json. It needs
torch, transformers, peft, accelerate, bitsandbytes and what pcclab.encoders imports, and no data, hub or notebook.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parent))
from _measure import keep, turn_about
from _recipes import CONFIGS, LENGTHS, Ours, Published, Task, difference, same_start, save_random, texts

from pcclab import encoders, files
from pcclab.encoders import LoRA

HOW = (
    "random values; NF4 with double quantisation, LoRA of rank 64 on every linear layer, bfloat16; tokens at random "
    "inside the template STH, in the lengths the data have with Mistral's tokenizer (SNLI triplets cut at 32, STS-B "
    "+ SICK-R pairs at 64, the distinct sentences of the seven tasks). published: 4-bit products in float32 under "
    "float16 autocast, logits over the vocabulary, all hidden states, left padding to the longest, the batch "
    "accumulated in as many parts as the card needs, at least 4, with and without recomputing layers. ours: the "
    "exact batch, cached in micro-batches, or in one graph with its layers recomputed. Turn about in one process "
    "after a warm-up; ratio = published recomputed / the side, round by round; tokens are those of the texts, "
    "without padding; memory is the side's own peak; share: (4 weights + 6 adapter weights) operations a token and "
    "second, of the card's measured rate in a bfloat16 product. inference: bfloat16, no adapter, encode against "
    "batches of 64 in the order given, padded"
)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure what the command line asks for, and give it as it is written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="a tiny model on the CPU")
    parser.add_argument("--only", choices=("stage1", "stage2", "inference"), help="one part")
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds of each side")
    parser.add_argument("--micro-tokens", type=int, default=4096, help="padded tokens of a micro-batch of ours")
    parser.add_argument("--folder", type=Path, help="where the random model lies, or is put for the next call")
    parser.add_argument("--out", type=Path, help="JSON of what was measured")
    parser.add_argument("--keep", action="store_true", help="write it to figures/benchmarks too")
    given = parser.parse_args(arguments)
    if not given.small and not torch.cuda.is_available():
        parser.error("there is no GPU here: --small runs a tiny model on the CPU")
    model, device = ("tiny", "cpu") if given.small else ("Mistral-7B", "cuda")
    told: dict[str, Any] = {
        "model": model,
        "device": device if given.small else torch.cuda.get_device_name(),
        "tflops": matrix_rate(device, 256 if given.small else 8192) / 1e12,
    }
    rows = {
        "stage1": 8 if given.small else 224,
        "stage2": 8 if given.small else 216,
        "inference": 40 if given.small else None,
    }
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.folder or Path(scratch) / "model"
        if not (folder / "config.json").is_file():
            save_random(model, folder, device, torch.float32 if given.small else torch.bfloat16)
            _empty(device)
        for part, count in rows.items():
            if given.only in (None, part):
                if part == "inference":
                    told[part] = inference(folder, device, given.rounds, count)
                else:
                    task = Task("triplets", count, 32) if part == "stage1" else Task("pairs", count, 64)
                    told[part] = steps(task, folder, model, device, given.rounds, given.micro_tokens, told["tflops"])
                print(json.dumps({part: told[part]}, indent=2), flush=True)
                _empty(device)
                if given.out:
                    files.write_json(given.out, told)
    if given.keep:
        print(keep("seven_billion", HOW, told))
    return told


def steps(
    task: Task, folder: Path, model: str, device: str, rounds: int, micro_tokens: int, tflops: float
) -> dict[str, Any]:
    """Seconds, memory and rates of an optimiser step, of all sides."""
    rank = 8 if device == "cpu" else 64
    before = _allocated(device)
    ours = Ours(folder, LoRA(rank), "nf4", device=device)
    between = _allocated(device)
    theirs = Published(folder, LoRA(rank), "nf4", device=device)
    weights = {"ours": between - before, "published": _allocated(device) - between}
    vocabulary = CONFIGS[model]().vocab_size
    batches = [task.draw(vocabulary, seed) for seed in range(rounds)]
    same_start(ours, theirs)
    part = Task(task.kind, max(4, task.rows // 4), task.limit)  # what one graph of theirs can hold
    theirs.take(recompute=True)
    ours.take(recompute=True)
    agreed = difference(ours, theirs, part, vocabulary)
    paths: dict[str, tuple[Ours | Published, dict[str, Any], str]] = {
        "ours, cached": (ours, {"micro_tokens": micro_tokens, "keep_tokens": 0}, "micro_tokens"),
        "ours, recomputed": (ours, {"recompute": True}, ""),
        "published": (theirs, {"parts": 4}, "parts"),
        "published, recomputed": (theirs, {"parts": 4, "recompute": True}, "parts"),
    }
    memory: dict[str, float] = {}
    work: dict[str, Callable[[int], Any]] = {}
    for name, (side, path, knob) in paths.items():
        _fitting(side, path, knob, task, batches[0], device)
        own = weights["ours" if side is ours else "published"]
        memory[name] = _peak(side, path, task, batches[0], device, own)
        work[name] = lambda turn, side=side, path=path: _step(side, path, task, batches[turn], device)
    measured = turn_about(work, rounds)
    tokens = statistics.median(sum(len(row) for side in sides for row in side) for sides, _ in batches)
    linear, adapter = _sizes(ours.model)
    operations = 2 * tokens * (2 * linear + 3 * adapter)
    seconds = measured["median_seconds"]
    return {
        **measured,
        "rows": task.rows,
        "paths": {name: path for name, (_, path, _) in paths.items()},
        "tokens_a_second": {name: round(tokens / value) for name, value in seconds.items()},
        "memory_gb": {name: round(value / 1e9, 2) for name, value in memory.items()} if device != "cpu" else {},
        "share_of_rate": {name: operations / value / 1e12 / tflops for name, value in seconds.items()},
        "difference": {"rows": part.rows, **agreed},
    }


def inference(folder: Path, device: str, rounds: int, count: int | None) -> dict[str, Any]:
    """Sentences a second of `encode` and of a plain loop, and how far their embeddings are apart."""
    counts = LENGTHS["sts"]
    encoder = encoders.load(folder, device=device)
    rows = texts(counts, count or sum(counts), 512, encoder.trunk.config.vocab_size, np.random.default_rng(0))
    # The path of `encode` from the tokens on: the words do not matter, and the model's own tokenizer is not here.
    encoder.tokenize = lambda names, **_: [rows[int(name)] for name in names]  # type: ignore[method-assign]
    found: dict[str, np.ndarray] = {}

    def ours(turn: int) -> None:
        found["ours"] = encoder.encode([str(i) for i in range(len(rows))], progress=None)

    @torch.inference_mode()
    def plain(turn: int) -> None:
        vectors = []
        for start in range(0, len(rows), 64):
            batch = rows[start : start + 64]
            width = max(map(len, batch))
            ids = torch.tensor([[0] * (width - len(row)) + row for row in batch], device=device)
            mask = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in batch], device=device)
            states = encoder.trunk(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
            vectors.append(states[:, -1].float().cpu())
        found["plain"] = torch.cat(vectors).numpy()

    measured = turn_about({"ours": ours, "plain": plain}, rounds)
    sides = [vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in found.values()]
    return {
        **measured,
        "sentences": len(rows),
        "sentences_a_second": {name: round(len(rows) / value) for name, value in measured["median_seconds"].items()},
        "least_cosine": float((sides[0] * sides[1]).sum(1).min()),
    }


def matrix_rate(device: str, size: int) -> float:
    """Operations a second of a square bfloat16 product, the median of ten."""
    left, right = (torch.randn(size, size, device=device, dtype=torch.bfloat16) for _ in range(2))
    seconds = []
    for turn in range(13):
        _wait(device)
        began = time.perf_counter()
        left @ right
        _wait(device)
        if turn >= 3:
            seconds.append(time.perf_counter() - began)
    return 2 * size**3 / statistics.median(seconds)


def _step(side: Ours | Published, path: dict[str, Any], task: Task, batch: Any, device: str) -> float:
    side.take(**path)
    loss = side.step(task, *batch)
    _wait(device)
    return loss


def _fitting(side: Ours | Published, path: dict[str, Any], knob: str, task: Task, batch: Any, device: str) -> None:
    """Make the path smaller until a step fits the card: half the micro-batch, twice the parts."""
    for _ in range(6):
        try:
            _step(side, path, task, batch, device)
            return
        except torch.OutOfMemoryError:
            if not knob:
                raise
        side.optimizer.zero_grad()
        _empty(device)
        path[knob] = path[knob] * 2 if knob == "parts" else path[knob] // 2
        print(f"out of memory: {knob} {path[knob]}", flush=True)
    raise MemoryError(f"no {knob} fits: {path}")


def _peak(side: Ours | Published, path: dict[str, Any], task: Task, batch: Any, device: str, weights: int) -> float:
    """Bytes of the side alone at the peak of a step: its weights, its optimiser's state and what the step adds."""
    if device == "cpu":
        return float("nan")
    torch.cuda.reset_peak_memory_stats()
    before = _allocated(device)
    _step(side, path, task, batch, device)
    state = sum(x.numel() * x.element_size() for s in side.optimizer.state.values() for x in s.values() if x.is_cuda)
    return torch.cuda.max_memory_allocated() - before + weights + state


def _sizes(model: torch.nn.Module) -> tuple[int, int]:
    """Weights of the linear layers, and of the adapter on them."""
    adapter = sum(weights.numel() for weights in model.parameters() if weights.requires_grad)
    names = [name for name, _ in model.named_modules() if name.endswith("base_layer")]
    layers = [model.get_submodule(name) for name in names]
    return sum(int(layer.in_features) * int(layer.out_features) for layer in layers), adapter


def _allocated(device: str) -> int:
    return torch.cuda.memory_allocated() if device != "cpu" else 0


def _wait(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def _empty(device: str) -> None:
    import gc

    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
