"""What stands beside the code and could fall behind it: the index of the notebooks, and how the lab is cited."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
import yaml

import pcclab

CHECKOUT = Path(__file__).resolve().parent.parent
INDEX = (CHECKOUT / "notebooks" / "README.md").read_text(encoding="utf8")
NOTEBOOKS = sorted((CHECKOUT / "notebooks").glob("*.ipynb"))
LINK = re.compile(r"\[([^]]+)\]\(([^)]+)\)")


def part(name: str) -> str:
    """What the index says of a notebook."""
    return INDEX.split(f"\n## [{name}]({name}.ipynb)\n")[1].split("\n## ")[0]


def words(text: str) -> str:
    return " ".join(text.split())


def test_the_index_has_every_notebook_and_no_other_in_order() -> None:
    assert re.findall(r"^## \[(\w+)\]\(\1\.ipynb\)$", INDEX, flags=re.MULTILINE) == [path.stem for path in NOTEBOOKS]


def test_every_link_of_the_index_leads_somewhere() -> None:
    links = LINK.findall(INDEX)
    assert len(links) > 3 * len(NOTEBOOKS)
    assert [place for _, place in links if not (CHECKOUT / "notebooks" / place).is_file()] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_index_asks_a_notebooks_own_question_and_names_its_sets_and_papers(path: Path) -> None:
    opening = nbformat.read(path, as_version=4).cells[0].source
    question = re.search(r"\*\*(.+?)\*\*", opening, flags=re.DOTALL)
    assert question is not None
    told = part(path.stem)
    assert f"**{words(question[1])}**" in words(told)
    assert re.search(r"Pcc-tuning|STS-Regression|RankCSE", told.split("**")[2])
    sets = {file.stem for file in (CHECKOUT / "parameters" / path.stem).glob("*.yaml") if "_" not in file.stem}
    assert {name for name, place in LINK.findall(told) if place.endswith(".yaml")} == sets
    rows = re.findall(r"^\| \[(\w+)\]\(\.\./parameters/(\w+)/(\w+)\.yaml\) \| .+ \| .+ \|$", told, flags=re.MULTILINE)
    assert sorted(rows) == sorted((name, path.stem, name) for name in sets)


def test_the_citation_holds_what_its_format_asks_for() -> None:
    """Citation File Format 1.2: the required keys of the file, of persons and of references, and its lists of words."""
    cited = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf8"))
    known = {"cff-version", "message", "title", "authors", "type", "version", "license", "keywords", "references"}
    assert {"cff-version", "message", "title", "authors"} <= set(cited) <= known
    assert cited["cff-version"] == "1.2.0" and cited["type"] == "software" and cited["license"] == "Apache-2.0"
    assert str(cited["version"]) == pcclab.__version__
    assert all(set(author) == {"name"} for author in cited["authors"])
    of_a_paper = {
        "type",
        "title",
        "authors",
        "year",
        "collection-title",
        "publisher",
        "start",
        "end",
        "doi",
        "identifiers",
    }
    for paper in cited["references"]:
        assert {"type", "title", "authors", "year", "collection-title"} <= set(paper) <= of_a_paper
        assert paper["type"] == "conference-paper"
        assert all(set(author) == {"given-names", "family-names"} for author in paper["authors"])
        assert all(set(entry) == {"type", "value"} and entry["type"] == "other" for entry in paper["identifiers"])
        assert isinstance(paper["year"], int) and paper.get("start", 0) <= paper.get("end", 0)
        assert re.fullmatch(r"10\.\d{4,}/\S+", paper.get("doi", "10.18653/v1/none"))


def test_the_citation_names_the_papers_the_readme_names() -> None:
    cited = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf8"))["references"]
    readme = words((CHECKOUT / "README.md").read_text(encoding="utf8"))
    assert len(cited) == 3
    for paper in cited:
        first = paper["authors"][0]
        assert paper["title"].split(":")[0] in readme
        assert f"{first['given-names']} {first['family-names']}" in readme
