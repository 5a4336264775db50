"""A figure as a paper prints it, beside its numbers, the table it was drawn from and the run they come from."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files, records

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

DOTS = 200


def save(figure: Figure, folder: Path, name: str, *, numbers: Mapping[str, Any], run: str) -> list[Path]:
    """Write `name` as PDF (Type 42 fonts), PNG and JSON; the same figure gives the same bytes again.

    The JSON of a figure that a plot of `pcclab.plots` made by itself holds the plot's table too: `redraw` needs nothing
    else.

    Args:
        figure: what was drawn, at its final size in inches.
        folder: where to; made if it is not there.
        name: file name without a suffix.
        numbers: every figure the drawing shows, so that it can be checked.
        run: name of the run the numbers come from.

    Returns:
        The three paths.

    Raises: ValueError for a name with a path or a suffix in it.
    """
    if not name or Path(name).name != name or "." in name:
        raise ValueError(f"figure name {name!r}: give a plain name without folder or suffix, such as ceiling_curve")
    from pcclab.plots import style

    # No dates, no tool versions: equal numbers must give equal bytes.
    metadata = {"CreationDate": None, "Creator": None, "Producer": None}
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    with style.paper_style(), files.replacing(paths[0]) as temporary:  # ticks are made in the style of the moment
        figure.savefig(temporary, format="pdf", dpi=DOTS, metadata=metadata)
    with files.replacing(paths[1]) as temporary:
        temporary.write_bytes(png(figure))
    drawing = style.DRAWINGS.get(figure)
    sheet: dict[str, Any] = {"run": run, "numbers": records.plain(numbers)}
    if drawing is not None:
        table = to_plain(drawing.frame)
        sheet["drawing"] = {"plot": drawing.plot, "options": records.plain(drawing.options), **table}
    files.write_text(folder / f"{name}.json", to_json(sheet))
    return [*paths, folder / f"{name}.json"]


def png(figure: Figure) -> bytes:
    """The figure as `save` writes its PNG, for a screen: the same bytes for the same figure."""
    from pcclab.plots import style

    written = io.BytesIO()
    with style.paper_style():
        figure.savefig(written, format="png", dpi=DOTS, metadata={"Software": None})
    return written.getvalue()


def redraw(sheet: Mapping[str, Any]) -> Figure:
    """The figure of a sheet that `save` wrote, drawn again from nothing but the sheet.

    Raises: ValueError for a sheet without a drawing, or of a plot that is not there.
    """
    from pcclab import plots

    drawing = sheet.get("drawing")
    if not isinstance(drawing, Mapping):
        raise ValueError(f"the figure of run {sheet.get('run')} holds no table to draw from: run its notebook again")
    if drawing["plot"] not in plots.__all__:
        raise ValueError(f"there is no plot {drawing['plot']!r} in pcclab.plots: was it renamed since {sheet['run']}?")
    figure: Figure = getattr(plots, drawing["plot"])(from_plain(drawing), **drawing["options"]).get_figure(root=True)
    return figure


def to_plain(frame: pd.DataFrame) -> dict[str, Any]:
    """A frame as JSON's own types: columns, rows, and what else there is of categories and of named rows."""
    import pandas as pd

    kept: dict[str, Any] = {}
    if frame.index.inferred_type != "integer":
        kept["index"] = [list(label) if isinstance(label, tuple) else label for label in frame.index]
    categories = {name: list(frame[name].cat.categories) for name in frame if hasattr(frame[name], "cat")}
    if categories:
        kept["categories"] = categories
    rows = frame.astype(object).to_numpy().tolist()
    empty = [[None if pd.api.types.is_scalar(cell) and pd.isna(cell) else cell for cell in row] for row in rows]
    return {"columns": [str(name) for name in frame], **kept, "rows": records.plain(empty)}


def from_plain(table: Mapping[str, Any]) -> pd.DataFrame:
    """The frame that `to_plain` took apart."""
    import pandas as pd

    frame = pd.DataFrame(table["rows"], columns=table["columns"])
    for name, categories in table.get("categories", {}).items():
        frame[name] = pd.Categorical(frame[name], categories, ordered=True)
    labels = table.get("index")
    if labels is not None:
        tuples = [tuple(label) if isinstance(label, list) else label for label in labels]
        frame.index = pd.MultiIndex.from_tuples(tuples) if isinstance(labels[0], list) else pd.Index(tuples)
    return frame


def to_json(value: Any, margin: str = "") -> str:
    """JSON with a line for every row of a table, instead of one for every cell.

    >>> print(to_json({"columns": ["x"], "rows": [[1], [2]]}), end="")
    {
      "columns": ["x"],
      "rows": [
        [1],
        [2]
      ]
    }
    """
    inner = margin + "  "
    if isinstance(value, Mapping) and value:
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {to_json(item, inner)}" for key, item in value.items()]
        ends = "{}"
    elif isinstance(value, list) and any(isinstance(item, list | Mapping) for item in value):
        parts, ends = [to_json(item, inner) for item in value], "[]"
    else:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    body = ",\n".join(inner + part for part in parts)
    return f"{ends[0]}\n{body}\n{margin}{ends[1]}" + ("" if margin else "\n")
