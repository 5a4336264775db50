"""The seven tasks: published scores on the real data, and tables that never hide what is undefined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pcclab import data, encoders, evaluation
from pcclab.data import ScoredPairs
from pcclab.encoders.heads import SiameseHead
from pcclab.evaluation.correlation import Undefined


class Lookup:
    """An encoder that counts what it is asked."""

    def __init__(self, vectors):
        self.vectors, self.asked = vectors, []

    def encode(self, sentences):
        self.asked += sentences
        return np.stack([self.vectors(text) for text in sentences])


def angle(text):
    """A direction that is a function of the text, and no two alike."""
    vector = np.random.default_rng(list(text.encode())).normal(size=6)
    return vector / np.linalg.norm(vector)


def test_every_distinct_sentence_of_the_suite_is_asked_once():
    encoder = Lookup(angle)
    evaluation.sts(encoder, source="synthetic")
    tables = [data.load(name, source="synthetic") for name in data.STS_TASKS]
    assert sorted(encoder.asked) == sorted({text for t in tables for text in (*t.first, *t.second)})


def test_scores_are_scipys_over_all_and_by_subset():
    results = evaluation.sts(Lookup(angle), source="synthetic")
    for name, task in results.tasks.items():
        table = data.load(name, source="synthetic")
        cosines = np.array([angle(a) @ angle(b) for a, b in zip(table.first, table.second, strict=True)])
        assert task.spearman == pytest.approx(100 * stats.spearmanr(cosines, table.gold).statistic)
        assert task.pearson == pytest.approx(100 * stats.pearsonr(cosines, table.gold).statistic)
        subset = np.array(table.subset)
        for part, (pairs, spearman, _) in task.subsets.items():
            rows = subset == part
            assert pairs == rows.sum()
            assert spearman == pytest.approx(100 * stats.spearmanr(cosines[rows], table.gold[rows]).statistic)
        if task.subsets:
            values = [s for _, s, _ in task.subsets.values()]
            weights = [n for n, _, _ in task.subsets.values()]
            assert task.mean == pytest.approx(np.mean(values))
            assert task.wmean == pytest.approx(np.average(values, weights=weights))
    assert results.average == pytest.approx(np.mean(list(results.scores.values())))
    assert results.average6 == pytest.approx(np.mean([results.scores[name] for name in data.STS_TASKS[:-1]]))


def test_an_undefined_score_is_a_word_and_spoils_its_average():
    table = ScoredPairs(("a", "b", "c"), ("d", "e", "f"), [0.0, 1.0, 2.0])
    results = evaluation.sts_pairs(Lookup(lambda text: np.ones(3)), {"stsb": table})
    assert results.scores == {"stsb": None} and results.average is None
    frame = results.to_frame()
    assert frame.loc["stsb", "spearman"] == "undefined" and frame.loc["average", "spearman"] == "undefined"
    assert "constant scores rank nothing" in str(results)
    assert results.to_dict()["average"] == "undefined"


def test_wrong_tasks_and_wrong_encoders_are_refused():
    with pytest.raises(ValueError, match="unknown STS task 'sts17': choose among sts12"):
        evaluation.sts(Lookup(angle), tasks=["sts17"], source="synthetic")
    with pytest.raises(ValueError, match="no tasks to judge"):
        evaluation.sts(Lookup(angle), tasks=[], source="synthetic")

    class Short:
        def encode(self, sentences):
            return np.ones((len(sentences) - 1, 2))

    with pytest.raises(ValueError, match=r"an array of shape \(2, 2\) for 3 sentences"):
        evaluation.sts_pairs(Short(), {"x": ScoredPairs(("a", "a"), ("b", "c"), [1.0, 2.0])})
    with pytest.raises(ValueError, match="embedding 0 is not finite, as are 2 more"):
        evaluation.sts_pairs(Lookup(lambda text: np.full(3, np.nan)), {"x": ScoredPairs("ab", "bc", [1.0, 2.0])})


def test_with_a_cache_an_encoder_is_asked_once(tmp_path):
    encoder = Lookup(angle)
    encoder.fingerprint = "of its weights"
    first, second = (evaluation.sts(encoder, tasks=["stsb"], source="synthetic", cache=tmp_path) for _ in range(2))
    assert first.scores == second.scores == evaluation.sts(Lookup(angle), tasks=["stsb"], source="synthetic").scores
    table = data.load("stsb", source="synthetic")
    assert len(encoder.asked) == len({*table.first, *table.second})


TABLES = {name: data.load(name, source="synthetic").select(range(40)) for name in ("stsb", "sickr")}


def judged_one_by_one(head, table, turned=False):
    """What the head says of each pair alone, in float32 as it was trained."""
    sides = (table.second, table.first) if turned else (table.first, table.second)
    return np.array([head.score(angle(a)[None], angle(b)[None])[0] for a, b in zip(*sides, strict=True)])


@pytest.mark.parametrize("levels", [None, (0, 2.5, 5)], ids=["rating", "classes"])
def test_a_heads_score_ranks_the_pairs_in_the_cosines_place(levels):
    head = SiameseHead(6, levels=levels, seed=2)
    encoder = Lookup(angle)
    results = evaluation.sts_pairs(encoder, TABLES, score=head.score)
    for name, table in TABLES.items():
        scores = judged_one_by_one(head, table)
        assert results.scores[name] == pytest.approx(100 * stats.spearmanr(scores, table.gold).statistic, abs=1e-2)
        assert results.tasks[name].pearson == pytest.approx(
            100 * stats.pearsonr(scores, table.gold).statistic, abs=1e-2
        )
    whole = evaluation.sts(Lookup(angle), tasks=["stsb"], source="synthetic", score=head.score)
    table = data.load("stsb", source="synthetic")
    expected = stats.spearmanr(judged_one_by_one(head, table), table.gold).statistic
    assert whole.scores["stsb"] == pytest.approx(100 * expected, abs=1e-2)
    assert whole.scores != evaluation.sts(Lookup(angle), tasks=["stsb"], source="synthetic").scores
    assert len(encoder.asked) == len(set(encoder.asked))


@pytest.mark.parametrize("features", ["u,v", "u,v,|u-v|"])
def test_what_the_order_of_a_pair_changes_is_scipys(features):
    head = SiameseHead(6, features=features, seed=2)
    frame = evaluation.order_sensitivity(Lookup(angle), TABLES, score=head.score)
    assert list(frame.columns) == ["forward", "backward", "agreement", "difference"]
    assert list(frame.index) == ["stsb", "sickr"] and frame.index.name == "task"
    for name, table in TABLES.items():
        forward, backward = (judged_one_by_one(head, table, turned) for turned in (False, True))
        row = frame.loc[name]
        assert row.forward == pytest.approx(100 * stats.spearmanr(forward, table.gold).statistic, abs=1e-2)
        assert row.backward == pytest.approx(100 * stats.spearmanr(backward, table.gold).statistic, abs=1e-2)
        assert row.agreement == pytest.approx(100 * stats.spearmanr(forward, backward).statistic, abs=1e-2)
        apart = [abs(one - other) for one, other in zip(forward, backward, strict=True)]
        assert row.difference == pytest.approx(sum(apart) / len(apart) / np.std(forward), abs=1e-4)
        assert row.agreement < 99 and row.difference > 0.1 and row.forward != row.backward


@pytest.mark.parametrize("kind", ["distance alone", "distance alone, classes", "cosine"])
def test_a_score_that_is_free_of_order_is_the_same_both_ways(kind):
    levels = (0, 2, 5) if "classes" in kind else None
    score = evaluation.cosine if kind == "cosine" else SiameseHead(6, features="|u-v|", levels=levels).score
    frame = evaluation.order_sensitivity(Lookup(angle), TABLES, score=score)
    assert (frame.forward == frame.backward).all()
    assert frame.agreement.to_list() == pytest.approx([100, 100]) and (frame.difference == 0).all()


def test_the_order_of_what_ranks_nothing_is_undefined():
    with pytest.raises(Undefined, match="constant scores rank nothing"):
        evaluation.order_sensitivity(Lookup(angle), TABLES, score=lambda first, second: np.ones(len(first)))


@pytest.mark.real_data
def test_minilm_meets_its_published_scores(senteval):
    results = evaluation.sts(encoders.load("minilm"), source=senteval)
    published = [72.37, 80.60, 75.59, 85.39, 78.99, 82.03, 77.15]
    np.testing.assert_allclose(list(results.scores.values()), published, atol=0.02)
    assert results.average == pytest.approx(78.87, abs=0.02)
