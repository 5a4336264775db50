"""Values as people write them: a YAML file with the line of each name, and `name=value` on a command line."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

Place = tuple[str | int, ...]
"""Names and indices that lead to a value in a YAML file."""


def read_yaml(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """The mapping in a YAML file, and the line of each of its names; raises what `read_tree` raises."""
    values, lines = read_tree(path)
    return values, {str(place[0]): line for place, line in lines.items() if len(place) == 1}


def read_tree(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[Place, int]]:
    """The mapping in a YAML file, and the line of each name and list item at every depth.

    Raises: FileNotFoundError; ValueError for text that is not YAML, not a mapping, or that gives a name twice.
    """
    path = Path(path)
    if not path.is_file():
        there = ", ".join(sorted(file.name for file in path.parent.glob("*.yaml")))
        raise FileNotFoundError(f"no parameter file {path}: its folder holds {there or 'none'}")
    try:
        text = path.read_text(encoding="utf-8-sig")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: byte {error.start} is not UTF-8: save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        raise ValueError(f"{path}{line}: not YAML ({problem}): write lines `name: value`") from None
    if not isinstance(values, dict) or not isinstance(node, yaml.MappingNode):
        raise ValueError(f"{path}: holds {type(values).__name__}, wanted lines `name: value`")
    lines: dict[Place, int] = {}
    for place, number in _lines(node, ()):
        if place in lines:
            told = f"{path}, line {number}: {place[-1]} stands in line {lines[place]} already"
            raise ValueError(f"{told}: remove one of them")
        lines[place] = number
    return {str(name): value for name, value in values.items()}, lines


def _lines(node: yaml.Node, place: Place) -> Iterator[tuple[Place, int]]:
    inside: list[tuple[str | int, Any, Any]] = []
    if isinstance(node, yaml.MappingNode):
        inside = [(str(key.value), key, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        inside = [(index, item, item) for index, item in enumerate(node.value)]
    for name, mark, value in inside:
        yield (*place, name), mark.start_mark.line + 1
        yield from _lines(value, (*place, name))


def read_assignments(
    texts: Iterable[str], *, words: Collection[str], lists: Collection[str], numbers: Collection[str] = ()
) -> dict[str, Any]:
    """`name=value` texts to values, typed as papermill's `-p` types them: `1e-4` is a number here.

    Args:
        texts: one assignment each.
        words: names whose value is text, whatever it looks like.
        lists: names whose value is a list, given with commas between its items; a comma in parentheses or quotes
            parts nothing.
        numbers: those of the lists that hold numbers.

    Raises: ValueError for a text without `=` or a name given twice.

    >>> read_assignments(["rate=1e-4", "levels=keep,filter", "prompt=no"], words=["prompt"], lists=["levels"])
    {'rate': 0.0001, 'levels': ['keep', 'filter'], 'prompt': 'no'}
    >>> read_assignments(["seeds=[0, 1]"], words=[], lists=["seeds"], numbers=["seeds"])
    {'seeds': [0, 1]}
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign or not name:
            raise ValueError(f"-p {text!r}: write NAME=VALUE, such as -p seed=3")
        if name in values:
            raise ValueError(f"-p {text!r}: {name} was given already: give it once")
        if name in words:
            values[name] = value
        elif name in lists:
            items = _items(value.strip().removeprefix("[").removesuffix("]"))
            values[name] = [_number(item) for item in items] if name in numbers else items
        else:
            values[name] = _number(value)
    return values


def _items(text: str) -> list[str]:
    """What stands between the commas that are in no parentheses and no quotes; quotes around a whole item go."""
    items, depth, quote = [""], 0, ""
    for mark in text:
        if quote:
            quote = "" if mark == quote else quote
        elif mark in "'\"":
            quote = mark
        else:
            depth += (mark in "([") - (mark in ")]")
        if mark == "," and not depth and not quote:
            items.append("")
        else:
            items[-1] += mark
    stripped = (item.strip() for item in items)
    whole = (item[1:-1] if len(item) > 1 and item[0] == item[-1] and item[0] in "'\"" else item for item in stripped)
    return [item for item in whole if item]


def _number(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return {"true": True, "false": False}.get(text.lower(), text)
