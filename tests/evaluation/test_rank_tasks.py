"""Lists, Kendall and NDCG equal scipy, scikit-learn and a slow reading of the paper's appendix G."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import ndcg_score

from pcclab import data
from pcclab.data import ScoredPairs
from pcclab.evaluation.correlation import Undefined, cosine
from pcclab.evaluation.rank_lists import kendall, linked, ndcg, queries
from pcclab.evaluation.rank_tasks import case, rank_pairs, rank_tasks


class Words:
    """A stand-in encoder: each word adds a direction that its hash draws."""

    def __init__(self, dim=64):
        self.dim = dim

    def encode(self, sentences):
        return np.stack([self.vector(text) for text in sentences]).astype(np.float32)

    def vector(self, text):
        drawn = np.zeros(self.dim)
        for word in text.lower().split():
            digest = hashlib.sha256(word.encode()).digest()
            drawn[digest[0] % self.dim] += 1 if digest[1] % 2 else -1
            drawn[digest[2] % self.dim] += 1 if digest[3] % 2 else -1
        drawn[0] += 0.1  # so that no text is without a direction
        return drawn


class Fixed:
    """An encoder whose embeddings are given."""

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, sentences):
        return np.array([self.vectors[text] for text in sentences], dtype=np.float64)


class Counting(Fixed):
    """The same, and it remembers what it was asked."""

    def encode(self, sentences):
        self.asked = [*getattr(self, "asked", []), *sentences]
        return super().encode(sentences)


def turned(degrees):
    return [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]


LEVELS = st.integers(0, 6).flatmap(
    lambda extra: st.tuples(*[st.lists(st.integers(0, 5), min_size=4 + extra, max_size=4 + extra)] * 2)
)


@given(st.lists(LEVELS, min_size=1, max_size=4))
def test_both_measures_are_scipys_and_scikit_learns_with_ties(drawn):
    for scores, gold in drawn:
        scores, gold = np.array([scores]) / 7.0, np.array([gold]) * 1.0
        if gold.any():
            assert ndcg(scores, gold)[0] == pytest.approx(ndcg_score(gold, scores), abs=1e-12)
        if np.ptp(scores) and np.ptp(gold):
            assert kendall(scores, gold)[0] == pytest.approx(stats.kendalltau(scores[0], gold[0]).statistic, abs=1e-12)


@given(st.lists(st.permutations(range(6)), min_size=1, max_size=5))
def test_perfect_order_is_one_and_the_reverse_is_the_worst(orders):
    gold = np.array(orders) + 0.0
    np.testing.assert_allclose(kendall(3 * gold - 1, gold), 1)
    np.testing.assert_allclose(ndcg(3 * gold - 1, gold), 1)
    np.testing.assert_allclose(kendall(-gold, gold), -1)
    drawn = np.random.default_rng(0).normal(size=gold.shape)
    assert (ndcg(-gold, gold) <= ndcg(drawn, gold) + 1e-12).all()


def test_what_one_list_cannot_say_is_refused():
    flat, ramp = np.ones((1, 4)), np.arange(4.0)[None]
    for sides in ((flat, ramp), (ramp, flat)):
        with pytest.raises(Undefined, match="list 0 is all ties"):
            kendall(*sides)
    with pytest.raises(Undefined, match="all gold of list 0 is 0"):
        ndcg(ramp, 0 * ramp)
    with pytest.raises(ValueError, match="a rating is -1: a gain is at or above 0"):
        ndcg(ramp, ramp - 1)


pairs_of_letters = st.lists(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.integers(0, 5)), min_size=1, max_size=30
)


@given(pairs_of_letters, st.integers(0, 4))
def test_queries_are_a_slow_search_over_both_sides(rows, more_than):
    first, second, gold = zip(*rows, strict=True)
    found = queries(ScoredPairs(first, second, gold), more_than=more_than)
    expected = {}
    for text in dict.fromkeys(word for row in rows for word in row[:2]):
        ratings = [(b if a == text else a, y) for a, b, y in rows if text in (a, b)]
        partners = list(dict.fromkeys(partner for partner, _ in ratings))
        if len(partners) > more_than:
            means = [np.mean([y for partner, y in ratings if partner == one]) for one in partners]
            expected[text] = (tuple(partners), means, len(ratings) - len(partners))
    assert [row.text for row in found] == list(expected)
    for row in found:
        partners, means, merged = expected[row.text]
        assert row.partners == partners and row.merged == merged
        assert row.gold == pytest.approx(means)


@given(pairs_of_letters, st.randoms(use_true_random=False))
def test_the_score_of_a_set_is_free_of_the_order_of_rows_and_sides(rows, random):
    assume(len({frozenset(row[:2]) for row in rows}) == len(rows))
    encoder = Fixed({letter: turned(10 * at**2) for at, letter in enumerate("abcdef")})
    scored = []
    for _ in range(2):
        scored.append(rank_pairs(encoder, {"set": ScoredPairs(*zip(*rows, strict=True))}).tasks["set"])
        rows = [(b, a, y) if random.random() < 0.5 else (a, b, y) for a, b, y in rows]
        random.shuffle(rows)
    assert scored[0].lists == scored[1].lists and scored[0].constant_gold == scored[1].constant_gold
    for kind in ("kendall", "ndcg"):
        assert getattr(scored[0], kind) == pytest.approx(getattr(scored[1], kind), abs=1e-9)


def star(gold, name="q"):
    """One query with a partner for each rating."""
    return [(name, f"{name}{at}", y) for at, y in enumerate(gold)]


def webs(seed=0, sentences=14, pairs=60):
    """A set in which few sentences are rated against each other often: lists of many lengths."""
    draw = np.random.default_rng(seed)
    texts = data.load("wiki1m", source="synthetic").text[:sentences]
    sides = draw.integers(0, sentences, (2, pairs))
    first, second = (tuple(texts[at] for at in side) for side in sides)
    return ScoredPairs(first, second, draw.integers(0, 11, pairs) / 2)


def test_a_set_is_the_mean_of_its_lists_one_by_one():
    tables = {"one": webs(0), "two": webs(1)}
    draw = np.random.default_rng(2)  # no two cosines alike, so that rounding makes no ties of its own
    encoder = Counting({text: draw.normal(size=8) for table in tables.values() for text in table.first + table.second})
    results = rank_pairs(encoder, tables)
    assert len(encoder.asked) == len(set(encoder.asked))
    for name, score in results.tasks.items():
        taus, gains, lengths = [], [], set()
        for row in queries(tables[name]):
            sides = encoder.vectors[row.text], np.stack([encoder.vectors[text] for text in row.partners])
            cosines = sides[1] @ sides[0] / np.linalg.norm(sides[0]) / np.linalg.norm(sides[1], axis=1)
            gains.append(ndcg_score([row.gold], [cosines]))
            taus.append(stats.kendalltau(cosines, row.gold).statistic)
            lengths.add(len(row.partners))
        assert score.lists == len(taus) > 5 and len(lengths) > 2
        assert score.kendall == pytest.approx(100 * np.mean(taus), abs=1e-9)
        assert score.ndcg == pytest.approx(100 * np.mean(gains), abs=1e-9)
    assert results.kendall == pytest.approx(np.mean([score.kendall for score in results.tasks.values()]))
    assert results.to_frame().loc["average", "lists"] == sum(score.lists for score in results.tasks.values())


def test_the_tasks_are_the_tables_of_their_names():
    loaded = data.rank_tables(["sts14", "stsb"], source="synthetic")
    results = rank_tasks(Words(), tasks=["sts14", "stsb"], source="synthetic", more_than=4)
    assert results.tasks == rank_pairs(Words(), loaded, more_than=4).tasks and results.source == "synthetic"
    for name, table in loaded.items():
        assert 0 < results.tasks[name].lists == len(queries(table, more_than=4)) < len(queries(table))


def test_a_score_keeps_its_lists_in_the_order_of_the_set():
    table = webs(3)
    encoder = Fixed({text: np.random.default_rng(len(text)).normal(size=8) for text in table.first + table.second})
    score = rank_pairs(encoder, {"set": table}).tasks["set"]
    rows = queries(table)
    assert score.queries == tuple(row.text for row in rows)
    assert len(score.taus) == len(score.gains) == len(score.groups) == score.lists == len(rows)
    for row, tau, gain in zip(rows, score.taus, score.gains, strict=True):
        cosines = cosine(
            np.stack([encoder.vectors[row.text]] * len(row.partners)),
            np.stack([encoder.vectors[text] for text in row.partners]),
        )
        assert tau == pytest.approx(100 * stats.kendalltau(cosines, row.gold).statistic)
        assert gain == pytest.approx(100 * ndcg_score([row.gold], [cosines]))
    assert score.constant == pytest.approx(
        100 * np.mean([ndcg_score([row.gold], [np.zeros(len(row.gold))]) for row in rows])
    )


@given(pairs_of_letters)
def test_lists_that_share_a_sentence_are_one_group(rows):
    found = queries(ScoredPairs(*zip(*rows, strict=True)), more_than=0)
    groups = dict(zip((row.text for row in found), linked(found), strict=True))
    edges = {frozenset(row[:2]) for row in rows}
    assert all(len({groups[text] for text in edge}) == 1 for edge in edges)
    # As many groups as a slow walk finds, numbered as they come.
    reached, walks = set(), 0
    for text in groups:
        walks += text not in reached
        front = {text}
        while front - reached:
            reached |= front
            front = {other for edge in edges for other in edge if edge & front}
    assert max(groups.values()) + 1 == walks
    assert list(dict.fromkeys(groups.values())) == list(range(walks))


def test_lists_without_a_value_are_counted_and_left_out():
    rows = star([3, 3, 3, 3], "flat") + star([0, 0, 0, 0], "zero") + star([1, 2, 3, 4], "same") + star([4, 3, 2, 1, 0])
    rows += star([1, 2, 3], "short")
    table = ScoredPairs(*zip(*rows, strict=True))
    angles = {text: 0 for row in rows for text in row[:2]} | {f"q{at}": 10 * at for at in range(5)}
    angles |= {f"flat{at}": 10 * at for at in range(4)}
    results = rank_pairs(Fixed({text: turned(angle) for text, angle in angles.items()}), {"set": table})
    score = results.tasks["set"]
    assert (score.lists, score.partners, score.merged) == (4, 17, 0)
    assert (score.constant_gold, score.constant_scores, score.zero_gold) == (2, 1, 1)
    assert score.kendall == pytest.approx(100)
    assert score.ndcg == pytest.approx(100 * (1 + 1 + ndcg_score([[1, 2, 3, 4]], [[0, 0, 0, 0]])) / 3)
    assert "2 of 4 lists have constant gold: no tau; 1 of 4 lists have constant scores" in str(results)
    assert "1 of 4 lists have gold all 0: no NDCG" in str(results)
    json.dumps(results.to_dict(), allow_nan=False)


def test_a_set_without_lists_is_undefined_and_spoils_the_average():
    short, whole = (ScoredPairs(*zip(*star(gold), strict=True)) for gold in ([1, 2, 3], [4, 3, 2, 1]))
    encoder = Fixed({"q": turned(0)} | {f"q{at}": turned(10 * at) for at in range(4)})
    results = rank_pairs(encoder, {"short": short, "whole": whole})
    assert results.tasks["short"].kendall is None and results.kendall is None and results.ndcg is None
    frame = results.to_frame()
    assert frame.loc["short", "kendall"] == frame.loc["average", "ndcg"] == "undefined"
    assert frame.loc["whole", "kendall"] == pytest.approx(100)
    assert "short: no sentence has enough partners: no list" in str(results)


def test_wrong_tasks_and_broken_embeddings_are_refused():
    with pytest.raises(ValueError, match="unknown STS task 'sts17'"):
        rank_tasks(Words(), tasks=["sts17"], source="synthetic")
    with pytest.raises(ValueError, match="no tasks to judge"):
        rank_tasks(Words(), tasks=[], source="synthetic")
    table = ScoredPairs(*zip(*star([1, 2, 3, 4]), strict=True))
    with pytest.raises(ValueError, match="embedding 2 is not finite"):
        rank_pairs(Fixed({"q": [1, 0], "q0": [1, 0], "q1": [np.nan, 0], "q2": [1, 1], "q3": [0, 1]}), {"set": table})


def test_a_case_stands_side_by_side_with_ties_as_the_papers_tables_rank_them():
    table = ScoredPairs(*zip(*star([2.2, 3.8, 2.6, 2.6]), strict=True))
    models = {
        "good": Fixed({"q": turned(0), "q0": turned(50), "q1": turned(10), "q2": turned(30), "q3": turned(30)}),
        "bad": Fixed({"q": turned(0), "q0": turned(10), "q1": turned(50), "q2": turned(30), "q3": turned(40)}),
    }
    frame = case(models, table, "q")
    assert frame.index.to_list() == ["q1", "q2", "q3", "q0"] and frame.index.name == "q"
    assert frame.columns.to_list() == ["gold", "gold rank", "good", "good rank", "bad", "bad rank"]
    assert frame["gold rank"].to_list() == frame["good rank"].to_list() == [1, 2, 2, 4]
    assert frame["bad rank"].to_list() == [4, 2, 3, 1]
    assert frame["good"].to_list() == pytest.approx([np.cos(np.radians(x)) for x in (10, 30, 30, 50)])
    assert case(models, table, "q1").index.to_list() == ["q"]  # the other side may ask too
    with pytest.raises(ValueError, match="no pair holds 'nobody'"):
        case(models, table, "nobody")


@pytest.mark.real_data
def test_the_real_sets_hold_these_lists(senteval):
    frame = rank_tasks(Words(512), source=senteval).to_frame()
    counts = frame[["lists", "partners", "constant_gold", "zero_gold", "merged"]]
    assert {name: tuple(row) for name, *row in counts.itertuples()} == {
        "sts12": (95, 772, 0, 0, 175),
        "sts13": (32, 188, 0, 0, 0),
        "sts14": (66, 353, 0, 0, 14),
        "sts15": (84, 704, 0, 0, 0),
        "sts16": (55, 272, 9, 9, 0),
        "stsb": (19, 102, 1, 1, 2),
        "sickr": (558, 2606, 0, 0, 19),
        "average": (909, 4997, 10, 10, 210),
    }
    # Shared words alone order them better than chance, and NDCG flatters them.
    assert (frame.constant_scores == 0).all() and (frame.kendall > 10).all() and (frame.ndcg > 75).all()
