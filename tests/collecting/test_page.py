"""The page that is sent: one file, nothing fetched, every run and reason on it."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from pcclab import collecting, runs

CEILING: dict[str, Any] = {"source": "synthetic", "seed": 0, "n": 10, "share": 0.5, "levels": 5, "hardness": 3.0}
VOID = {"meta", "img", "br", "wbr", "link", "input"}


class Page(HTMLParser):
    """What a page holds: attributes that load something, tags, text; and whether its tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.words: list[str] = []
        self.stack: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def start(**change: Any) -> runs.Run:
    return runs.start("01_ceiling", **{**CEILING, **change})


def drawing() -> Figure:
    figure = Figure(figsize=(3.03, 2))
    figure.subplots().plot([0, 1], [1, 0])
    return figure


@pytest.fixture
def finished(own_root: Path) -> None:
    """Two settings of two seeds with curves and a figure, and one that failed."""
    for levels in (2, 3):
        for seed in (0, 1):
            run = start(levels=levels, seed=seed)
            for step in range(1, 200):
                run.log(step, loss=1 / step + levels, learning_rate=0.1)
            run.figure(drawing(), "curve", numbers={"y": [1, 0]})
            run.record(data={"stsb train": "abc123"}, encoder="<b>tiny</b>")
            run.finish({"after": {"stsb": 80.0 + levels + seed, "average": 70.0 + seed}, "dev": 60.5 + levels})
    run = start(levels=3, seed=2)
    run.log(1, loss=9.0)
    run.fail("ValueError: <script>alert(1)</script> & more")


def page(**options: Any) -> Page:
    return Page(collecting.html(collecting.collect("01", **options)))


def test_the_page_is_one_file_that_loads_nothing(finished: None) -> None:
    found = page()
    assert found.stack == []
    assert found.loads and all(address.startswith("data:image/") for address in found.loads)
    assert not {"script", "link", "iframe", "object"} & set(found.tags)
    html = collecting.html(collecting.collect("01"))
    assert not re.search(r"url\(|@import|https?://", html)


def test_means_intervals_states_reasons_and_provenance_are_on_it(finished: None) -> None:
    text = page().text
    assert "5 runs: 4 finished, 1 failed." in text
    assert "82.50 ± 6.35" in text, "two seeds one apart: 12.706 * 0.7071 / 1.4142"
    assert "ValueError: <script>alert(1)</script> & more" in text
    assert "<b>tiny</b>" in text and "abc123" in text
    assert "each point is the mean of 4 steps" in text
    assert "The same in all runs: source = synthetic" in text
    for run in collecting.collect("01").entries:
        assert run.folder.name in text


def test_the_runs_figures_are_embedded_and_a_damaged_one_is_told(finished: None) -> None:
    run = start(levels=2)
    path = run.folder / "figures" / "curve.png"
    content = path.read_bytes()
    assert f"data:image/png;base64,{base64.b64encode(content).decode()}" in page().loads
    for damage in (b"", content[:100]):
        path.write_bytes(damage)
        found = page()
        assert "curve.png of this run is damaged" in found.text
        assert found.tags.count("img") == 3 + 2 + 1, "three whole ones, two drawings of scores, one of losses"


def test_many_figures_are_those_of_each_settings_first_seed(finished: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pcclab.collecting.page.MOST_PICTURES", 3)
    found = page()
    assert "Of each setting the first seed's." in found.text
    assert sum(address.startswith("data:image/png") for address in found.loads) == 2


def test_the_same_runs_give_the_same_page(finished: None) -> None:
    pages = [collecting.html(collecting.collect("01")) for _ in range(2)]
    one, other = (re.sub(r"Made [^.]*\.", "", html) for html in pages)
    assert one == other


def test_more_settings_than_looks_are_drawn_in_several_figures(own_root: Path) -> None:
    for levels in range(2, 10):
        run = start(levels=levels)
        run.log(1, loss=1.0)
        run.finish({"dev": 60.0 + levels})
    found = page()
    assert found.text.count("loss: a line a seed.") == 2


def test_a_page_of_runs_that_are_not_finished(own_root: Path) -> None:
    start().fail("KeyError: 'x'")
    found = page()
    assert "KeyError: 'x'" in found.text and "Only finished runs count" in found.text
    assert "Result" not in found.text and "Provenance" not in found.text


def test_the_page_is_written_whole(finished: None, tmp_path: Path) -> None:
    path = collecting.write_page(collecting.collect("01"), tmp_path / "new" / "report.html")
    assert Page(path.read_text(encoding="utf8")).stack == []
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
