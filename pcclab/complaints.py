"""Bad input in one sentence: which name, which value, which limit, and how to mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

# What YAML 1.1 keeps as text although a person means a number: no point in the mantissa, or no sign in the exponent.
_NUMBER_AS_TEXT = re.compile(r"[-+]?(\d+(?:_\d+)*)?(\.\d*)?[eE]([-+]?\d+)")


def near(name: str, known: Iterable[str]) -> str:
    """The known names that look like `name`, as the end of a sentence; all of them where none does.

    >>> near("leakge", ["leakage", "levels"])
    'did you mean leakage?'
    >>> near("xyz", ["leakage", "levels"])
    'known are: leakage, levels'
    """
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(close)}?" if close else f"known are: {', '.join(known)}"


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """One sentence for a name that is not among the known ones.

    >>> unknown("notebook", "01_celing", ["01_ceiling"])
    "unknown notebook '01_celing': did you mean 01_ceiling?"
    """
    return f"unknown {what} {name!r}: {near(str(name), known)}"


def explain(error: ValidationError, model: type[BaseModel], *, origin: str, places: Mapping[str, str]) -> str:
    """All faults of one set of parameters as one text, a line each.

    Args:
        error: what pydantic found.
        model: the model that was asked for.
        origin: where the values came from: a file's path, or the notebook's name.
        places: for single names a closer place, such as the line of the file.

    Returns:
        `origin, line 7: <parameter> = <value>: <limit>; <mend>`, one line for each fault.
    """
    told = []
    for fault in error.errors(include_url=False):
        name = str(fault["loc"][0]) if fault["loc"] else ""
        told.append(f"{places.get(name, origin)}: {_sentence(fault, name, model)}")
    return "\n".join(told)


def _sentence(fault: Any, name: str, model: type[BaseModel]) -> str:
    kind, value = fault["type"], fault["input"]
    fields = model.model_fields
    if kind == "extra_forbidden":
        return f"unknown parameter {name} = {value!r}: {near(name, fields)}"
    if kind == "missing":
        return f"the parameter {name} is missing: add it ({fields[name].description})"
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not name:
        return message  # a rule over several parameters words its own sentence
    path = name + "".join(f"[{part}]" for part in fault["loc"][1:] if isinstance(part, int))
    mend = ""
    if isinstance(value, str) and kind in {"float_type", "int_type"}:
        mend = f"; {_unquote(value)}"
    elif isinstance(value, bool) and kind in {"string_type", "literal_error"}:
        mend = "; YAML reads yes, no, on and off as true and false: put the word in quotes"
    elif kind == "literal_error" and isinstance(value, str):
        choices = re.findall(r"'([^']*)'", str(fault["ctx"]["expected"]))
        mend = "; " + near(value, choices) if difflib.get_close_matches(value, choices) else ""
    if kind != "value_error":
        message = message.replace("Input should be", "it must be")
    return f"{path} = {value!r}: {message}{mend} ({fields[name].description})"


def _unquote(text: str) -> str:
    match = _NUMBER_AS_TEXT.fullmatch(text.strip())
    if match is None:
        return "this is text: write a number without quotes"
    whole, point, exponent = match.groups()
    sign = "" if exponent.startswith(("-", "+")) else "+"
    number = f"{whole or '0'}{point if point and len(point) > 1 else '.0'}e{sign}{exponent}"
    lead = text.strip()[0] if text.strip()[0] in "-+" else ""
    return f"YAML reads {text} as text: write {lead}{number}"
