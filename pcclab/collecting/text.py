"""A collection as text: Markdown to keep, and the same short for a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files, sheet, tables
from pcclab.collecting.collection import Collection
from pcclab.report import table

if TYPE_CHECKING:
    import pandas as pd

HOW = (
    "Mean over seeds and its 95 % interval by Student's t, which takes the runs as independent; a single seed has no "
    "interval. n: runs with a value."
)
COUNT = "n"
SHOWN_DEPTH = 2
LONGEST = 40
"""Letters of one value in the name of a row; the table of runs has all of it."""


def blocks(collection: Collection) -> dict[str, pd.DataFrame]:
    """The summary as tables: a row a setting, a column a metric, a table for each part of the result.

    What lies deeper in the result than a table's cell, such as the scores at every look, stands in the summary alone.

    Returns:
        Title -> frame of (mean, low, high, n), index the settings, a level a changed parameter; the single figures
        first, under "".
    """
    import pandas as pd

    rows: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}
    wide = collection.summary
    labels = [label(collection, values) for values in wide[collection.settings].to_numpy(dtype=object).tolist()]
    for setting, row in zip(labels, wide.to_dict("records"), strict=True):
        path = collection.metrics[row["metric"]]
        if len(path) <= SHOWN_DEPTH:
            mean = row["mean"]
            if row["metric"] in collection.whole and mean.is_integer() and not row["low"] < row["high"]:
                mean = int(mean)  # steps and counts, not a score that happens to be whole
            figures = (mean, row["low"], row["high"], row["n"])
            rows.setdefault(".".join(path[:-1]), {}).setdefault(setting, {})[path[-1]] = figures
    names = list(collection.changed) or ["runs"]
    made = {}
    for title in sorted(rows, key=bool):
        index = pd.MultiIndex.from_tuples(rows[title], names=names)
        made[title] = pd.DataFrame(list(rows[title].values()), index=index)
    return made


def label(collection: Collection, setting: list[Any]) -> tuple[str, ...]:
    """A setting as a row is called, a word a changed parameter."""
    told = ("–" if value is None or value != value else _short(value) for value in setting)
    return tuple(told) or (f"all {len(collection.finished)}",)


def cell(value: Any, *, most: int, places: int) -> str:
    """One (mean, low, high, n) as a table prints it.

    Args:
        value: the four; None or NaN where runs of this setting have no such metric.
        most: the n of its row; another one is said.
        places: decimals.

    >>> cell((80.8, 80.3, 81.3, 3), most=3, places=2), cell((0.25, float("nan"), float("nan"), 1), most=3, places=4)
    ('80.80 [80.30, 81.30]', '0.2500 (n = 1)')
    """
    if not isinstance(value, tuple):
        return "–"
    mean, low, high, n = value
    if not n:
        return tables.UNDEFINED
    interval = f" [{low:.{places}f}, {high:.{places}f}]" if low == low else ""
    return f"{mean:.{places}f}{interval}" + (f" (n = {n})" if n != most else "")


def decimals(column: Iterable[Any]) -> int:
    """Decimals of a column's figures: none for whole numbers, two where some reach 10, else four."""
    means = [value[0] for value in column if isinstance(value, tuple) and value[3]]
    if all(isinstance(mean, int) for mean in means):
        return 0
    return 2 if any(abs(mean) >= 10 for mean in means) else 4


def counts(frame: pd.DataFrame) -> list[int]:
    """The n of each row of a block: the most that one of its cells has."""
    return [max(value[3] for value in row if isinstance(value, tuple)) for row in frame.to_numpy(dtype=object)]


def printed(frame: pd.DataFrame) -> pd.DataFrame:
    """A block with its cells as text, and n as its last column."""
    most = counts(frame)
    columns: dict[Any, list[Any]] = {}
    for name in frame:
        places = decimals(frame[name])
        columns[name] = [cell(value, most=n, places=places) for value, n in zip(frame[name], most, strict=True)]
    return type(frame)({**columns, COUNT if COUNT not in columns else "runs": most}, index=frame.index)


def unfinished(collection: Collection) -> pd.DataFrame:
    """The runs whose figures do not count, each with its state and reason."""
    frame = collection.runs
    kept = frame[frame["state"] != "finished"]
    return kept[["run", *collection.changed, "seed", "state", "reason"]].set_index("run")


def states(collection: Collection) -> str:
    """Such as "12 runs: 11 finished, 1 failed". Args: collection: of these runs."""
    counts = [f"{count} {state}" for state, count in collection.states.items()]
    number = len(collection.entries)
    return f"{number} run{'s' * (number != 1)}: {', '.join(counts)}"


def markdown(collection: Collection) -> str:
    """The collection as a page of Markdown: states, what did not finish and why, every table of means.

    Args:
        collection: what to show.
    """
    parts = [f"# {collection.name}", states(collection)]
    for title, frame in blocks(collection).items():
        parts += [f"## {title or 'figures'}", tables.markdown(printed(frame))]
    if collection.finished:
        deep = sum(len(path) > SHOWN_DEPTH for path in collection.metrics.values())
        parts.append(HOW + (f" {deep} more metrics stand in summary.csv." if deep else ""))
    left = unfinished(collection)
    if len(left):
        parts += ["## not in the means", tables.markdown(left, missing="–")]
    return "\n\n".join(parts) + "\n"


def plain(collection: Collection) -> str:
    """The same for a terminal: of each setting the single figures and the averages, then the runs that do not count.

    Args:
        collection: what to show.
    """
    parts = [f"{collection.name}, {states(collection)}"]
    shown: dict[str, pd.Series] = {}
    for title, frame in blocks(collection).items():
        kept = [name for name in frame if not title or name == "average"] or list(frame)[: 0 if shown else 4]
        shown |= {f"{title}.{name}".strip("."): frame[name] for name in kept}
    if shown:
        frame = printed(type(frame)(shown))
        rows = {" / ".join(name): row for name, row in frame.to_dict("index").items()}
        more = len(collection.metrics) - len(shown)
        parts.append(table(rows, title=" / ".join(collection.changed)))
        parts.append(
            f"means over seeds [95 % interval, Student's t]; {more} more metrics in summary.md and summary.csv"
        )
    left = unfinished(collection)
    parts += ["\n".join(f"{name}: {row.state}: {row.reason}" for name, row in left.iterrows())] if len(left) else []
    return "\n\n".join(parts)


def _short(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value) or "none"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def write(collection: Collection, folder: Path) -> list[Path]:
    """Write `runs` and `summary` as Parquet and CSV and `summary.md` into a folder, each atomically.

    Args:
        collection: what to write.
        folder: where; made if it is not there.

    Returns: the files' paths.
    """
    paths = []
    for name, frame in (("runs", collection.runs), ("summary", collection.summary)):
        for suffix, save in ((".parquet", frame.to_parquet), (".csv", frame.to_csv)):
            with sheet.writing(folder), files.replacing(folder / f"{name}{suffix}") as temporary:
                save(temporary, index=False)
            paths.append(folder / f"{name}{suffix}")
    with sheet.writing(folder):
        files.write_text(folder / "summary.md", markdown(collection))
    return [*paths, folder / "summary.md"]
