"""The notebooks in a real browser: opened, run from top to bottom, their sliders moved by keyboard."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from pathlib import Path
from typing import Any

import nbformat
import psutil
import pytest

CHECKOUT = Path(__file__).resolve().parent.parent.parent
EVERY = sorted(path.stem for path in (CHECKOUT / "notebooks").glob("*.ipynb"))
QUICK = ("01_ceiling", "11_playground")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


def test_the_ceiling_runs_and_its_slider_draws_anew(opened: Any, server: Any) -> None:
    with opened("01_ceiling") as notebook:
        notebook.run_all(seconds=180)
        assert notebook.faults() == []
        assert "two levels, 500 of 1,000: 0.8660" in notebook.said("ceiling")
        notebook.move("ceiling", "share", steps=3, until="two levels, 560 of 1,000: 0.8598")
        assert notebook.faults() == []
    # The notebook ran in this checkout, by its own parameters.
    (result,) = (server.root / "runs" / "01_ceiling").glob("*/result.json")
    assert json.loads(result.read_text(encoding="utf8"))["ceiling"]["paper"] == 0.875


def test_the_playgrounds_views_draw_anew_and_train_on_demand(opened: Any) -> None:
    with opened("11_playground") as notebook:
        notebook.run_all(seconds=240)
        assert notebook.faults() == []
        notebook.move("ceiling", "levels", until="6 levels at best: 0.9860")
        assert "24.1 % of its pull on the outlier" in notebook.said("rivals")
        notebook.move("rivals", "outlier", steps=-10, until="Pearson 0.9")
        typed = notebook.view("sentences").locator(".pcclab-second input")
        typed.fill(notebook.view("sentences").locator(".pcclab-first input").input_value())
        typed.press("Enter")
        notebook.wait_for("sentences", "minilm: cosine 1.000")
        notebook.view("stage2").locator(".pcclab-run").press("Enter")
        notebook.wait_for("stage2", "10 steps in", seconds=120)
        assert notebook.faults() == []


def test_the_kernel_is_the_environments_and_finds_the_checkout(opened: Any, server: Any, checkout: Path) -> None:
    asked = "import sys, pcclab; print(sys.prefix, pcclab.__path__[0], pcclab.runs.root(), sep='\\n')"
    plant(server, "places", asked)
    with opened("places") as notebook:
        notebook.run_all(seconds=60)
        (said,) = notebook.cells()[0]["outputs"]
        assert said["text"].split("\n")[:3] == [sys.prefix, str(checkout / "pcclab"), str(server.root)]


def test_a_failing_cell_and_a_failing_slider_are_found_and_pictured(opened: Any, server: Any, tmp_path: Path) -> None:
    """Without this the tests above might hold because they see nothing."""
    plant(
        server,
        "broken",
        "from matplotlib.figure import Figure\nfrom pcclab import widgets",
        "drawn = lambda *, x: (Figure(label=str(x)), 1 / (x < 2))[0]\ndrawn.__name__ = 'drawn'",
        "widgets.explore(drawn, x=widgets.linear(1, 3))",
        "1 / 0",
        "'never run'",
    )
    with opened("broken") as notebook:
        notebook.run_all(seconds=60)
        assert notebook.faults() == ["cell 3: ZeroDivisionError: division by zero", "cell 4 was not run"]
        with pytest.raises(Exception, match="Timeout"):
            notebook.move("drawn", "x", until="2", seconds=3)
        assert "cell 2: widget: ZeroDivisionError: division by zero" in notebook.faults()
    with pytest.raises(AssertionError, match="as it must") as caught:
        fail(opened)
    shot = Path(os.environ.get("PCCLAB_SHOTS") or tmp_path) / "broken.png"
    assert any(str(shot) in note for note in caught.value.__notes__)
    assert shot.read_bytes().startswith(b"\x89PNG")


def fail(opened: Any) -> None:
    """A test that does not hold, with a notebook open."""
    with opened("broken"):
        raise AssertionError("as it must")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in EVERY if name not in QUICK])
def test_every_notebook_runs_in_the_browser(opened: Any, name: str) -> None:
    with opened(name) as notebook:
        notebook.run_all(seconds=540)
        assert notebook.faults() == []
        for view in notebook.views():
            notebook.nudge(view)
        assert notebook.faults() == []
        said = [out for cell in notebook.cells() for out in cell.get("outputs", ())]
        assert any("**Verdict.**" in str(out.get("data", {}).get("text/markdown")) for out in said)


def test_nothing_of_a_server_is_left_when_it_ends(server: Any, checkout: Path, tmp_path: Path) -> None:
    other = type(server)(checkout, tmp_path)
    request = urllib.request.Request(f"{other.url}api/kernels?token={other.token}", data=b"{}", method="POST")
    with urllib.request.urlopen(request, timeout=120) as answer:
        assert answer.status == 201
    family = [psutil.Process(other.process.pid), *psutil.Process(other.process.pid).children(recursive=True)]
    assert len(family) > 1, "the kernel is one of the server's children"
    other.end()
    assert [one for one in family if one.is_running() and one.status() != psutil.STATUS_ZOMBIE] == []


def plant(server: Any, name: str, *cells: str) -> None:
    """A notebook of the test's own beside the others."""
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    nbformat.write(made, server.root / "notebooks" / f"{name}.ipynb")
