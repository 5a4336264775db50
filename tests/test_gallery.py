"""`pcclab figures`: the committed files are what their JSON makes, and drop into a paper."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pcclab import figures, gallery, plots, reference, runs
from pcclab.gallery import ours, sheets

CHECKOUT = Path(__file__).resolve().parent.parent
COMMITTED = CHECKOUT / "figures"
THERE = [name for name in gallery.names() if gallery.file_of(name, COMMITTED).is_file()]
DRAWN = [name for name in THERE if name in gallery.FIGURES]
SET = [name for name in THERE if name in gallery.TABLES]
LINES = re.compile(r"Overfull \\hbox \((\d+\.\d+)pt too wide\)")


def tool(name: str) -> str:
    """A program of the machine's; the test is skipped where it is not."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine: Debian's poppler-utils and texlive-latex-recommended have them")
    return found


# The catalogues


def test_every_table_of_the_papers_is_redrawn_or_said_why_not() -> None:
    drawn = {(table.paper, table.table) for table in gallery.TABLES.values()}
    for paper in reference.papers():
        for number in reference.cells(paper)["table"].unique():
            said = f"{sheets.PAPERS[paper]}, table {number}" in gallery.NONE
            if number in ("filtered", "figure 3"):  # notes beside other tables, and a figure
                continue
            assert ((paper, number) in drawn) != said, (paper, number)


def test_every_figure_of_the_papers_is_redrawn_or_said_why_not() -> None:
    said = [shown.papers for shown in gallery.FIGURES.values()] + list(gallery.NONE)
    for paper, count in {"Pcc-tuning": 2, "STS-Regression": 3, "RankCSE": 5}.items():
        for number in range(1, count + 1):
            assert any(text.startswith(paper) and f"figure {number}" in text for text in said), (paper, number)


def test_the_catalogue_names_plots_and_runs_that_there_are() -> None:
    for name, shown in gallery.FIGURES.items():
        assert shown.plot in plots.__all__ and shown.width in (plots.COLUMN, plots.TEXT), name
    for name in gallery.names():
        for place in gallery.places(name):
            assert runs.spoken(place).id


def test_an_unknown_name_is_refused_with_the_near_ones() -> None:
    with pytest.raises(ValueError, match="rankcse_terms"):
        gallery.names(["rankcse_term"])


# What is committed


@pytest.mark.parametrize("name", THERE)
def test_the_committed_files_are_what_their_json_makes(name: str) -> None:
    other = gallery.other_tools(COMMITTED)
    changed = gallery.differing(name, COMMITTED)
    if changed and other:
        pytest.skip(f"{', '.join(changed)} differ, and so do the tools: {'; '.join(other)}")
    assert not changed, "run `pcclab figures`, look at the figure, and commit it"


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_has_its_width_and_no_type_3_font(name: str) -> None:
    pdf = (COMMITTED / f"{name}.pdf").read_bytes()
    box = re.search(rb"/MediaBox \[\s*([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)\s*\]", pdf)
    assert box is not None
    assert float(box[3]) / 72 == pytest.approx(gallery.FIGURES[name].width, abs=0.005)
    assert b"/Type3" not in pdf and b"/FontFile" in pdf


def test_poppler_says_the_same_of_fonts_and_widths() -> None:
    fonts, info = tool("pdffonts"), tool("pdfinfo")
    for name in DRAWN:
        path = str(COMMITTED / f"{name}.pdf")
        listed = subprocess.run([fonts, path], capture_output=True, text=True, check=True).stdout
        assert "Type 3" not in listed and "yes" in listed, listed
        size = subprocess.run([info, path], capture_output=True, text=True, check=True).stdout
        (points,) = re.findall(r"Page size:\s+([\d.]+) x", size)
        assert float(points) / 72 == pytest.approx(gallery.FIGURES[name].width, abs=0.005)


DOCUMENT = r"""
\documentclass[11pt,twocolumn]{article}
\usepackage[a4paper,margin=2.5cm]{geometry}
\usepackage[T1]{fontenc}
\usepackage{times,booktabs,graphicx,xcolor}
\setlength{\textwidth}{16cm}\setlength{\columnsep}{0.6cm}
\begin{document}
%s
\end{document}
"""
"""As wide as ACL's style: 16 cm of text, columns of 7.7 cm."""


