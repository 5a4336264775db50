"""The typed tables: what they refuse, what they keep, and what their fingerprint sees."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab.data.pairs import LabelledTexts, NLIPairs, Provenance, ScoredPairs, Sentences, Triplets

text = st.text(min_size=1, max_size=8).filter(lambda value: not value.isspace())
rows = st.lists(st.tuples(text, text, st.floats(0, 5), st.sampled_from(["", "a", "b"])), min_size=1, max_size=12)


def made(given_rows: list[tuple[str, str, float, str]]) -> ScoredPairs:
    first, second, gold, subset = zip(*given_rows, strict=True)
    return ScoredPairs(first, second, gold, subset)  # type: ignore[arg-type]


@pytest.fixture
def three() -> ScoredPairs:
    told = (Provenance("birds", "train", "memory", "r1", "made here"),)
    return ScoredPairs(
        ("a wren", "a crow", "a gull"), ("a finch", "a rook", "a tern"), np.array([4, 3.2, 0]), provenance=told
    )


def test_columns_are_immutable_float64_and_filled(three: ScoredPairs) -> None:
    assert three.gold.dtype == np.float64
    assert three.subset == ("", "", "")
    with pytest.raises(ValueError, match="read-only"):
        three.gold[0] = 1.0
    with pytest.raises(AttributeError):
        three.first = ()  # type: ignore[misc]


def test_the_callers_array_is_neither_frozen_nor_followed() -> None:
    gold = np.array([1.0, 2.0])
    pairs = ScoredPairs(("a", "b"), ("c", "d"), gold)
    gold[0] = 5.0
    assert pairs.gold.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_gold_that_is_not_finite_names_its_row(bad: float) -> None:
    with pytest.raises(ValueError, match=r"gold of row 1 is -?(nan|inf), not finite"):
        ScoredPairs(("a", "b"), ("c", "d"), np.array([1.0, bad]))


def test_gold_outside_the_scale_names_row_value_and_limits() -> None:
    with pytest.raises(ValueError, match=r"gold of row 0 is 5\.2, outside the scale 0\.\.5 \(1 such rows\)"):
        ScoredPairs(("a", "b"), ("c", "d"), np.array([5.2, 5.0]))
    assert len(ScoredPairs(("a", "b"), ("c", "d"), np.array([5.2, 5.0]), scale=(0, 10))) == 2


def test_other_bad_columns_are_told(three: ScoredPairs) -> None:
    with pytest.raises(ValueError, match=r"columns of different lengths \(first 2, second 1, gold 2, subset 2\)"):
        ScoredPairs(("a", "b"), ("c",), np.array([1, 2]))
    with pytest.raises(ValueError, match="0 rows, and a table needs at least 1"):
        ScoredPairs((), (), [])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ScoredPairs \(birds train\): second of row 2 is empty"):
        replace(three, second=("a", "b", " \t"))
    with pytest.raises(ValueError, match="first of row 0 is None"):
        ScoredPairs((None,), ("a",), np.array([1]))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"gold has shape \(1, 1\)"):
        ScoredPairs(("a",), ("b",), np.array([[1]]))
    with pytest.raises(ValueError, match="label of row 1 is 'maybe', not one of entailment, neutral, contradiction"):
        NLIPairs(("a", "b"), ("c", "d"), ("neutral", "maybe"))
    with pytest.raises(ValueError, match=r"label of row 1 is 2, and classes go 0\.\.1"):
        LabelledTexts(("a", "b"), None, np.array([0, 2]), ("no", "yes"))
    with pytest.raises(ValueError, match=r"label is float64 of shape \(1,\)"):
        LabelledTexts(("a",), None, np.array([0.5]), ("no", "yes"))
    with pytest.raises(ValueError, match="negative of row 0 is empty"):
        Triplets(("a",), ("b",), ("",))


def test_select_takes_masks_and_positions_in_order(three: ScoredPairs) -> None:
    assert three.select([2, 0]).first == ("a gull", "a wren")
    assert three.select(three.gold > 0).second == ("a finch", "a rook")
    assert three.select([1]).provenance == three.provenance
    with pytest.raises(ValueError, match=r"a mask of shape \(2,\) for 3 rows"):
        three.select([True, False])
    with pytest.raises(ValueError, match="not float64"):
        three.select([0.5])
    with pytest.raises(ValueError, match="0 rows"):
        three.select([])


@given(rows)
def test_subsets_part_the_rows_and_concat_joins_them(given_rows: list[tuple[str, str, float, str]]) -> None:
    pairs = made(given_rows)
    parts = pairs.subsets()
    assert list(parts) == list(dict.fromkeys(row[3] for row in given_rows))
    assert sum(map(len, parts.values())) == len(pairs)
    joined = ScoredPairs.concat(parts.values())
    assert sorted(joined.to_frame().itertuples(index=False)) == sorted(pairs.to_frame().itertuples(index=False))


@given(rows)
def test_a_frame_there_and_back_is_the_same_content(given_rows: list[tuple[str, str, float, str]]) -> None:
    pairs = made(given_rows)
    assert ScoredPairs.from_frame(pairs.to_frame(), subset="subset").fingerprint == pairs.fingerprint


def test_a_missing_column_names_those_there() -> None:
    frame = pd.DataFrame({"left": ["a"], "right": ["b"], "score": [3.0]})
    with pytest.raises(ValueError, match="no column 'gold' in the frame: it has left, right, score"):
        ScoredPairs.from_frame(frame, first="left", second="right")
    with pytest.raises(ValueError, match="gold of row 0 is nan"):
        ScoredPairs.from_frame(frame.assign(score=[None]), first="left", second="right", gold="score")
    with pytest.raises(ValueError, match="column 'score' is not numeric"):
        ScoredPairs.from_frame(frame.assign(score=["high"]), first="left", second="right", gold="score")
    assert ScoredPairs.from_frame(frame, first="left", second="right", gold="score").gold.tolist() == [3.0]


def test_concat_keeps_every_provenance_once_and_refuses_mixed_scales(three: ScoredPairs) -> None:
    other = replace(three, provenance=Provenance("fish"))  # type: ignore[arg-type]
    joined = ScoredPairs.concat([three, other, three])
    assert len(joined) == 9
    assert [entry.corpus for entry in joined.provenance] == ["birds", "fish"]
    with pytest.raises(ValueError, match="bring them to one with rescaled"):
        ScoredPairs.concat([three, three.rescaled(1, 5)])
    with pytest.raises(ValueError, match="0 tables"):
        ScoredPairs.concat([])
    with pytest.raises(ValueError, match="cannot take a Sentences"):
        ScoredPairs.concat([three, Sentences(("a",))])  # type: ignore[list-item]


@given(st.lists(st.floats(1, 5), min_size=1, max_size=9))
def test_rescaling_one_to_five_is_the_papers_formula(gold: list[float]) -> None:
    pairs = ScoredPairs(["a"] * len(gold), ["b"] * len(gold), gold, scale=(1, 5))  # type: ignore[arg-type]
    mapped = pairs.rescaled(0, 5)
    np.testing.assert_allclose(mapped.gold, 5 * (np.array(gold) - 1) / 4)
    assert mapped.scale == (0.0, 5.0)


def test_rescaling_is_told_in_the_provenance(three: ScoredPairs) -> None:
    assert three.rescaled(0, 1).provenance[0].note == "made here; 0..5 mapped to 0..1"
    assert str(three.provenance[0]) == "birds train from memory@r1 (made here)"


def test_the_fingerprint_sees_content_and_not_provenance(three: ScoredPairs) -> None:
    same = replace(three, provenance=())
    assert same.fingerprint == three.fingerprint
    changed = [
        replace(three, gold=[4, 3.2, 0.2]),  # type: ignore[arg-type]
        replace(three, first=three.second, second=three.first),
        replace(three, subset=("x", "", "")),
        replace(three, scale=(0, 6)),
        three.select([0, 1]),
        replace(three, first=("a wrena", " crow", "a gull")),
    ]
    assert len({table.fingerprint for table in [three, *changed]}) == 1 + len(changed)
    triplets = Triplets(("a",), ("b",), ("c",))
    assert triplets.fingerprint != Triplets(("a",), ("c",), ("b",)).fingerprint


def test_the_fingerprint_is_the_same_in_another_process() -> None:
    code = "from pcclab.data.pairs import ScoredPairs; print(ScoredPairs(('a', 'é'), ('b', 'c'), [1, 2.5]).fingerprint)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert told == ScoredPairs(("a", "é"), ("b", "c"), np.array([1, 2.5])).fingerprint
