"""What every test gets: a checkout of its own for runs, no network, few threads, and the real data where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
_DATA = os.environ.get("PCCLAB_DATA")  # read before `own_root` hides it from the code under test

# Before anything imports torch or the hub's client: they read these once.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", str(min(4, os.cpu_count() or 1)))
if "PYTEST_XDIST_WORKER" in os.environ:  # one of several processes that share the cores
    os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("MPLBACKEND", "agg")


@pytest.fixture(autouse=True)
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root of the test's own: the checkout's notebooks and parameters, but none of its runs."""
    folder = tmp_path / "own root"
    folder.mkdir()
    for name in ("notebooks", "parameters", "pyproject.toml"):
        (folder / name).symlink_to(CHECKOUT / name)
    monkeypatch.setenv("PCCLAB_ROOT", str(folder))
    # A kernel that starts there has to find the package under test, installed or not.
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT), prepend=os.pathsep)
    for name in ("PCCLAB_DATA", "PCCLAB_AGAIN", "PCCLAB_BATCH", "PCCLAB_DEBUG", "PCCLAB_PROCESSES", "PCCLAB_LAUNCHER"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The repository under test."""
    return CHECKOUT


@pytest.fixture(scope="session")
def senteval() -> Path:
    """The real corpora in SentEval's layout; the test is skipped where they are not."""
    folder = Path(_DATA).expanduser().resolve() if _DATA else CHECKOUT.parent / "shared" / "data" / "senteval"
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set PCCLAB_DATA to a SentEval folder")
    return folder
