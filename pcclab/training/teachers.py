"""Teachers of RankCSE: encoders that have embedded the training texts once, and what they say of a batch's likeness."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from pcclab import files
from pcclab.encoders import Encoder

ALPHA = 1 / 3
"""Share of the first of two teachers. Source: RankCSE, section 4.4 and appendix A."""

_TENSOR = "embeddings"


@dataclass(frozen=True, eq=False)
class Teachers:
    """What one or more teachers say of the similarity of a table's texts; made by `gather`.

    Args:
        texts: the texts, in the table's order.
        embeddings: of each teacher, float32 (texts, dim), rows of length 1; the dim may differ.
        mix: share of each teacher in the similarity; they sum to 1.
        encoders: fingerprint of each teacher.
    """

    texts: tuple[str, ...]
    embeddings: tuple[Float[np.ndarray, "texts _"], ...]
    mix: tuple[float, ...]
    encoders: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        shares = ", ".join(f"{share:.3g} of {name[:8]}" for share, name in zip(self.mix, self.encoders, strict=True))
        return f"Teachers({shares}; {len(self):,} texts)"

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of the teachers' fingerprints, their shares and the texts."""
        told = json.dumps([self.encoders, self.mix, _digest(self.texts)])
        return hashlib.sha256(told.encode()).hexdigest()

    def similarity(self, rows: Sequence[int] | np.ndarray) -> Float[Tensor, "rows rows"]:
        r"""The teachers' cosines among some of the texts, mixed.

        .. math:: S_{ij} = \sum_t \alpha_t \cos(e^t_i, e^t_j)

        Args:
            rows: positions among the texts; repeats are fine.

        Returns:
            float32 (rows, rows) on the CPU, without a gradient.

        Raises: IndexError when a row is outside the texts.

        Source: RankCSE, section 4.4, for two teachers: alpha S1 + (1 - alpha) S2.
        """
        at = np.asarray(rows, dtype=np.int64)
        if at.size and (at.min() < 0 or at.max() >= len(self)):
            raise IndexError(f"rows {at.min()} to {at.max()} of {len(self):,} texts: they go 0..{len(self) - 1}")
        mixed = np.zeros((len(at), len(at)), dtype=np.float32)
        # numpy, because autocast would take a product of torch's in half precision
        for share, vectors in zip(self.mix, self.embeddings, strict=True):
            chosen = vectors[at]
            mixed += np.float32(share) * (chosen @ chosen.T)
        return torch.from_numpy(mixed)

    def check(self, texts: Sequence[str]) -> None:
        """Nothing when the teachers embedded just these texts in this order.

        Raises: ValueError that names both counts, or the first text that differs.
        """
        mend = "gather the teachers on the table's own texts, after it was filtered and limited"
        if len(texts) != len(self):
            raise ValueError(f"teacher has {len(self):,} texts, the table has {len(texts):,}: {mend}")
        for row, (ours, theirs) in enumerate(zip(self.texts, texts, strict=True)):
            if ours != theirs:
                raise ValueError(f"text {row} is {ours[:80]!r} to the teacher and {theirs[:80]!r} in the table: {mend}")


def gather(
    encoders: Sequence[Encoder],
    texts: Sequence[str],
    *,
    mix: Sequence[float] | float | None = None,
    cache: Path | None = None,
    student: Encoder | None = None,
) -> Teachers:
    """Let each teacher embed all texts once, with its own tokenizer and pooling.

    Args:
        encoders: one teacher or more. They are not kept: their memory is the caller's to free.
        texts: of the table to train on; repeated ones are embedded once.
        mix: share of each teacher, or the first one's where there are two; None gives the first of two `ALPHA`, and
            any other number of teachers equal shares.
        student: the public port's variant: the teachers read the token ids that this student's tokenizer gives, which
            is right only where both share a vocabulary; None lets each read its own.
        cache: folder for the embeddings, a file for each teacher and list of texts; None keeps none.

    Raises:
        ValueError: no teacher or no text; shares that are negative, not finite, not one a teacher or do not sum to 1;
            or a text whose embedding is zero or not finite.

    Example:
        >>> from pcclab import encoders
        >>> teachers = gather([encoders.load("tiny", seed=seed) for seed in (1, 2)], ["a wren", "a crow", "rain"])
        >>> len(teachers), [round(share, 2) for share in teachers.mix], teachers.similarity([0, 2]).shape
        (3, [0.33, 0.67], torch.Size([2, 2]))
    """
    if isinstance(texts, str) or not len(texts):
        raise ValueError("no texts: give the teachers the list of texts to train on")
    shares, texts = _shares(mix, len(encoders)), tuple(texts)
    if student is not None:
        encoders = [_reading_as(student, encoder) for encoder in encoders]
        cache = None  # a file is found by weights and texts, and these ids are neither's
    vectors, names = [], []
    for encoder in encoders:
        names.append(encoder.fingerprint)
        vectors.append(_embedded(encoder, names[-1], texts, Path(cache) if cache is not None else None))
    return Teachers(texts, tuple(vectors), shares, tuple(names))


