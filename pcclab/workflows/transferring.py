"""Transfer of several models under both protocols: a task judged once is not judged again, whatever run asks."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcclab import evaluation, files
from pcclab.evaluation.embeddings import Embedded, embed
from pcclab.evaluation.transfer import GRIDS, sentences, transfer_tables
from pcclab.parameters.transferring import TransferParameters
from pcclab.runs import Run
from pcclab.workflows.models import Model

if TYPE_CHECKING:
    import pandas as pd

METHOD = 1
"""Goes up when what `evaluation.transfer` computes changes, so that nothing judged before is taken for it."""


def judge_transfer(run: Run, models: Mapping[str, Model]) -> pd.DataFrame:
    """Judge every model on every task of the run under every protocol, what is not judged yet.

    What was judged lies in `runs/transfer/`, a file for each, by the model's weights, the task's rows and the protocol;
    embeddings lie in `runs/embeddings/`. So a run that was broken goes on where it stopped.

    Args:
        run: of 08_transfer.
        models: by the name that stands in the table.

    Returns:
        One row a model, task and protocol: model, task, protocol, train, test, dev, accuracy and f1 (x 100; NaN where
        undefined or not of that task), low and high of the accuracy's 95 % interval over test rows, decays, seconds
        without the embedding, reason, and wrong, the places of the rows classified wrong.

    Raises: what `load_models` and `evaluation.transfer` raise.
    """
    import pandas as pd

    p = run.parameters
    assert isinstance(p, TransferParameters)
    tables = transfer_tables(p.tasks, source=p.source, limit=p.limit or None)
    contents = {task: [part.fingerprint for part in parts] for task, parts in tables.items()}
    run.record(data={task: prints[0] for task, prints in contents.items()})
    rows = []
    for name, model in models.items():
        encoder = model.load()
        wanted = [(task, protocol) for protocol in p.protocols for task in p.tasks]
        paths = {
            (task, protocol): _path(run.root, encoder.fingerprint, contents[task], protocol)
            for task, protocol in wanted
        }
        missing = [cell for cell in wanted if not paths[cell].is_file()]
        texts = sentences({task: tables[task] for task in dict.fromkeys(task for task, _ in missing)})
        embedded = embed(encoder, texts, cache=run.embeddings)
        for task, protocol in wanted:
            path = paths[task, protocol]
            if not path.is_file():
                files.write_json(path, _judged(embedded, task, protocol, p))
            cell = json.loads(path.read_text(encoding="utf8"))
            rows.append({"model": name, "task": task, "protocol": protocol, **cell})
            told = "undefined" if cell["accuracy"] is None else f"{cell['accuracy']:.2f}"
            known = "" if (task, protocol) in missing else ", done before"
            print(f"{name}, {task}, {protocol}: {told} ({cell['seconds']:.1f} s{known})", flush=True)
    frame = pd.DataFrame(rows)
    ends = [_interval(row) for row in rows]
    numbers = frame[["dev", "accuracy", "f1"]].astype(float)
    return frame.assign(**numbers, low=[low for low, _ in ends], high=[high for _, high in ends])


def paired(frame: pd.DataFrame, *, by: str, first: str, second: str, resamples: int, seed: int) -> pd.DataFrame:
    """How two protocols, or two models, differ on the same test rows: `evaluation.compare_answers`, tasks side by side.

    Args:
        frame: rows of `judge_transfer`, one a task for either side.
        by: "protocol" or "model", the column that tells the sides apart.
        first, second: its values; the difference is the first's accuracy less the second's.
        resamples, seed: of the bootstrap.

    Returns:
        As `compare_answers`; a task that is undefined on a side is left out, and so is then the average.
    """
    sides = [frame[frame[by] == name].set_index("task") for name in (first, second)]
    both = {
        task: (_right(sides[0].loc[task]), _right(sides[1].loc[task]))
        for task in sides[0].index
        if not any(side.loc[task, "reason"] for side in sides)
    }
    found = evaluation.compare_answers(both, resamples=resamples, seed=seed)
    return found if len(both) == len(sides[0]) else found.drop(index="average", errors="ignore")


def _path(root: Path, encoder: str, contents: Sequence[str], protocol: str) -> Path:
    key = json.dumps([METHOD, encoder, *contents, protocol, GRIDS[protocol]])  # type: ignore[index]
    return root / "runs" / "transfer" / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"


def _judged(embedded: Embedded, task: str, protocol: Any, p: TransferParameters) -> dict[str, Any]:
    began = time.perf_counter()
    found = evaluation.transfer(embedded, tasks=[task], protocol=protocol, source=p.source, limit=p.limit or None)
    score = found.tasks[task]
    wrong = [] if score.right is None else np.flatnonzero(~score.right).tolist()
    return {
        "train": score.train, "test": score.test, "dev": score.dev, "accuracy": score.accuracy, "f1": score.f1,
        "decays": list(score.strengths), "seconds": round(time.perf_counter() - began, 3), "reason": score.reason,
        "wrong": wrong,
    }  # fmt: skip


def _right(row: Any) -> np.ndarray:
    right = np.ones(int(row["test"]), dtype=bool)
    right[row["wrong"]] = False
    return right


def _interval(row: Mapping[str, Any]) -> tuple[float, float]:
    return (float("nan"),) * 2 if row["reason"] else evaluation.accuracy_interval(_right(row))
