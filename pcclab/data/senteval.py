"""Reads SentEval's own layout as it is: every scored row is kept, nothing is unquoted, what is skipped is counted."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pcclab.data.catalogue import Corpus
from pcclab.data.pairs import LabelledTexts, NLIPairs, Provenance, ScoredPairs, Table

FOLDERS = ("STS", "SICK", "SNLI", "MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC")
"""The folders of SentEval's `downstream` data that this lab reads."""


def read(corpus: Corpus, split: str, folder: Path) -> Table:
    """One split of a corpus from a SentEval folder, ratings on 0..5.

    Args:
        corpus: its declaration; the number of rows is not compared with it here (`load` does).
        split: one of the declaration's splits.
        folder: holds STS/, SICK/, MR/ and so on.

    Raises:
        FileNotFoundError: the folder or a file is missing.
        ValueError: a line has too few columns, a rating is no number, a text is empty, bytes are not text.
    """
    if corpus.layout == "none":
        raise ValueError(f"{corpus.name} is not among SentEval's files: load it with source='hub'")
    reader = _Reader(corpus, folder)
    paths = corpus.files[split]
    if corpus.kind == "nli":
        return _snli(reader, split, paths)
    if corpus.kind == "labelled":
        return _labelled(reader, split, paths)
    rows = [row for path in paths for row in _PAIRS[corpus.layout](reader, path)]
    scored = [row for row in rows if row.gold is not None]
    skipped = len(rows) - len(scored)
    pairs = ScoredPairs(
        tuple(row.first for row in scored),
        tuple(row.second for row in scored),
        np.array([row.gold for row in scored], dtype=np.float64),
        tuple(row.subset for row in scored),
        corpus.scale,
        provenance=reader.provenance(split, f"{skipped:,} lines without a rating skipped" if skipped else ""),
    )
    return pairs if corpus.scale == (0.0, 5.0) else pairs.rescaled(0.0, 5.0)


class _Row(NamedTuple):
    first: str
    second: str
    gold: float | None
    subset: str = ""


class _Reader:
    """Reads the files of one split and remembers a hash of all it read."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self.corpus, self.folder = corpus, folder
        self._digest = hashlib.sha256()

    def lines(self, path: str, encoding: str = "utf-8-sig") -> list[str]:
        """The lines of a file: split at line feeds alone, for some sentences hold other breaks; a BOM is dropped."""
        file = self.folder / path
        try:
            data = file.read_bytes()
        except FileNotFoundError:
            raise FileNotFoundError(f"no file {file}, which {self.corpus.name} needs: {_mend(self.folder)}") from None
        self._digest.update(f"{path}\n{len(data)}\n".encode() + data)
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            raise ValueError(f"{file} is not UTF-8 at byte {error.start}: restore the file as distributed") from None
        return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]

    def rows(self, path: str, names: Sequence[str]) -> list[tuple[str, list[str]]]:
        """Place and cells of each line below a header, the named columns in the order asked for."""
        header, *lines = self.lines(path)
        there = header.split("\t")
        if missing := [name for name in names if name not in there]:
            raise ValueError(f"{self.folder / path} has no column {missing[0]!r}: its header has {', '.join(there)}")
        wanted = [there.index(name) for name in names]
        return [(place, [cells[at] for at in wanted]) for place, cells in self.cells(path, lines, max(wanted) + 1, 2)]

    def cells(self, path: str, lines: Sequence[str], least: int, start: int = 1) -> list[tuple[str, list[str]]]:
        """Place and tab-separated cells of each line; quotes mean nothing, cells beyond `least` are allowed."""
        out = []
        for number, line in enumerate(lines, start):
            cells = line.split("\t")
            if len(cells) < least:
                place = f"{self.folder / path} line {number}"
                raise ValueError(f"{place} has {len(cells)} tab-separated columns, and {least} are needed")
            out.append((f"{self.folder / path} line {number}", cells))
        return out

    def provenance(self, split: str, note: str = "") -> tuple[Provenance, ...]:
        return (Provenance(self.corpus.name, split, "senteval", self._digest.hexdigest()[:16], note),)


def _mend(folder: Path) -> str:
    if (folder / "senteval").is_dir():
        return f"point PCCLAB_DATA at {folder / 'senteval'}"
    return "point PCCLAB_DATA at a folder with STS/, SICK/, ... inside; `pcclab data fetch FOLDER` makes one"


def _text(cell: str, place: str) -> str:
    text = cell.strip()
    if not text:
        raise ValueError(f"{place}: the text is empty: restore the file as distributed")
    return text


def _number(cell: str, place: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"{place}: the rating {cell!r} is not a number") from None
    if not math.isfinite(value):
        raise ValueError(f"{place}: the rating is {cell.strip()}, and a finite number is needed")
    return value


def _sts(reader: _Reader, path: str) -> list[_Row]:
    """SemEval's two files a subset; a line whose rating is empty was never rated."""
    ratings = path.replace("STS.input.", "STS.gs.")
    texts, golds = reader.lines(path), reader.lines(ratings)
    if len(texts) != len(golds):
        raise ValueError(f"{reader.folder / path} has {len(texts):,} lines and {ratings} has {len(golds):,}")
    subset = path.rsplit("STS.input.", 1)[1].removesuffix(".txt")
    rows = []
    for (place, cells), gold in zip(reader.cells(path, texts, 2), golds, strict=True):
        if gold.strip():
            rated = _number(gold, place.replace("STS.input.", "STS.gs."))
            rows.append(_Row(_text(cells[0], place), _text(cells[1], place), rated, subset))
        else:
            rows.append(_Row(cells[0], cells[1], None, subset))
    return rows


