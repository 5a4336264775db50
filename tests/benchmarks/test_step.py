"""One stage-2 step at batch 128: cached length-sorted micro-batches against the plain loop that pads to the longest.

python -m pytest tests/benchmarks -m slow -s          # or, for more rounds:
python tests/benchmarks/test_step.py 15
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))
from _measure import alternate, keep

from pcclab import data, encoders
from pcclab.encoders.batching import pad
from pcclab.losses import pearson
from pcclab.training import cached

BATCH, TOKENS = 128, 64
HOW = (
    "one optimiser step of stage 2 (Pearson, AdamW) on random batches of 128 STS-B + SICK-R training pairs (keep), "
    "all-MiniLM-L6-v2 in float32, 64 tokens, texts tokenised beforehand, the same batch on both sides; theirs: each "
    "side of the batch padded to its longest text, one forward a side; ours: training.cached.backward, the batch's "
    "graph kept; turn about in one process; ratio = theirs / ours, round by round; losses compared without dropout"
)


def measure(source: str | Path, rounds: int) -> dict[str, Any]:
    """Times of both sides, and the largest difference of their losses."""
    table = data.stage2_pairs(leakage="keep", source=source)
    gold = torch.tensor(table.gold, dtype=torch.float32)
    draws = np.random.default_rng(0).permuted(np.tile(np.arange(len(table)), (rounds, 1)), axis=1)[:, :BATCH]
    models = [encoders.load("minilm", device="cpu") for _ in range(2)]
    optimizers = [torch.optim.AdamW(model.trunk.parameters(), lr=1e-6) for model in models]
    tokens = [models[0].tokenize(side, max_tokens=TOKENS) for side in (table.first, table.second)]

    def ours(turn: int) -> float:
        rows = draws[turn]

        def objective(embeddings: torch.Tensor) -> torch.Tensor:
            first, second = embeddings.split(BATCH)
            return pearson(functional.cosine_similarity(first, second), gold[rows])

        texts = [column[row] for column in tokens for row in rows]
        loss = cached.backward(models[0].embed, texts, objective, pad_id=0, micro_tokens=2048, keep_tokens=16384)
        optimizers[0].step()
        optimizers[0].zero_grad()
        return float(loss)

    def theirs(turn: int) -> float:
        rows = draws[turn]
        sides = []
        for column in tokens:
            ids, mask = pad([column[row] for row in rows], 0)
            states = models[1].trunk(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask.unsqueeze(-1).float()
            sides.append((states * weights).sum(1) / weights.sum(1))
        loss = pearson(functional.cosine_similarity(*sides), gold[rows])
        loss.backward()
        optimizers[1].step()
        optimizers[1].zero_grad()
        return float(loss.detach())

    apart = max(abs(ours(turn) - theirs(turn)) for turn in range(min(3, rounds)))  # the models are in evaluation mode
    for model in models:
        model.trunk.train()
    return {**alternate(ours, theirs, rounds), "largest_difference": apart}


@pytest.mark.slow
@pytest.mark.real_data
@pytest.mark.timeout(1800)
def test_at_least_twice_as_fast_with_the_same_loss(senteval, capsys):
    measured = measure(senteval, rounds=5)
    with capsys.disabled():
        print(f"\nstage-2 step: {measured['ratio']}, seconds {measured['median_seconds']}")
    assert measured["largest_difference"] < 1e-5
    assert measured["ratio"]["median"] >= 2


if __name__ == "__main__":
    source = Path(__file__).resolve().parents[3] / "shared" / "data" / "senteval"
    result = measure(
        data.resolve(None) if not source.is_dir() else source, int(sys.argv[1]) if len(sys.argv) > 1 else 11
    )
    print(result["ratio"], result["median_seconds"], result["largest_difference"])
    print(keep("stage2_step", HOW, result))
