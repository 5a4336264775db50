"""Every corpus of the three papers as a declaration: where it is, its columns, its rows; loading verifies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

STS_TASKS = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr")
"""The seven tasks whose average the papers report, in the order of their tables."""

SIMCSE_REPO = "princeton-nlp/datasets-for-simcse"
"""Hub data set that holds `senteval.tar`, the NLI triplets and the Wikipedia sentences of the papers."""

SENTEVAL_TAR = "senteval.tar"

Kind = Literal["pairs", "labelled", "nli", "triplets", "sentences"]
Layout = Literal["none", "sts", "stsb", "sick", "snli", "by_class", "sst", "trec", "mrpc"]


@dataclass(frozen=True)
class HubAddress:
    """Where the hub has a corpus.

    Args:
        repo: name of the data set.
        revision: the commit it is pinned to; "" when no commit is known, then the newest is taken at loading and the
            table's provenance tells which one that was.
        columns: our column -> the hub's.
        splits: our split -> the hub's.
        file: the one file of the repo to read, "" for the repo's own configuration.
    """

    repo: str
    revision: str
    columns: Mapping[str, str]
    splits: Mapping[str, str]
    file: str = ""


@dataclass(frozen=True)
class Corpus:
    """One corpus.

    Args:
        name: what `load` calls it.
        kind: which table it becomes.
        about: one line for people.
        default: the split that `split=None` means.
        counts: rows of each split; another number on loading is an error.
        layout: how SentEval's files of it are read, "none" when SentEval does not have it.
        files: split -> its files, relative to the SentEval folder.
        classes: names of the classes of a labelled corpus, in label order.
        scale: the ratings as the source writes them; pairs are mapped to 0..5 when loaded.
        blank: empty lines its files are known to hold; SentEval evaluates them as a lone full stop, and so do we.
        hub: the hub's address, None when there is none to trust.
        no_hub: why not, and what to do instead.
    """

    name: str
    kind: Kind
    about: str
    default: str
    counts: Mapping[str, int]
    layout: Layout = "none"
    files: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    scale: tuple[float, float] = (0.0, 5.0)
    blank: int = 0
    hub: HubAddress | None = None
    no_hub: str = ""

    def split(self, split: str | None) -> str:
        """The split meant, with SICK's own word "trial" understood as "dev".

        Raises: ValueError when the corpus has no such split.
        """
        wanted = self.default if split is None else {"trial": "dev", "validation": "dev"}.get(split, split)
        if wanted not in self.counts:
            raise ValueError(f"{self.name} has no split {split!r}: take one of {', '.join(self.counts)}")
        return wanted


def verify(rows: int, name: str, split: str, expected: int, place: str) -> None:
    """Raise ValueError, naming both figures, when a corpus has not the declared number of rows."""
    if rows != expected:
        raise ValueError(
            f"{name} {split} has {rows:,} rows in {place}, and {expected:,} are declared: "
            "the copy is incomplete or not the same corpus; fetch it again with `pcclab data fetch`"
        )


def get(name: str) -> Corpus:
    """The declaration of a corpus.

    Raises: ValueError listing the names there are.
    """
    if name not in CORPORA:
        raise ValueError(f"unknown corpus {name!r}: there are {', '.join(CORPORA)} and synthetic-NAME for each of them")
    return CORPORA[name]


_PAIR_COLUMNS = {"first": "sentence1", "second": "sentence2", "gold": "score"}
_IN_TAR = f"no pinned copy of it is declared; it is part of {SENTEVAL_TAR} of {SIMCSE_REPO}: run `pcclab data fetch`"


def _sts(year: int, rows: int, names: str, revision: str) -> Corpus:
    subsets = names.split()
    folder = f"STS/STS{year}-en-test"
    address = HubAddress(f"mteb/sts{year}-sts", revision, _PAIR_COLUMNS, {"test": "test"})
    files = {"test": tuple(f"{folder}/STS.input.{subset}.txt" for subset in subsets)}
    about = f"SemEval STS 20{year}, {len(subsets)} subsets" + (", without SMT" if year == 13 else "")
    return Corpus(f"sts{year}", "pairs", about, "test", {"test": rows}, "sts", files, hub=address)


def _binary(
    name: str, about: str, rows: int, files: tuple[str, str], classes: tuple[str, str], blank: int = 0
) -> Corpus:
    return Corpus(
        name, "labelled", about, "all", {"all": rows}, "by_class", {"all": files}, classes, blank=blank, no_hub=_IN_TAR
    )


_ALL = (
    _sts(
        12, 3108, "MSRpar MSRvid SMTeuroparl surprise.OnWN surprise.SMTnews", "a0d554a64d88156834ff5ae9920b964011b16384"
    ),
    _sts(13, 1500, "FNWN headlines OnWN", "7e90230a92c190f1bf69ae9002b8cea547a64cca"),
    _sts(14, 3750, "deft-forum deft-news headlines images OnWN tweet-news", "6031580fec1f6af667f0bd2da0a551cf4f0b2375"),
    _sts(
        15, 3000, "answers-forums answers-students belief headlines images", "ae752c7c21bf194d8b67fd573edf7ae58183cbe3"
    ),
    _sts(
        16,
        1186,
        "answer-answer headlines plagiarism postediting question-question",
        "4d8694f8f0e0100860b497b999b3dbed754a0513",
    ),
    Corpus(
        "stsb",
        "pairs",
        "STS Benchmark, a selection from STS 2012 to 2017",
        "test",
        {"train": 5749, "dev": 1500, "test": 1379},
        "stsb",
        {split: (f"STS/STSBenchmark/sts-{split}.csv",) for split in ("train", "dev", "test")},
        hub=HubAddress(
            "mteb/stsbenchmark-sts",
            "b0fddb56ed78048fa8b90373c8a3cfc37b684831",
            _PAIR_COLUMNS,
            {"train": "train", "dev": "validation", "test": "test"},
        ),
    ),
    Corpus(
        "sickr",
        "pairs",
        "SICK relatedness, rated 1..5, mapped to 0..5",
        "test",
        {"train": 4500, "dev": 500, "test": 4927},
        "sick",
        {"train": ("SICK/SICK_train.txt",), "dev": ("SICK/SICK_trial.txt",), "test": ("SICK/SICK_test_annotated.txt",)},
        scale=(1.0, 5.0),
        no_hub=(
            "MTEB's SICK-R has 9,927 rows (train, trial and test together) and is not the 4,927 test pairs that "
            f"SentEval and the papers score; those are in {SENTEVAL_TAR} of {SIMCSE_REPO}: run `pcclab data fetch`"
        ),
    ),
    Corpus(
        "nli",
        "nli",
        "SNLI dev and test: premise, hypothesis, label",
        "all",
        {"dev": 9842, "test": 9824, "all": 19666},
        "snli",
        {"dev": ("SNLI/s1.dev",), "test": ("SNLI/s1.test",), "all": ("SNLI/s1.dev", "SNLI/s1.test")},
        no_hub=_IN_TAR + "; for training on the hub's NLI triplets load nli_for_simcse",
    ),
    Corpus(
        "nli_for_simcse",
        "triplets",
        "SNLI + MultiNLI as triplets; the papers count one more, 275,602",
        "train",
        {"train": 275_601},
        hub=HubAddress(
            SIMCSE_REPO,
            "",
            {"anchor": "sent0", "positive": "sent1", "negative": "hard_neg"},
            {"train": "train"},
            "nli_for_simcse.csv",
        ),
    ),
    Corpus(
        "wiki1m",
        "sentences",
        "a million sentences of Wikipedia, for unsupervised stage 1",
        "train",
        {"train": 1_000_000},
        hub=HubAddress(SIMCSE_REPO, "", {"text": "text"}, {"train": "train"}, "wiki1m_for_simcse.txt"),
    ),
    _binary("mr", "film reviews", 10662, ("MR/rt-polarity.neg", "MR/rt-polarity.pos"), ("negative", "positive")),
    _binary("cr", "customer reviews", 3775, ("CR/custrev.neg", "CR/custrev.pos"), ("negative", "positive"), 4),
    _binary(
        "subj",
        "subjectivity",
        10000,
        ("SUBJ/subj.objective", "SUBJ/subj.subjective"),
        ("objective", "subjective"),
    ),
    _binary("mpqa", "opinion phrases", 10606, ("MPQA/mpqa.neg", "MPQA/mpqa.pos"), ("negative", "positive"), 3),
    Corpus(
        "sst2",
        "labelled",
        "film reviews, phrases",
        "train",
        {"train": 67349, "dev": 872, "test": 1821},
        "sst",
        {split: (f"SST/binary/sentiment-{split}",) for split in ("train", "dev", "test")},
        ("negative", "positive"),
        no_hub=_IN_TAR,
    ),
    Corpus(
        "trec",
        "labelled",
        "question types",
        "train",
        {"train": 5452, "test": 500},
        "trec",
        {"train": ("TREC/train_5500.label",), "test": ("TREC/TREC_10.label",)},
        ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM"),
        no_hub=_IN_TAR,
    ),
    Corpus(
        "mrpc",
        "labelled",
        "paraphrase or not",
        "train",
        {"train": 4076, "test": 1725},
        "mrpc",
        {"train": ("MRPC/msr_paraphrase_train.txt",), "test": ("MRPC/msr_paraphrase_test.txt",)},
        ("different", "paraphrase"),
        no_hub=_IN_TAR,
    ),
)

CORPORA: Mapping[str, Corpus] = MappingProxyType({corpus.name: corpus for corpus in _ALL})
"""Every corpus by name."""
