"""RankCSE's ranking tasks: does an encoder order the partners of one sentence as people do?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from pcclab import data
from pcclab.evaluation.correlation import CONSTANT, cosine
from pcclab.evaluation.embeddings import embed
from pcclab.evaluation.rank_lists import Query, kendall, linked, ndcg, queries
from pcclab.evaluation.results import UNDEFINED

if TYPE_CHECKING:
    import os

    import pandas as pd

    from pcclab.data.pairs import ScoredPairs
    from pcclab.evaluation.embeddings import Embedded
    from pcclab.evaluation.sts import Encodes


@dataclass(frozen=True)
class RankScore:
    """One set's ranking task, x 100 as in table 13, or None where no list of it has a value.

    Args:
        lists: lists of more than the asked number of partners.
        partners: their lengths together.
        kendall: mean tau-b over the lists that have one.
        ndcg: mean over the lists that have one.
        constant_gold: lists whose ratings are all the same: no tau, and NDCG is 1 whatever the order.
        constant_scores: lists, of the others, that the encoder gives one score: no tau.
        zero_gold: lists whose ratings are all 0: no NDCG either.
        merged: ratings of a partner beyond its first, in all lists: averaged into one.
        constant: the NDCG of a scorer to which all partners are alike: what the measure gives for nothing.
        queries: the sentence of each list, in the order of the set.
        groups: number of the group of each list; lists of one group share sentences, see `rank_lists.linked`.
        taus, gains: tau-b and NDCG x 100 of each list, or None where it has none.
    """

    lists: int
    partners: int
    kendall: float | None
    ndcg: float | None
    constant_gold: int = 0
    constant_scores: int = 0
    zero_gold: int = 0
    merged: int = 0
    constant: float | None = None
    queries: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    taus: tuple[float | None, ...] = ()
    gains: tuple[float | None, ...] = ()

    @property
    def reason(self) -> str:
        """What is left out and why; empty when every list has both values."""
        told = [
            (self.constant_gold, "constant gold: no tau"),
            (self.constant_scores, "constant scores: no tau"),
            (self.zero_gold, "gold all 0: no NDCG"),
        ]
        parts = [f"{count} of {self.lists} lists have {why}" for count, why in told if count]
        return "; ".join(parts) if self.lists else "no sentence has enough partners: no list"


@dataclass(frozen=True)
class RankResults:
    """What `rank_tasks` measured: set -> score, what was judged and on what."""

    tasks: Mapping[str, RankScore]
    encoder: str = ""
    source: str = ""

    @property
    def kendall(self) -> float | None:
        """Mean of the sets' Kendall x 100; None if one is undefined."""
        return _mean([task.kendall for task in self.tasks.values()])

    @property
    def ndcg(self) -> float | None:
        """Mean of the sets' NDCG x 100; None if one is undefined."""
        return _mean([task.ndcg for task in self.tasks.values()])

    def to_frame(self) -> pd.DataFrame:
        """One row a set, then the average; what is undefined is the word "undefined"."""
        import pandas as pd

        counts = ("lists", "partners", "constant_gold", "constant_scores", "zero_gold", "merged")
        parts = list(self.tasks.values())
        rows: dict[str, dict[str, Any]] = {}
        for name, task in self.tasks.items():
            rows[name] = {"kendall": _told(task.kendall), "ndcg": _told(task.ndcg)}
            rows[name] |= {count: getattr(task, count) for count in counts}
        rows["average"] = {"kendall": _told(self.kendall), "ndcg": _told(self.ndcg)}
        rows["average"] |= {count: sum(getattr(task, count) for task in parts) for count in counts}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("task")

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a run's result: task -> its two scores and counts, and the averages."""
        rows = self.to_frame().to_dict(orient="index")
        return {str(name): {str(key): value for key, value in row.items()} for name, row in rows.items()}

    def __str__(self) -> str:
        body = self.to_frame().to_string(float_format="{:.2f}".format)
        reasons = [f"{name}: {task.reason}" for name, task in self.tasks.items() if task.reason]
        return "\n".join([f"{self.encoder} on {self.source}", body, *reasons])


