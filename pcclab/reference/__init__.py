"""The papers' tables as CSV, one row a cell, so that ours can be set beside theirs.

Columns: paper, table (as numbered there, or a word for scores published elsewhere), row, column, value, note (where
a score comes from when it is not the paper's own, and what is doubtful about it). Rows of a group are named
"group / row".

A value is kept as printed, also where it must be a slip: the note says so, and so it does where an average is not the
mean of its row. A dash is a cell the paper leaves empty. Three things differ from print: models, tasks and averages
have one spelling over the papers; models stand in the rows, settings in the columns; and tables that quote sentences
of a data set hold only their scores and ranks, with rows such as "query 1 / target 2".
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


def papers() -> list[str]:
    """Names of the papers whose tables are here.

    >>> papers()
    ['pcc-tuning', 'rankcse', 'sts-regression']
    """
    found = (entry.name for entry in resources.files(__name__).iterdir())
    return sorted(name.removesuffix(".csv") for name in found if name.endswith(".csv"))


def cells(paper: str, *, table: str | None = None) -> pd.DataFrame:
    """The cells of one table, or of all tables, of a paper.

    Args:
        paper: a name of `papers()`.
        table: its number as text, such as "2", or a word such as "filtered"; None for all.

    Returns:
        Columns paper, table, row, column, value, note in the paper's order. The values are float where all of them are
        numbers (scores times 100) or dashes (NaN), else text as printed.

    Raises: ValueError for a paper or table that is not here; it names those that are.

    >>> scores = cells("pcc-tuning", table="2").pivot(index="row", columns="column", values="value")
    >>> float(scores.loc["Mistral-7b / Pcc-tuning", "Avg."])
    90.61
    """
    import pandas as pd

    if paper not in papers():
        raise ValueError(f"no tables of {paper!r}: there are those of {', '.join(papers())}")
    with resources.files(__name__).joinpath(f"{paper}.csv").open(encoding="utf8") as file:
        frame = pd.read_csv(file, dtype=str, keep_default_na=False)
    if table is not None:
        tables = list(frame["table"].unique())
        if table not in tables:
            raise ValueError(f"{paper} has no table {table!r}: there are {', '.join(tables)}")
        frame = frame[frame["table"] == table].reset_index(drop=True)
    numbers = pd.to_numeric(frame["value"], errors="coerce")
    words = numbers.isna() & (frame["value"] != "-")
    return frame if words.any() else frame.assign(value=numbers)


def printed(paper: str, table: str, names: Mapping[str, str]) -> pd.DataFrame:
    """Some rows of a table of scores, tidy, under the names a figure calls them.

    Args:
        paper, table: as in `cells`.
        names: the paper's name of a row to the figure's.

    Returns:
        Columns task ("sts12" to "sickr", or "Avg."), name and value.

    Raises: ValueError as `cells`, and for a row that the table has not.

    >>> rows = printed("pcc-tuning", "2", {"Mistral-7b / Pcc-tuning": "paper: keep"})
    >>> [str(value) for value in rows.iloc[-1]]
    ['Avg.', 'paper: keep', '90.61']
    """
    found = cells(paper, table=table)
    if absent := set(names) - set(found["row"]):
        raise ValueError(
            f"table {table} of {paper} has no row {min(absent)!r}: there are {list(found['row'].unique())}"
        )
    kept = found[found["row"].isin(list(names))]
    task = kept["column"].where(kept["column"] == "Avg.", kept["column"].str.replace("-", "").str.lower())
    return kept.assign(task=task, name=kept["row"].map(names))[["task", "name", "value"]].reset_index(drop=True)
