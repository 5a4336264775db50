from __future__ import annotations

import math
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import tables

SCORES = pd.DataFrame(
    {"STS12": [72.371, 73.2349, 73.2351], "SICK-R": [77.15, math.nan, 82.856], "pairs": [3108, 10, 4927]},
    index=pd.Index(["baseline", "filter", "keep"], name="run"),
)
words = st.text(st.characters(codec="utf8", exclude_categories=("Cc", "Cs")), max_size=12)


def rows(text: str) -> list[list[str]]:
    """The cells of a Markdown table, split at the bars that are not escaped."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]] for line in text.splitlines()]


def test_markdown_rounds_and_aligns() -> None:
    head, rule, first, second, _ = rows(tables.markdown(SCORES))
    assert head == ["run", "STS12", "SICK-R", "pairs"]
    assert rule == [":---", "---:", "---:", "---:"]
    assert first == ["baseline", "72.37", "77.15", "3108"]
    assert second == ["filter", "73.23", "undefined", "10"]


def test_best_is_bold_and_ties_as_printed_share_it() -> None:
    body = rows(tables.markdown(SCORES, bold="max"))[2:]
    assert [row[1] for row in body] == ["72.37", "73.23", "**73.24**"]
    assert [row[2] for row in body] == ["77.15", "undefined", "**82.86**"]
    body = rows(tables.markdown(SCORES, bold="max", decimals=1))[2:]
    assert [row[1] for row in body] == ["72.4", "**73.2**", "**73.2**"]


def test_bold_looks_where_it_is_told() -> None:
    body = rows(tables.markdown(SCORES, bold="min", columns=["SICK-R"]))[2:]
    assert [row[1:] for row in body] == [
        ["72.37", "**77.15**", "3108"],
        ["73.23", "undefined", "10"],
        ["73.24", "82.86", "4927"],
    ]


def test_latex_is_booktabs_with_everything_escaped() -> None:
    frame = pd.DataFrame({"R_s & more": ["50 %", "a\\b~c^d"], "$x$": [1.005, -0.001]}, index=["{one}", "#2"])
    assert tables.latex(frame, bold="max").splitlines() == [
        r"\begin{tabular}{llr}",
        r"\toprule",
        r" & R\_s \& more & \$x\$ \\",
        r"\midrule",
        r"\{one\} & 50 \% & \textbf{1.00} \\",
        r"\#2 & a\textbackslash{}b\textasciitilde{}c\textasciicircum{}d & 0.00 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_float_carries_caption_and_label() -> None:
    lines = tables.latex(SCORES, caption=r"Spearman $\times$ 100.", label="tab:sts").splitlines()
    assert lines[:2] == [r"\begin{table}", r"\centering"] and lines[3] == r"\begin{tabular}{lrrr}"
    assert lines[-3:] == [r"\caption{Spearman $\times$ 100.}", r"\label{tab:sts}", r"\end{table}"]


@pytest.mark.parametrize("missing", [math.nan, math.inf, None, pd.NA, pd.NaT, np.float32("nan")])
def test_a_missing_cell_is_the_word_undefined(missing: object) -> None:
    frame = pd.DataFrame({"score": pd.Series([1.5, missing], dtype=object)})
    for text in (tables.markdown(frame), tables.latex(frame)):
        assert "undefined" in text
        assert not re.search(r"nan|inf\b|NA|NaT|None", text)


def test_a_missing_cell_prints_what_it_is_told() -> None:
    assert rows(tables.markdown(SCORES, missing="not given"))[3][2] == "not given"
    assert r"filter & 73.23 & not\_given &" in tables.latex(SCORES, missing="not_given")


def test_a_column_of_nothing_but_missing_has_no_best() -> None:
    frame = pd.DataFrame({"score": [math.nan, math.nan]})
    assert [row[1] for row in rows(tables.markdown(frame, bold="max"))[2:]] == ["undefined", "undefined"]


def test_levels_of_an_index_are_joined() -> None:
    index = pd.MultiIndex.from_tuples([("OPT", "STH"), ("OPT", "")], names=["model", "prompt"])
    frame = pd.DataFrame([[1.0], [2.0]], index=index, columns=pd.MultiIndex.from_tuples([("all", "Avg.")]))
    text = rows(tables.markdown(frame))
    assert [row[0] for row in text] == ["model / prompt", ":---", "OPT / STH", "OPT"]
    assert text[0][1] == "all / Avg."


@given(st.lists(st.tuples(words, words), min_size=1, max_size=5))
def test_no_text_breaks_a_table(pairs: list[tuple[str, str]]) -> None:
    frame = pd.DataFrame({"a|b": [left for left, _ in pairs], "c&d": [right for _, right in pairs]})
    marked, set_ = tables.markdown(frame).splitlines(), tables.latex(frame).splitlines()
    assert len(marked) == 2 + len(pairs)
    assert len(set_) == 6 + len(pairs)
    for line in marked:
        assert len(re.findall(r"\|", line.replace(r"\\", "").replace(r"\|", ""))) == 4
    for line in [set_[2], *set_[4:-2]]:
        assert line.endswith(r" \\")
        assert len(re.findall("&", line.replace(r"\&", ""))) == 2


def test_the_frame_stays_as_it_was() -> None:
    before = SCORES.copy()
    tables.latex(SCORES, bold="max")
    pd.testing.assert_frame_equal(SCORES, before)


def test_bad_input_is_one_clear_error() -> None:
    with pytest.raises(ValueError, match="0 rows"):
        tables.markdown(SCORES.head(0))
    with pytest.raises(ValueError, match="decimals=-1"):
        tables.latex(SCORES, decimals=-1)
    with pytest.raises(ValueError, match="bold='best'"):
        tables.markdown(SCORES, bold="best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"no column .*'STS13'.*there are .*'STS12'"):
        tables.markdown(SCORES, bold="max", columns=["STS13"])
    with pytest.raises(ValueError, match="label='tab:x' without a caption"):
        tables.latex(SCORES, label="tab:x")


class TestGrey:
    frame = pd.DataFrame({"gain": [0.12, 1.87], "n": [3, 3]}, index=["k", "x"])
    unsure = pd.DataFrame({"gain": [True, False]}, index=["k", "x"])

    def test_what_cannot_be_told_from_none_is_printed_in_grey(self) -> None:
        printed = tables.markdown(self.frame, grey=self.unsure, bold="max", columns=["gain"])
        assert printed.splitlines()[2:] == [
            '| k | <span style="color:gray">0.12</span> | 3 |',
            "| x | **1.87** | 3 |",
        ]
        assert r"k & \textcolor{gray}{0.12} & 3 \\" in tables.latex(self.frame, grey=self.unsure)

    def test_rows_that_it_leaves_out_stay_black(self) -> None:
        assert tables.markdown(self.frame, grey=self.unsure.iloc[1:]) == tables.markdown(self.frame)

    @pytest.mark.parametrize("strange", [{"gian": [True]}, {"gain": [True]}])
    def test_a_mask_of_another_table_is_refused(self, strange: dict[str, list[bool]]) -> None:
        mask = pd.DataFrame(strange, index=["k" if "gian" in strange else "y"])
        with pytest.raises(ValueError, match="grey has '(gian|y)', the table has not"):
            tables.markdown(self.frame, grey=mask)


class TestParts:
    """Second best, parts with a best of their own, and what stands beside a number."""

    FRAME = pd.DataFrame(
        {"Avg.": [76.25, 80.05, 80.36, 66.31, 70.27, math.nan], "pairs": [1, 1, 1, 2, 2, 2]},
        index=pd.MultiIndex.from_tuples(
            [("BERT", "SimCSE"), ("BERT", "ListNet"), ("BERT", "ListMLE"),
             ("ours", "SimCSE"), ("ours", "ListNet"), ("ours", "ListMLE")], names=["of", "method"],
        ),
    )  # fmt: skip

    def test_second_is_underlined_and_ties_share_it(self) -> None:
        frame = pd.DataFrame({"x": [3.0, 2.0, 2.0, 1.0]}, index=list("abcd"))
        body = rows(tables.markdown(frame, bold="max", second=True))[2:]
        assert [row[1] for row in body] == ["**3.00**", "<u>2.00</u>", "<u>2.00</u>", "1.00"]
        assert r"d & \underline{2.00}" in tables.latex(frame[1:], bold="min", second=True).replace("c &", "d &")
        alone = rows(tables.markdown(frame[:1], bold="max", second=True))[2:]
        assert alone[0][1] == "**3.00**"

    def test_each_part_has_its_heading_and_its_best(self) -> None:
        body = rows(tables.markdown(self.FRAME, bold="max", second=True, within="of", columns=["Avg."]))[2:]
        assert body == [
            ["*BERT*", "", ""],
            ["SimCSE", "76.25", "1"],
            ["ListNet", "<u>80.05</u>", "1"],
            ["ListMLE", "**80.36**", "1"],
            ["*ours*", "", ""],
            ["SimCSE", "<u>66.31</u>", "2"],
            ["ListNet", "**70.27**", "2"],
            ["ListMLE", "undefined", "2"],
        ]
        lines = tables.latex(self.FRAME, bold="max", within="of").splitlines()
        assert lines.count(r"\midrule") == 2
        assert r"\multicolumn{3}{l}{\textit{ours}} \\" in lines
        assert lines[2] == r"method & Avg. & pairs \\"

    def test_small_text_stands_beside_its_number(self) -> None:
        beside = pd.DataFrame({"Avg.": ["±0.13"], "pairs": [None]}, index=self.FRAME.index[4:5])
        line = tables.latex(self.FRAME, bold="max", within="of", beside=beside).splitlines()[-4]
        assert line == r"ListNet & \textbf{70.27} {\tiny $\pm$0.13} & \textbf{2} \\"
        shown = rows(tables.markdown(self.FRAME, within="of", beside=beside))[8]
        assert shown == ["ListNet", "70.27 <small>±0.13</small>", "2"]

    def test_a_wide_table_takes_both_columns(self) -> None:
        lines = tables.latex(SCORES, caption="All.", wide=True).splitlines()
        assert lines[0] == r"\begin{table*}" and lines[-1] == r"\end{table*}"

    @pytest.mark.parametrize("options", [{"within": "method"}, {"within": "tasks"}])
    def test_a_level_that_parts_nothing_is_refused(self, options: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="its first of two levels parts it"):
            tables.markdown(self.FRAME, **options)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="beside has 'nobody'"):
            tables.markdown(self.FRAME, beside=pd.DataFrame({"nobody": [1]}, index=self.FRAME.index[:1]))
