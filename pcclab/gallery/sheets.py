"""The papers' tables with ours beside theirs: each is a sheet of JSON, from which LaTeX and Markdown are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pcclab import figures, files, records, reference, tables
from pcclab.gallery import ours

if TYPE_CHECKING:
    import pandas as pd

PAPERS = {"pcc-tuning": "Pcc-tuning", "sts-regression": "STS-Regression", "rankcse": "RankCSE"}
TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R", "Avg.")
TRANSFER = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC", "Avg.")


COLUMN_SIGNS = 52
"""Signs of a table's line that fit into one column of a paper; a longer one takes both."""


class Sheet(NamedTuple):
    """A table of the catalogue.

    Args:
        paper, table: theirs, as `pcclab.reference` has them.
        columns: of both, in the order to print.
        places: the runs ours come from, as `pcclab run` takes them.
        rows: from those runs' results, by place, to our rows.
        caption: what it shows; data, seeds and machine of ours are added.
        ours: what is particular to our rows.
        small: what stands beside our numbers.
        only: the beginning of their rows that are shown; "" for all.
        part: the encoder of all their rows, where the rows do not begin with theirs.
    """

    paper: str
    table: str
    columns: tuple[str, ...]
    places: tuple[str, ...]
    rows: Callable[[Mapping[str, ours.Result]], list[ours.Row]]
    caption: str
    ours: str = ""
    small: str = "standard deviation over seeds"
    only: str = ""
    part: str = ""


_FROZEN = "a projection trained on the encoder's embeddings, which stay as they are"
_STUDENT = "the encoder's lower layers taught by the whole"
_JUDGED = "the encoder before and after stages 1 and 2, under two protocols"
_ROWS = "half the 95 % interval over test rows"
_STAGE2 = tuple(f"03 real seed={seed} leakage={level}" for level in ("strict", "filter", "keep") for seed in (0, 1, 2))

TABLES: dict[str, Sheet] = {
    "pcc_tuning_1": Sheet(
        "pcc-tuning", "1", ("Spearman",), _STAGE2, ours.stage2_averages, "Average Spearman of the seven STS tasks"
    ),
    "pcc_tuning_2": Sheet(
        "pcc-tuning", "2", TASKS, _STAGE2, ours.stage2_tasks, "Spearman on the seven STS tasks before and after stage 2"
    ),
    "pcc_tuning_4": Sheet(
        "pcc-tuning", "4", ("Stage-1", "Stage-2", "Stage-2, filtered"), ("04 real",), ours.prompts,
        "Average Spearman under three templates; filtered: as the authors note it beside their evaluation code",
        _FROZEN,
    ),
    "pcc_tuning_5": Sheet(
        "pcc-tuning", "5", ("Spearman",), ("04 real",), ours.batch_sizes,
        "Average Spearman by batch size of stage 2", _FROZEN,
    ),
    "pcc_tuning_6": Sheet(
        "pcc-tuning", "6", TRANSFER, ("08 real",), ours.transfer, "Accuracy on the seven transfer tasks", _JUDGED, _ROWS
    ),
    "sts_regression_1": Sheet(
        "sts-regression", "1", TASKS, ("06 real",), ours.scratch, "Spearman of objectives trained on NLI alone",
        "the encoder's two lowest layers, the upper of them drawn anew",
    ),
    "sts_regression_3": Sheet(
        "sts-regression", "3", TASKS, ("06 real",), ours.two_phase, "Spearman of two phases from a trained encoder"
    ),
    "sts_regression_5": Sheet(
        "sts-regression", "5", ("Spearman",), ("04 real",), ours.slopes,
        "Average Spearman by slope and threshold", _FROZEN,
    ),
    "sts_regression_6": Sheet(
        "sts-regression", "6", ("Spearman",), ("04 real",), ours.features,
        "Average Spearman by what the node is given", _FROZEN,
    ),
    "rankcse_2": Sheet(
        "rankcse", "2", TASKS, ("07 real",), ours.rankcse_tasks, "Spearman on the seven STS tasks", _STUDENT,
        only="BERT-base",
    ),
    "rankcse_3": Sheet(
        "rankcse", "3", TRANSFER, ("08 real",), ours.transfer, "Accuracy on the seven transfer tasks", _JUDGED, _ROWS,
        only="BERT-base",
    ),
    "rankcse_4": Sheet(
        "rankcse", "4", ("STS Avg.",), ("07 real",), ours.terms, "RankCSE with terms left out", _STUDENT,
        part="BERT-base",
    ),
    "rankcse_5": Sheet(
        "rankcse", "5", ("RankCSE-ListNet", "RankCSE-ListMLE"), ("04 real",), ours.teachers,
        "Average Spearman by teacher", _FROZEN, part="BERT-base",
    ),
    "rankcse_6": Sheet(
        "rankcse", "6", ("STS Avg.", "STS deviation"), ("07 real",), ours.deviations,
        "Mean and standard deviation over seeds", _STUDENT,
    ),
    "rankcse_13": Sheet(
        "rankcse", "13", TASKS, ("09 real",), ours.rank_tasks, "Kendall and NDCG on the rank tasks",
        "by Kendall's tau-b and with the rating as gain, where the paper tells neither",
        small="half the 95 % interval over lists",
    ),
}  # fmt: skip
"""Every table of the papers with scores that the small encoder has a counterpart to."""


