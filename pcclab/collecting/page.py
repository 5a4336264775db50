"""A collection as one page of HTML to send: tables, figures and provenance in one file that loads nothing."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files, sheet, tables
from pcclab.collecting import text
from pcclab.collecting.collection import Collection
from pcclab.collecting.entries import Entry, at, is_number, leaves
from pcclab.figures import DOTS

if TYPE_CHECKING:
    import pandas as pd

MOST_PICTURES = 36
"""More of the runs' own figures than this, and only those of each setting's first seed are shown."""
LOOKS, POINTS = 6, 60
_PNG, _PNG_END = b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
ENLARGED = 1.5
"""Figures are drawn for print, at 8 points; a screen is farther away."""
_NOT_SHOWN = ("peak_memory_mib", "peak_gpu_memory_mib")


def html(collection: Collection) -> str:
    """The whole page; the same runs give the same page but for the date.

    Args:
        collection: what to show.
    """
    import jinja2

    loader = jinja2.PackageLoader("pcclab", "collecting")
    environment = jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"told": _told, "duration": _duration, "breakable": _breakable}
    pictures, only_first = _pictures(collection)
    return environment.get_template("page.html").render(
        found=collection,
        states=text.states(collection),
        how=text.HOW,
        made=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        blocks=[(title, frame, _rows(frame)) for title, frame in text.blocks(collection).items()],
        deep=sum(len(path) > text.SHOWN_DEPTH for path in collection.metrics.values()),
        standings=list(_standings(collection)),
        curves=list(_curves(collection)),
        pictures=pictures,
        only_first=only_first,
        shown=_headline(collection),
        provenance=_provenance(collection),
        label=lambda entry: text.label(collection, [entry.value(name) for name in collection.changed]),
        at=at,
    )


def _headline(collection: Collection) -> dict[str, tuple[str, ...]]:
    """The metrics that stand for the others: averages that are not the same in every run, else the first ones."""
    differ = {
        name: path
        for name, path in collection.metrics.items()
        if len(path) <= text.SHOWN_DEPTH and len({at(entry.result, path) for entry in collection.finished}) > 1
    }
    averages = {name: path for name, path in differ.items() if path[-1] in ("average", "dev")}
    return dict(list((averages or differ or collection.metrics).items())[:4])


def _setting(collection: Collection, entry: Entry) -> str:
    return " / ".join(text.label(collection, [entry.value(name) for name in collection.changed]))


def _rows(frame: pd.DataFrame) -> list[tuple[tuple[str, ...], list[tuple[str, str]], int]]:
    """The rows of a block: setting, cells as mean and half interval, n."""
    places = [text.decimals(frame[name]) for name in frame]
    rows = zip(frame.index, frame.to_numpy(dtype=object), text.counts(frame), strict=True)
    return [
        (setting, [_cell(*both, most) for both in zip(row, places, strict=True)], most) for setting, row, most in rows
    ]


# --- figures ---------------------------------------------------------------------------------------------------------


def _standings(collection: Collection) -> Iterator[tuple[str, str]]:
    """A drawing of each headline metric: every setting's mean and interval, the seeds below."""
    import pandas as pd

    from pcclab import plots

    for name, path in _headline(collection).items():
        rows = [
            {"setting": _setting(collection, entry), "score": float(at(entry.result, path))}
            for entry in collection.finished
            if is_number(at(entry.result, path))
        ]
        frame = pd.DataFrame(rows)
        if frame["setting"].nunique() > 1:
            yield name, _svg(plots.race_intervals(frame, by="setting", score="score", label=name))


