"""What a view's parameters may be: each form is a range of values with a widget that a keyboard can move."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

from pcclab.complaints import unknown

FIXED = "fixed"
"""In a parameter's annotation: a text that is no control, such as where the data come from."""
SHOW = "show"
"""Parameter by which a view says that it is slow: it is handed what shows a picture on the way."""


@dataclass(frozen=True)
class Steps:
    """A slider over given values, in their order.

    Args:
        values: at least one.
        told: what the value is, for whoever points at the slider.
        value: where it begins; None where the view is given one.
    """

    values: tuple[Any, ...]
    told: str = ""
    value: Any = None

    def options(self) -> tuple[Any, ...]:
        """The values, and among them the one it begins with, exactly as it was given."""
        if self.value in self.values:
            return tuple(self.value if value == self.value else value for value in self.values)
        numbers = all(isinstance(value, int | float) for value in (*self.values, self.value))
        return tuple(sorted((*self.values, self.value))) if numbers else (*self.values, self.value)

    def widget(self, name: str) -> Any:
        """The slider, whose value stands beside it."""
        import ipywidgets

        options = [(spoken(value), value) for value in self.options()]
        return ipywidgets.SelectionSlider(options=options, value=self.value, continuous_update=False, **looks(name, self.told))  # fmt: skip  # noqa: E501


class Choice(Steps):
    """A list to choose from, for words that have no order."""

    def widget(self, name: str) -> Any:
        """The list, which opens and is searched by typing."""
        import ipywidgets

        options = [(spoken(value), value) for value in self.options()]
        return ipywidgets.Dropdown(options=options, value=self.value, **looks(name, self.told))


def linear(low: float, high: float, step: float = 1, told: str = "") -> Steps:
    """Equal steps from low to high; whole numbers where all three are.

    Args:
        low: where the slider begins.
        high: where it ends.
        step: between two values.
        told: what the value is, for whoever points at the slider.

    >>> linear(0, 1, 0.25).values
    (0.0, 0.25, 0.5, 0.75, 1.0)
    """
    places = max(0, -math.floor(math.log10(step))) + 2
    values = [low + place * step for place in range(round((high - low) / step) + 1)]
    whole = all(isinstance(value, int) for value in (low, high, step))
    return Steps(tuple(values if whole else [round(float(value), places) for value in values]), told)


def powers(low: float, high: float, told: str = "") -> Steps:
    """1, 2, 5, 10 and so on from low to high, and both ends; whole numbers where both are.

    Args:
        low: where the slider begins, above 0.
        high: where it ends.
        told: what the value is, for whoever points at the slider.

    >>> powers(4, 100).values
    (4, 5, 10, 20, 50, 100)
    """
    whole = isinstance(low, int) and isinstance(high, int)
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    grid = [float(f"{head}e{exponent}") for exponent in exponents for head in (1, 2, 5)]
    values = sorted({float(low), float(high), *(value for value in grid if low <= value <= high)})
    return Steps(tuple(int(value) for value in values) if whole else tuple(values), told)


def choices(values: Sequence[Any], told: str = "", *, value: Any = None) -> Choice:
    """A list to choose from.

    Args:
        values: in the list's order.
        told: what the value is, for whoever points at the list.
        value: where it begins; None where the view is given one.
    """
    return Choice(tuple(values), told, value)


def forms(view: Callable[..., Any], controls: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What can be moved and what stays, of the values a view is given.

    Args:
        view: a function whose parameters carry their form as `Annotated`.
        controls: for each parameter its first value, or a form that begins with one. Text and true or false need no
            form; any other value without one, such as a table or an encoder, stays as it is.

    Returns: the forms by name, and what stays by name.
    Raises: ValueError for a name the view does not take, or one that it needs and was not given.
    """
    wanted = {name: entry for name, entry in inspect.signature(view).parameters.items() if name != SHOW}
    for name in controls:
        if name not in wanted:
            raise ValueError(f"{view.__name__}: {unknown('control', name, wanted)}")
    for name, entry in wanted.items():
        if name not in controls and entry.default is inspect.Parameter.empty:
            raise ValueError(f"{view.__name__} is not given {name}: it takes {', '.join(wanted)}")
    hints = get_type_hints(view, include_extras=True)
    moved: dict[str, Any] = {}
    for name, value in controls.items():
        declared = [extra for extra in getattr(hints.get(name), "__metadata__", ()) if isinstance(extra, Steps)]
        if isinstance(value, Steps):
            first = value.values[0] if value.value is None else value.value
            moved[name] = replace(value, value=first)
        elif declared:
            moved[name] = replace(declared[0], value=value)
        elif isinstance(value, str | bool) and FIXED not in getattr(hints.get(name), "__metadata__", ()):
            moved[name] = value
    return moved, {name: value for name, value in controls.items() if name not in moved}


def widget(name: str, form: Any) -> Any:
    """The widget of a form, of a text or of true and false."""
    import ipywidgets

    if isinstance(form, Steps):
        return form.widget(name)
    if isinstance(form, bool):
        return ipywidgets.Checkbox(value=form, indent=False, **looks(name, ""))
    return ipywidgets.Text(value=form, continuous_update=False, **{**looks(name, ""), "layout": {"width": "640px"}})


def looks(name: str, told: str) -> dict[str, Any]:
    """What all widgets of a view share: a name beside them, a sentence for the pointer, a class for a style or test."""
    label = name.replace("_", " ")
    style, layout = {"description_width": "8.5em"}, {"width": "310px"}
    return {"description": label, "tooltip": told or label, "style": style, "layout": layout}


def spoken(value: Any) -> str:
    """A value as the slider shows it.

    >>> spoken(1000), spoken(5e-05), spoken("keep")
    ('1,000', '5e-05', 'keep')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
