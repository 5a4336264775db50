"""One stage-1 step of a prompted LLaMA of 50M parameters on the CPU: this lab's against the published recipe.

python -m pytest tests/benchmarks/test_stage1_step.py -m slow -s          # or, for more rounds:
python tests/benchmarks/test_stage1_step.py 5
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from _measure import keep, turn_about
from _recipes import CONFIGS, Task, difference, same_start, save_random
from _stage1 import SIDES, grown, side

from pcclab.training import apart

HOW = (
    "one optimiser step of stage 1 (InfoNCE with hard negatives, LoRA of rank 64 on every linear layer) on a LLaMA "
    "with random values, 10 layers of 512 dimensions, 48M parameters and 16M of vocabulary head, float32, {rows} "
    "triplets of random tokens inside the template STH in the lengths that SNLI's triplets have with Mistral's "
    "tokenizer, cut at 32; published: the batch padded on the left to its longest text, one forward with logits and "
    "all hidden states; ours: training.cached.backward with the batch's graph kept, with micro-batches of 1,024 "
    "tokens embedded twice, or with every layer computed twice; turn about in one process; ratio = published / "
    "ours, round by round; memory: what a process of its own grows by, model included, at the peak of two steps; "
    "difference: losses, and gradients to their size, without dropout"
)


def measure(rounds: int, *, model: str = "LLaMA-50M", rows: int = 64) -> dict[str, Any]:
    """Times and peaks of all sides, and how far the losses and gradients of each of ours are from the published."""
    task, vocabulary = Task("triplets", rows, 32), CONFIGS[model]().vocab_size
    batches = [task.draw(vocabulary, seed) for seed in range(rounds)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "model"
        save_random(model, folder)
        memory = {name: apart(grown, name, folder, model, task) for name in SIDES}
        sides = {name: side(name, folder) for name in SIDES}
        differences = {}
        for name in [name for name in SIDES if name != "published"]:
            same_start(sides[name], sides["published"])
            differences[name] = difference(sides[name], sides["published"], task, vocabulary)
        work = {name: lambda turn, name=name: sides[name].step(task, *batches[turn]) for name in SIDES}
        measured = turn_about(work, rounds)
    shares = {name: memory["published"] / bytes_ for name, bytes_ in memory.items() if name != "published"}
    return {
        **measured,
        "memory_mb": {name: round(bytes_ / 1e6) for name, bytes_ in memory.items()},
        "memory_ratio": shares,
        "difference": differences,
    }


def test_both_sides_do_the_same_job():
    measured = measure(1, model="tiny", rows=8)
    assert all(apart["losses"] < 1e-5 and apart["gradients"] < 1e-4 for apart in measured["difference"].values())
    assert set(measured["ratio"]) == set(measured["memory_ratio"]) == {"one graph", "cached", "recomputed"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_faster_in_less_memory(capsys):
    measured = measure(rounds=2)
    with capsys.disabled():
        print(f"\nstage-1 step: {measured['ratio']}, memory {measured['memory_mb']}, {measured['difference']}")
    assert all(apart["losses"] < 1e-4 and apart["gradients"] < 1e-3 for apart in measured["difference"].values())
    assert measured["ratio"]["one graph"]["median"] >= 1.7
    assert measured["ratio"]["cached"]["median"] >= 1.15
    assert measured["memory_ratio"]["cached"] >= 2.5


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 64
    result = measure(rounds, rows=rows)
    print(result["ratio"], result["median_seconds"], result["memory_mb"], result["difference"])
    print(keep("stage1_step", HOW.format(rows=rows), result))
