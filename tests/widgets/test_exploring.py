"""`explore`: what it draws first, what a move changes, how a fault is told, and what a batch run keeps."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Any

import pytest
from matplotlib.figure import Figure

from pcclab import figures, widgets
from pcclab.widgets import exploring
from pcclab.widgets.controls import Choice, Steps, forms, linear, powers

CEILING: dict[str, Any] = {"n": 100, "share": 0.5, "levels": 5, "hardness": 40.0, "distinct": 0}


def line(
    *, height: Annotated[float, linear(0.0, 2.0, 0.5, "how high")], dashed: bool = False, title: str = ""
) -> Figure:
    """A view of a line."""
    if height > 1.5:
        raise ValueError(f"height is {height}: give at most 1.5")
    figure = Figure(figsize=(1, 1))
    figure.add_subplot().plot([0, 1], [0, height], linestyle="--" if dashed else "-")
    figure.set_label(f"a line to {height:g} {title}")
    return figure


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What reaches a notebook's cell."""
    shown: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def keep(data: dict[str, Any], *, raw: bool, metadata: dict[str, Any] | None = None) -> None:
        assert raw
        shown.append((data, metadata or {}))

    monkeypatch.setattr("IPython.display.display", keep)
    return shown


def test_a_moved_slider_draws_what_the_value_given_at_first_draws() -> None:
    moved = widgets.explore(widgets.ceiling, **CEILING)
    before = moved.now.png
    moved.box  # noqa: B018
    moved.controls["share"].value = 0.3
    given = widgets.explore(widgets.ceiling, **{**CEILING, "share": 0.3})
    assert moved.now.png == given.now.png != before
    assert moved.now.said == given.now.said
    assert moved._picture.value == given.now.png
    assert "30 of 100" in moved._said.value
    moved.reset()
    assert moved.now.png == before


def test_the_picture_is_the_file_that_a_run_would_write(tmp_path: Any) -> None:
    drawn = widgets.explore(widgets.ceiling, **CEILING).now
    figure = widgets.ceiling(**CEILING)
    *_, png, _ = figures.save(figure, tmp_path, "ceiling", numbers={}, run="x")
    assert drawn.png == png.read_bytes()


def test_every_control_has_a_name_a_class_and_its_value_beside_it() -> None:
    view = widgets.explore(line, height=1.0, dashed=True, title="of mine")
    assert {name: type(control).__name__ for name, control in view.controls.items()} == {
        "height": "SelectionSlider",
        "dashed": "Checkbox",
        "title": "Text",
    }
    slider = view.controls["height"]
    assert (slider.description, slider.tooltip, slider.readout) == ("height", "how high", True)
    assert [label for label, _ in slider.options] == ["0", "0.5", "1", "1.5", "2"]
    assert "pcclab-height" in slider._dom_classes
    assert {"pcclab-explore", "pcclab-view-line"} <= set(view.box._dom_classes)
    view.controls["dashed"].value = False
    view.controls["title"].value = "of yours"
    assert view.now.said == "a line to 1 of yours"


def test_a_value_beside_the_steps_is_kept_exactly() -> None:
    view = widgets.explore(widgets.ceiling, **{**CEILING, "share": 0.123, "n": 12_345, "hardness": 40})
    assert view.controls["share"].value == 0.123
    assert view.controls["n"].value == 12_345
    assert [label for label, value in view.controls["n"].options][-2:] == ["10,000", "12,345"]


def test_a_fault_fails_the_cell_at_first_and_is_shown_later() -> None:
    with pytest.raises(ValueError, match=r"height is 2\.0: give at most 1\.5"):
        widgets.explore(line, height=2.0)
    view = widgets.explore(line, height=1.0)
    view.box  # noqa: B018
    view.controls["height"].value = 2.0
    assert "ValueError: height is 2.0: give at most 1.5" in view._fault.value
    assert 'role="alert"' in view._fault.value
    # No picture of other values beside it.
    assert (view._picture.value, view._picture.layout.display, view._said.value) == (b"", "none", "")
    view.controls["height"].value = 0.5
    assert view._fault.value == "" and view._picture.value == view.now.png


def test_names_that_do_not_fit_are_told_before_anything_is_drawn() -> None:
    with pytest.raises(ValueError, match=r"line: unknown control 'heigt': did you mean height\?"):
        widgets.explore(line, heigt=1.0)
    with pytest.raises(ValueError, match="line is not given height: it takes height, dashed, title"):
        widgets.explore(line, dashed=True)


def test_in_batch_the_cell_holds_the_picture_and_no_widget(displayed: list[Any]) -> None:
    view = widgets.explore(line, height=1.0)
    view._ipython_display_()
    ((data, metadata),) = displayed
    assert set(data) == {"text/plain", "image/png"}
    assert base64.b64decode(data["image/png"]) == view.now.png
    assert data["text/plain"] == metadata["image/png"]["alt"] == "a line to 1 "
    assert "box" not in vars(view)


def test_in_a_notebook_the_cell_holds_the_widget_and_the_picture(
    displayed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exploring, "in_a_notebook", lambda: True)
    view = widgets.explore(line, height=1.0)
    view._ipython_display_()
    ((data, _),) = displayed
    assert base64.b64decode(data["image/png"]) == view.now.png
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == view.box.model_id


def test_a_slider_on_the_move_is_drawn_once_it_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    def counted(*, height: Annotated[float, linear(0.0, 1.5, 0.5)]) -> Figure:
        drawn.append(height)
        return line(height=height)

    monkeypatch.setattr(exploring, "SETTLE_SECONDS", 0.01)
    view = widgets.explore(counted, height=0.0)

    async def move() -> None:
        view.box  # noqa: B018
        for height in (0.5, 1.0, 1.5):
            view.controls["height"].value = height
        assert drawn == [0.0]
        await asyncio.sleep(0.2)

    asyncio.run(move())
    assert drawn == [0.0, 1.5]
    assert view._said.value == '<span role="status">a line to 1.5 </span>'


def test_steps_hold_their_ends_and_no_rounding_error() -> None:
    assert linear(0.02, 0.98, 0.02).values[0::48] == (0.02, 0.98)
    assert all(len(f"{value:g}") <= 4 for value in linear(0.02, 0.98, 0.02).values)
    assert linear(2, 5).values == (2, 3, 4, 5)
    assert powers(1.0, 30.0).values == (1.0, 2.0, 5.0, 10.0, 20.0, 30.0)
    assert Choice(("a", "b"), value="c").options() == ("a", "b", "c")
    assert Steps((1, 3), value=2).options() == (1, 2, 3)


def test_tables_and_encoders_are_passed_through() -> None:
    def view(*, table: list[int], row: Annotated[int, linear(0, 3)] = 0) -> Figure:
        return line(height=table[row])

    moved, fixed = forms(view, {"table": [1, 0], "row": linear(0, 1)})
    assert (moved["row"].value, fixed) == (0, {"table": [1, 0]})
    assert widgets.explore(view, table=[1, 0], row=1).now.said == "a line to 0 "
