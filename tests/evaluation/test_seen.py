"""Seen and unseen parts: against scipy on the rows themselves, and comparisons against the slow double loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pcclab import evaluation
from pcclab.data import ScoredPairs, leakage
from pcclab.evaluation.comparisons import BLOCKS, comparisons, gain_blocks
from pcclab.evaluation.correlation import Undefined, spearman
from pcclab.evaluation.seen import PARTS, seen_gains, seen_unseen


def table(name: str, count: int, *, seed: int = 0) -> ScoredPairs:
    gold = np.random.default_rng([seed, len(name), count]).integers(0, 51, count) / 10
    return ScoredPairs(tuple(f"{name} a{i}" for i in range(count)), tuple(f"{name} b{i}" for i in range(count)), gold)


TESTS = {"one": table("one", 120), "two": table("two", 150), "few": table("few", 90)}
# 40 pairs of "one", 60 of "two" and 5 of "few"; and from "two" ten first sentences in other pairs.
TRAIN = ScoredPairs.concat(
    [
        TESTS["one"].select(np.arange(40)),
        TESTS["two"].select(np.arange(60)),
        TESTS["few"].select(np.arange(5)),
        ScoredPairs(TESTS["two"].first[100:110], tuple(f"new {i}" for i in range(10)), np.zeros(10)),
    ]
)
SEEN = {name: leakage.seen(pairs, TRAIN) for name, pairs in TESTS.items()}


def noisy(seed: int, deviation: float, *, seen: float | None = None) -> dict[str, np.ndarray]:
    """Gold and noise; on the seen pairs of another size where one is given."""
    draw = np.random.default_rng(seed)
    found = {}
    for name, pairs in TESTS.items():
        size = np.where(SEEN[name], deviation if seen is None else seen, deviation)
        found[name] = pairs.gold + size * draw.normal(size=len(pairs))
    return found


def test_parts_are_scored_as_scipy_scores_their_rows() -> None:
    model = noisy(1, 2.0)
    frame = seen_unseen(model, TESTS, TRAIN, resamples=200)
    assert list(frame["part"][:3]) == list(PARTS)
    for row in frame.itertuples():
        mask = {"seen": SEEN[row.task], "unseen": ~SEEN[row.task], "all": np.ones(len(TESTS[row.task]), bool)}[row.part]
        assert row.pairs == mask.sum()
        if row.reason:
            assert (row.task, row.part) == ("few", "seen") and row.reason == "5 pairs: fewer than 30"
            assert np.isnan([row.spearman, row.low, row.high]).all()
        else:
            known = 100 * stats.spearmanr(model[row.task][mask], TESTS[row.task].gold[mask]).statistic
            assert row.spearman == pytest.approx(known)
            assert row.low < row.spearman < row.high


def test_at_sentence_level_more_is_seen() -> None:
    pairs, sentences = (
        seen_unseen(noisy(1, 1.0), TESTS, TRAIN, level=level, resamples=100).query("part == 'seen'")
        for level in ("pair", "sentence")
    )
    assert pairs["pairs"].tolist() == [40, 60, 5]
    assert sentences["pairs"].tolist() == [40, 70, 5]


def test_an_encoder_is_asked_for_its_cosines() -> None:
    class Lookup:
        def encode(self, sentences: list[str]) -> np.ndarray:
            return np.stack([np.random.default_rng(list(text.encode())).normal(size=4) for text in sentences])

    asked = seen_unseen(Lookup(), TESTS, TRAIN, resamples=100)
    given_ = seen_unseen(evaluation.similarities(Lookup(), TESTS), TESTS, TRAIN, resamples=100)
    assert asked.equals(given_)


def test_constant_gold_is_undefined_and_said() -> None:
    flat = ScoredPairs(TESTS["one"].first, TESTS["one"].second, np.where(SEEN["one"], 3.0, TESTS["one"].gold))
    frame = seen_unseen({"one": noisy(1, 1.0)["one"]}, {"one": flat}, TRAIN, resamples=100).set_index("part")
    assert "all 40 gold ratings are 3" in frame.loc["seen", "reason"]
    assert np.isnan(frame.loc["seen", "spearman"]) and frame.loc["unseen", "spearman"] > 0


class TestGains:
    before = noisy(0, 3.0)
    after = (noisy(1, 3.0, seen=0.3), noisy(2, 3.0, seen=0.3), noisy(3, 3.0, seen=0.3))
    frame = seen_gains(after, [before], TESTS, TRAIN, resamples=300).set_index(["task", "part"])

    def test_the_gain_is_the_mean_over_seeds_of_differences(self) -> None:
        for (task, part), row in self.frame.iterrows():
            if task == "average" or row["reason"]:
                continue
            mask = {"seen": SEEN[task], "unseen": ~SEEN[task], "all": np.ones(len(TESTS[task]), bool)}[part]
            gold = TESTS[task].gold[mask]
            start = 100 * spearman(self.before[task][mask], gold)
            each = [100 * spearman(model[task][mask], gold) - start for model in self.after]
            assert row["each"] == pytest.approx(each)
            assert row["gain"] == pytest.approx(np.mean(each))
            assert row["before"] == pytest.approx(start)
            assert row["after"] == pytest.approx(start + np.mean(each))
            known = stats.ttest_1samp(each, 0).confidence_interval(0.95)
            assert (row["seed_low"], row["seed_high"]) == pytest.approx(tuple(known))
            assert row["low"] < row["gain"] < row["high"]

    def test_what_was_learnt_by_heart_shows_on_the_seen_pairs_alone(self) -> None:
        seen, unseen = self.frame.loc[("average", "seen")], self.frame.loc[("average", "unseen")]
        assert seen["low"] > 20
        assert unseen["low"] < 0 < unseen["high"]

    def test_averages_are_over_the_tests_that_have_both_parts(self) -> None:
        assert self.frame.loc["average"]["tests"].tolist() == [2, 2, 3]
        two = [self.frame.loc[(task, "seen"), "gain"] for task in ("one", "two")]
        assert self.frame.loc[("average", "seen"), "gain"] == pytest.approx(np.mean(two))
        assert self.frame.loc[("average", "unseen"), "pairs"] == 80 + 90
        whole = [self.frame.loc[(task, "all"), "gain"] for task in TESTS]
        assert self.frame.loc[("average", "all"), "gain"] == pytest.approx(np.mean(whole))
        assert self.frame.loc[("few", "seen"), "reason"] == "5 pairs: fewer than 30"

    def test_seed_against_seed(self) -> None:
        others = [noisy(seed, 3.0) for seed in (4, 5, 6)]
        frame = seen_gains(self.after, others, TESTS, TRAIN, resamples=100).set_index(["task", "part"])
        gold = TESTS["one"].gold
        each = [100 * (spearman(a["one"], gold) - spearman(b["one"], gold)) for a, b in zip(self.after, others)]  # noqa: B905
        assert frame.loc[("one", "all"), "each"] == pytest.approx(each)

    def test_against_itself_nothing_is_gained(self) -> None:
        frame = seen_gains([self.before], [self.before], TESTS, TRAIN, resamples=100)
        assert (frame["gain"].dropna() == 0).all() and (frame["high"].dropna() == 0).all()
        assert frame["seed_low"].isna().all()  # one seed has no interval

    @pytest.mark.parametrize(("after", "before"), [(0, 1), (3, 2), (2, 0)])
    def test_models_that_do_not_pair_are_refused(self, after: int, before: int) -> None:
        with pytest.raises(ValueError, match=f"{after} models after and {before} before"):
            seen_gains([self.before] * after, [self.before] * before, TESTS, TRAIN)


def slow(similarity: np.ndarray, gold: np.ndarray, seen: np.ndarray) -> list[float]:
    """Every comparison of two pairs by itself."""
    ranks = stats.rankdata(gold)
    sums = [0.0, 0.0, 0.0]
    for i in range(len(gold)):
        for j in range(i):
            place = 2 - int(seen[i]) - int(seen[j])
            sums[place] += float(np.sign(similarity[i] - similarity[j])) * 2 * (ranks[i] - ranks[j])
    spread = [float(np.sum((2 * stats.rankdata(side) - len(gold) - 1) ** 2)) for side in (similarity, gold)]
    return [total / float(np.sqrt(spread[0] * spread[1])) for total in sums]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.booleans()), min_size=2, max_size=25).filter(
        lambda rows: len({a for a, _, _ in rows}) > 1 and len({b for _, b, _ in rows}) > 1
    )
)
@settings(deadline=None)
def test_comparisons_are_the_slow_double_loop_and_sum_to_the_spearman(rows: list[tuple[int, int, bool]]) -> None:
    similarity, gold = (np.array([row[side] for row in rows], float) for side in (0, 1))
    seen = np.array([row[2] for row in rows])
    found = comparisons(similarity[None], gold, seen)[0, :, 0]
    assert found == pytest.approx(slow(similarity, gold, seen), abs=1e-12)
    assert found.sum() == pytest.approx(stats.spearmanr(similarity, gold).statistic)


def test_resampled_comparisons_are_those_of_the_drawn_pairs() -> None:
    model, pairs, seen = noisy(1, 2.0)["one"], TESTS["one"], SEEN["one"]
    found = comparisons(np.stack([model, -model]), pairs.gold, seen, resamples=5, seed=3)
    drawn = np.random.default_rng(3).integers(0, len(pairs), (5, len(pairs)), dtype=np.uint32)
    for place, rows in enumerate(drawn, start=1):
        assert found[0, :, place] == pytest.approx(slow(model[rows], pairs.gold[rows], seen[rows]))
    np.testing.assert_allclose(found[1], -found[0])


def test_a_seen_pair_that_moves_leaves_the_unseen_comparisons_alone() -> None:
    # What a sum over pairs of their own rank shifts does not have: there the unseen ones' ranks move along.
    before, pairs, seen = noisy(1, 2.0)["one"], TESTS["one"], SEEN["one"]
    after = np.where(seen, pairs.gold * 10 + 1e-6 * before, before)  # without ties the denominator stays too
    first, second = comparisons(np.stack([before, after]), pairs.gold, seen)[:, :, 0]
    assert first[2] == pytest.approx(second[2], abs=1e-12)
    assert second[0] > first[0]
    shift = (stats.rankdata(after) - stats.rankdata(before))[~seen]
    assert np.abs(shift).max() > 5


def test_gain_blocks_sum_to_the_gain() -> None:
    frame = gain_blocks(TestGains.after, [TestGains.before], TESTS, TRAIN, resamples=200)
    assert frame["block"][:3].tolist() == list(BLOCKS)
    for task, part in frame.groupby("task"):
        assert part["possible"].sum() == pytest.approx(100)
        assert part["gain"].sum() == pytest.approx(TestGains.frame.loc[(task, "all"), "gain"])
        assert (part["after"] - part["before"]).tolist() == pytest.approx(part["gain"].tolist())
        assert (part["before"] <= part["possible"] + 1e-9).all()
    none = frame.set_index(["task", "block"]).loc[("average", "none seen")]
    assert none["low"] < 0 < none["high"]


def test_a_test_without_seen_pairs_has_empty_blocks() -> None:
    other = table("other", 40)
    model: Any = {"other": other.gold + np.sin(np.arange(40.0))}
    frame = gain_blocks([model], [{"other": -model["other"]}], {"other": other}, TRAIN, resamples=50).set_index("block")
    first = frame[frame["task"] == "other"]
    assert first.loc["both seen", ["possible", "gain"]].tolist() == [0, 0]
    assert first.loc["one seen", "possible"] == pytest.approx(0, abs=1e-9)
    assert first.loc["none seen", "possible"] == pytest.approx(100)
    with pytest.raises(Undefined, match="other: all 40 similarities"):
        gain_blocks([{"other": np.zeros(40)}], [model], {"other": other}, TRAIN, resamples=50)