def _curves(collection: Collection) -> Iterator[tuple[str, str, int]]:
    """The logged loss and the scores on dev over the steps, six settings a drawing, with the steps a point averages."""
    import pandas as pd

    from pcclab import plots

    rows = []
    for entry in collection.entries:
        for line in sheet.metrics(entry.folder):
            for name, value in line.items():
                if is_number(value) and (name == "loss" or "dev" in name):
                    rows.append((name, _setting(collection, entry), entry.seed, entry.name, line["step"], value))
    frame = pd.DataFrame(rows, columns=["metric", "setting", "seed_", "seed", "step", "value"])
    for name, part in frame.groupby("metric", sort=False):
        points = part.groupby("seed").size().max()
        width = -(-int(points) // POINTS)
        part = part.assign(step=part["step"] // width * width if width > 1 else part["step"])
        part = part.groupby(["setting", "seed", "step"], sort=False, as_index=False)["value"].mean()
        settings = list(part["setting"].unique())
        for first in range(0, len(settings), LOOKS):
            kept = part[part["setting"].isin(settings[first : first + LOOKS])]
            yield str(name), _svg(plots.learning_curves(kept, label=str(name).replace("_", " "))), width


def _pictures(collection: Collection) -> tuple[dict[str, list[tuple[Entry, str, int]]], bool]:
    """The runs' own figures by name, each with its run, data address and width on the page; whether some are left out.

    The address of a damaged file is empty.
    """
    drawn = [(entry, sorted((entry.folder / "figures").glob("*.png"))) for entry in collection.finished]
    drawn = [(entry, paths) for entry, paths in drawn if paths]
    many = sum(len(paths) for _, paths in drawn) > MOST_PICTURES
    if many:
        drawn = list({_setting(collection, entry): (entry, paths) for entry, paths in reversed(drawn)}.values())[::-1]
    found: dict[str, list[tuple[Entry, str, int]]] = {}
    for entry, paths in drawn:
        for path in paths:
            content = path.read_bytes()
            whole = content.startswith(_PNG) and content.endswith(_PNG_END)
            width = round(int.from_bytes(content[16:20]) * 96 / DOTS * ENLARGED) if whole else 0
            found.setdefault(path.stem, []).append((entry, _address(content, "png") if whole else "", width))
    return found, many


def _svg(ax: Any) -> str:
    """A drawing as a data address, the same bytes for the same drawing."""
    import matplotlib

    drawn = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pcclab"}):
        ax.figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return _address(drawn.getvalue(), "svg+xml")


def _address(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


# --- words -----------------------------------------------------------------------------------------------------------


def _provenance(collection: Collection) -> dict[str, list[tuple[str, int]]]:
    """What the runs were made with: name -> each value and how many runs have it."""
    found: dict[str, list[str]] = {}
    for entry in collection.finished:
        for path, value in leaves(entry.sheet.get("provenance", {})):
            shown = value if isinstance(value, str) else json.dumps(value)
            if path[0] == "versions":
                found.setdefault("versions", []).append(f"{path[-1]} {shown}")
            elif path[-1] not in _NOT_SHOWN:
                found.setdefault(" ".join(path), []).append(shown)
        found.setdefault("machine", []).append(str(entry.told("process", "host") or "not known"))
    return {name: [(value, values.count(value)) for value in dict.fromkeys(values)] for name, values in found.items()}


def _cell(value: Any, places: int, most: int) -> tuple[str, str]:
    """A mean, and below it half of its interval, which lies evenly about it; or why there is none."""
    mean, _, rest = text.cell(value, most=most, places=places).partition(" ")
    if "[" in rest:
        rest = f"± {(value[2] - value[1]) / 2:.{places}f}{rest.partition(']')[2]}"
    return mean, rest


def _breakable(name: str) -> Any:
    """A name that a narrow column may break behind its signs."""
    import markupsafe

    safe = str(markupsafe.escape(name))
    return markupsafe.Markup(safe.replace("_", "_<wbr>").replace(".", ".<wbr>"))


def _told(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else tables.UNDEFINED if value == "undefined" else str(value)


def _duration(seconds: Any) -> str:
    if not is_number(seconds) or seconds != seconds:
        return "–"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{seconds:.0f} s" if minutes < 2 else f"{minutes:.0f} min" if hours < 2 else f"{hours:.1f} h"


def write(collection: Collection, path: Path) -> Path:
    """Write the page to a file, atomically.

    Args:
        collection: what to show.
        path: the file; one that is there is replaced.
    """
    with sheet.writing(path.parent):
        files.write_text(path, html(collection))
    return path
