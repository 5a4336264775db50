"""One `load` over the three sources, and the training tables that are made of several corpora."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, overload

import numpy as np

from pcclab.data import catalogue, leakage, senteval
from pcclab.data.catalogue import STS_TASKS
from pcclab.data.pairs import NLIPairs, ScoredPairs, Table, Triplets

DATA_VARIABLE = "PCCLAB_DATA"
"""Environment variable that names the SentEval folder of `source="senteval"` and of `source=None`."""

PREFIX = "synthetic-"

SourceLike = str | os.PathLike[str] | None
Pairs = Literal["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]


@dataclass(frozen=True)
class Place:
    """A source after resolving: which kind, and the folder when it is one."""

    kind: Literal["senteval", "hub", "synthetic"]
    folder: Path | None = None

    def __str__(self) -> str:
        if self.kind == "senteval":
            return f"SentEval folder {self.folder}"
        return "the hub, pinned revisions" if self.kind == "hub" else "synthetic data (generated, not a corpus)"


def resolve(source: SourceLike = None) -> Place:
    """The place a `source` means; there is no falling back from one to another.

    Args:
        source: "senteval" (the folder in PCCLAB_DATA), "hub", "synthetic", the path of a SentEval folder, or None for
            the folder in PCCLAB_DATA.

    Raises:
        ValueError: None or "senteval" is given and PCCLAB_DATA is not set.
        FileNotFoundError: the folder does not exist or holds none of SentEval's folders.
    """
    if source == "hub" or source == "synthetic":
        return Place("hub" if source == "hub" else "synthetic")
    told = ""
    if source is None or source == "senteval":
        source = os.environ.get(DATA_VARIABLE, "")
        told = f" (from {DATA_VARIABLE})"
        if not source:
            raise ValueError(
                f"no data source: set {DATA_VARIABLE} to a folder in SentEval's layout (`pcclab data fetch FOLDER` "
                "makes one) or give source= that folder; or take source='hub'; or source='synthetic', needing nothing"
            )
    folder = Path(source).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no folder {str(folder)!r}{told}: "
            "a source is 'senteval', 'hub', 'synthetic' or a folder in SentEval's layout"
        )
    if not any((folder / name).is_dir() for name in senteval.FOLDERS):
        inside = next((path for path in sorted(folder.iterdir()) if (path / "STS").is_dir()), None)
        hint = f": point at {inside}" if inside else "; `pcclab data fetch FOLDER` makes one"
        raise FileNotFoundError(f"{folder}{told} holds none of {', '.join(senteval.FOLDERS)}{hint}")
    return Place("senteval", folder)


def describe(source: SourceLike = None) -> str:
    """A short string that says what a source is, for printing beside results.

    Args:
        source: as `load` takes it.

    Example:
        >>> describe("synthetic")
        'synthetic data (generated, not a corpus)'
    """
    return str(resolve(source))


@overload
def load(
    name: Pairs, *, split: str | None = None, source: SourceLike = None, revision: str | None = None
) -> ScoredPairs: ...
@overload
def load(name: str, *, split: str | None = None, source: SourceLike = None, revision: str | None = None) -> Table: ...
def load(name: str, *, split: str | None = None, source: SourceLike = None, revision: str | None = None) -> Table:
    """One split of a corpus as a typed table, its number of rows verified.

    Args:
        name: a corpus of `catalogue.CORPORA`; "synthetic-stsb" is `load("stsb", source="synthetic")`.
        split: None means the corpus's default: "test" for the STS tasks, "train" (or "all" where there is one part).
        source: see `resolve`.
        revision: a commit of the hub in place of the pinned one; for source="hub" only.

    Raises:
        ValueError: unknown name or split, no source, or another number of rows than declared.
        FileNotFoundError: the folder or one of its files is missing.
        OSError: the hub cannot be reached.
    """
    if name.startswith(PREFIX):
        name = name.removeprefix(PREFIX)
        if source not in (None, "synthetic"):
            raise ValueError(f"{PREFIX}{name} comes from source='synthetic' and not {source!r}: drop one of the two")
        source = "synthetic"
    corpus = catalogue.get(name)
    wanted = corpus.split(split)
    place = resolve(source)
    if revision is not None and place.kind != "hub":
        raise ValueError(f"revision={revision!r} is for source='hub', and this is {place}")
    if place.kind == "synthetic":
        from pcclab.data import synthetic

        return synthetic.load(name, wanted)
    if place.kind == "hub":
        from pcclab.data import hub

        return hub.load(corpus, wanted, revision=revision)
    assert place.folder is not None
    table = senteval.read(corpus, wanted, place.folder)
    catalogue.verify(len(table), corpus.name, wanted, corpus.counts[wanted], str(place))
    return table


def sts_tests(*, source: SourceLike = None) -> dict[str, ScoredPairs]:
    """The test pairs of the seven tasks, in the papers' order.

    Args:
        source: as `load` takes it.
    """
    return {name: cast(ScoredPairs, load(name, split="test", source=source)) for name in STS_TASKS}


def stage2_pairs(*, leakage: Literal["keep", "filter", "strict"] = "filter", source: SourceLike = None) -> ScoredPairs:
    """The pairs of stage 2: STS-B train, then SICK-R train, rated 0..5.

    Args:
        leakage: "keep" all; "filter" drops the pairs that occur in a test set of the seven tasks; "strict" drops those
            that share a sentence with one. Order, case and spaces do not matter.
        source: see `resolve`; the test sets are those of the same source.

    Source: Pcc-tuning, section 4 and appendix A (the mapping of SICK's ratings).
    Departs: the paper trains on all pairs, of which up to half of a test set's are among them; the default drops those.
    """
    if leakage not in ("keep", "filter", "strict"):
        raise ValueError(f"leakage is {leakage!r}: take 'keep', 'filter' or 'strict'")
    pairs = _both("train", source)
    if leakage == "keep":
        return pairs
    return _without_tests(pairs, "pair" if leakage == "filter" else "sentence", source)


def dev_pairs(*, leakage: Literal["keep", "filter"] = "filter", source: SourceLike = None) -> ScoredPairs:
    """The pairs to select a model on: STS-B dev, then SICK-R trial, rated 0..5.

    Args:
        leakage: "filter" drops the pairs that occur in a test set of the seven tasks; "keep" drops none.
        source: see `resolve`.
    """
    if leakage not in ("keep", "filter"):
        raise ValueError(f"leakage is {leakage!r}: take 'keep' or 'filter'")
    pairs = _both("dev", source)
    return pairs if leakage == "keep" else _without_tests(pairs, "pair", source)


def nli_triplets(*, source: SourceLike = None, seed: int = 0, revision: str | None = None) -> Triplets:
    """One triplet for each premise that has both: the premise, an entailment of it and a contradiction of it.

    Args:
        source: see `resolve`; the hub has triplets ready made, the other sources have labelled pairs to form them of.
        seed: where a premise has several of a class, the one taken is drawn with it.
        revision: a commit of the hub's triplets; None takes the newest, which the provenance names.

    A premise written for several captions counts once, so that no batch holds the same anchor twice.
    """
    if resolve(source).kind == "hub":
        return cast(Triplets, load("nli_for_simcse", source=source, revision=revision))
    return form_triplets(cast(NLIPairs, load("nli", source=source, revision=revision)), seed=seed)


def form_triplets(pairs: NLIPairs, *, seed: int = 0) -> Triplets:
    """Triplets of the premises that have an entailment and a contradiction, in the order in which they first occur.

    Raises: ValueError when no premise has both.
    """
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for premise, hypothesis, label in zip(pairs.premise, pairs.hypothesis, pairs.label, strict=True):
        found[premise][label].append(hypothesis)
    draw = np.random.default_rng(seed)
    rows = []
    for premise, by_label in found.items():
        choices = by_label["entailment"], by_label["contradiction"]
        if all(choices):
            rows.append((premise, *(options[int(draw.integers(len(options)))] for options in choices)))
    if not rows:
        raise ValueError(
            f"none of {len(found):,} premises has both an entailment and a contradiction: no triplet to form"
        )
    anchor, positive, negative = zip(*rows, strict=True)
    table = Triplets(anchor, positive, negative, provenance=pairs.provenance)
    return table.with_note(f"triplets of {len(rows):,} of {len(found):,} premises, seed {seed}")


def _both(split: str, source: SourceLike) -> ScoredPairs:
    return ScoredPairs.concat([load("stsb", split=split, source=source), load("sickr", split=split, source=source)])


def _without_tests(pairs: ScoredPairs, level: leakage.Level, source: SourceLike) -> ScoredPairs:
    return leakage.drop_seen(pairs, sts_tests(source=source).values(), level=level)
