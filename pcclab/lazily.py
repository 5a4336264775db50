"""Packages that take long to import and that most runs never use."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any


def imported_at_first_use(name: str) -> None:
    """From now on `import name` costs nothing; the package is executed when something in it is first asked for.

    For packages that other packages import just in case. A package that was imported already, or that is not
    installed, stays as it is. (importlib's LazyLoader executes a package at the next `import` of it.)
    """
    spec = importlib.util.find_spec(name) if name not in sys.modules else None
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    module.__dict__.pop("__path__", None)  # asked for by the import of any part, which needs the whole first
    module.__class__ = _Unused
    sys.modules[name] = module


class _Unused(ModuleType):
    """A package that nothing was asked of yet."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__path__", "__version__"):
            raise AttributeError(name)  # what tools ask of every module there is
        spec = self.__spec__
        assert spec is not None and spec.loader is not None
        self.__class__ = ModuleType  # type: ignore[assignment]
        if spec.submodule_search_locations is not None:
            self.__path__ = spec.submodule_search_locations
        try:
            spec.loader.exec_module(self)
        except BaseException:
            del sys.modules[spec.name]
            raise
        return getattr(self, name)