def sheet_of(table: Sheet) -> dict[str, Any]:
    """A table's JSON from the paper's cells and our finished runs.

    Raises: FileNotFoundError naming the run that is not finished.
    """
    import pandas as pd

    found = {place: ours.result(place) for place in table.places}
    theirs = _theirs(table)
    rows = table.rows(found)
    index = pd.MultiIndex.from_tuples([row.label for row in rows])
    mine = pd.DataFrame([row.values for row in rows], index=index).reindex(columns=list(table.columns)).astype(float)
    small = pd.DataFrame([row.beside for row in rows], index=index).reindex(columns=list(table.columns))
    whole = pd.concat([theirs, mine])
    kept = figures.to_plain(whole)
    beside = figures.to_plain(small.reindex(index=whole.index))["rows"] if small.notna().any(axis=None) else []
    particular = f", {table.ours}" if table.ours else ""
    caption = f"{table.caption}: {PAPERS[table.paper]}'s table {table.table}, and this lab's rows below, from "
    caption += f"{ours.made_by(found)}{particular}. The best of each part is bold, the second underlined"
    if small.notna().any(axis=None):
        caption += f"; ±: {table.small}"
    return {
        "caption": f"{caption}.",
        "runs": [result.run for result in found.values()],
        **kept,
        "beside": records.plain(beside),
    }


def write_table(sheet: Mapping[str, Any], path: Path) -> list[Path]:
    """Write a sheet as LaTeX, Markdown and JSON beside each other, `path` being the JSON's; returns the three paths."""
    import pandas as pd

    frame = figures.from_plain(sheet)
    frame.index.names = ["of", "method"]
    beside = None
    if sheet["beside"]:
        beside = pd.DataFrame(sheet["beside"], index=frame.index, columns=frame.columns)
    options: dict[str, Any] = {"bold": "max", "second": True, "missing": "–", "within": "of", "beside": beside}
    options["columns"] = [name for name in frame.columns if "deviation" not in name]
    # Signs of a line: the longest label, and in each column its head or a score with what stands beside it.
    score = 12 if beside is not None else 6
    signs = max(len(str(label)) for label in frame.index.get_level_values(1))
    wide = signs + sum(max(len(name), score) + 2 for name in frame.columns) > COLUMN_SIGNS
    printed = tables.latex(
        frame, caption=tables.escaped(sheet["caption"]), label=f"tab:{path.stem}", wide=wide, **options
    )
    texts = {".tex": printed, ".md": f"{tables.markdown(frame, **options)}\n\n{sheet['caption']}", ".json": None}
    for suffix, text in texts.items():
        files.write_text(path.with_suffix(suffix), figures.to_json(sheet) if text is None else text + "\n")
    return [path.with_suffix(suffix) for suffix in texts]


def _theirs(table: Sheet) -> pd.DataFrame:
    """The paper's cells, wide, in its order, parted by the encoder."""
    import pandas as pd

    cells = reference.cells(table.paper, table=table.table)
    if (table.paper, table.table) == ("pcc-tuning", "4"):
        noted = reference.cells("pcc-tuning", table="filtered").query("column == 'Stage-2'")
        cells = pd.concat([cells, noted.assign(column="Stage-2, filtered")])
    cells = cells[cells["row"].str.startswith(table.only)]
    wide = cells.pivot(index="row", columns="column", values="value").reindex(cells["row"].unique())
    if table.part:
        wide.index = pd.MultiIndex.from_tuples([(table.part, str(row).replace(" / ", ", ")) for row in wide.index])
        return wide.reindex(columns=list(table.columns))
    parts = [str(row).split(" / ")[0] for row in wide.index]
    wide.index = pd.MultiIndex.from_tuples(
        (part, row.removeprefix(part).removeprefix(" / ").replace(" / ", ", ") or "as it is") if parts.count(part) > 1
        # An encoder with a single row is no part of its own.
        else ("other encoders", row.replace(" / ", ", "))
        for part, row in zip(parts, map(str, wide.index), strict=True)
    )  # fmt: skip
    # Rows of a part stand together, in the order in which the parts begin.
    order = list(dict.fromkeys(wide.index.get_level_values(0)))
    wide = wide.iloc[[row for part in order for row, name in enumerate(wide.index.get_level_values(0)) if name == part]]
    return wide.reindex(columns=list(table.columns))
