"""Checkpoints that are whole or do not count."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import nn

from pcclab import files

PREFIX = "checkpoint-"
ADAPTER = "adapter_model.safetensors"
NEEDED = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")


def step_of(folder: Path) -> int:
    """The step a checkpoint folder is named after."""
    return int(folder.name.removeprefix(PREFIX))


def newest(folder: Path) -> Path | None:
    """The newest checkpoint that is complete and readable, or None.

    Unfinished ones, which a kill leaves behind, are removed; damaged ones are renamed and told.
    """
    for candidate in sorted(folder.glob(f"{PREFIX}*"), key=step_of, reverse=True):
        if not files.is_complete(candidate):
            shutil.rmtree(candidate)
            continue
        damage = _damage(candidate)
        if damage is None:
            return candidate
        aside = candidate.with_name(f"damaged-{candidate.name}")
        candidate.rename(aside)
        warnings.warn(
            f"{candidate} is damaged ({damage}): set aside as {aside.name}, an earlier one is used", stacklevel=2
        )
    return None


def _damage(folder: Path) -> str | None:
    weights = "model.safetensors" if not (folder / ADAPTER).is_file() else ADAPTER
    for name in (weights, *NEEDED):
        if not (folder / name).is_file() or (folder / name).stat().st_size == 0:
            return f"{name} is missing or empty"
    try:
        # Opening checks the file's length against its header; nothing is read.
        for file in folder.glob("*.safetensors"):  # the trunk, and the head where there is one
            with safe_open(file, framework="pt"):
                pass
        json.loads((folder / "trainer_state.json").read_text(encoding="utf8"))
    except (SafetensorError, ValueError, OSError) as error:
        return str(error).splitlines()[0]
    return None


def keep_only(folder: Path, steps: set[int]) -> None:
    """Remove every checkpoint but those of the given steps."""
    for candidate in folder.glob(f"{PREFIX}*"):
        if step_of(candidate) not in steps:
            # Without its marker a half-removed folder is never taken for a checkpoint.
            (candidate / files.COMPLETE).unlink(missing_ok=True)
            shutil.rmtree(candidate)


def same_training(folder: Path, identity: dict[str, Any]) -> None:
    """Write down what is trained in a folder, or refuse to go on with another training there.

    Raises: ValueError naming the first difference.
    """
    file = folder / "training.json"
    if not file.is_file():
        files.write_json(file, identity)
        return
    before = json.loads(file.read_text(encoding="utf8"))
    identity = json.loads(json.dumps(identity))  # as it comes back from the file: a tuple as a list
    for name, value in identity.items():
        if before.get(name) != value:
            raise ValueError(
                f"{folder} holds a training with {name} {before.get(name)!r}, this one has {value!r}: "
                "move that folder away to train anew"
            )


def room_for(folder: Path, weights: Iterable[nn.Parameter]) -> None:
    """Refuse to start where the disk cannot hold the checkpoints: weights, two moments of each, and twice that."""
    need = 7 * sum(p.numel() * p.element_size() for p in weights)
    free = shutil.disk_usage(folder).free
    if free < need:
        raise OSError(
            f"training needs {need / 1e6:,.0f} MB for checkpoints in {folder} and the disk has {free / 1e6:,.0f} MB "
            "free: make room or move the checkout"
        )
