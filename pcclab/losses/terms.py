"""Sums of named losses, written as one line a parameter file can hold."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Term:
    """One summand of an objective.

    Args:
        name: of the loss, as in `CATALOGUE`.
        weight: its factor; 0 leaves the term out.
        options: keyword arguments of the loss.
    """

    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """The term as `parse` reads it."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        text = f"{self.name}({options})" if options else self.name
        short = f"{self.weight:g}"  # six digits; all of them where those are another number
        return text if self.weight == 1 else f"{short if float(short) == self.weight else repr(self.weight)} * {text}"


def parse(expression: str) -> tuple[Term, ...]:
    """Read a weighted sum of losses: names with options in parentheses, joined by ``+``, each with an optional factor.

    Args:
        expression: such as ``"pearson + 0.1 * info_nce(temperature=0.05)"``. Nothing in it is run: names, numbers and
            literal options are all it may hold. Whether a loss of a name exists is for `by_name`.

    Returns:
        The terms in their order, those of weight 0 left out.

    Raises: ValueError for anything else, for a factor that is negative or not finite, and where no term is left.

    >>> [str(term) for term in parse("pearson + 0.1 * info_nce(temperature=0.05)")]
    ['pearson', '0.1 * info_nce(temperature=0.05)']
    """
    try:
        terms = [_term(node, expression) for node in _summands(_tree(expression))]
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"loss {expression[:40]!r}... is nested too deeply: {_FORM}") from error
    left = tuple(term for term in terms if term.weight > 0)
    if not left:
        raise ValueError(f"loss {expression!r} has no term of a weight above 0: give at least one")
    return left


_FORM = "write names of losses joined by +, such as 'pearson + 0.1 * info_nce(temperature=0.05)'"


def _tree(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:  # a zero byte is a ValueError in older Pythons
        raise ValueError(f"loss {expression!r} cannot be read: {_FORM}") from error


def _summands(node: ast.expr) -> list[ast.expr]:
    """The summands from left to right; a loop, for a long sum is a deep tree."""
    found, waiting = [], [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            waiting += [node.left, node.right]
        else:
            found.append(node)
    return found[::-1]


def _term(node: ast.expr, expression: str) -> Term:
    weight = 1.0
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        weight, node = _factor(node.left, expression), node.right
    if isinstance(node, ast.Name):
        return Term(node.id, weight)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.args:
        return Term(node.func.id, weight, _options(node, expression))
    if isinstance(node, ast.UnaryOp | ast.BinOp) and isinstance(node.op, ast.USub | ast.Sub):
        raise ValueError(f"loss {expression!r}: {ast.unparse(node)} has a minus; losses are added, none is taken away")
    raise ValueError(f"loss {expression!r}: {ast.unparse(node)} is no loss; {_FORM}")


def _factor(node: ast.expr, expression: str) -> float:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError):
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"loss {expression!r}: {ast.unparse(node)} is no number; {_FORM}")
    if not 0 <= value <= sys.float_info.max:
        raise ValueError(f"loss {expression!r}: the factor {ast.unparse(node)} must be at least 0 and finite")
    return float(value)


def _options(call: ast.Call, expression: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for word in call.keywords:
        if word.arg is None:
            raise ValueError(f"loss {expression!r}: {ast.unparse(call)} is no loss; {_FORM}")
        if word.arg in options:
            raise ValueError(f"loss {expression!r}: {word.arg} is given twice; give it once")
        try:
            options[word.arg] = ast.literal_eval(word.value)
        except (ValueError, TypeError) as error:
            raise ValueError(f"loss {expression!r}: options are plain values, such as temperature=0.05") from error
    return options
