"""The papers' tables are complete and consistent; `test_reference_reading` reads the papers a second time."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from pcclab import reference

CELLS = {
    "pcc-tuning": {"1": 12, "2": 15 * 8, "3": 3, "4": 12 * 2, "5": 16, "6": 11 * 8, "filtered": 12 * 2},
    "sts-regression": {"1": 12 * 8, "2": 4 * 2, "3": 10 * 8, "4": 4 * 2, "5": 20, "6": 6, "7": 4},
    "rankcse": {
        **{"1": 12 * 6, "2": 32 * 8, "3": 24 * 8, "4": 11 * 2, "5": 6 * 2, "6": 4 * 3 * 4, "7": 7 * 3, "8": 7 * 3},
        **{"9": 8 * 5, "10": 6 * 8, "11": 4 * 4, "12": 10 * 6, "13": 6 * 8, "figure 3": 2},
    },
}
"""Every numbered table of the three papers, and what is published beside them."""
AVERAGED = [("pcc-tuning", "2"), ("pcc-tuning", "6"), ("sts-regression", "1"), ("sts-regression", "3"),
            ("rankcse", "2"), ("rankcse", "3"), ("rankcse", "10"), ("rankcse", "13")]  # fmt: skip
NOT_THE_MEAN = {
    ("sts-regression", "1", "BERT-base / Sentence-BERT"): 74.86,
    ("sts-regression", "3", "BERT-base / PromCSE"): 81.66,
    ("rankcse", "3", "BERT-base / last avg."): 84.95,
}
"""Printed averages that are further from the mean of their row than rounding takes them, with that mean."""


def scores(paper: str, table: str) -> pd.DataFrame:
    return reference.cells(paper, table=table).pivot(index="row", columns="column", values="value")


def test_every_numbered_table_is_here() -> None:
    assert reference.papers() == sorted(CELLS)
    for paper, tables in CELLS.items():
        assert reference.cells(paper).groupby("table", sort=False).size().to_dict() == tables


@pytest.mark.parametrize("paper", CELLS)
def test_every_cell_stands_once(paper: str) -> None:
    every = reference.cells(paper)
    assert every.columns.tolist() == ["paper", "table", "row", "column", "value", "note"]
    assert set(every["paper"]) == {paper}
    assert not every.duplicated(["paper", "table", "row", "column"]).any()
    printed = every[["row", "column", "value", "note"]].astype(str)
    assert (printed == printed.map(str.strip)).all(axis=None)
    assert (printed[["row", "column", "value"]] != "").all(axis=None)


@pytest.mark.parametrize(("paper", "table"), AVERAGED)
def test_averages_follow_from_their_rows(paper: str, table: str) -> None:
    frame = scores(paper, table)
    means = frame.drop(columns="Avg.").mean(axis=1)
    off = means[(means - frame["Avg."]).abs() > 0.0101]  # seven roundings of at most .005, averaged, and one more
    assert len(frame) > 5
    expected = {row: mean for (where, number, row), mean in NOT_THE_MEAN.items() if (where, number) == (paper, table)}
    assert off.round(2).to_dict() == expected


def test_an_average_that_is_not_one_says_so() -> None:
    for (paper, table, row), mean in NOT_THE_MEAN.items():
        notes = reference.cells(paper, table=table).set_index(["row", "column"])["note"]
        found = notes[row, "Avg."]
        assert f"as printed: the mean of its row is {mean}" in found


def test_every_averaged_table_is_checked() -> None:
    found = [(paper, table) for paper, tables in CELLS.items() for table in tables
             if "Avg." in set(reference.cells(paper, table=table)["column"])]  # fmt: skip
    assert found == AVERAGED


def test_pcc_tuning_agrees_with_itself() -> None:
    averages = reference.cells("pcc-tuning", table="2").query("column == 'Avg.'").set_index("row")["value"]
    stages, filtered = scores("pcc-tuning", "4"), scores("pcc-tuning", "filtered")
    for model in ("OPT-6.7b", "LLaMA-7b", "LLaMA2-7b", "Mistral-7b"):
        assert averages[f"{model} / PromptSTH"] == stages.loc[f"{model} / PromptSTH", "Stage-1"]
        assert averages[f"{model} / Pcc-tuning"] == stages.loc[f"{model} / PromptSTH", "Stage-2"]
    pd.testing.assert_series_equal(filtered["Stage-1"], stages["Stage-1"])
    assert (filtered["Stage-2"] < stages["Stage-2"] - 2).all()
    notes = reference.cells("pcc-tuning", table="filtered")["note"]
    assert (notes == "noted by the authors beside their evaluation code").all()
    every = reference.cells("pcc-tuning")
    assert every[every["table"] != "3"]["value"].astype(float).between(60, 100).all()


def test_sts_regression_agrees_with_itself() -> None:
    best, tuned = scores("sts-regression", "1")["Avg."], scores("sts-regression", "5")["Spearman"]
    settings = scores("sts-regression", "2")
    for row, chosen in settings.iterrows():
        assert tuned[f"{row} / k {chosen['k']:g} / x0 {chosen['x0']:g}"] == best[row]
    joined = scores("sts-regression", "6")["Spearman"]
    for trunk in ("BERT-base", "RoBERTa-base"):
        assert joined[f"{trunk} / (u, v, |u - v|)"] == best[f"{trunk} / Smooth K2 Loss"]
    ends = scores("sts-regression", "3")["Avg."]
    assert tuned["Nomic v1 / Smooth K2 Loss / k 3 / x0 0.2"] == ends["Nomic Embed Text v1 / Ours"]
    assert tuned["Jina v2 / Smooth K2 Loss / k 3.5 / x0 0.2"] == ends["Jina Embeddings v2 / Ours"]


def test_rankcse_agrees_with_itself() -> None:
    sts, transfer, terms = scores("rankcse", "2")["Avg."], scores("rankcse", "3")["Avg."], scores("rankcse", "4")
    teachers = scores("rankcse", "5").loc["SimCSE-base + SimCSE-large"]
    for method in ("SimCSE", "RankCSE-ListNet", "RankCSE-ListMLE"):
        assert terms.loc[method].tolist() == [sts[f"BERT-base / {method}"], transfer[f"BERT-base / {method}"]]
        assert method == "SimCSE" or teachers[method] == sts[f"BERT-base / {method}"]
    runs = scores("rankcse", "6")
    assert len(runs) == 12
    ranked = runs[runs.index.str.contains("RankCSE")]
    assert ((ranked["STS Avg."] - sts[ranked.index]).abs() < 3 * ranked["STS deviation"]).all()


def test_papers_agree_where_they_print_the_same_scores() -> None:
    pcc, rank = scores("pcc-tuning", "6"), scores("rankcse", "3")
    pairs = {
        "GloVe": "Non-BERT / GloVe (avg.)",
        "Skip-thought": "Non-BERT / Skip-thought",
        "Avg. BERT": "BERT-base / last avg.",
        "IS-BERT": "BERT-base / IS",
        "SimCSE-BERT": "BERT-base / SimCSE",
    }
    differ = {}
    for one, other in pairs.items():
        gaps = pcc.loc[one] != rank.loc[other, pcc.columns]
        differ |= {(one, column): rank.loc[other, column] for column in gaps.index[gaps]}
    assert differ == {("Avg. BERT", "MRPC"): 69.54}
    jina = scores("pcc-tuning", "2").loc["jina-base-v2"]
    pd.testing.assert_series_equal(jina, scores("sts-regression", "3").loc["Jina Embeddings v2"], check_names=False)


@pytest.mark.parametrize("table", ["1", "12"])
def test_ranks_follow_from_the_scores(table: str) -> None:
    frame = scores("rankcse", table)
    for _, lists in frame.groupby(frame.index.str.split(" / ").str[0]):
        for name in ("Label", "SimCSE", "RankCSE"):
            ranks = lists[name].rank(ascending=False, method="min")
            assert ranks.tolist() == lists[f"{name} rank"].tolist()


@pytest.mark.parametrize(
    ("paper", "table", "rows"),
    [
        ("rankcse", "1", r"query \d / target \d"),
        ("rankcse", "12", r"query \d / target \d"),
        ("sts-regression", "7", r"SICK-R (train|test) / pair \d"),
    ],
)
def test_no_sentence_of_a_data_set_is_held(paper: str, table: str, rows: str) -> None:
    cells = reference.cells(paper, table=table)
    assert cells["value"].dtype == float
    assert all(re.fullmatch(rows, row) for row in cells["row"])
    assert cells["note"].str.contains("sentences are not held").all()


def test_empty_cells_are_undefined_numbers() -> None:
    counts = scores("rankcse", "7")
    assert counts.loc["STS-B"].tolist() == [1500, 1379, 5749]
    assert counts.loc["STS12", ["Train", "Dev"]].isna().all()
    assert scores("rankcse", "9").loc["BERT-base / RankCSE-ListNet", "Learning rate"] == 3e-5


def test_unknown_names_are_answered_with_the_known() -> None:
    with pytest.raises(
        ValueError, match=r"no tables of 'rank': there are those of pcc-tuning, rankcse, sts-regression"
    ):
        reference.cells("rank")
    with pytest.raises(ValueError, match="no table '9': there are 1, 2, 3, 4, 5, 6, filtered"):
        reference.cells("pcc-tuning", table="9")


def test_printed_rows_come_under_the_names_of_a_figure() -> None:
    rows = reference.printed("rankcse", "13", {"KCC / SimCSE": "paper: SimCSE"})
    assert list(rows["task"]) == ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr", "Avg."]
    assert set(rows["name"]) == {"paper: SimCSE"} and rows["value"].iloc[-1] == 47.66
    with pytest.raises(ValueError, match="has no row 'KCC / BERT'"):
        reference.printed("rankcse", "13", {"KCC / BERT": "x"})
