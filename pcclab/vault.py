"""The test vault: a run looks at the tests once, the answer is kept, and every further look is counted.

A score on a test is honest as long as nothing was chosen by it. So a run's answer is worked out once and written into
its `run.json`, with the time, the commit, and the fingerprints of the encoder and of the tests; asked again, the vault
gives what is written there. Other weights under the same run, or other tests, are a new look, and the number of looks
is told: a run that was judged nine times had eight chances to be chosen by its score. A run that is set aside and begun
anew (`--again`) takes its vault along.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pcclab import evaluation, files, records, sheet
from pcclab.evaluation import Results

if TYPE_CHECKING:
    from pcclab.data import ScoredPairs
    from pcclab.encoders import Encoder
    from pcclab.runs import Run

PART = "vault"
"""Its entry in `run.json`, and the folder of the run that holds each look's similarities."""


@dataclass(frozen=True)
class Look:
    """What a run was told about its score on the tests.

    Args:
        results: scores by task.
        similarities: the cosine of each test pair, (pairs,) by task: what intervals and parts are worked out of.
        number: of this look among the run's, from 1.
        looks: how many the run has had.
        fresh: whether it was taken now; else it was read.
        time: when it was taken, UTC.
        commit: of the checkout then.
        run: name of the run.
    """

    results: Results
    similarities: Mapping[str, np.ndarray]
    number: int
    looks: int
    fresh: bool
    time: str
    commit: str
    run: str

    def __str__(self) -> str:
        average = self.results.average
        told = "undefined" if average is None else f"{average:.2f}"
        when = "taken now" if self.fresh else f"recorded {self.time} at commit {self.commit[:7]}"
        return f"{self.run}: look {self.number} of {self.looks} at the tests, {when}: {told}"


def look(run: Run, encoder: Encoder, tests: Mapping[str, ScoredPairs]) -> Look:
    """The run's scores on the tests: worked out at the first look, read at every later one.

    Args:
        run: whose look it is; it has been begun.
        encoder: what is judged; its `fingerprint` tells other weights from the same.
        tests: tables by name.

    Returns:
        The same results and similarities to the last digit, whenever and wherever the question is asked again.

    Raises: ValueError for a run that was never begun, or where a recorded look was changed or its file is gone.
    """
    if not sheet.read(run.folder):
        raise ValueError(f"run {run.name} was never begun: a look is written into its {sheet.NAME}, begin it first")
    question = {"encoder": encoder.fingerprint, "data": {name: table.fingerprint for name, table in tests.items()}}
    key = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:12]
    known = looks(run).get(key)
    fresh = known is None
    if known is None:
        similarities = evaluation.similarities(encoder, tests)
        entry = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "git": records.commit(run.root), **question}
        entry |= {"scores": evaluation.judged(similarities, tests).to_dict(), "sha256": _save(run, similarities)}
        known = sheet.enter(run.folder, PART, key, entry)
    similarities = _load(run, key, known["sha256"])
    results = evaluation.judged(similarities, tests, encoder=str(encoder))
    every = list(looks(run))
    return Look(
        results, similarities, every.index(key) + 1, len(every), fresh, known["time"], known["git"]["commit"], run.name
    )


def looks(run: Run) -> dict[str, Any]:
    """The looks a run has had at the tests, in the order in which they were taken.

    Args:
        run: any run, begun or not.
    """
    return dict(sheet.read(run.folder).get(PART, {}))


def _save(run: Run, similarities: Mapping[str, np.ndarray]) -> str:
    """Write the similarities, and give their sha256, which is the file's name: nothing ever replaces what it holds."""
    from safetensors.numpy import save

    content = save({name: np.ascontiguousarray(values) for name, values in similarities.items()})
    digest = hashlib.sha256(content).hexdigest()
    with sheet.writing(run.folder), files.replacing(_file(run, digest)) as temporary:
        temporary.write_bytes(content)
    return digest


def _load(run: Run, key: str, digest: str) -> dict[str, np.ndarray]:
    from safetensors.numpy import load

    file = _file(run, digest)
    content = file.read_bytes() if file.is_file() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        state = "was changed" if content else "is gone"
        raise ValueError(
            f"{file} {state}, so look {key} of run {run.name} at the tests cannot be told again: put the file back, or "
            f"take the entry out of {sheet.NAME} to look anew"
        )
    return dict(load(content))


def _file(run: Run, digest: str) -> Path:
    return run.folder / PART / f"{digest[:16]}.safetensors"