def test_latex_takes_every_figure_and_table(tmp_path: Path) -> None:
    program = tool("pdflatex")
    if not THERE:
        pytest.skip("nothing is committed yet")
    parts = []
    for name in DRAWN:
        kind = "figure*" if gallery.FIGURES[name].width == plots.TEXT else "figure"
        file = (COMMITTED / f"{name}.pdf").as_posix()
        parts.append(rf"\begin{{{kind}}}\centering\includegraphics{{{file}}}\caption{{One.}}\end{{{kind}}}")
    parts += [rf"\input{{{(COMMITTED / 'tables' / f'{name}.tex').as_posix()}}}" for name in SET]
    (tmp_path / "paper.tex").write_text(DOCUMENT % "\n\\clearpage\n".join(parts), encoding="utf8")
    command = [program, "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "paper.log").read_text(errors="replace")
    assert not [float(points) for points in LINES.findall(log) if float(points) > 1], log
    assert "LaTeX Warning: Float too large" not in log


# The loop


def small(folder: Path, name: str = "rankcse_terms") -> None:
    """A figure's JSON as a run would leave it."""
    frame = pd.DataFrame({"methods": ["listnet", "listnet", "simcse"], "average": [70.0, 70.4, 66.0]})
    ax = plots.race_intervals(frame, by="methods", score="average")
    figures.save(ax.figure, folder, name, numbers={"before": 58.6}, run="07_rankcse/abc")  # type: ignore[arg-type]


def test_a_rebuild_needs_the_json_alone(own_root: Path) -> None:
    folder = own_root / "figures"
    small(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for path in [*folder.glob("*.p*")]:
        path.unlink()
    told = dict(gallery.rebuild(folder, ["rankcse_terms", "race_frozen"]))
    assert told["rankcse_terms"] == "from its JSON, 3 files"
    assert "pcclab run 04 --set real" in told["race_frozen"]
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name in before} == before
    assert gallery.differing("rankcse_terms", folder) == []
    assert gallery.other_tools(folder) == []
    (folder / "rankcse_terms.png").write_bytes(b"edited")
    assert gallery.differing("rankcse_terms", folder) == ["rankcse_terms.png"]


def test_other_tools_are_named(own_root: Path) -> None:
    (own_root / "made_with.json").write_text('{"matplotlib": "1.0"}', encoding="utf8")
    told = gallery.other_tools(own_root)
    assert any(text.startswith("matplotlib 1.0 (here ") for text in told)
    assert any(text.startswith("STIXGeneral unknown") for text in told)


def test_another_plot_than_the_catalogue_says_is_refused(own_root: Path) -> None:
    small(own_root / "figures", "binary_scorer")
    with pytest.raises(ValueError, match="drawn by race_intervals, the catalogue says scorer_scatter"):
        gallery.build("binary_scorer", own_root / "figures", own_root / "out")


def test_newer_numbers_come_from_the_finished_run(own_root: Path) -> None:
    run = runs.spoken("07 real")
    run.begin()
    small(run.folder / "figures", "terms")
    folder = own_root / "figures"
    assert "without this figure" in gallery.refresh("rankcse_terms", folder)
    run.finish({"source": "senteval"})
    assert gallery.refresh("rankcse_terms", folder) == "taken from 07_rankcse/abc"
    old = run.folder / "figures" / "terms.json"
    old.write_text(json.dumps({"run": run.name, "numbers": {}}), encoding="utf8")
    assert "before figures kept their tables" in gallery.refresh("rankcse_terms", folder)
    assert "drawing" in json.loads((folder / "rankcse_terms.json").read_bytes())  # what was there is left


# Our rows


def result(values: dict[str, Any], **parameters: Any) -> ours.Result:
    given = {"encoder": "minilm", "source": "senteval", "seed": 0, **parameters}
    return ours.Result("run/abc", values, given, {"provenance": {"device": "cpu", "cpus": 4}})


SCORES = dict.fromkeys(("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr", "average"), 70.0)
BY_TASK = {"smooth_k2": {task: [score, 0.25] for task, score in SCORES.items()}}
RESULTS: dict[str, dict[str, Any]] = {
    "04": {
        "before": 78.87,
        "settings": {
            "prompts": {"minilm / none": {"mean": 79.1, "deviation": 0.1}, "minilm / EOL": {"mean": 78.9},
                        "tiny / none": {"mean": 50.0}},
            "batch size": {"16": {"mean": 78.1, "deviation": 0.2}},
            "slope and threshold": {"smooth_k2 / 2.0 / 0.25": {"mean": 78.8}},
            "concatenation": {"u,v,|u-v|": {"mean": 78.8}},
            "teachers": {"minilm / listnet": {"mean": 68.8}, "minilm / listmle": {"mean": 68.9}},
        },
    },
    "06": {"before": SCORES, "scratch, tasks": BY_TASK, "phases, tasks": BY_TASK},
    "07": {"before": SCORES, "tasks": {"simcse": BY_TASK["smooth_k2"]}},
    "08": {"accuracy": {"minilm, lbfgs": {"mr": 70.5, "mrpc": "undefined", "average": "undefined"}},
           "intervals": {"minilm, lbfgs": {"mr": [69.5, 71.5]}}},
    "09": {"kendall": {"minilm": {"sts12": 42.0, "average": 50.0}}, "ndcg": {"minilm": {"sts12": 90.0}},
           "intervals": {"sts12, minilm, kendall": [42.0, 40.0, 43.0]}},
}  # fmt: skip


def made(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A table's sheet, from results made up for its runs."""

    def of_place(place: str) -> ours.Result:
        notebook, _, *rest = place.split()
        given = dict(word.split("=") for word in rest)
        if notebook == "03":
            return result({"baseline": SCORES, "after": {**SCORES, "average": 80.0 + int(given["seed"])}}, **given)
        return result(RESULTS[notebook], seeds=[0, 1, 2])

    monkeypatch.setattr(ours, "result", of_place)
    return sheets.sheet_of(gallery.TABLES[name])


@pytest.mark.parametrize("name", gallery.TABLES)
def test_every_table_takes_its_results(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = made(name, monkeypatch)
    frame = figures.from_plain(sheet)
    mine = frame[frame.index.get_level_values(0).str.contains(gallery.OURS)]
    assert len(mine) >= 1 and mine.notna().any(axis=None)
    theirs = reference.cells(gallery.TABLES[name].paper, table=gallery.TABLES[name].table)
    shown = frame.drop(mine.index).to_numpy(dtype=float)
    for value in theirs[theirs["row"].str.startswith(gallery.TABLES[name].only)]["value"].dropna():
        if name not in ("rankcse_4", "rankcse_6"):  # their transfer columns have no counterpart
            assert value in shown
    paths = sheets.write_table(sheet, tmp_path / f"{name}.json")
    assert [path.suffix for path in paths] == [".tex", ".md", ".json"]
    text = paths[0].read_text(encoding="utf8")
    assert r"\toprule" in text and rf"\label{{tab:{name}}}" in text and r"\textbf{" in text
    assert "SentEval's data" in text and "a CPU with 4 cores" in text and "3 seeds" in text
    assert gallery.OURS in paths[1].read_text(encoding="utf8")


def test_seeds_become_a_mean_and_a_deviation(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = figures.from_plain(sheet := made("pcc_tuning_1", monkeypatch))
    assert frame.loc[(gallery.OURS, "Pcc-tuning, keep"), "Spearman"] == 81.0
    assert sheet["beside"][-1] == ["±1.00"]


def test_a_result_that_is_undefined_is_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sheets.write_table(made("pcc_tuning_6", monkeypatch), tmp_path / "t.json")[1]
    (line,) = [line for line in path.read_text(encoding="utf8").splitlines() if "minilm, lbfgs" in line]
    assert "70.50** <small>±1.0</small>" in line and line.count("–") == 7
