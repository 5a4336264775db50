"""SentEval's seven transfer tasks: what a linear classifier can read off an encoder's embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from pcclab import data
from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.embeddings import embed
from pcclab.evaluation.folds import SEED, Judged, Solver, folded, nested, split
from pcclab.evaluation.transfer_results import TransferResults, TransferScore

if TYPE_CHECKING:
    import os

    from pcclab.data.pairs import LabelledTexts
    from pcclab.evaluation.embeddings import Embedded
    from pcclab.evaluation.sts import Encodes

Protocol = Literal["lbfgs", "senteval"]
Scheme = Literal["nested", "split", "folded"]

TASKS: dict[str, tuple[Scheme, tuple[str, ...]]] = {
    "mr": ("nested", ("all",)),
    "cr": ("nested", ("all",)),
    "subj": ("nested", ("all",)),
    "mpqa": ("nested", ("all",)),
    "sst2": ("split", ("train", "dev", "test")),
    "trec": ("folded", ("train", "test")),
    "mrpc": ("folded", ("train", "test")),
}
"""Task -> how it is judged (see `folds`) and the parts of its corpus, in the order of the papers' tables."""

GRIDS: dict[Protocol, tuple[float, ...]] = {
    "lbfgs": tuple(10.0 ** (t / 2) for t in range(-10, -3)),
    "senteval": tuple(10.0**t for t in range(-5, -1)),
}
"""Weight decays tried. Both protocols have SentEval's range, for its Adam and a minimum penalise the same mean loss; a
minimum has no early stopping to help, so it is given the half decades too. The toolkit's other grid, scikit-learn's C
from 1/2 on, ends where the development folds of MRPC and TREC still ask for more decay."""


def transfer(
    encoder: Encodes,
    *,
    tasks: Sequence[str] | None = None,
    protocol: Protocol = "lbfgs",
    source: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    limit: int | None = None,
) -> TransferResults:
    """Judge an encoder by logistic regressions on its embeddings, which stay as they are.

    MR, CR, SUBJ and MPQA by ten folds with ten in each; SST2 by its own parts; TREC and MRPC by ten folds of their
    training rows and their test rows. A pair of MRPC becomes the two features |u - v| and u * v, side by side.

    Args:
        encoder: anything with `encode`; every distinct sentence of all tasks together is embedded once.
        tasks: some of `TASKS`; None is all seven.
        protocol: "lbfgs" trains each regression to its minimum; "senteval" is that toolkit's Adam with early stopping,
            on the same folds. Each tries the decays of `GRIDS`.
        source: as in `pcclab.data.load`.
        cache: a folder that keeps embeddings by model and text, as in `evaluation.embeddings.embed`.
        limit: at most so many rows of each part, drawn with SentEval's seed; None is all. For a first look only.

    Returns: accuracy x 100 of each task on its development and its test rows, F1 of MRPC, unrounded.

    Raises: ValueError for an unknown task or protocol or missing data, before anything is embedded.

    Source: SentEval (Conneau and Kiela 2018); Pcc-tuning, table 6; RankCSE, table 3.
    """
    if protocol not in GRIDS:
        raise ValueError(f"protocol is {protocol!r}: take 'lbfgs' or 'senteval'")
    tables = transfer_tables(tasks, source=source, limit=limit)
    embedded = embed(encoder, sentences(tables), cache=cache)
    scored = {name: _score(name, parts, embedded, protocol) for name, parts in tables.items()}
    origin = dict.fromkeys(e.source for parts in tables.values() for part in parts for e in part.provenance)
    return TransferResults(scored, protocol=protocol, encoder=str(encoder), source=", ".join(origin), limit=limit)