def _stsb(reader: _Reader, path: str) -> list[_Row]:
    """Columns genre, file, year, id, score, s1, s2 and, in some copies, sources behind them; no header, no quoting."""
    return [
        _Row(_text(cells[5], place), _text(cells[6], place), _number(cells[4], place), cells[0])
        for place, cells in reader.cells(path, reader.lines(path), 7)
    ]


def _sick(reader: _Reader, path: str) -> list[_Row]:
    return [
        _Row(_text(first, place), _text(second, place), _number(gold, place))
        for place, (first, second, gold) in reader.rows(path, ("sentence_A", "sentence_B", "relatedness_score"))
    ]


_PAIRS: dict[str, Callable[[_Reader, str], list[_Row]]] = {"sts": _sts, "stsb": _stsb, "sick": _sick}


def _snli(reader: _Reader, split: str, paths: Sequence[str]) -> NLIPairs:
    """Three files a part, line by line: s1 the premise, s2 the hypothesis, labels."""
    columns: tuple[list[str], list[str], list[str]] = ([], [], [])
    for path in paths:
        parts = [path, path.replace("/s1.", "/s2."), path.replace("/s1.", "/labels.")]
        read_in = [reader.lines(part) for part in parts]
        if len({len(lines) for lines in read_in}) > 1:
            told = ", ".join(f"{part} {len(lines):,}" for part, lines in zip(parts, read_in, strict=True))
            raise ValueError(f"the three files in {reader.folder} have different numbers of lines: {told}")
        for column, part, lines in zip(columns, parts, read_in, strict=True):
            column += [_text(line, f"{reader.folder / part} line {at}") for at, line in enumerate(lines, 1)]
    return NLIPairs(*map(tuple, columns), provenance=reader.provenance(split))


def _labelled(reader: _Reader, split: str, paths: Sequence[str]) -> LabelledTexts:
    """The transfer tasks; a blank line is the lone full stop that SentEval's own evaluation makes of it."""
    classes = reader.corpus.classes
    texts: list[str] = []
    seconds: list[str] | None = None
    labels: list[int] = []
    for at, path in enumerate(paths):
        if reader.corpus.layout == "by_class":
            lines = reader.lines(path)
            texts += lines
            labels += [at] * len(lines)
        elif reader.corpus.layout == "sst":
            for place, cells in reader.cells(path, reader.lines(path), 2):
                texts.append(cells[0])
                labels.append(_class(cells[-1], ("0", "1"), place))
        elif reader.corpus.layout == "trec":
            encoding = "latin-1" if split == "train" else "utf-8-sig"
            for number, line in enumerate(reader.lines(path, encoding), 1):
                kind, _, question = line.partition(" ")
                labels.append(_class(kind.split(":")[0], classes, f"{reader.folder / path} line {number}"))
                texts.append(question)
        else:
            seconds = seconds if seconds is not None else []
            for place, (label, first, second) in reader.rows(path, ("Quality", "#1 String", "#2 String")):
                labels.append(_class(label, ("0", "1"), place))
                texts.append(first)
                seconds.append(_text(second, place))
    texts = [text.strip() for text in texts]
    blank = texts.count("")
    if blank > reader.corpus.blank:
        row = texts.index("")
        raise ValueError(
            f"{reader.corpus.name} {split}: {blank} empty texts (the first in row {row}), and the distributed files "
            f"have {reader.corpus.blank}: restore them"
        )
    note = f"{blank} blank lines read as '.', as SentEval evaluates them" if blank else ""
    filled = tuple(text or "." for text in texts)
    second_column = tuple(seconds) if seconds is not None else None
    return LabelledTexts(filled, second_column, np.array(labels), classes, provenance=reader.provenance(split, note))


def _class(cell: str, names: Sequence[str], place: str) -> int:
    if cell.strip() not in names:
        raise ValueError(f"{place}: the label is {cell.strip()!r}, not one of {', '.join(names)}")
    return list(names).index(cell.strip())
