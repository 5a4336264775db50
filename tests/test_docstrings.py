"""Every public name says what it is, and every public function what it is given."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_args, get_type_hints

import pytest

import pcclab

SECTION = re.compile(r"(?:^|(?<=[.;] ))Args:(.*?)(?=^\w+:|\Z)", flags=re.MULTILINE | re.DOTALL)


def modules() -> Iterator[ModuleType]:
    yield pcclab
    for found in pkgutil.walk_packages(pcclab.__path__, "pcclab."):
        if not found.name.endswith("__main__"):  # importing that would run it
            yield importlib.import_module(found.name)


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module hands out: its `__all__`; where it has none and is a part of the lab, whatever it defines."""
    names = getattr(module, "__all__", None)
    if names is None and module.__name__.removeprefix("pcclab.") in pcclab.__all__:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    for name in names or ():
        if not name.startswith("_"):
            yield name, getattr(module, name)


def public() -> dict[str, Any]:
    """Every function and class that is handed out, once, by where it is defined."""
    found = {}
    for module in modules():
        for name, value in exported(module):
            if inspect.isfunction(value) or inspect.isclass(value):
                found[f"{value.__module__}.{name}"] = value
    return found


PUBLIC = public()


def unexplained(function: Callable[..., Any]) -> list[str]:
    """The arguments that a docstring's section Args does not explain.

    `Args: as `other`.` points at another function's. A plot's `ax` is explained once, in `pcclab.plots`, and a view's
    value by the sentence of its slider, which stands in the annotation.
    """
    told = inspect.getdoc(function) or ""
    section = SECTION.search(told)
    explained = section[1] if section else ""
    if re.match(r" as `[\w.]+`", explained):
        return []
    view = any("Annotated[" in str(hint) for hint in function.__annotations__.values())
    hints = get_type_hints(function, include_extras=True) if view else {}
    sliders = {name for name, hint in hints.items() if any(getattr(more, "told", "") for more in get_args(hint)[1:])}
    names = [name for name in inspect.signature(function).parameters if name[0] != "_" and name not in sliders]
    if function.__module__.startswith("pcclab.plots") and "ax" in names:
        names.remove("ax")
    listed = r"(?:^|[\s,;.])\*{{0,2}}{}(?:, \*{{0,2}}\w+)*(?: \([^)]*\))?:"
    return [name for name in names if not re.search(listed.format(name), explained, flags=re.MULTILINE)]


def test_every_module_says_what_it_is() -> None:
    assert [module.__name__ for module in modules() if not module.__doc__] == []


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isfunction(value)])
def test_every_public_function_says_what_it_does_and_is_given(name: str) -> None:
    assert inspect.getdoc(PUBLIC[name]), f"{name} has no docstring"
    assert unexplained(PUBLIC[name]) == [], f"{name}: its section Args leaves these out"


@pytest.mark.parametrize("name", [name for name, value in PUBLIC.items() if inspect.isclass(value)])
def test_every_public_class_and_each_of_its_methods_say_what_they_do(name: str) -> None:
    kind = PUBLIC[name]
    assert kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("), f"{name} has no docstring of its own"
    members = {member: value for member, value in vars(kind).items() if not member.startswith("_")}
    silent = [
        member
        for member, value in members.items()
        if (inspect.isfunction(value) or isinstance(value, property | classmethod | staticmethod))
        and not inspect.getdoc(getattr(kind, member))
    ]
    assert silent == []


def test_the_plots_explain_their_common_argument() -> None:
    assert "`ax`" in (pcclab.plots.__doc__ or "")


def test_an_argument_left_out_is_found() -> None:
    def documented(first: int, second: int, *, third: int, **rest: int) -> None:
        """One.

        Args:
            first: it.
            second, third: both
                of them.
            **rest: more.

        Raises: ValueError: never.
        """

    def half(first: int, second: int) -> None:
        """One. Args: first: it, not the second."""

    def silent(first: int) -> None:
        """It takes first."""

    def pointing(first: int) -> None:
        """One.

        Args: as `documented`.
        """

    assert [unexplained(function) for function in (documented, half, silent, pointing)] == [
        [],
        ["second"],
        ["first"],
        [],
    ]
