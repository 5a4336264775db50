"""Training objectives as pure functions: tensors in, a scalar out.

`CATALOGUE` maps the name a parameter file may use to the function. The names of a function's positional arguments say
what it is given: ``similarity, gold`` the cosines of a batch of rated pairs, ``anchor, positive, negative`` the
embeddings of a batch of triplets.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from pcclab.losses.contrastive import info_nce
from pcclab.losses.correlation import pearson

CATALOGUE: dict[str, Callable[..., Any]] = {
    "info_nce": info_nce,
    "pearson": pearson,
}


def by_name(name: str) -> Callable[..., Any]:
    """The loss of that name; an unknown one is refused with the nearest known names."""
    if name not in CATALOGUE:
        near = get_close_matches(name, CATALOGUE, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown loss {name!r}: {hint}known are {', '.join(sorted(CATALOGUE))}")
    return CATALOGUE[name]


__all__ = ["CATALOGUE", "by_name", "info_nce", "pearson"]
