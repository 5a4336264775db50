"""One of several processes of a training, the folder a job's of `launch`.

`torchrun -m pcclab.training FOLDER`, or `accelerate launch --multi_gpu -m pcclab.training FOLDER`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from transformers.utils import logging

from pcclab.training import fit, launch
from pcclab.training.ranks import Ranks


class Folder:
    """A run as a process knows it: where its checkpoints go. The history tells the rest."""

    def __init__(self, checkpoints: Path) -> None:
        self.checkpoints = checkpoints

    def log(self, step: int, **metrics: Any) -> None:
        """Nothing: the process that launched this one logs the history."""


def main(folder: Path) -> None:
    """Take part in the job of a folder; an error is written there before it ends this process."""
    launch.stay_alone()  # whoever started this one
    rank = int(os.environ.get("RANK", 0))
    try:
        gpu = torch.cuda.is_available() and os.environ.get("ACCELERATE_USE_CPU", "").lower() not in ("true", "1")
        device = f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if gpu else "cpu"
        if gpu:
            torch.cuda.set_device(device)
        if int(os.environ.get("WORLD_SIZE", 1)) > 1:
            distributed.init_process_group("nccl" if gpu else "gloo")
        # The Trainer must take this process for the only one: batches are shared out in here, exactly. It would advise
        # to have it do so in its own way.
        logging.set_verbosity_error()
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "ACCELERATE_USE_CPU"):
            os.environ.pop(name, None)
        given, more = launch.read(folder, device)
        fit(*given, **more, run=Folder(folder.parent))
        Ranks.here().wait()
    except BaseException as error:
        (folder / f"{launch.ERROR}-{rank}").write_text(f"{type(error).__name__}: {error}", encoding="utf8")
        raise
    if distributed.is_initialized():
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
