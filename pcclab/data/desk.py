"""What `pcclab data fetch | check | show` do, as functions that return frames and paths."""

from __future__ import annotations

import hashlib
import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pcclab.data import catalogue, hub, senteval
from pcclab.data.loading import load, resolve
from pcclab.files import replacing_folder, write_json

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 4 * 1024**3
"""Bytes an archive may unpack to; SentEval's data are far below."""


def check(source: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Load everything a source declares and tell what was found.

    Args:
        source: see `loading.resolve`; "hub" downloads every corpus it has.

    Returns:
        Frame with corpus, split, expected and found rows, the fingerprint's beginning, and a state: "ok" or the
        message of the error.
    """
    import pandas as pd

    place = resolve(source)
    rows = []
    for corpus in catalogue.CORPORA.values():
        if (place.kind == "senteval" and corpus.layout == "none") or (place.kind == "hub" and corpus.hub is None):
            continue
        for split in corpus.counts if place.kind != "hub" or corpus.hub is None else corpus.hub.splits:
            expected: int | None = corpus.counts[split]
            if place.kind == "synthetic":
                from pcclab.data import synthetic

                expected = synthetic.declared(corpus.name, split)
            found, fingerprint, state = 0, "", "ok"
            try:
                table = load(corpus.name, split=split, source=source)
                found, fingerprint = len(table), table.fingerprint[:16]
            except (ValueError, OSError) as error:
                state = str(error)
            rows.append((corpus.name, split, expected, found, fingerprint, state))
    return pd.DataFrame(rows, columns=["corpus", "split", "expected", "found", "fingerprint", "state"])


def show(
    name: str, *, split: str | None = None, source: str | os.PathLike[str] | None = None, rows: int = 5, seed: int = 0
) -> pd.DataFrame:
    """A few rows of a corpus, drawn with a seed, in their order; the index is the row's position.

    Args:
        name: of the corpus.
        split: as `load` takes it.
        source: as `load` takes it.
        rows: how many, at least 1.
        seed: which.

    Raises: ValueError when fewer than one row is asked for.
    """
    if rows < 1:
        raise ValueError(f"rows is {rows}: ask for at least 1")
    frame = load(name, split=split, source=source).to_frame()
    chosen = np.random.default_rng(seed).choice(len(frame), size=min(rows, len(frame)), replace=False)
    return frame.iloc[np.sort(chosen)]


def fetch(folder: str | os.PathLike[str], *, revision: str | None = None) -> Path:
    """Download SentEval's data from the hub and unpack them into a new folder, ready for PCCLAB_DATA.

    Args:
        folder: to be made; nothing is left of it when anything fails.
        revision: commit of the hub's repository; None takes the newest. The one taken stands in SOURCE.json.

    Raises:
        ValueError: the folder exists and is not empty, or the archive is unsafe or not what is declared.
        OSError: the hub cannot be reached.
    """
    target = Path(folder).expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ValueError(f"{target} exists and is not empty: give a new folder, or look at it with `pcclab data check`")
    commit = revision or hub.newest(catalogue.SIMCSE_REPO)
    archive = Path(hub.tar(catalogue.SENTEVAL_TAR, commit))
    unpack(archive, target, repo=catalogue.SIMCSE_REPO, revision=commit)
    return target


def unpack(archive: Path, folder: Path, *, repo: str = "", revision: str = "") -> None:
    """Unpack SentEval's archive into a new folder: only plain files inside it, and only if the STS tasks then load.

    Raises:
        ValueError: no tar, a member that would leave the folder or is no plain file, or corpora other than declared.
    """
    with replacing_folder(folder) as temporary:
        inside = temporary / "unpacked"
        inside.mkdir()
        try:
            with tarfile.open(archive) as tar:
                size = sum(member.size for member in tar)
                if size > LARGEST:
                    raise ValueError(
                        f"{archive} unpacks to {size:,} bytes, above the limit of {LARGEST:,}: not SentEval's"
                    )
                tar.extractall(inside, filter="data")
        except tarfile.TarError as error:
            raise ValueError(
                f"{archive} is not a safe, whole tar file ({error}): delete it and fetch it again"
            ) from error
        root = _root(inside, archive)
        for child in sorted(root.iterdir()):
            shutil.move(child, temporary / child.name)
        shutil.rmtree(inside)
        for name in catalogue.STS_TASKS:
            for split in catalogue.get(name).counts:
                load(name, split=split, source=temporary)
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        write_json(temporary / "SOURCE.json", {"repo": repo, "revision": revision, "sha256": digest})


def _root(folder: Path, archive: Path) -> Path:
    """The folder that holds STS/, which archives nest at different depths."""
    found = sorted((path.parent for path in folder.rglob("STS") if path.is_dir()), key=lambda path: len(path.parts))
    if not found:
        told = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
        raise ValueError(f"{archive} holds none of {', '.join(senteval.FOLDERS)} but {told}: it is not SentEval's data")
    return found[0]
