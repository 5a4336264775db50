"""Corpora from the hub through the `datasets` library: pinned commits, declared columns, no remote code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np

from pcclab.data.catalogue import SIMCSE_REPO, Corpus, verify
from pcclab.data.pairs import Provenance, ScoredPairs, Sentences, Table, Triplets

T = TypeVar("T")


def load(corpus: Corpus, split: str, *, revision: str | None = None) -> Table:
    """One split of a corpus from the hub, ratings on 0..5, the number of rows verified.

    Args:
        corpus: its declaration.
        split: one of the declaration's splits.
        revision: a commit in place of the declared one. Where none is declared and none given, the newest commit is
            taken; the table's provenance always names the commit.

    Raises:
        ValueError: the corpus is not taken from the hub, a column is missing, or the number of rows is another.
        OSError: the hub cannot be reached or does not have that commit.
    """
    address = corpus.hub
    if address is None:
        raise ValueError(f"{corpus.name} is not taken from the hub: {corpus.no_hub}")
    commit = revision or address.revision or newest(address.repo)

    def download() -> Any:
        import datasets

        options: dict[str, Any] = {}
        if address.file:
            options["data_files"] = {address.splits[split]: address.file}
        if address.file.endswith(".csv"):
            # or a hypothesis that says "None", "NA" or "null" would be read as a missing one
            options["keep_default_na"] = False
        return datasets.load_dataset(address.repo, revision=commit, split=address.splits[split], **options)

    rows = reached(address.repo, commit, download)
    if missing := [name for name in address.columns.values() if name not in rows.column_names]:
        there = ", ".join(rows.column_names)
        raise ValueError(
            f"{address.repo} at {commit} has no column {missing[0]!r}: it has {there}; take the pinned commit"
        )
    columns = {ours: list(rows[theirs]) for ours, theirs in address.columns.items()}
    verify(len(rows), corpus.name, split, corpus.counts[split], f"{address.repo} at {commit}")
    return _table(corpus, split, commit, columns)


def _table(corpus: Corpus, split: str, commit: str, columns: dict[str, list[Any]]) -> Table:
    def provenance(note: str = "") -> tuple[Provenance, ...]:
        return (Provenance(corpus.name, split, "hub", commit, note),)

    texts = {name: list(map(_stripped, column)) for name, column in columns.items() if name != "gold"}
    if corpus.kind == "pairs":
        gold = np.array([np.nan if value is None else value for value in columns["gold"]], dtype=np.float64)
        told = provenance("the hub does not tell subsets apart" if corpus.layout == "sts" else "")
        first, second = (tuple(column) for column in texts.values())
        pairs = ScoredPairs(first, second, gold, scale=corpus.scale, provenance=told)
        return pairs if corpus.scale == (0.0, 5.0) else pairs.rescaled(0.0, 5.0)
    # A rating of an empty text is damage; in text to train on, a blank line is a line to leave out and to count.
    kept = [row for row in zip(*texts.values(), strict=True) if "" not in row]
    blank = len(texts[next(iter(texts))]) - len(kept)
    told = provenance(f"{blank:,} rows with a blank text left out" if blank else "")
    if not kept:
        raise ValueError(f"{corpus.name} {split} has no row without a blank text: the hub's file is not the corpus")
    filled = dict(zip(texts, zip(*kept, strict=True), strict=True))
    return (Triplets if corpus.kind == "triplets" else Sentences)(**filled, provenance=told)


def _stripped(value: Any) -> Any:
    # what is no text is left for the table to refuse by row
    return value.strip() if isinstance(value, str) else value


@cache
def newest(repo: str) -> str:
    """The newest commit of a data set; the same for the whole process once it was asked for.

    Raises: OSError when the hub cannot be reached.
    """

    def ask() -> Any:
        import huggingface_hub

        return huggingface_hub.HfApi().dataset_info(repo).sha

    return str(reached(repo, "its newest commit", ask))


def tar(filename: str, commit: str) -> str:
    """Path of a downloaded file of the repository with SentEval's archive.

    Raises: OSError when the hub cannot be reached or does not have that commit.
    """

    def download() -> str:
        import huggingface_hub

        return str(huggingface_hub.hf_hub_download(SIMCSE_REPO, filename, repo_type="dataset", revision=commit))

    return reached(SIMCSE_REPO, commit, download)


def reached(repo: str, revision: str, ask: Callable[[], T]) -> T:
    """What `ask` gets from the hub; whatever goes wrong there becomes one OSError that says what else there is."""
    try:
        return ask()
    except Exception as error:  # the libraries below raise a dozen unrelated kinds when offline
        lines = str(error).strip().splitlines() or [""]
        raise OSError(
            f"could not get {repo} at {revision} from the hub ({type(error).__name__}: {lines[0][:200]}): check the "
            "network and the revision, or take a SentEval folder (PCCLAB_DATA or source=FOLDER), or source='synthetic'"
        ) from error
