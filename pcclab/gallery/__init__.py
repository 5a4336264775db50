"""The figures and tables of the three papers, redrawn from our runs: two catalogues, one loop.

`figures/` of the checkout holds each figure as PDF, PNG and JSON, and below `tables` each table as LaTeX, Markdown and
JSON. A JSON is all that the others are made from, so a fresh clone rebuilds them without a run; `refresh` takes a newer
JSON from the finished runs.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pcclab import figures, files, runs
from pcclab.complaints import unknown
from pcclab.gallery.catalogue import FIGURES, NONE, Shown
from pcclab.gallery.ours import OURS
from pcclab.gallery.sheets import TABLES, Sheet, sheet_of, write_table
from pcclab.parameters.places import words

MADE_WITH = "made_with.json"
"""File in `figures/` that says what decides a drawing's bytes, beside its numbers."""


def names(asked: Iterable[str] = ()) -> list[str]:
    """The entries of both catalogues, or the ones asked for.

    Args: asked: names; none for all.
    Raises: ValueError for a name that neither has.
    """
    chosen = list(asked)
    for name in chosen:
        if name not in FIGURES and name not in TABLES:
            raise ValueError(unknown("figure or table", name, [*FIGURES, *TABLES]))
    return chosen or [*FIGURES, *TABLES]


def file_of(name: str, folder: Path) -> Path:
    """Where an entry's JSON lies. Args: name: of the entry; folder: of them all."""
    return (folder if name in FIGURES else folder / "tables") / f"{name}.json"


def places(name: str, named: str = "real") -> tuple[str, ...]:
    """The runs of a set that an entry comes from, as `pcclab run` takes them.

    Args: name: of the entry; named: the set.

    >>> places("rankcse_4"), places("binary_scorer", "smoke")
    (('07 real',), ('01 smoke',))
    """
    real = TABLES[name].places if name in TABLES else (FIGURES[name].place,)
    return tuple(place.replace(" real", f" {named}", 1) for place in real)


def rebuild(
    folder: Path, asked: Iterable[str] = (), *, source: Path | None = None, named: str | None = None
) -> Iterator[tuple[str, str]]:
    """Make every entry, or those asked for, again; gives each name with what was done, as a sentence.

    Args:
        folder: where to.
        asked: names; none for all.
        source: folder of their JSON; None: `folder` itself.
        named: a set such as "real", whose finished runs' numbers are taken into `source` first.

    Raises: ValueError for an unknown name, or for a JSON that cannot be drawn.
    """
    source = source or folder
    for name in names(asked):
        told = refresh(name, source, named) if named else "from its JSON"
        made = build(name, source, folder) if file_of(name, source).is_file() else []
        yield name, f"{told}, {len(made)} files" if made else f"not made, {told}: {missing(name, named or 'real')}"
    files.write_text(folder / MADE_WITH, figures.to_json(made_with()))


def build(name: str, source: Path, folder: Path) -> list[Path]:
    """Make an entry's files in `folder` from its JSON below `source`, which may be the same.

    Args: name: of the entry; source, folder: the two places.
    Raises: ValueError for a JSON that cannot be drawn, or was drawn by another plot than the catalogue says.
    """
    path = file_of(name, source)
    sheet = json.loads(path.read_bytes())
    if name in TABLES:
        return write_table(sheet, file_of(name, folder))
    drawn = sheet.get("drawing", {}).get("plot", FIGURES[name].plot)
    if drawn != FIGURES[name].plot:
        raise ValueError(f"{path} was drawn by {drawn}, the catalogue says {FIGURES[name].plot}: make them agree")
    return figures.save(figures.redraw(sheet), folder, name, numbers=sheet["numbers"], run=sheet["run"])


def refresh(name: str, folder: Path, named: str = "real") -> str:
    """Take an entry's JSON from the finished runs of a set; where one is missing leave what there is, and say so.

    Args: name: of the entry; folder: where its JSON goes; named: the set.
    """
    asked = places(name, named)
    try:
        if name in TABLES:
            sheet = sheet_of(TABLES[name]._replace(places=asked))
        else:
            run = runs.spoken(asked[0])
            path = run.folder / "figures" / f"{FIGURES[name].figure}.json"
            if not run.finished or not path.is_file():
                raise FileNotFoundError(f"run {run.name} is {run.state}, without this figure")
            sheet = json.loads(path.read_bytes())
            if "drawing" not in sheet:
                raise FileNotFoundError(f"run {run.name} drew it before figures kept their tables")
    except FileNotFoundError as error:
        return f"nothing new ({error})"
    files.write_text(file_of(name, folder), figures.to_json(sheet))
    return "taken from " + (sheet["run"] if "run" in sheet else ", ".join(sheet["runs"]))


def differing(name: str, folder: Path) -> list[str]:
    """Files of an entry that a rebuild would change, or that miss. Args: name: of the entry; folder: of them all."""
    with tempfile.TemporaryDirectory() as other:
        both = [(folder / new.relative_to(other), new) for new in build(name, folder, Path(other))]
        changed = [old for old, new in both if not old.is_file() or old.read_bytes() != new.read_bytes()]
    return [str(path.relative_to(folder)) for path in changed]


def missing(name: str, named: str = "real") -> str:
    """How an entry without a JSON comes by one. Args: name: of the entry; named: the set of its runs."""
    first, *others = places(name, named)
    notebook, _, assignments = words(first)
    command = " ".join([f"pcclab run {notebook} --set {named}", *(f"-p {word}" for word in assignments)])
    more = f" and {len(others)} more, up to {others[-1]!r}," if others else ""
    return f"finish `{command}`{more} then `pcclab figures --from-runs {name}`"


def made_with() -> dict[str, str]:
    """What decides a drawing's bytes: the versions of the libraries that draw and pack it, and the font."""
    import hashlib
    import importlib.metadata
    import zlib

    import matplotlib
    from matplotlib import font_manager, ft2font
    from PIL import features

    font = Path(font_manager.findfont("STIXGeneral", fallback_to_default=False))
    return {
        "matplotlib": matplotlib.__version__,
        "freetype": ft2font.__freetype_version__,
        "fonttools": importlib.metadata.version("fonttools"),
        "pillow": importlib.metadata.version("pillow"),
        "pillow's zlib": str(features.version_codec("zlib")),
        "zlib": zlib.ZLIB_RUNTIME_VERSION,
        "STIXGeneral": hashlib.sha256(font.read_bytes()).hexdigest()[:16],
    }


def other_tools(folder: Path) -> list[str]:
    """How the tools here differ from those that made some files: with others no equal bytes are promised.

    Args: folder: of the files.
    """
    path = folder / MADE_WITH
    then, now = json.loads(path.read_bytes()) if path.is_file() else {}, made_with()
    return [f"{name} {then.get(name, 'unknown')} (here {now[name]})" for name in now if then.get(name) != now[name]]


__all__ = [
    "FIGURES",
    "MADE_WITH",
    "NONE",
    "OURS",
    "TABLES",
    "Sheet",
    "Shown",
    "build",
    "differing",
    "file_of",
    "made_with",
    "missing",
    "names",
    "other_tools",
    "places",
    "rebuild",
    "refresh",
]