def transfer_tables(
    tasks: Sequence[str] | None = None, *, source: str | os.PathLike[str] | None = None, limit: int | None = None
) -> dict[str, list[LabelledTexts]]:
    """The parts of each task's corpus, rows in SentEval's order; arguments and errors as of `transfer`."""
    names = list(TASKS if tasks is None else tasks)
    if unknown := [name for name in names if name not in TASKS]:
        raise ValueError(f"unknown transfer task {unknown[0]!r}: choose among {', '.join(TASKS)}")
    if not names:
        raise ValueError(f"no tasks to judge: choose among {', '.join(TASKS)}, or None for all")
    if limit is not None and limit < 1:
        raise ValueError(f"limit is {limit}: give at least 1 row a part, or None for all")
    tables = {}
    for name in names:
        parts = [cast("LabelledTexts", data.load(name, split=part, source=source)) for part in TASKS[name][1]]
        tables[name] = [_ordered(name, part if limit is None else _few(part, limit)) for part in parts]
    return tables


def sentences(tables: Mapping[str, Sequence[LabelledTexts]]) -> Iterator[str]:
    """Every sentence of the tables, repeats and all."""
    return (text for parts in tables.values() for part in parts for text in (*part.text, *(part.second or ())))


def _few(table: LabelledTexts, limit: int) -> LabelledTexts:
    chosen = np.random.RandomState(SEED).permutation(len(table))[:limit]
    return table.select(np.sort(chosen))


def _ordered(name: str, table: LabelledTexts) -> LabelledTexts:
    """The rows as SentEval has them when it draws its folds: by number of words, then by class.

    It sorts them to embed like lengths together; which row falls into which fold hangs on it. It also counts a blank
    line as no word, and calls SUBJ's objective sentences 1.
    """
    blank = data.catalogue.get(name).blank
    label = 1 - table.label if name == "subj" else table.label
    words = [0 if blank and text == "." else len(text.split()) for text in table.text]
    others = [len(text.split()) for text in table.second] if table.second is not None else [0] * len(table)
    return table.select(np.lexsort(np.stack([label, others, words])))


def _features(table: LabelledTexts, embedded: Embedded) -> np.ndarray:
    first = embedded.of(table.text)
    if table.second is None:
        return first
    second = embedded.of(table.second)
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def _score(name: str, parts: Sequence[LabelledTexts], embedded: Embedded, protocol: Protocol) -> TransferScore:
    features = np.concatenate([_features(part, embedded) for part in parts])
    labels = np.concatenate([part.label for part in parts])
    if name == "subj":
        labels = 1 - labels
    edges = np.cumsum([0, *(len(part) for part in parts)])
    rows = [np.arange(start, stop) for start, stop in pairwise(edges.tolist())]
    counts = (len(rows[0]), len(rows[-1]))
    try:
        judged = _judged(TASKS[name][0], _solver(protocol), features, labels, GRIDS[protocol], rows)
    except Undefined as error:
        return TransferScore(*counts, None, None, reason=str(error))
    f1 = _f1(judged, labels[rows[-1]]) if name == "mrpc" else None
    return TransferScore(*counts, judged.dev, judged.accuracy, f1, judged.strengths, right=judged.right)


def _judged(
    scheme: Scheme,
    solve: Solver,
    features: np.ndarray,
    labels: np.ndarray,
    grid: Sequence[float],
    rows: Sequence[np.ndarray],
) -> Judged:
    if scheme == "nested":
        return nested(solve, features, labels, grid)
    if scheme == "folded":
        return folded(solve, features, labels, grid, *rows)
    return split(solve, features, labels, grid, *rows)


def _solver(protocol: Protocol) -> Solver:
    if protocol == "senteval":
        from pcclab.evaluation.probes import senteval  # loads torch

        return senteval
    from pcclab.evaluation.logistic import lbfgs

    return lbfgs


def _f1(judged: Judged, labels: np.ndarray) -> float:
    """F1 x 100 of class 1; 0 where nothing of it is found, as SentEval has it."""
    from sklearn.metrics import f1_score

    options: dict[str, Any] = {"zero_division": 0.0}
    return 100 * float(f1_score(labels, judged.predicted, **options))
