"""What a notebook's kernel gives away: the parameters among its variables, and the cell that failed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pcclab.complaints import unknown

STARTED = "_pcclab_started"
"""Name that `start` leaves in a notebook's namespace."""

_IPYTHON = {"In", "Out", "exit", "quit", "get_ipython", "open"}


def parameters(notebook: str, namespace: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    """The values of `fields` in a notebook's namespace.

    Args:
        notebook: its name, for the error.
        namespace: its `globals()`.
        fields: names of its parameters.

    Raises:
        ValueError: for another plain value in the namespace. papermill only warns of a parameter that the notebook does
            not have and sets it all the same. Before its first start a notebook holds nothing but its parameters; once
            started it holds variables of its own, and they pass.
    """
    if STARTED not in namespace:
        for name, value in namespace.items():
            if name not in fields and name not in _IPYTHON and not name.startswith("_") and _is_literal(value):
                raise ValueError(f"{notebook}: {unknown('parameter', name, fields)} (it was given {value!r})")
    return {name: namespace[name] for name in fields if name in namespace}


def on_failure(tell: Callable[[BaseException], None]) -> None:
    """Inside a kernel: call `tell` with the error of every cell that fails from now on; elsewhere do nothing."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return

    def after(outcome: Any) -> None:
        error = outcome.error_before_exec or outcome.error_in_exec
        if error is not None:
            tell(error)

    shell.events.register("post_run_cell", after)


def _is_literal(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return all(map(_is_literal, value))
    if isinstance(value, dict):
        return all(map(_is_literal, (*value.keys(), *value.values())))
    return value is None or type(value) in (str, int, float, bool)
