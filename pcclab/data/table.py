"""What every typed table shares: columns of equal length, checks, selection, a fingerprint and its provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

Source = Literal["senteval", "hub", "synthetic", "memory"]


@dataclass(frozen=True)
class Provenance:
    """Where rows came from.

    Args:
        corpus: name in the catalogue, such as "stsb".
        split: "train", "dev", "test" or "all".
        source: which of the three sources, or "memory" for a table made by hand.
        revision: what pins the content: a hash of the files read, a hub commit, or generator version and seed.
        note: what was done to the rows on the way, such as "1..5 mapped to 0..5".
    """

    corpus: str = ""
    split: str = ""
    source: Source = "memory"
    revision: str = ""
    note: str = ""

    def __str__(self) -> str:
        place = f"{self.source}@{self.revision}" if self.revision else self.source
        name = f"{self.corpus} {self.split}".strip()
        return f"{name} from {place}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True, eq=False)
class Table:
    """What all tables share: length, selection, concatenation, a frame and a fingerprint.

    Columns are the tuple and array fields; `provenance` holds one entry for each source of rows. Two tables with the
    same content have the same `fingerprint`, wherever they came from.
    """

    _texts: ClassVar[tuple[str, ...]] = ()
    _others: ClassVar[tuple[str, ...]] = ()

    provenance: tuple[Provenance, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        provenance = (self.provenance,) if isinstance(self.provenance, Provenance) else tuple(self.provenance)
        object.__setattr__(self, "provenance", provenance)
        for name in self._texts:
            if (column := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(column))
        self._finish()
        lengths = {name: len(getattr(self, name)) for name in self._columns()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
            raise ValueError(f"{self._title()}: columns of different lengths ({told}): give one value a row in each")
        if not len(self):
            raise ValueError(f"{self._title()}: 0 rows, and a table needs at least 1")
        for name in self._texts:
            self._check_texts(name)

    def _finish(self) -> None:
        """Bring the other columns to their types; subclasses check their values here."""

    def _check_texts(self, name: str) -> None:
        for row, text in enumerate(getattr(self, name) or ()):
            if not isinstance(text, str):
                raise ValueError(f"{self._title()}: {name} of row {row} is {text!r}: put a text there or drop the row")
            if not text or text.isspace():
                raise ValueError(f"{self._title()}: {name} of row {row} is empty: fill it or drop the row")

    def _columns(self) -> list[str]:
        return [name for name in (*self._texts, *self._others) if getattr(self, name) is not None]

    def _title(self) -> str:
        known = [f"{entry.corpus} {entry.split}".strip() for entry in self.provenance if entry.corpus]
        return f"{type(self).__name__} ({' + '.join(known)})" if known else type(self).__name__

    def __len__(self) -> int:
        return len(getattr(self, self._texts[0]))

    def select(self, rows: ArrayLike) -> Self:
        """The rows of a boolean mask (one entry a row) or of integer positions, in their order."""
        chosen = np.asarray(rows)
        if chosen.dtype == bool:
            if chosen.shape != (len(self),):
                raise ValueError(f"{self._title()}: a mask of shape {chosen.shape} for {len(self):,} rows")
            chosen = np.flatnonzero(chosen)
        elif chosen.size and not np.issubdtype(chosen.dtype, np.integer):
            raise ValueError(f"{self._title()}: select takes a mask or integer positions, not {chosen.dtype}")
        positions = chosen.astype(np.intp).tolist()
        values: dict[str, Any] = {}
        for name in self._columns():
            column = getattr(self, name)
            picked = column[positions] if isinstance(column, np.ndarray) else tuple(column[at] for at in positions)
            values[name] = picked
        return replace(self, **values)

    @classmethod
    def concat(cls, tables: Iterable[Self]) -> Self:
        """The rows of all tables one after another, with every provenance kept once."""
        tables = list(tables)
        if not tables:
            raise ValueError(f"{cls.__name__}.concat: 0 tables, and it needs at least 1")
        if wrong := [type(table).__name__ for table in tables if type(table) is not cls]:
            raise ValueError(f"{cls.__name__}.concat: cannot take a {wrong[0]}")
        if len({tuple(table._columns()) for table in tables}) > 1:
            raise ValueError(f"{cls.__name__}.concat: the tables have different columns")
        values: dict[str, Any] = {}
        for name in tables[0]._columns():
            columns = [getattr(table, name) for table in tables]
            arrays = isinstance(columns[0], np.ndarray)
            values[name] = np.concatenate(columns) if arrays else tuple(x for column in columns for x in column)
        values["provenance"] = tuple(dict.fromkeys(entry for table in tables for entry in table.provenance))
        return replace(tables[0], **cls._joined(tables), **values)

    @classmethod
    def _joined(cls, tables: Sequence[Any]) -> dict[str, Any]:
        """Fields that are not columns and must agree."""
        return {}

    def to_frame(self) -> pd.DataFrame:
        """One row a row, one column a column."""
        import pandas as pd

        return pd.DataFrame({name: getattr(self, name) for name in self._columns()})

    def with_note(self, note: str) -> Self:
        """The same rows; `note` is added to every provenance entry, so that what was done to them is told."""
        told = tuple(replace(p, note=f"{p.note}; {note}" if p.note else note) for p in self.provenance)
        return replace(self, provenance=told)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content (every column and setting, not the provenance), as 64 hex digits."""
        digest = hashlib.sha256(type(self).__name__.encode())
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "provenance" or value is None:
                continue
            digest.update(f"\n{entry.name}:".encode())
            if isinstance(value, np.ndarray):
                digest.update(value.astype(value.dtype.newbyteorder("<")).tobytes())
            else:
                digest.update(json.dumps(value).encode())
        return digest.hexdigest()
