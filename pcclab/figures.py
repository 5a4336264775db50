"""A figure as a paper prints it, beside the numbers it shows and the run they come from."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files, records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS = 200


def save(figure: Figure, folder: Path, name: str, *, numbers: Mapping[str, Any], run: str) -> list[Path]:
    """Write `name` as PDF (Type 42 fonts), PNG and JSON; the same figure gives the same bytes again.

    Args:
        figure: what was drawn, at its final size in inches.
        folder: where to; made if it is not there.
        name: file name without a suffix.
        numbers: every figure the drawing shows, so that it can be checked and redrawn.
        run: name of the run the numbers come from.

    Returns:
        The three paths.

    Raises: ValueError for a name with a path or a suffix in it.
    """
    if not name or Path(name).name != name or "." in name:
        raise ValueError(f"figure name {name!r}: give a plain name without folder or suffix, such as ceiling_curve")
    import matplotlib

    # No dates, no tool versions: equal numbers must give equal bytes.
    metadata = {"CreationDate": None, "Creator": None, "Producer": None}
    paths = [folder / f"{name}.pdf", folder / f"{name}.png"]
    with matplotlib.rc_context({"pdf.fonttype": 42, "ps.fonttype": 42}), files.replacing(paths[0]) as temporary:
        figure.savefig(temporary, format="pdf", dpi=DOTS, metadata=metadata)
    with files.replacing(paths[1]) as temporary:
        temporary.write_bytes(png(figure))
    files.write_json(folder / f"{name}.json", {"run": run, "numbers": records.plain(numbers)})
    return [*paths, folder / f"{name}.json"]


def png(figure: Figure) -> bytes:
    """The figure as `save` writes its PNG, for a screen: the same bytes for the same figure."""
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=DOTS, metadata={"Software": None})
    return written.getvalue()
