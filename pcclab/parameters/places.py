"""Runs as they are spoken of: `03 real leakage=keep`, the words after `pcclab run`, meaning the same everywhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from pcclab.complaints import near

_WRITE = "write NOTEBOOK SET NAME=VALUE ..., such as '03 real leakage=keep'"
_SPOKEN = re.compile(r"\d\d\S*\s")


def notebook_named(beginning: str, notebooks: Iterable[str]) -> str:
    """The one notebook whose name begins so.

    Args:
        beginning: such as "03"; a path of the notebook will do.
        notebooks: the names there are.

    Raises: ValueError where none or several do.

    >>> notebook_named("03", ["02_stage1_contrastive", "03_stage2_pcc_tuning"])
    '03_stage2_pcc_tuning'
    """
    known = list(notebooks)
    name = beginning.rsplit("/", 1)[-1].removesuffix(".ipynb")
    found = [notebook for notebook in known if name and notebook.startswith(name)]
    if len(found) != 1:
        raise ValueError(f"notebook {beginning!r} names {len(found)} notebooks: {near(name, found or known)}")
    return found[0]


def parameter_file(root: Path, notebook: str, named: str) -> Path:
    """The file of a notebook's parameters.

    Args:
        root: the checkout.
        notebook: name without `.ipynb`.
        named: a set such as "real", or the path of a file, which is taken as it is.
    """
    if "/" in named or named.endswith((".yaml", ".yml")):
        return Path(named)
    return root / "parameters" / notebook / f"{named}.yaml"


def speaks_of_a_run(place: str) -> bool:
    """Whether a place is a run rather than an encoder's name: it begins with a notebook's number and goes on.

    >>> [speaks_of_a_run(place) for place in ("03 real leakage=keep", "minilm", "./03 my folder")]
    [True, False, False]
    """
    return _SPOKEN.match(place) is not None


def words(place: str) -> tuple[str, str, list[str]]:
    """Notebook, set and assignments of a run as it is spoken of; quotes hold a word with spaces together.

    Raises: ValueError where no set follows the notebook, or quotes do not close.

    >>> words("03 real leakage=keep seed=1")
    ('03', 'real', ['leakage=keep', 'seed=1'])
    """
    try:
        parts = shlex.split(place)
    except ValueError as error:
        raise ValueError(f"{place!r} names no run ({error}): {_WRITE}") from None
    if len(parts) < 2 or "=" in parts[1]:
        raise ValueError(f"{place!r} names no set of notebook {parts[0] if parts else ''}: {_WRITE}")
    return parts[0], parts[1], parts[2:]
