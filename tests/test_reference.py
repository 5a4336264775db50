"""The tables say what the paper says: read again from its text where that lies beside the checkout."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from pcclab import reference

PAPER = Path(__file__).resolve().parents[2] / "shared" / "papers" / "pcc-tuning.txt"
NUMERIC = ("1", "2", "4", "5", "6")
MODELS = {"OPT": "OPT-6.7b", "LLaMA": "LLaMA-7b", "LLaMA2": "LLaMA2-7b", "Mistral": "Mistral-7b", "BERT": "BERT-110m"}


@pytest.fixture(scope="module")
def text() -> str:
    if not PAPER.is_file():
        pytest.skip("the paper's text is not at ../shared/papers/pcc-tuning.txt beside the checkout")
    return PAPER.read_text(encoding="utf8")


def printed(text: str, table: str) -> list[tuple[str, list[float]]]:
    """The rows above the caption of a table as the text has them: label, numbers."""
    above = text[: text.index(f"Table {table}: ")]
    lines = above[
        above.rindex({"1": "Methods\t", "2": "Methods\t", "6": "Model\t"}.get(table, "PLMs\t")) :
    ].splitlines()
    found, group = [], ""
    for line in lines[1:]:
        # The copy writes the size as _{7b} and now and then takes the 2 of LLaMA2 into it.
        line = re.sub(r"LLaMA ?_\{27b\}", "LLaMA2", line)
        *labels, last = line.split("\t")
        model = next((name for name in sorted(MODELS, key=len, reverse=True) if name in line), "")
        if "mplementation on" in line:
            group = MODELS[model]
        values = [cell for cell in [*labels, last] if re.fullmatch(r"\d\d\.\d\d", cell)]
        if not values:
            continue
        parts = [cell for cell in [*labels, last] if cell not in values]
        if table == "1":
            group, parts = MODELS[next(m for m in sorted(MODELS, key=len, reverse=True) if m in parts[1])], parts[:1]
        elif table in ("4", "5") and parts[0]:
            group = MODELS[model]
        found.append((" / ".join(filter(None, [group, parts[-1]])), [float(value) for value in values]))
    return found


def plain(label: str) -> str:
    """A row's name without footnote marks, case, and the capital I the text has for the l of AnglE."""
    return re.sub(
        r"[^a-z0-9./-]", "", re.sub(r"\\[a-z]+", "", label).lower().replace("angie", "angle").replace("batch", "")
    )


@pytest.mark.parametrize("table", NUMERIC)
def test_every_cell_is_the_papers(text: str, table: str) -> None:
    ours = reference.cells("pcc-tuning", table=table)
    rows = [(plain(str(row)), part["value"].tolist()) for row, part in ours.groupby("row", sort=False)]
    theirs = [(plain(label), values) for label, values in printed(text, table)]
    assert len(theirs) > 10
    assert rows == theirs


def test_templates_are_the_papers(text: str) -> None:
    above = text[: text.index("Table 3: ")].splitlines()
    for template in reference.cells("pcc-tuning", table="3").itertuples():
        assert above[above.index(str(template.row)) + 1] == template.value


@pytest.mark.parametrize("table", ["2", "6"])
def test_averages_follow_from_their_rows(table: str) -> None:
    scores = reference.cells("pcc-tuning", table=table).pivot(index="row", columns="column", values="value")
    gaps = (scores.drop(columns="Avg.").mean(axis=1) - scores["Avg."]).abs()
    assert len(gaps) > 10
    assert gaps.max() < 0.006, gaps[gaps >= 0.006]


def test_tables_agree_with_each_other() -> None:
    averages = reference.cells("pcc-tuning", table="2").query("column == 'Avg.'").set_index("row")["value"]
    stages = reference.cells("pcc-tuning", table="4").pivot(index="row", columns="column", values="value")
    filtered = reference.cells("pcc-tuning", table="filtered").pivot(index="row", columns="column", values="value")
    for model in ("OPT-6.7b", "LLaMA-7b", "LLaMA2-7b", "Mistral-7b"):
        assert averages[f"{model} / PromptSTH"] == stages.loc[f"{model} / PromptSTH", "Stage-1"]
        assert averages[f"{model} / Pcc-tuning"] == stages.loc[f"{model} / PromptSTH", "Stage-2"]
    pd.testing.assert_series_equal(filtered["Stage-1"], stages["Stage-1"])
    assert (filtered["Stage-2"] < stages["Stage-2"] - 2).all()


def test_every_cell_stands_once_and_says_where_it_comes_from() -> None:
    every = reference.cells("pcc-tuning")
    assert every.columns.tolist() == ["paper", "table", "row", "column", "value", "note"]
    assert every["table"].unique().tolist() == ["1", "2", "3", "4", "5", "6", "filtered"]
    assert not every.duplicated(["table", "row", "column"]).any()
    assert (
        every.loc[every["table"] == "filtered", "note"] == "noted by the authors beside their evaluation code"
    ).all()
    numeric = every[every["table"] != "3"]["value"].astype(float)
    assert numeric.between(60, 100).all()


def test_unknown_names_are_answered_with_the_known() -> None:
    with pytest.raises(ValueError, match=r"no tables of 'rank': there are those of .*pcc-tuning"):
        reference.cells("rank")
    with pytest.raises(ValueError, match="no table '9': there are 1, 2, 3, 4, 5, 6, filtered"):
        reference.cells("pcc-tuning", table="9")
