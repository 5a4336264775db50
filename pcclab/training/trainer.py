"""`fit`: transformers' Trainer with exact whole-batch losses, whole checkpoints and selection on a development set."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pcclab import files
from pcclab.data import ScoredPairs
from pcclab.encoders import Encoder
from pcclab.encoders.heads import SiameseHead
from pcclab.training import checkpoints, launch
from pcclab.training.history import History
from pcclab.training.loop import Loop, Run
from pcclab.training.objectives import Loss, bind
from pcclab.training.quantities import Trainable
from pcclab.training.ranks import Ranks
from pcclab.training.selection import Development
from pcclab.training.settings import FitSettings
from pcclab.training.teachers import Teachers


def fit(
    encoder: Encoder,
    table: Trainable,
    loss: str | Loss,
    *,
    parameters: Any,
    run: Run | None = None,
    dev: ScoredPairs | None = None,
    options: dict[str, Any] | None = None,
    head: SiameseHead | None = None,
    teachers: Teachers | None = None,
    watched: dict[str, ScoredPairs] | None = None,
    live: Callable[[dict[str, Any]], bool] | None = None,
) -> History:
    """Train an encoder in place, and leave it with the weights that were best on `dev`.

    Args:
        encoder: changed in place.
        table: `ScoredPairs`, `Triplets` or `Sentences`, as the loss needs; `training.bind` says which.
        loss: name in `pcclab.losses.CATALOGUE`, a weighted sum of such names, or such a function.
        parameters: `FitSettings`, a mapping of its fields, or anything with attributes so named.
        run: where checkpoints and metrics go. A finished training is loaded instead of repeated, an interrupted one
            goes on from its newest whole checkpoint with the same result to the bit on a CPU. None keeps nothing.
        dev: rated pairs for selecting the step, never a test set; None keeps the last step.
        options: keyword arguments of the loss, such as ``{"temperature": 0.05}``.
        head: for losses on a head's judgement; trained in place with the encoder.
        teachers: for losses that follow a teacher's ranking.
        watched: tables by name that are scored beside `dev` at every look; the history tells, nothing is chosen by it.
        live: is given the metrics of each step as they come, and says whether to go on; told not to, the training ends
            after a last look. Only without a run: what a run keeps is a whole training.

    Raises: ValueError for parameters, tables or options that do not fit, a loss that is not finite, or a folder that
        holds another training; OSError when the disk has no room for the checkpoints. All but the loss are raised
        before the first step.
    """
    if live is not None and run is not None:
        raise ValueError(f"live may end a training early, and {run} keeps a whole one: leave live or run out")
    settings = FitSettings.of(parameters)
    objective = bind(table, loss, options, head=head, teachers=teachers)
    # Tokenised here, so that an empty text or one to be cut is told before anything else happens.
    columns = [encoder.tokenize(column, max_tokens=settings.max_tokens) for column in objective.columns]
    development = Development(encoder, dev, watched) if dev is not None else None
    ranks = Ranks.here()
    with tempfile.TemporaryDirectory() as scratch:
        folder = run.checkpoints if run is not None else Path(scratch)
        if run is not None or development is not None:
            checkpoints.room_for(folder, encoder.weights)
        if run is not None:
            identity = {
                "loss": objective.name,
                "options": dict(options or {}),
                "settings": asdict(settings),
                "table": table.fingerprint,
                "dev": dev.fingerprint if dev is not None else None,
                "encoder": encoder.fingerprint,
                **{name: x.fingerprint for name, x in (("head", head), ("teachers", teachers)) if x is not None},
                **({"watched": {name: t.fingerprint for name, t in watched.items()}} if watched else {}),
            }
            if ranks.leads:
                checkpoints.same_training(folder, identity)
            ranks.wait()
            if files.is_complete(folder / "final"):
                return _trained(folder, encoder, head)
            if ranks.world == 1 and launch.shared():
                if not isinstance(loss, str) or teachers is not None or watched:
                    raise ValueError(
                        f"{launch.PROCESSES} is {launch.wanted()}: a loss of your own, teachers and watched tables "
                        f"train in one process; set it to 1, and no {launch.LAUNCHER}"
                    )
                job = launch.write(folder / "job", encoder, table, loss, settings=settings, dev=dev,
                                   options=dict(options or {}), head=head)  # fmt: skip
                launch.start(job, processes=launch.wanted(), device=encoder.device.type)
                shutil.rmtree(job)  # a second copy of the weights it began with
                history = _trained(folder, encoder, head)
                for line in history.steps:
                    run.log(**line)
                return history
        return Loop(encoder, objective, columns, settings, folder, development, run, ranks, live).fit()


def _trained(folder: Path, encoder: Encoder, head: SiameseHead | None) -> History:
    """Give an encoder and its head what a finished training left in a folder."""
    encoder.read_weights(folder / "final")
    if head is not None:
        head.load_state_dict(SiameseHead.load(folder / "head").state_dict())
    return History.load(folder / "history.json")
