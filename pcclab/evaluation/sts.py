"""The seven STS tasks: how well an encoder's cosines rank rated pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from pcclab import data
from pcclab.evaluation.correlation import Undefined, cosine, pearson, spearman
from pcclab.evaluation.embeddings import embed
from pcclab.evaluation.results import Results, TaskScore

if TYPE_CHECKING:
    import os

    import pandas as pd

    from pcclab.data.pairs import ScoredPairs


Score = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""From the embeddings of both sides (pairs, dim) to one number a pair; `cosine`, or a head's `score`."""


class Encodes(Protocol):
    """All that evaluation asks of an encoder."""

    def encode(self, sentences: list[str], /) -> np.ndarray:
        """One embedding a sentence, in order."""
        ...


def sts(
    encoder: Encodes,
    *,
    tasks: Sequence[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    score: Score = cosine,
    cache: str | os.PathLike[str] | None = None,
) -> Results:
    """Judge an encoder on STS12 to STS16, STS-B and SICK-R, or on some of them.

    Every distinct sentence of all tasks together is embedded once: the tasks share about a third of theirs.

    Args:
        encoder: anything with `encode`.
        tasks: some of `pcclab.data.STS_TASKS`; None is all seven.
        source: as in `pcclab.data.load`.
        score: what ranks a pair, the cosine or a head's `score`.
        cache: a folder that keeps the embeddings, as `embed` takes it; for encoders that are judged again and again.

    Returns:
        Spearman and Pearson x 100 per task and subset, unrounded.

    Raises: ValueError for an unknown task or missing data, before anything is embedded, and what `embed` raises.
    """
    return sts_pairs(encoder, load_tasks(tasks, source), score=score, cache=cache)


def load_tasks(tasks: Sequence[str] | None, source: str | os.PathLike[str] | None) -> dict[str, ScoredPairs]:
    """The test tables of the named STS tasks, None for all seven; raises as `sts`."""
    names = list(data.STS_TASKS if tasks is None else tasks)
    if unknown := [name for name in names if name not in data.STS_TASKS]:
        raise ValueError(f"unknown STS task {unknown[0]!r}: choose among {', '.join(data.STS_TASKS)}")
    if not names:
        raise ValueError(f"no tasks to judge: choose among {', '.join(data.STS_TASKS)}, or None for all")
    return {name: cast("ScoredPairs", data.load(name, source=source)) for name in names}


def sts_pairs(
    encoder: Encodes,
    tables: Mapping[str, ScoredPairs],
    *,
    score: Score = cosine,
    cache: str | os.PathLike[str] | None = None,
) -> Results:
    """`sts` on tables already loaded.

    Args:
        encoder: anything with `encode`.
        tables: the rated pairs, by the task's name.
        score: as `similarities` takes it.
        cache: as `sts` takes it.
    """
    return judged(similarities(encoder, tables, score=score, cache=cache), tables, encoder=str(encoder))


def similarities(
    encoder: Encodes,
    tables: Mapping[str, ScoredPairs],
    *,
    score: Score = cosine,
    cache: str | os.PathLike[str] | None = None,
) -> dict[str, np.ndarray]:
    """The score of each pair of each table, (pairs,) by the table's name; every distinct sentence is embedded once.

    Args:
        encoder: anything with `encode`.
        tables: the rated pairs, by name.
        score: takes both embeddings, (pairs, dim) each, and gives (pairs,).
        cache: as `sts` takes it.
    """
    return {name: score(*sides) for name, sides in _sides(encoder, tables, cache).items()}


def judged(similarity: Mapping[str, np.ndarray], tables: Mapping[str, ScoredPairs], *, encoder: str = "") -> Results:
    """The results of similarities that are there already.

    Args:
        similarity: (pairs,) for each name of `tables`, as `similarities` gives them.
        tables: the rated pairs.
        encoder: what the results are called.
    """
    scored = {name: _score(similarity[name], table) for name, table in tables.items()}
    origin = dict.fromkeys(part.source for table in tables.values() for part in table.provenance)
    return Results(scored, encoder=encoder, source=", ".join(origin))


def order_sensitivity(encoder: Encodes, tables: Mapping[str, ScoredPairs], *, score: Score) -> pd.DataFrame:
    """How much a score depends on which sentence of a pair comes first; a cosine does not at all.

    Args:
        encoder, tables: as in `sts_pairs`.
        score: what ranks a pair, such as a head's `score`.

    Returns:
        One row a table: Spearman x 100 with the gold as the pairs stand (`forward`) and turned round (`backward`),
        that of the two orders' scores with each other (`agreement`), and their mean absolute difference in units of the
        scores' own standard deviation (`difference`).

    Raises: `Undefined` where the scores of a table are constant.
    """
    import pandas as pd

    rows = {}
    for name, (first, second) in _sides(encoder, tables).items():
        forward, backward, gold = score(first, second), score(second, first), tables[name].gold
        rows[name] = {
            "forward": 100 * spearman(forward, gold),
            "backward": 100 * spearman(backward, gold),
            "agreement": 100 * spearman(forward, backward),
            "difference": float(np.abs(forward - backward).mean() / forward.std()),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")


def _sides(
    encoder: Encodes, tables: Mapping[str, ScoredPairs], cache: str | os.PathLike[str] | None = None
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Both sides' embeddings of each table; every distinct sentence is embedded once."""
    texts = (text for table in tables.values() for side in (table.first, table.second) for text in side)
    embedded = embed(encoder, texts, cache=cache)
    return {name: (embedded.of(table.first), embedded.of(table.second)) for name, table in tables.items()}


def _score(similarity: np.ndarray, table: ScoredPairs) -> TaskScore:
    whole, reason = _pair_of(similarity, table.gold)
    subsets = {}
    labels = np.array(table.subset)
    for name in dict.fromkeys(table.subset):
        rows = labels == name
        if name:
            subsets[name] = (int(rows.sum()), *_pair_of(similarity[rows], table.gold[rows])[0])
    return TaskScore(len(table), *whole, subsets=subsets, reason=reason)


def _pair_of(similarity: np.ndarray, gold: np.ndarray) -> tuple[tuple[float | None, float | None], str]:
    try:
        return (100 * spearman(similarity, gold), 100 * pearson(similarity, gold)), ""
    except Undefined as error:
        return (None, None), str(error)
