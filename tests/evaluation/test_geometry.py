"""Alignment, uniformity and anisotropy equal slow double loops, whatever the blocks; samples err as they say."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pcclab import data, encoders
from pcclab.data import ScoredPairs
from pcclab.evaluation import Undefined, cosine, geometry
from pcclab.evaluation.geometry import align_uniform, alignment, anisotropy, uniformity
from pcclab.evaluation.groups import similarity_by_group


def points(rows, dim=5, seed=0, centre=0.7):
    return np.random.default_rng(seed).normal(centre, 1, size=(rows, dim)).astype(np.float32)


def unit(row):
    norm = math.sqrt(sum(float(x) ** 2 for x in row))
    return [float(x) / norm for x in row]


def kernel(vectors, t):
    """exp(-t |x - y|^2) of every pair of rows, one at a time."""
    rows = [unit(row) for row in vectors]
    return [
        math.exp(-t * sum((a - b) ** 2 for a, b in zip(x, y, strict=True))) for x, y in itertools.combinations(rows, 2)
    ]


@given(st.integers(2, 23), st.integers(1, 9), st.integers(0, 999), st.sampled_from([0.5, 2.0, 3.0]))
@settings(max_examples=40, deadline=None)
def test_uniformity_is_the_double_loop_whatever_the_block(rows, block, seed, t):
    vectors = points(rows, seed=seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geometry, "_BLOCK", block)
        found = uniformity(vectors, t=t)
    values = kernel(vectors, t)
    assert found.value == pytest.approx(math.log(sum(values) / len(values)), abs=1e-10)
    assert (found.error, found.pairs) == (0.0, rows * (rows - 1) // 2)


@given(st.integers(1, 9), st.integers(0, 999), st.sampled_from([1.0, 2.0, 3.0]))
@settings(max_examples=30, deadline=None)
def test_alignment_is_the_loop(rows, seed, alpha):
    first, second = points(rows, seed=seed), points(rows, seed=seed + 1)
    total = 0.0
    for x, y in zip(map(unit, first), map(unit, second), strict=True):
        total += math.dist(x, y) ** alpha
    assert alignment(first, second, alpha=alpha) == pytest.approx(total / rows, abs=1e-10)


def test_alignment_is_twice_one_minus_the_mean_cosine():
    first, second = points(50), points(50, seed=1)
    assert alignment(first, second) == pytest.approx(2 - 2 * cosine(first, second).mean())
    assert alignment(first, first) == 0 and alignment(first, -first) == pytest.approx(4)


def test_only_directions_count_and_turning_the_space_changes_nothing():
    vectors = points(30)
    turn = np.linalg.qr(points(5, seed=9))[0]
    lengths = np.arange(1, 31)[:, None]
    for other in (lengths * vectors, vectors @ turn, vectors[::-1]):
        assert uniformity(other).value == pytest.approx(uniformity(vectors).value, abs=1e-6)
        assert anisotropy(other).cosine == pytest.approx(anisotropy(vectors).cosine, abs=1e-6)
        assert anisotropy(other).first_share == pytest.approx(anisotropy(vectors).first_share, abs=1e-6)


def test_uniformity_has_its_known_extremes():
    assert uniformity(np.ones((5, 3))).value == pytest.approx(0, abs=1e-14)
    assert uniformity(np.array([[1.0, 0], [-1.0, 0]]), t=1000).value == -4000  # where exp alone would give 0
    # On the sphere in three dimensions the mean kernel is the integral of exp(-4 t h) over h uniform in 0..1.
    exact = math.log((1 - math.exp(-8)) / 8)
    assert uniformity(points(3000, dim=3, centre=0)).value == pytest.approx(exact, abs=0.01)


def test_a_sample_errs_as_much_as_it_says():
    vectors = points(200, dim=8)
    exact = uniformity(vectors).value
    off = []
    for seed in range(300):
        found = uniformity(vectors, sample=500, seed=seed)
        assert found.pairs == 500
        off.append((found.value - exact) / found.error)
    assert np.std(off) == pytest.approx(1, abs=0.15) and abs(np.mean(off)) < 0.3
    assert uniformity(vectors, sample=500, seed=3) == uniformity(vectors, sample=500, seed=3)


def test_a_samples_error_is_the_delta_method_and_blocks_join(monkeypatch):
    vectors = points(60)
    monkeypatch.setattr(geometry, "_DRAWN", 64)
    drawn = np.concatenate(list(geometry._drawn_cosines(geometry._directions(vectors), 1000, 5)))
    values = np.exp(-2 * (2 - 2 * drawn))
    found = uniformity(vectors, sample=1000, seed=5)
    assert found.value == pytest.approx(math.log(values.mean()))
    assert found.error == pytest.approx(values.std(ddof=1) / values.mean() / math.sqrt(1000))


def test_a_sample_draws_every_pair_alike_and_no_row_with_itself():
    rows = geometry._directions(np.eye(4) + np.arange(16).reshape(4, 4) / 50)
    expected = {round(float(rows[i] @ rows[j]), 9): 0 for i, j in itertools.combinations(range(4), 2)}
    for value in np.concatenate(list(geometry._drawn_cosines(rows, 60_000, 0))):
        expected[round(float(value), 9)] += 1
    assert len(expected) == 6 and all(count == pytest.approx(10_000, rel=0.04) for count in expected.values())


def test_as_many_draws_as_pairs_takes_every_pair():
    vectors = points(10)
    assert uniformity(vectors, sample=45) == uniformity(vectors, sample=10**9) == uniformity(vectors)
    assert uniformity(vectors, sample=44).error > 0


@given(st.integers(2, 12), st.integers(2, 20), st.integers(0, 999))
@settings(max_examples=30, deadline=None)
def test_anisotropy_is_the_double_loop_and_the_first_component(rows, dim, seed):
    vectors = points(rows, dim, seed)
    units = np.array([unit(row) for row in vectors])
    cosines = [float(x @ y) for x, y in itertools.combinations(units, 2)]
    found = anisotropy(vectors)
    assert found.cosine == pytest.approx(np.mean(cosines), abs=1e-10)
    variances = np.linalg.svd(units - units.mean(axis=0), compute_uv=False) ** 2
    assert found.first_share == pytest.approx(variances[0] / variances.sum(), abs=1e-9)


def test_collapse_is_seen():
    found = anisotropy(np.tile([0.3, -0.7, 0.2], (50, 1)))
    assert found.cosine == pytest.approx(1) and found.first_share is None


class Lookup:
    def __init__(self):
        self.asked = []

    def encode(self, sentences):
        self.asked += sentences
        return np.stack([np.random.default_rng(list(text.encode())).normal(0.4, 1, size=6) for text in sentences])


PAIRS = ScoredPairs(("a", "a", "c", "d"), ("b", "c", "e", "a"), [4.0, 3.9, 5.0, 0.0])


def test_the_plane_takes_positives_and_distinct_sentences():
    encoder = Lookup()
    found = align_uniform(encoder, PAIRS)
    assert encoder.asked == ["a", "c", "d", "b", "e"]
    assert (found.positives, found.sentences) == (2, 5)
    assert found.alignment == alignment(encoder.encode(["a", "c"]), encoder.encode(["b", "e"]))
    assert found.uniformity == uniformity(encoder.encode(["a", "c", "d", "b", "e"]))
    assert align_uniform(encoder, PAIRS, positive_from=3.9).positives == 3
    sampled = align_uniform(encoder, PAIRS, sample=4, seed=2)
    assert sampled.alignment == found.alignment
    assert sampled.uniformity == uniformity(encoder.encode(["a", "c", "d", "b", "e"]), sample=4, seed=2)
    assert (sampled.uniformity.pairs, found.uniformity.pairs) == (4, 10)
    with pytest.raises(Undefined, match=r"no pair is rated 5.5 or more \(highest: 5\)"):
        align_uniform(encoder, PAIRS, positive_from=5.5)


def test_groups_are_tidy_and_hold_every_pair():
    gold = np.array([0.0, 0.99, 1.0, 4.0, 5.0])
    frame = similarity_by_group(gold / 5, gold)
    assert frame.group.tolist() == ["0-1", "0-1", "1-2", "4-5", "4-5"]
    assert list(frame.columns) == ["group", "similarity", "gold"] and frame.gold.tolist() == gold.tolist()
    assert frame.group.cat.categories.tolist() == ["0-1", "1-2", "2-3", "3-4", "4-5"] and frame.group.cat.ordered
    assert similarity_by_group(gold, gold, edges=(0, 2.5, 5)).group.tolist() == ["0-2.5"] * 3 + ["2.5-5"] * 2


def test_a_collapsed_encoder_has_a_distribution_too():
    gold = np.array([0.5, 1.5, 4.5])
    assert similarity_by_group(np.ones(3), gold).group.tolist() == ["0-1", "1-2", "4-5"]
    assert similarity_by_group(np.array([0.1, 0.2]), np.full(2, 3.0)).group.tolist() == ["3-4", "3-4"]
    with pytest.raises(Undefined, match="no pairs have no cosines"):
        similarity_by_group(gold[:0], gold[:0])
    with pytest.raises(ValueError, match="similarity of pair 1 is not finite"):
        similarity_by_group(np.array([1.0, np.nan, 0.0]), gold)


def test_what_has_no_geometry_is_refused():
    rows = points(4)
    broken = rows.copy()
    broken[2] = 0
    for call in (uniformity, anisotropy, lambda v: alignment(v, rows)):
        with pytest.raises(ValueError, match=r"embedding 2 has length 0.0, as have 0 more: it has no direction"):
            call(broken)
    broken[1, 0] = np.nan
    with pytest.raises(ValueError, match="embedding 1 has length nan"):
        uniformity(broken)
    for call in (uniformity, anisotropy):
        with pytest.raises(Undefined, match=r"1 row\(s\) have no pairs"):
            call(rows[:1])
    with pytest.raises(Undefined, match="no positive pairs"):
        alignment(rows[:0], rows[:0])
    with pytest.raises(ValueError, match="give both sides of each pair"):
        alignment(rows, rows[:2])
    for name, call in (("alpha", lambda x: alignment(rows, rows, alpha=x)), ("t", lambda x: uniformity(rows, t=x))):
        for value in (0.0, -1.0, math.inf, math.nan):
            with pytest.raises(ValueError, match=f"{name}={value}: give a finite number above 0"):
                call(value)
    with pytest.raises(ValueError, match="sample=1: draw at least 2"):
        uniformity(rows, sample=1)
    gold = np.array([0.0, 6.0, 3.0])
    with pytest.raises(ValueError, match="gold of pair 1 is 6, outside edges 0..5: widen them"):
        similarity_by_group(gold, gold)
    with pytest.raises(ValueError, match="give two or more, ascending"):
        similarity_by_group(gold, gold, edges=(0, 7, 6))

    class Short:
        def encode(self, sentences):
            return np.ones((2, 2))

    with pytest.raises(ValueError, match="gave 2 embeddings for 5 sentences"):
        align_uniform(Short(), PAIRS)


@pytest.mark.real_data
def test_minilm_on_a_quarter_of_the_development_set(senteval):
    pairs = data.load("stsb", split="dev", source=senteval).select(range(0, 1500, 4))
    found = align_uniform(encoders.load("minilm"), pairs)
    assert (found.positives, found.sentences) == (69, 742)
    assert found.alignment == pytest.approx(0.2971, abs=0.002)
    assert found.uniformity.value == pytest.approx(-3.8334, abs=0.005)
