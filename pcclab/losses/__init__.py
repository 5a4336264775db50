"""Training objectives as pure functions: tensors in, a scalar out.

`CATALOGUE` maps the name a parameter file may use to the function; `parse` reads a weighted sum of such names. The
names of a function's positional arguments say what it is given: ``similarity, gold`` the cosines and ratings of a batch
of pairs; ``first, second, gold`` their embeddings; ``features, gold`` one vector a pair; ``prediction, gold`` and
``logits, label`` what a head makes of them; ``anchor, positive, negative`` the embeddings of a batch of triplets;
``first, second`` and ``student, teacher`` lists of similarities.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from pcclab.losses.contrastive import info_nce
from pcclab.losses.correlation import ccc, cosine_mse, pearson, pearson_ranks
from pcclab.losses.ordering import angle, cosent, kendall, rank_n_contrast
from pcclab.losses.ranking import listmle, listnet, ranking_consistency
from pcclab.losses.regression import cross_entropy, l1, mse, smooth_k2, translated_relu
from pcclab.losses.soft_ranks import soft_spearman
from pcclab.losses.terms import Term, parse

CATALOGUE: dict[str, Callable[..., Any]] = {
    "info_nce": info_nce,
    "pearson": pearson,
    "pearson_ranks": pearson_ranks,
    "ccc": ccc,
    "cosine_mse": cosine_mse,
    "soft_spearman": soft_spearman,
    "cosent": cosent,
    "angle": angle,
    "kendall": kendall,
    "rank_n_contrast": rank_n_contrast,
    "l1": l1,
    "mse": mse,
    "translated_relu": translated_relu,
    "smooth_k2": smooth_k2,
    "cross_entropy": cross_entropy,
    "ranking_consistency": ranking_consistency,
    "listnet": listnet,
    "listmle": listmle,
}


def by_name(name: str) -> Callable[..., Any]:
    """The loss of that name.

    Args:
        name: a key of CATALOGUE.

    Raises: ValueError with the nearest known names for an unknown one.
    """
    if name not in CATALOGUE:
        near = get_close_matches(name, CATALOGUE, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"unknown loss {name!r}: {hint}known are {', '.join(sorted(CATALOGUE))}")
    return CATALOGUE[name]


__all__ = [
    "CATALOGUE",
    "Term",
    "angle",
    "by_name",
    "ccc",
    "cosent",
    "cosine_mse",
    "cross_entropy",
    "info_nce",
    "kendall",
    "l1",
    "listmle",
    "listnet",
    "mse",
    "parse",
    "pearson",
    "pearson_ranks",
    "rank_n_contrast",
    "ranking_consistency",
    "smooth_k2",
    "soft_spearman",
    "translated_relu",
]
