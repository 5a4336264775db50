"""pcclab: how far sentence embeddings climb on Semantic Textual Similarity, and what stops them.

Importing the package loads nothing heavy; its parts are loaded when they are first named.

>>> import pcclab
>>> "start" in dir(pcclab)
True
"""

from __future__ import annotations

import atexit
import gc
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "__version__",
    "ceiling",
    "data",
    "encoders",
    "evaluation",
    "losses",
    "parameters",
    "plots",
    "reference",
    "runs",
    "start",
    "sweep",
    "tables",
    "training",
    "vault",
    "widgets",
]

_PARTS = [name for name in __all__ if name not in ("__version__", "start")]

if TYPE_CHECKING:
    from pcclab.runs import start as start


# The memory of a process that ends goes back in one piece; looking through every object for cycles first makes a
# run, or a command that used torch, 1.5 seconds longer.
atexit.register(gc.freeze)


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return _imported(f"{__name__}.{name}")
    if name == "start":
        return _imported(f"{__name__}.runs").start
    raise AttributeError(f"pcclab has no part {name!r}; its parts are {', '.join(_PARTS)} and start")


def _imported(name: str) -> ModuleType:
    """A module, imported without the collector, which takes a sixth of the time and frees next to nothing."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if collecting:
            gc.enable()


def __dir__() -> list[str]:
    return sorted(__all__)
