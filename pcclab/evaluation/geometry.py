"""Where an encoder puts sentences on the sphere: alignment, uniformity, anisotropy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.sts import Encodes

if TYPE_CHECKING:
    from pcclab.data.pairs import ScoredPairs

_BLOCK = 512  # rows a side of a block of cosines: 2 MiB
_DRAWN = 2**14  # pairs of a block of drawn ones


@dataclass(frozen=True)
class Uniformity:
    """The logarithm of a mean over pairs, its standard error (0 where every pair was taken) and their number."""

    value: float
    error: float
    pairs: int


@dataclass(frozen=True)
class Anisotropy:
    """How much the directions share.

    Args:
        cosine: mean cosine of distinct rows: near 0 when spread over the sphere, 1 when all are the same.
        first_share: share of the variance along the first principal component; None when there is no variance.
    """

    cosine: float
    first_share: float | None


@dataclass(frozen=True)
class Plane:
    """A point of the alignment-uniformity plane; lower is better on both axes.

    Args:
        alignment: over the positive pairs.
        uniformity: over the distinct sentences of all pairs.
        positives, sentences: how many there were.
    """

    alignment: float
    uniformity: Uniformity
    positives: int
    sentences: int


def alignment(
    first: Float[np.ndarray, "pairs dim"], second: Float[np.ndarray, "pairs dim"], *, alpha: float = 2.0
) -> float:
    r"""How far positive pairs lie apart on the unit sphere: :math:`\mathrm{mean}_i \lVert x_i - y_i \rVert^\alpha`.

    Args:
        first, second: (pairs, dim) embeddings of both sides of pairs that mean the same; their length does not count.
        alpha: exponent, above 0.

    Returns: from 0, where the sides coincide, to 2^alpha, where they oppose each other.
    Raises: Undefined without pairs; ValueError for a row without direction, unequal shapes or `alpha` not above 0.
    Source: Wang and Isola 2020; RankCSE, equation 7.
    Relations: with alpha = 2 it is 2 - 2 x mean cosine.

    >>> alignment(np.array([[1.0, 0.0]]), np.array([[0.0, 3.0]]))
    2.0
    """
    if first.shape != second.shape:
        raise ValueError(f"shapes {first.shape} and {second.shape}: give both sides of each pair")
    if not len(first):
        raise Undefined("no positive pairs have no alignment: give at least 1")
    _above_zero("alpha", alpha)
    squares = np.square(_directions(first) - _directions(second)).sum(axis=1)
    return float(np.mean(squares ** (alpha / 2)))


def uniformity(
    vectors: Float[np.ndarray, "rows dim"], *, t: float = 2.0, sample: int | None = None, seed: int = 0
) -> Uniformity:
    r"""How evenly rows cover the unit sphere: :math:`\log \operatorname{mean}_{i<j} e^{-t \lVert x_i - x_j \rVert^2}`.

    Exactly, over all n (n - 1) / 2 pairs of rows in blocks of bounded memory; or over `sample` pairs of distinct rows
    drawn with replacement, with the standard error of the logarithm of a mean, :math:`s / (\bar k \sqrt{sample})` for
    kernel values k (the delta method).

    Args:
        vectors: (rows, dim) embeddings; their length does not count.
        t: sharpness of the kernel, above 0.
        sample: number of pairs to draw; None, or as many as there are, takes every pair.
        seed: of the drawing.

    Returns: value (0 when all directions are the same, lower is more uniform, never below -4 t), error and pairs.
    Raises: Undefined with fewer than two rows; ValueError for a row without direction, `t` not above 0, or `sample`
        below 2.
    Source: Wang and Isola 2020, t = 2; RankCSE, equation 8.
    Departs: a row is never paired with itself, which two independent draws would do once in n.

    >>> uniformity(np.array([[1.0, 0.0], [-2.0, 0.0]]))
    Uniformity(value=-8.0, error=0.0, pairs=1)
    """
    _above_zero("t", t)
    if sample is not None and sample < 2:
        raise ValueError(f"sample={sample}: draw at least 2 pairs, one has no error, or None for all")
    rows = _directions(vectors)
    pairs = _pairs_of(rows)
    total = pairs if sample is None else min(sample, pairs)
    # Sums of exp(exponent - peak): however sharp the kernel, the greatest term is 1 and not lost.
    peak, first, second = -math.inf, 0.0, 0.0
    for cosines in _cosines(rows) if total == pairs else _drawn_cosines(rows, total, seed):
        exponents = 2 * t * (np.minimum(cosines, 1) - 1)
        top = max(peak, float(exponents.max()))
        kernel = np.exp(exponents - top)
        scale = math.exp(peak - top)
        first = first * scale + float(kernel.sum())
        second = second * scale**2 + float(kernel @ kernel)
        peak = top
    mean = first / total
    variance = 0.0 if total == pairs else max(0.0, second / total - mean**2) / (total - 1)
    return Uniformity(peak + math.log(mean), math.sqrt(variance) / mean, total)


def anisotropy(vectors: Float[np.ndarray, "rows dim"]) -> Anisotropy:
    r"""Mean cosine of distinct rows, :math:`(\lVert \sum_i x_i \rVert^2 - n) / (n (n - 1))`, and the first component.

    Args: vectors: embeddings, of any length.
    Raises: Undefined with fewer than two rows; ValueError for a row without direction.
    Source: Ethayarajh 2019 for the mean cosine.

    >>> anisotropy(np.array([[1.0, 0.0], [0.0, 1.0]]))
    Anisotropy(cosine=0.0, first_share=1.0)
    """
    rows = _directions(vectors)
    _pairs_of(rows)
    n, mean = len(rows), rows.mean(axis=0)
    centred = rows - mean
    total = float(np.square(centred).sum())
    scatter = centred @ centred.T if centred.shape[1] > n else centred.T @ centred
    # Rounding alone leaves about n * 1e-32 of variance in rows that are all the same.
    share = float(np.linalg.eigvalsh(scatter)[-1]) / total if total > n * 1e-28 else None
    return Anisotropy(float((n**2 * (mean @ mean) - n) / (n * (n - 1))), share)


def align_uniform(
    encoder: Encodes,
    pairs: ScoredPairs,
    *,
    positive_from: float = 4.0,
    t: float = 2.0,
    sample: int | None = None,
    seed: int = 0,
) -> Plane:
    """Alignment of the pairs rated `positive_from` or more, and uniformity of the distinct sentences of all.

    Args:
        encoder, pairs: what is judged and on which rated pairs; each distinct sentence is embedded once.
        positive_from: lowest rating of a positive pair, on the scale of `pairs`.
        t, sample, seed: as in `uniformity`.

    Raises: Undefined when no pair is rated so high; as `alignment` and `uniformity`.
    Source: RankCSE, section 5.3 and appendix H, figure 4, on the STS-B development set.
    Departs: a sentence that stands in several pairs counts once for uniformity: its distance to itself says nothing.
        On the 3,000 sides of STS-B dev (2,909 sentences) the repeats would raise MiniLM's uniformity by 0.008.
    """
    positive = np.flatnonzero(pairs.gold >= positive_from)
    if not len(positive):
        highest = pairs.gold.max()
        raise Undefined(f"no pair is rated {positive_from:g} or more (highest: {highest:g}): lower positive_from")
    place = {text: row for row, text in enumerate(dict.fromkeys((*pairs.first, *pairs.second)))}
    vectors = np.asarray(encoder.encode(list(place)))
    if len(vectors) != len(place):
        raise ValueError(f"the encoder gave {len(vectors)} embeddings for {len(place)} sentences: one each, in order")
    sides = [vectors[[place[side[row]] for row in positive]] for side in (pairs.first, pairs.second)]
    spread = uniformity(vectors, t=t, sample=sample, seed=seed)
    return Plane(alignment(*sides), spread, len(positive), len(place))


def _directions(vectors: np.ndarray) -> np.ndarray:
    rows = np.asarray(vectors, dtype=np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    bad = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))
    if len(bad):
        told = f"embedding {bad[0]} has length {norms[bad[0], 0]}, as have {len(bad) - 1} more: it has no direction"
        raise ValueError(f"{told}; look for NaN in the weights, or drop the text")
    return rows / norms


def _pairs_of(rows: np.ndarray) -> int:
    if len(rows) < 2:
        raise Undefined(f"{len(rows)} row(s) have no pairs: give at least 2")
    return len(rows) * (len(rows) - 1) // 2


def _cosines(rows: np.ndarray) -> Iterator[np.ndarray]:
    """The cosines of all pairs of rows, each once, in flat blocks."""
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        inside = (block @ block.T)[np.triu_indices(len(block), 1)]
        if inside.size:
            yield inside
        for other in range(start + _BLOCK, len(rows), _BLOCK):
            yield (block @ rows[other : other + _BLOCK].T).ravel()


def _drawn_cosines(rows: np.ndarray, sample: int, seed: int) -> Iterator[np.ndarray]:
    generator = np.random.default_rng(seed)
    for start in range(0, sample, _DRAWN):
        width = min(_DRAWN, sample - start)
        left = generator.integers(0, len(rows), width)
        # A step of 1 to n - 1 round the circle of rows reaches every other row with the same probability.
        right = (left + generator.integers(1, len(rows), width)) % len(rows)
        yield np.einsum("ij,ij->i", rows[left], rows[right])


def _above_zero(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value}: give a finite number above 0")
