"""Results as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab.parameters.places import speaks_of_a_run

if TYPE_CHECKING:
    from pcclab.runs import Run

Number = int | float | str


def of_run(run: Run) -> str:
    """A finished run: its tables, its single figures, and the paths of its drawings."""
    parts = [of_result(run.result)]
    drawings = sorted((run.folder / "figures").glob("*.png"))
    if drawings:
        parts.append("\n".join(["figures:", *(f"  {path}" for path in drawings)]))
    return "\n\n".join(part for part in parts if part)


def of_race(parameters: Any) -> str:
    """Hold the race of a parameter set of notebook 04: its table, and the paths of its rows and figure."""
    from pcclab import figures, plots, runs, workflows

    folder = runs.root() / "runs" / "04_ablations"
    rows = workflows.race_of(parameters, folder, {})
    standing = workflows.standing(rows)
    ax = plots.race_intervals(rows[rows["chosen"]], score="average")
    name = f"race_{parameters.form}"
    drawn: Any = ax.figure
    known = {str(loss): dict(row.dropna()) for loss, row in standing.iterrows()}  # one seed has no interval
    saved = figures.save(drawn, folder, name, numbers=known, run=f"{folder.name}/race.csv")
    printed = table(known, title=parameters.source)
    return "\n\n".join([printed, "\n".join(["rows and figure:", f"  {folder / 'race.csv'}", f"  {saved[1]}"])])


def of_result(result: Mapping[str, Any]) -> str:
    """A result's tree: rows of figures become tables, single figures become lines, what lies deeper is named.

    >>> deep = {"batch size": {"16": {"mean": 78.1}}}
    >>> print(of_result({"before": {"stsb": 82.03}, "after": {"stsb": 83.42}, "seed": 0, "settings": deep}))
              stsb
    ------  -------
    before    82.03
    after     83.42
    <BLANKLINE>
    seed: 0
    settings: batch size (in result.json)
    """
    blocks, lines = [], []
    rows: dict[tuple[str, ...], dict[str, Mapping[str, Any]]] = {}  # rows of the same columns share a table
    for name, value in result.items():
        if isinstance(value, Mapping) and any(_deep(row) for row in value.values()):
            lines.append(f"{name}: {', '.join(value)} (in result.json)")
        elif isinstance(value, Mapping) and all(isinstance(row, Mapping) for row in value.values()):
            blocks.append(table(value, title=name))
        elif isinstance(value, Mapping):
            rows.setdefault(tuple(value), {})[name] = value
        elif isinstance(value, list):
            lines.append(f"{name}: {len(value)} values")
        else:
            lines.append(f"{name}: {_text(value)}")
    blocks = [*map(table, rows.values()), *blocks]
    return "\n\n".join([*blocks, *(["\n".join(lines)] if lines else [])])


def _deep(row: Any) -> bool:
    """Whether a row holds more than figures: a table of tables tells nobody anything in a terminal."""
    return isinstance(row, Mapping) and any(isinstance(cell, Mapping) for cell in row.values())


def table(rows: Mapping[str, Mapping[str, Any]], *, title: str = "") -> str:
    """Rows of figures under each other, figures to two decimals where they are not small.

    >>> print(table({"before": {"stsb": 82.034, "sickr": "undefined"}}, title="sts"))
    sts        stsb      sickr
    ------  -------  ---------
    before    82.03  undefined
    """
    columns = list(dict.fromkeys(column for row in rows.values() for column in row))
    cells = [[title, *columns]]
    cells += [[name, *(_text(row.get(column, "")) for column in columns)] for name, row in rows.items()]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns) + 1)]
    widths = [widths[0], *(max(width, 7) for width in widths[1:])]
    cells.insert(1, ["-" * width for width in widths])
    lined = ("  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in cells)
    return "\n".join(line.rstrip() for line in lined)


def of_encoder(
    name: str, *, source: str | None, tasks: list[str] | None, subsets: bool, options: Mapping[str, Any]
) -> str:
    """One encoder on the STS tasks: the encoder and the data are named above the figures.

    Args:
        name: as `encoders.load` takes it, or a run such as "03 real leakage=keep", run first where it is missing.
        source: as `data.load` takes it.
        tasks: some of the seven tasks, None for all.
        subsets: also each subset, and SentEval's all, mean and wmean.
        options: further options of `encoders.load`; None takes the model's own.

    Raises: ValueError for an unknown task or a missing folder before any weights are loaded.
    """
    from pcclab import data
    from pcclab.complaints import unknown

    for task in tasks or ():
        if task not in data.STS_TASKS:
            raise ValueError(unknown("task", task, data.STS_TASKS))
    where = data.describe(source)
    from pcclab import encoders, evaluation

    encoder = _of_run(name, options) if speaks_of_a_run(name) else encoders.load(name, **options)
    results = evaluation.sts(encoder, tasks=tasks, source=source)
    parts = [f"encoder: {results.encoder or name}\ndata:    {where}", table({"": results.to_dict()}, title="spearman")]
    parts += [f"{task}: undefined, {score.reason}" for task, score in results.tasks.items() if score.reason]
    if subsets:
        parts.append(results.to_frame(subsets=True).to_string(float_format="{:.2f}".format))
    return "\n\n".join(parts)


def of_everything(name: str, *, source: str | None, again: bool, options: Mapping[str, Any]) -> str:
    """One encoder on the STS, transfer and rank tasks and its geometry: a table a part, intervals in brackets.

    What was judged before is read from `runs/evaluations`; a sheet with the parts' seconds lies beside it.

    Args:
        name: as `encoders.load` takes it, or a run such as "03 real leakage=keep", run first where it is missing.
        source: as `data.load` takes it.
        again: judge anew what is kept.
        options: further options of `encoders.load`; None takes the model's own.

    Raises: ValueError for missing data before any weights are loaded.
    """
    from pcclab import data, files, runs, workflows

    where = data.describe(source)
    ((title, model),) = workflows.load_models([name]).items()
    encoder = model.load(**options)
    found = workflows.judge(encoder, runs.root(), source=source, again=again)
    parts = [f"encoder: {title}, {encoder}\ndata:    {where}"]
    for part, rows in workflows.by_part(found).items():
        told = {name: {column: _cell(value) for column, value in row.items()} for name, row in rows.items()}
        parts.append(table(told, title=part))
    seconds = {unit: judged.seconds for unit, judged in found.items()}
    loads = {unit: judged.load for unit, judged in found.items()}
    folder = next(iter(found.values())).file.parent
    sheet = folder / f"all-{_source_word(source)}.json"
    kept = {unit: judged.file.name for unit, judged in found.items()}
    files.write_json(sheet, {"encoder": title, "source": where, "seconds": seconds, "load": loads, "files": kept})
    reused = sum(judged.reused for judged in found.values())
    told_busy = f", the machine's load up to {max(loads.values()):.1f}" if max(loads.values()) > 1 else ""
    parts.append(
        "intervals: 95 %, bootstrap over pairs, lists or sentences, Wilson's over test rows\n"
        f"took {sum(seconds.values()):.1f} s{told_busy}; {reused} of {len(found)} units were kept from before\n"
        f"kept in {sheet}"
    )
    return "\n\n".join(parts)


def of_export(place: str, folder: str, *, source: str | None) -> str:
    """Export an encoder with its card; the folder and how it is loaded.

    Args:
        place: as `encoders.load` takes it, or a run such as "03 real leakage=keep", run first where it is missing.
        folder: new, or replaced whole.
        source: what its scores are taken on; None: the source of its run, and without a run no scores.

    Raises: ValueError for a folder that is there and is no model for sentence-transformers.
    """
    if Path(folder).exists() and not (Path(folder) / "modules.json").is_file():
        raise ValueError(f"{folder} is there and is no exported model: name a new folder, or remove that one")
    from pcclab import runs, workflows

    ((_, model),) = workflows.load_models([place]).items()
    made = workflows.export(model, folder, runs.root(), source=source)
    return f"exported to {made}, its card is {made / 'README.md'}\nSentenceTransformer({str(made)!r}) loads it"


def _of_run(place: str, options: Mapping[str, Any]) -> Any:
    from pcclab import workflows  # loads what trains: seconds that an encoder by name need not wait for

    ((_, model),) = workflows.load_models([place]).items()
    return model.load(**options)


def _source_word(source: str | None) -> str:
    """A source in a file's name."""
    return source if source in ("synthetic", "hub") else "senteval"


def _cell(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    middle, low, high = (_text(float(number)) for number in value)
    return f"{middle} [{low}, {high}]"


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if abs(value) >= 10 else f"{value:.4f}"
    return str(value)
