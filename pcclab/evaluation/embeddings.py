"""Every distinct sentence embedded once, in memory and, where a folder is given, on disk."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcclab import files

if TYPE_CHECKING:
    import os

    from pcclab.evaluation.sts import Encodes

SHARD = 8192
"""Sentences of one cache file: what an interrupted run loses at most."""


@dataclass(frozen=True, eq=False)
class Embedded:
    """Distinct sentences with one embedding each: of these it is an encoder that only has to look.

    Args:
        position: sentence -> its row.
        vectors: (sentences, dim), finite.
    """

    position: dict[str, int]
    vectors: np.ndarray

    def of(self, texts: Sequence[str]) -> np.ndarray:
        """The embeddings of `texts`, (texts, dim), in their order; a text that was not embedded is a KeyError."""
        return self.vectors[np.fromiter((self.position[text] for text in texts), np.int64, len(texts))]

    def encode(self, sentences: list[str], /) -> np.ndarray:
        """The same, under an encoder's name."""
        return self.of(sentences)

    def __str__(self) -> str:
        return f"{len(self.position):,} embedded sentences"


def embed(encoder: Encodes, texts: Iterable[str], *, cache: str | os.PathLike[str] | None = None) -> Embedded:
    """Embed every distinct text once; what the cache has is not asked for again.

    Args:
        encoder: anything with `encode`; with a cache it needs a `fingerprint`, a text that changes with its weights.
        texts: repeats are allowed.
        cache: a folder; the embeddings of one fingerprint lie in a folder of their own, as safetensors files of
            sha256 keys and vectors, written atomically, so that runs side by side share it and a broken one resumes.

    Returns:
        The texts' embeddings as the encoder gave them (dtype and all).

    Warns: where the cache cannot be written, as on a full disk; the embeddings are given all the same.
    Raises: ValueError for a cache without a fingerprint, a broken cache file, another number of embeddings than texts,
        or an embedding that is not finite.
    """
    position: dict[str, int] = {}
    for text in texts:
        position.setdefault(text, len(position))
    distinct = list(position)
    if not distinct:
        return Embedded(position, np.empty((0, 0), np.float32))
    if cache is None:
        return Embedded(position, _asked(encoder, distinct))
    folder = _folder(encoder, Path(cache))
    keys = [hashlib.sha256(text.encode()).digest() for text in distinct]
    known = _read(folder)
    missing = [row for row, key in enumerate(keys) if key not in known]
    for start in range(0, len(missing), SHARD):
        rows = missing[start : start + SHARD]
        vectors = _asked(encoder, [distinct[row] for row in rows])
        try:
            _write(folder, [keys[row] for row in rows], vectors)
        except OSError as error:  # a full disk: what was computed is used, and computed again the next time
            warnings.warn(f"embeddings cannot be kept in {folder}: {error.strerror or error}", stacklevel=2)
        known.update(zip((keys[row] for row in rows), vectors, strict=True))
    widths = {known[key].shape for key in keys}
    if len(widths) > 1:
        raise ValueError(f"{folder} holds embeddings of widths {sorted(w[0] for w in widths)}: delete the folder")
    return Embedded(position, np.stack([known[key] for key in keys]))


def _asked(encoder: Encodes, texts: list[str]) -> np.ndarray:
    vectors = np.asarray(encoder.encode(texts))
    if vectors.ndim != 2 or len(vectors) != len(texts):
        raise ValueError(
            f"the encoder gave an array of shape {vectors.shape} for {len(texts)} sentences: one row each, in order"
        )
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if len(bad):
        raise ValueError(
            f"embedding {bad[0]} is not finite, as are {len(bad) - 1} more: look for NaN in the weights, "
            "or lower the learning rate"
        )
    return vectors


def _folder(encoder: Encodes, cache: Path) -> Path:
    fingerprint = getattr(encoder, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint:
        raise ValueError(
            f"{type(encoder).__name__} has no fingerprint, so nothing tells its embeddings from another's: "
            "give it one, or take cache=None"
        )
    return cache / hashlib.sha256(fingerprint.encode()).hexdigest()[:32]


def _read(folder: Path) -> dict[bytes, np.ndarray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    known: dict[bytes, np.ndarray] = {}
    for file in sorted(folder.glob("[!.]*.safetensors")):
        try:
            parts = load_file(file)
            keys, vectors = parts["keys"], parts["vectors"]
        except (SafetensorError, KeyError) as error:
            raise ValueError(f"{file} is no cache of embeddings ({error}): delete it") from error
        known.update(zip((key.tobytes() for key in keys), vectors, strict=True))
    return known


def _write(folder: Path, keys: list[bytes], vectors: np.ndarray) -> None:
    from safetensors.numpy import save_file

    table = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), -1)
    # Named by its content: two runs that embed the same sentences write the same file.
    name = hashlib.sha256(table.tobytes()).hexdigest()[:32]
    with files.replacing(folder / f"{name}.safetensors") as temporary:
        save_file({"keys": table, "vectors": np.ascontiguousarray(vectors)}, temporary)