def rank_tasks(
    encoder: Encodes,
    *,
    tasks: Sequence[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    more_than: int = 3,
    cache: str | os.PathLike[str] | None = None,
) -> RankResults:
    """Judge an encoder by how its cosines order the partners of each query of the STS sets.

    Args:
        encoder: anything with `encode`; every distinct sentence of all lists together is embedded once.
        tasks: some of `pcclab.data.STS_TASKS`; None is all seven.
        source: as in `pcclab.data.load`; the synthetic one has lists of its own, see `pcclab.data.rank_tables`.
        more_than: a list has more partners than this.
        cache: as in `evaluation.embeddings.embed`.

    Returns: Kendall's tau-b and NDCG x 100, each the mean over the lists of a set that have it, with their number.

    Raises: ValueError for an unknown task or missing data, before anything is embedded.

    Source: RankCSE, appendix G and table 13 (which does not give its numbers of lists, nor its gain).
    Relations: `sts` ranks all pairs of a set at once, here each query's partners only.
    """
    return rank_pairs(encoder, data.rank_tables(tasks, source=source), more_than=more_than, cache=cache)


def rank_pairs(
    encoder: Encodes,
    tables: Mapping[str, ScoredPairs],
    *,
    more_than: int = 3,
    cache: str | os.PathLike[str] | None = None,
) -> RankResults:
    """`rank_tasks` on tables already loaded. Args: tables: by name; encoder, more_than, cache: as there."""
    lists = {name: queries(table, more_than=more_than) for name, table in tables.items()}
    texts = (text for rows in lists.values() for row in rows for text in (row.text, *row.partners))
    embedded = embed(encoder, texts, cache=cache)
    origin = dict.fromkeys(part.source for table in tables.values() for part in table.provenance)
    scored = {name: _score(rows, embedded) for name, rows in lists.items()}
    return RankResults(scored, encoder=str(encoder), source=", ".join(origin))


def case(encoders: Mapping[str, Encodes], pairs: ScoredPairs, query: str) -> pd.DataFrame:
    """One query's partners with their gold and what each model says of them, best rated first.

    Args:
        encoders: name -> encoder, one pair of columns each.
        pairs: the set the query is in; `queries` lists those with long lists.
        query: a sentence of either side, exactly as it stands.

    Returns: one row a partner: `gold`, `gold rank`, and for each model its cosine and `NAME rank`. Rank 1 is the
        highest; equals share the first of their places, as in the paper's tables.

    Raises: ValueError when the query stands in no pair.

    Source: RankCSE, tables 1 and 12.
    """
    import pandas as pd

    rows = [row for row in queries(pairs, more_than=0) if row.text == query]
    if not rows:
        raise ValueError(f"no pair holds {query!r}: take the text of one of `queries(pairs)`, exactly as it stands")
    row = rows[0]
    columns: dict[str, Any] = {"gold": row.gold, "gold rank": _ranks(row.gold)}
    for name, encoder in encoders.items():
        scores = _cosines([row], embed(encoder, (query, *row.partners)))[0]
        columns |= {name: scores, f"{name} rank": _ranks(scores)}
    frame = pd.DataFrame(columns, index=pd.Index(row.partners, name=query))
    return frame.sort_values("gold", ascending=False, kind="stable")


def _ranks(values: np.ndarray) -> np.ndarray:
    return stats.rankdata(-values, method="min").astype(int)


def _cosines(rows: Sequence[Query], embedded: Embedded) -> np.ndarray:
    """The cosines of lists of one length, (lists, partners)."""
    first = embedded.of([row.text for row in rows for _ in row.partners])
    second = embedded.of([text for row in rows for text in row.partners])
    return cosine(first, second).reshape(len(rows), -1)


def _score(lists: Sequence[Query], embedded: Embedded) -> RankScore:
    by_length: dict[int, list[int]] = defaultdict(list)
    for at, row in enumerate(lists):
        by_length[len(row.partners)].append(at)
    taus, gains, nothing = (np.full(len(lists), np.nan) for _ in range(3))
    flat = like = zero = 0
    for places in by_length.values():
        rows = np.array(places)
        scores, gold = _cosines([lists[place] for place in places], embedded), np.stack([lists[p].gold for p in places])
        agreed, empty = np.ptp(gold, axis=1) == 0, (gold == 0).all(axis=1)
        same = ~agreed & (np.ptp(scores, axis=1) <= CONSTANT)
        defined = ~agreed & ~same
        taus[rows[defined]] = 100 * kendall(scores[defined], gold[defined])
        gains[rows[~empty]] = 100 * ndcg(scores[~empty], gold[~empty])
        nothing[rows[~empty]] = 100 * ndcg(np.zeros_like(scores[~empty]), gold[~empty])
        flat, like, zero = flat + int(agreed.sum()), like + int(same.sum()), zero + int(empty.sum())
    return RankScore(
        len(lists),
        sum(len(row.partners) for row in lists),
        _over(taus),
        _over(gains),
        flat,
        like,
        zero,
        merged=sum(row.merged for row in lists),
        constant=_over(nothing),
        queries=tuple(row.text for row in lists),
        groups=linked(lists),
        taus=_each(taus),
        gains=_each(gains),
    )


def _over(values: np.ndarray) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None


def _each(values: np.ndarray) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(value) else float(value) for value in values)


def _told(score: float | None) -> float | str:
    return UNDEFINED if score is None else score


def _mean(scores: Sequence[float | None]) -> float | None:
    values = [score for score in scores if score is not None]
    return sum(values) / len(values) if values and len(values) == len(scores) else None