def _reading_as(student: Encoder, teacher: Encoder) -> Encoder:
    known, needed = len(teacher.trunk.get_input_embeddings().weight), len(student.tokenizer)  # type: ignore[arg-type]
    if needed > known:
        raise ValueError(
            f"the student's tokenizer has {needed:,} tokens and {teacher.settings.name} knows {known:,}: leave student "
            "out, so that each teacher reads with its own"
        )
    return Encoder(teacher.trunk, student.tokenizer, teacher.settings)


def _shares(mix: Sequence[float] | float | None, teachers: int) -> tuple[float, ...]:
    if teachers < 1:
        raise ValueError("0 teachers: give at least 1 encoder")
    if mix is None:
        return (ALPHA, 1 - ALPHA) if teachers == 2 else (1 / teachers,) * teachers
    if isinstance(mix, int | float):
        if teachers != 2:
            raise ValueError(f"mix is {mix}, one number, for {teachers} teacher(s): give a list of a share for each")
        shares: tuple[float, ...] = (float(mix), 1 - float(mix))
    else:
        shares = tuple(float(share) for share in mix)
    if len(shares) != teachers:
        raise ValueError(f"mix has {len(shares)} shares for {teachers} teacher(s): give one for each")
    if not all(math.isfinite(share) and share >= 0 for share in shares) or abs(sum(shares) - 1) > 1e-6:
        raise ValueError(f"mix is {', '.join(f'{share:g}' for share in shares)}: give shares from 0 to 1 that sum to 1")
    return shares


def _embedded(encoder: Encoder, name: str, texts: tuple[str, ...], cache: Path | None) -> np.ndarray:
    if cache is None:
        return _encoded(encoder, texts)
    told = {"encoder": name, "texts": _digest(texts)}
    file = cache / f"{name[:32]}-{told['texts'][:32]}.safetensors"
    if file.is_file():
        try:
            return _read(file, told, len(texts))
        except (SafetensorError, OSError, ValueError) as error:
            warnings.warn(f"{file} is damaged ({error}): its embeddings are computed again", stacklevel=3)
    vectors = _encoded(encoder, texts)
    with files.replacing(file) as temporary:
        save_file({_TENSOR: vectors}, temporary, metadata={**told, "content": _content(vectors)})
    return vectors


def _encoded(encoder: Encoder, texts: tuple[str, ...]) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # told below, by the text
        vectors = np.ascontiguousarray(encoder.encode(texts, normalize=True, progress="teacher"), dtype=np.float32)
    # the norm of a row of zeros stays 0, whatever it was divided by; a comparison with NaN is false
    good = np.abs(np.linalg.norm(vectors, axis=1) - 1) < 1e-2
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"{encoder.settings.name} gives text {row}, {texts[row][:80]!r}, an embedding that is zero or not finite "
            f"({int((~good).sum()):,} such texts): it has no cosine; drop the text or take another teacher"
        )
    return vectors


def _read(file: Path, told: dict[str, str], texts: int) -> np.ndarray:
    with safe_open(file, framework="numpy") as opened:
        meta = opened.metadata() or {}
        vectors: np.ndarray = opened.get_tensor(_TENSOR)
    if any(meta.get(key) != value for key, value in told.items()) or vectors.shape[:1] != (texts,):
        raise ValueError("it is of another teacher or of other texts")
    if meta.get("content") != _content(vectors):
        raise ValueError("its content is not what was written")
    return vectors


def _content(vectors: np.ndarray) -> str:
    return hashlib.sha256(vectors.data).hexdigest()


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()
