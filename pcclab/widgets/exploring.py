"""`explore`: a pure function, its values under sliders where somebody sits, a plain picture where nobody does."""

from __future__ import annotations

import asyncio
import base64
import html
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pcclab import figures
from pcclab.progress import interactive
from pcclab.widgets.controls import SHOW, Steps, forms, widget

SETTLE_SECONDS = 0.05
"""A slider on the move asks for many pictures: the last one is drawn once it has rested this long."""
_DOTS_AN_INCH = 150  # on the screen; wider figures are fitted into a notebook's column
_WIDEST = 640


@dataclass(frozen=True)
class Shown:
    """What a view made: a picture or a page, and what it says in words.

    Attributes:
        png: the figure's bytes, the same that a run's figures have; empty where there is none.
        page: HTML below it.
        width: of the picture on the screen.
        said: one sentence, which is also what a reader without the picture gets.
    """

    png: bytes = b""
    page: str = ""
    width: int = 0
    said: str = ""


def shown(made: Figure | Shown) -> Shown:
    """A figure as it is shown; its label is what it says."""
    if isinstance(made, Shown):
        return made
    png = figures.png(made)
    return Shown(png=png, width=width_of(png), said=str(made.get_label()))


def width_of(png: bytes) -> int:
    """How wide one of the lab's pictures is shown: a column as it is read, a wider one as a notebook holds it."""
    dots = int.from_bytes(png[16:20], "big")  # where PNG has it
    return min(_WIDEST, round(_DOTS_AN_INCH * dots / figures.DOTS))


def captioned(ax: Axes, said: str) -> Figure:
    """The figure of these axes with what it says in words as its label."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.set_label(said)
    return figure


class Explorer:
    """A view with its values; a notebook shows it as widgets, or as a picture where it runs in batch.

    Attributes:
        view: the function.
        first: the values that can be moved, as they were given: a notebook's parameters.
        moved: the same as they are now.
        now: what it made of them.
    """

    def __init__(self, view: Callable[..., Figure | Shown], controls: dict[str, Any]) -> None:
        self.view = view
        self._forms, self._fixed = forms(view, controls)
        self.first = {name: getattr(form, "value", form) for name, form in self._forms.items()}
        self.moved = dict(self.first)
        # Drawn here, outside every callback: a fault fails the cell.
        self.now = self.draw()

    def draw(self) -> Shown:
        """What the view makes of the values."""
        return shown(self.view(**self.moved, **self._fixed))

    @cached_property
    def controls(self) -> dict[str, Any]:
        """The widgets by name; moving one draws anew."""
        made = {name: widget(name, form) for name, form in self._forms.items()}
        for name, control in made.items():
            control.add_class(f"pcclab-{name.replace('_', '-')}")
            control.observe(lambda change, name=name: self._move(name, change["new"]), names="value")
        return made

    @cached_property
    def box(self) -> Any:
        """Controls above the picture, and below it what it says, or what went wrong."""
        import ipywidgets

        self._picture, self._page = ipywidgets.Image(format="png"), ipywidgets.HTML()
        self._said, self._fault = ipywidgets.HTML(), ipywidgets.HTML()
        for part, name in ((self._picture, "picture"), (self._page, "page"), (self._said, "said"), (self._fault, "fault")):  # fmt: skip  # noqa: E501
            part.add_class(f"pcclab-{name}")
        flow = ipywidgets.Layout(display="flex", flex_flow="row wrap", align_items="center")
        rows = [ipywidgets.Box(part, layout=flow) for part in (list(self.controls.values()), self._buttons())]
        box = ipywidgets.VBox([*rows, self._picture, self._page, self._said, self._fault])
        box.add_class("pcclab-explore")
        box.add_class(f"pcclab-view-{self.view.__name__.replace('_', '-')}")
        self._tell(self.now)
        return box

    def reset(self, *_: Any) -> None:
        """Every value back to where the notebook's parameters have it."""
        for name, control in self.controls.items():
            control.value = self.first[name]

    def _buttons(self) -> list[Any]:
        import ipywidgets

        back = ipywidgets.Button(description="Back to the parameters", layout={"width": "16em"})
        back.on_click(self.reset)
        return [back]

    def _move(self, name: str, value: Any) -> None:
        self.moved[name] = value
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:  # a script or a test: nothing more is to come
            self._draw_and_tell()
            return
        if (waiting := getattr(self, "_waiting", None)) is not None:
            waiting.cancel()
        self._waiting = loop.call_later(SETTLE_SECONDS, self._draw_and_tell)

    def _draw_and_tell(self) -> None:
        assert self.box is not None
        try:
            self.now = self.draw()
        except Exception as error:
            self._complain(error)
        else:
            self._tell(self.now)

    def _tell(self, now: Shown) -> None:
        self._picture.value, self._page.value = now.png, now.page
        self._picture.layout = {"width": f"{now.width}px", "display": None if now.png else "none"}
        self._said.value = f'<span role="status">{html.escape(now.said)}</span>' if now.said else ""
        self._fault.value = ""

    def _complain(self, error: BaseException) -> None:
        # A picture of other values beside the message would be taken for theirs.
        self._tell(Shown())
        text = html.escape(f"{type(error).__name__}: {error}")
        self._fault.value = f'<pre role="alert" style="color:#b00020;white-space:pre-wrap">{text}</pre>'

    def _ipython_display_(self) -> None:
        from IPython.display import display

        data: dict[str, Any] = {"text/plain": self.now.said or repr(self)}
        metadata: dict[str, Any] = {}
        if self.now.png:
            data["image/png"] = base64.b64encode(self.now.png).decode("ascii")
            metadata["image/png"] = {"width": self.now.width, "alt": self.now.said}
        if in_a_notebook():
            # Beside the picture, which stays for readers of the saved notebook who have no kernel.
            data = {**self.box._repr_mimebundle_(), **data}
        display(data, metadata=metadata, raw=True)
        if self.now.page and not in_a_notebook():
            display({"text/html": self.now.page, "text/plain": self.now.said}, raw=True)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.moved.items())
        return f"{self.view.__name__}({values})"


def in_a_notebook() -> bool:
    """Whether somebody sits at a notebook: under papermill nobody does."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return hasattr(shell, "kernel") and interactive()


def explore(view: Callable[..., Figure | Shown], /, **controls: Any) -> Explorer:
    """A view under sliders: as the last line of a cell it is shown.

    Args:
        view: a pure function of keyword arguments to a `Figure`, whose label says in words what it shows, or to what is
            `Shown`. A slow one takes `show` as well and gets a Run and a Stop button (see `Live`).
        **controls: the first value of each of its parameters: a notebook's own, so that a slider at 16 and `-p rank 16`
            give the same picture. Where the parameter's annotation holds no form, a form may be given here:
            ``explore(draw, row=linear(0, 31))``. Tables and encoders are passed through.

    Raises: ValueError for names that do not fit, before anything is drawn; and whatever the view raises for its first
        values. Later a fault is shown in place of the picture.
    """
    from pcclab.widgets.live import Live, is_slow

    return Live(view, controls) if is_slow(view) else Explorer(view, controls)


__all__ = ["SHOW", "Explorer", "Shown", "Steps", "explore", "in_a_notebook"]
