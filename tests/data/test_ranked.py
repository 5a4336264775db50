"""Generated lists: long enough, rated, their own stream, and none of the other tables changed."""

from __future__ import annotations

import numpy as np
import pytest

from pcclab import data
from pcclab.data import ranked, synthetic
from pcclab.data.leakage import fold
from pcclab.evaluation.rank_lists import linked, queries


def test_every_set_has_lists_of_more_than_three_partners() -> None:
    tables = data.rank_tables(source="synthetic")
    assert list(tables) == list(data.STS_TASKS)
    for name, table in tables.items():
        found = queries(table)
        assert len(found) == ranked.LISTS == len(set(linked(found))), name
        assert {len(row.partners) for row in found} == {4, 5, 6, 7, 8}
        assert sum(len(row.partners) for row in found) == len(table)
        assert all(np.ptp(row.gold) > 0 for row in found), name
        assert table.scale == (0.0, 5.0) and table.provenance[0].split == "lists"
        assert set(table.subsets()) == set(synthetic.DOMAINS[name][0])


def test_no_sentence_stands_in_two_lists_of_a_set() -> None:
    for name in data.STS_TASKS:
        texts = [fold(pairs[0].first) for pairs in ranked.lists(name)]
        texts += [fold(pair.second) for pairs in ranked.lists(name) for pair in pairs]
        assert len(texts) == len(set(texts))


def test_lists_are_the_same_again_and_their_drawing_changes_no_other_table() -> None:
    before = data.load("sts13", source="synthetic").fingerprint
    first = ranked.generated("sts13").fingerprint
    ranked.lists.cache_clear()
    synthetic._world.cache_clear()
    assert ranked.generated("sts13").fingerprint == first
    assert data.load("sts13", source="synthetic").fingerprint == before
    assert ranked.generated("sts13", seed=1).fingerprint != first


def test_unknown_and_missing_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown STS task 'sts17'"):
        data.rank_tables(["sts17"], source="synthetic")
    with pytest.raises(ValueError, match="no tasks to judge"):
        data.rank_tables([], source="synthetic")


@pytest.mark.real_data
def test_of_a_real_source_the_tables_are_the_tests(senteval: str) -> None:
    tables = data.rank_tables(["sickr", "sts16"], source=senteval)
    assert list(tables) == ["sickr", "sts16"]
    assert tables["sickr"].fingerprint == data.load("sickr", source=senteval).fingerprint
