"""The sides of the stage-1 benchmark by name, and what one of them makes a process grow by."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))
from _recipes import CONFIGS, Ours, Published, Task, save_random

from pcclab.encoders import LoRA
from pcclab.training import peak

SIDES: dict[str, dict[str, Any]] = {
    "one graph": {},
    "cached": {"micro_tokens": 1024, "keep_tokens": 0},
    "recomputed": {"recompute": True},
    "published": {},
}
"""Ours with the batch's graph kept, with micro-batches embedded twice, with every layer computed twice; and theirs."""


def side(name: str, folder: Path) -> Ours | Published:
    """A side in float32, with the paper's adapter."""
    return (Published if name == "published" else Ours)(folder, LoRA(), "none", **SIDES[name])


def grown(name: str, folder: Path, model: str, task: Task) -> int:
    """Bytes this process grows by when it loads a side from the folder and takes two steps."""
    import psutil

    small = folder.parent / "tiny"
    save_random("tiny", small)
    held = 0
    # First in small, for what any side brings into a process.
    for place, size, rows in ((small, "tiny", 4), (folder, model, task.rows)):
        held = psutil.Process().memory_info().rss
        job, chosen = Task(task.kind, rows, task.limit), side(name, place)
        for seed in range(2):
            chosen.step(job, *job.draw(CONFIGS[size]().vocab_size, seed))
    return peak(torch.device("cpu")) - held
