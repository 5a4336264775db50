"""Where this checkout is: the folder with the notebooks, their parameters and their runs."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """The checkout: PCCLAB_ROOT, else the first folder from here upwards with `pyproject.toml` and `notebooks/`.

    Raises: FileNotFoundError where PCCLAB_ROOT names no folder.
    """
    named = os.environ.get("PCCLAB_ROOT")
    if named:
        if not Path(named).is_dir():
            raise FileNotFoundError(f"PCCLAB_ROOT = {named!r} is no folder: unset it, or point it at the checkout")
        return Path(named).resolve()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / "pyproject.toml").is_file() and (folder / "notebooks").is_dir():
            return folder
    return Path(__file__).resolve().parent.parent
