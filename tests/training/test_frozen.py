"""Training on embeddings that stay: each text embedded once, the best step kept, and the seed alone decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import stats

from pcclab import data, encoders, losses
from pcclab.data import NLIPairs, ScoredPairs, Sentences, Triplets
from pcclab.encoders.heads import SiameseHead, nearest
from pcclab.training import FitSettings, Projected, Remembered, fit_frozen

DIM, HIDDEN = 8, 3
FAST = FitSettings(batch_size=16, learning_rate=2e-2, max_steps=60, evaluate_every=10)


class Lookup:
    """Vectors that are a function of the text; what it was asked for is written down."""

    def __init__(self, dtype=np.float32):
        self.asked, self.dtype = [], dtype

    def encode(self, sentences):
        self.asked.append(list(sentences))
        return np.array([vector(text) for text in sentences], dtype=self.dtype).reshape(-1, DIM)

    def __str__(self):
        return "Lookup"


def vector(text):
    return np.random.default_rng(list(text.encode())).normal(size=DIM)


def meaning(text):
    """What the ratings see: some directions of the embedding only, which a projection has to find."""
    return vector(text)[:HIDDEN]


def rated(count, start=0):
    first, second = (tuple(f"{side}{i}" for i in range(start, start + count)) for side in "ab")
    sides = (np.array([meaning(text) for text in side]) for side in (first, second))
    u, v = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides)
    return ScoredPairs(first, second, 2.5 + 2.5 * (u * v).sum(1))


TRAIN, DEV = rated(200), rated(80, 1000)


def trained(loss="pearson", table=TRAIN, settings=FAST, dev=DEV, **options):
    encoder = Lookup()
    projected = Projected(encoder, DIM)
    return projected, fit_frozen(encoder, table, loss, parameters=settings, projected=projected, dev=dev, **options)


def spearman(encoder, pairs):
    first, second = (np.asarray(encoder.encode(side), dtype=np.float64) for side in (pairs.first, pairs.second))
    cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
    return 100 * stats.spearmanr(cosine, pairs.gold).statistic


def test_each_text_is_embedded_once_and_given_in_the_order_asked():
    encoder = Lookup()
    kept = Remembered(encoder)
    for asked in (["x", "y", "x"], ["z", "y", "w"], ("w", "x")):
        assert_allclose(kept.encode(asked), Lookup().encode(asked))
    assert encoder.asked == [["x", "y"], ["z", "w"]]
    assert kept.encode([]).shape == (0, DIM) and str(kept) == "Lookup"


def test_what_is_remembered_cannot_be_changed_by_who_reads_it():
    kept = Remembered(Lookup())
    kept.encode(["x", "y"])[:] = 0
    assert_allclose(kept.encode(["y"])[0], vector("y").astype(np.float32))


def test_a_detached_memory_knows_its_texts_and_refuses_all_others():
    encoder = Lookup()
    kept = Remembered(encoder)
    before = kept.encode(["x", "y"])
    known = kept.detached()
    kept.encode(["z"])  # the encoder may have changed by then
    assert_allclose(known.encode(["y", "x"]), before[::-1])
    assert str(known) == "Lookup" and len(encoder.asked) == 2
    for unknown in ("z", "w"):
        with pytest.raises(ValueError, match=f"Lookup was not asked for '{unknown}' before its weights changed"):
            known.encode(["x", unknown])


def test_a_projection_starts_as_the_identity():
    for dtype in (np.float32, np.float64):
        projected = Projected(Lookup(dtype), DIM)
        vectors = projected.encode(["x", "y"])
        assert vectors.dtype == np.float32
        assert_allclose(vectors, np.array([vector("x"), vector("y")], dtype=np.float32))
        assert str(projected) == "Lookup behind a projection" and projected.encode([]).shape == (0, DIM)


@pytest.mark.parametrize("loss", ["pearson", "cosent", "pearson + 0.1 * info_nce", "rank_n_contrast"])
def test_a_projection_finds_what_the_ratings_see(loss):
    projected, history = trained(loss)
    before, after = spearman(Lookup(), DEV), spearman(projected, DEV)
    assert after > before + 5
    assert history.best_dev == pytest.approx(after, abs=1e-3)
    frame = history.to_frame()
    assert frame.dev_spearman[0] == pytest.approx(before, abs=1e-3) and len(frame) == 61
    assert list(frame.dev_spearman.dropna().index) == [0, 10, 20, 30, 40, 50, 60]
    assert frame.loss.iloc[-10:].mean() < frame.loss.iloc[1:11].mean()


def test_the_weights_left_are_those_of_the_best_look():
    projected, history = trained(settings=replace(FAST, learning_rate=1.0))
    seen = history.to_frame().dev_spearman.dropna().drop(0)
    assert history.best_dev == seen.max() == seen[history.best_step]
    assert spearman(projected, DEV) == pytest.approx(history.best_dev, abs=1e-3)


def test_a_training_that_only_hurts_shows_it():
    # Ratings turned round: every step leads away from what the development pairs ask for.
    wrong = ScoredPairs(TRAIN.first, TRAIN.second, 5 - TRAIN.gold)
    projected, history = trained(table=wrong)
    assert history.best_step > 0 and history.best_dev < history.steps[0]["dev_spearman"]
    assert not torch.equal(projected.map.weight, torch.eye(DIM))


def test_without_development_pairs_the_last_step_is_kept():
    projected, history = trained(dev=None)
    assert history.best_step == 60 and history.best_dev is None
    assert all("dev_spearman" not in line for line in history.steps) and history.steps[0]["step"] == 1
    assert not torch.equal(projected.map.weight, torch.eye(DIM))


@pytest.mark.parametrize(("loss", "table"), [("pearson", TRAIN), ("info_nce", Sentences(TRAIN.first[:64]))])
def test_the_seed_alone_decides(loss, table):
    found = []
    for seed, noise in ((0, 1), (0, 2), (1, 1)):
        torch.manual_seed(noise)
        np.random.seed(noise)
        settings = replace(FAST, seed=seed, max_steps=8)
        projected, history = trained(loss, table, settings)
        found.append((projected.map.weight.detach(), history.steps))
    assert torch.equal(found[0][0], found[1][0]) and found[0][1] == found[1][1]
    assert found[0][1] != found[2][1]


def test_training_draws_nothing_from_the_callers_random_state():
    encoder, table = Lookup(), Sentences(TRAIN.first[:64])
    projected, head = Projected(encoder, DIM), SiameseHead(DIM)
    before = torch.get_rng_state()
    fit_frozen(encoder, table, "info_nce", parameters=replace(FAST, max_steps=4), projected=projected)
    fit_frozen(encoder, TRAIN, "mse", parameters=replace(FAST, max_steps=4), head=head)
    assert torch.equal(torch.get_rng_state(), before)


def views(table, count):
    """Both views that a loss was given, step by step."""
    seen = []

    def spy(anchor, positive):
        seen.append((anchor.detach().clone(), positive.detach().clone()))
        return losses.info_nce(anchor, positive)

    trained(spy, table, replace(FAST, max_steps=count, learning_rate=1e-12), None)
    return seen


def test_dropout_makes_two_views_of_sentences_and_leaves_rated_pairs_alone():
    sentences = Sentences(TRAIN.first[:16])
    (first, second), (third, _) = views(sentences, 2)
    assert not torch.equal(first, second)
    known = torch.from_numpy(np.array([vector(text) for text in sentences.text], dtype=np.float32))
    share = torch.cat([first, second, third]).eq(0).float().mean()
    assert 0.03 < share < 0.2  # 0.1 of 384 entries
    # What is left is the embedding over the share that is kept.
    for view in (first, second):
        kept = [(row[row != 0] * 0.9, known[:, row != 0]) for row in view]
        assert all(torch.isclose(own, rows, atol=1e-6).all(1).any() for own, rows in kept)
    positives = TRAIN.select(TRAIN.gold >= 4)
    for anchor, positive in views(positives, 1):
        assert not anchor.eq(0).any() and not positive.eq(0).any()


def nli(count, start=0):
    """Pairs whose class is a linear function of the distance in one direction."""
    first, second = (tuple(f"{side}{i}" for i in range(start, start + count)) for side in "pq")
    apart = np.array([abs(vector(a)[0] - vector(b)[0]) for a, b in zip(first, second, strict=True)])
    names = np.array(["entailment", "neutral", "contradiction"])
    return NLIPairs(first, second, tuple(names[np.digitize(apart, [0.8, 1.6])]))


@pytest.mark.parametrize("loss", ["l1", "mse", "translated_relu", "smooth_k2", "cross_entropy"])
def test_a_head_alone_learns_rated_inference_pairs(loss):
    encoder = Remembered(Lookup())
    train, test = nli(300).rated(), nli(150, 5000).rated()
    head = SiameseHead(DIM, levels=(0, 1, 2) if loss == "cross_entropy" else None)
    told = head.fingerprint

    def accuracy():
        score = head.score(encoder.encode(test.first), encoder.encode(test.second))
        return float((nearest(score, [0, 1, 2]) == test.gold).mean())

    before = accuracy()
    settings = replace(FAST, max_steps=150, evaluate_every=0)
    history = fit_frozen(encoder, train, loss, parameters=settings, head=head)
    assert accuracy() > max(0.6, before + 0.1) and head.fingerprint != told
    assert history.best_dev is None and history.best_step == 150 and history.left_out == 0
    assert sum(map(len, encoder.encoder.asked)) == 2 * (300 + 150)  # each text once, however many steps


def test_a_projection_and_a_head_learn_together():
    head, before = SiameseHead(DIM), SiameseHead(DIM).fingerprint
    projected, history = trained("smooth_k2 + pearson", head=head)
    assert head.fingerprint != before and not torch.equal(projected.map.weight, torch.eye(DIM))
    assert history.best_dev > history.steps[0]["dev_spearman"]


def test_a_real_encoder_stays_as_it_is():
    encoder, pairs = encoders.load("tiny"), data.dev_pairs(source="synthetic").select(range(40))
    told, projected = encoder.fingerprint, Projected(encoder, encoder.dim)
    history = fit_frozen(
        encoder, pairs, "pearson", parameters={"max_steps": 20, "learning_rate": 1e-2}, projected=projected
    )
    assert encoder.fingerprint == told and history.steps[-1]["loss"] < history.steps[0]["loss"]


def test_triplets_train_a_projection():
    table = Triplets(TRAIN.first[:64], TRAIN.second[:64], tuple(f"c{i}" for i in range(64)))
    _, history = trained("info_nce", table, replace(FAST, max_steps=20), None)
    assert history.steps[-1]["loss"] < history.steps[0]["loss"]


@pytest.mark.parametrize("change", [{"warmup_steps": 10}, {"warmup_share": 0.25}])
def test_the_rate_climbs_and_falls(change, monkeypatch):
    rates = []
    original = torch.optim.AdamW.step
    monkeypatch.setattr(
        torch.optim.AdamW, "step", lambda self: rates.append(self.param_groups[0]["lr"]) or original(self)
    )
    trained(settings=replace(FAST, max_steps=40, **change), dev=None)
    assert rates[9] == max(rates) == pytest.approx(FAST.learning_rate)
    assert rates[:10] == sorted(rates[:10]) and rates[9:] == sorted(rates[9:], reverse=True) and rates[-1] > 0


def test_a_last_batch_too_small_is_left_out_and_said():
    settings = FitSettings(batch_size=19, epochs=1, learning_rate=1e-3)
    assert trained(table=TRAIN.select(range(96)), settings=settings, dev=None)[1].left_out == 1  # 5 x 19 + 1
    head = fit_frozen(
        Lookup(), TRAIN.select(range(96)), "mse", parameters=settings, head=SiameseHead(DIM)
    )  # one row is enough for it
    assert head.left_out == 0 and len(head.steps) == 6


def test_what_cannot_be_trained_is_refused():
    encoder, head = Lookup(), SiameseHead(DIM)
    with pytest.raises(ValueError, match="nothing to train: give projected=, a head, or both"):
        fit_frozen(encoder, TRAIN, "pearson", parameters=FAST)
    with pytest.raises(ValueError, match="without a projection the cosines stay the same: leave dev out"):
        fit_frozen(encoder, TRAIN, "mse", parameters=FAST, head=head, dev=DEV)
    with pytest.raises(ValueError, match="nothing to train: pearson never asks the head; give projected="):
        fit_frozen(encoder, TRAIN, "pearson", parameters=FAST, head=head)
    with pytest.raises(ValueError, match="mse judges pairs by a head"):
        trained("mse")
    with pytest.raises(ValueError, match="unknown training parameter 'rate'"):
        trained(settings={"rate": 1})
    with pytest.raises(ValueError, match=r"shapes .* this head takes two of \(pairs, 5\)"):
        fit_frozen(encoder, TRAIN, "mse", parameters=FAST, head=SiameseHead(5))
    with pytest.raises(ValueError, match="the loss is inf: lower the learning rate"):
        trained(lambda similarity, gold: similarity.sum() * float("inf"))


def test_a_score_that_is_never_defined_is_told():
    class Constant(Lookup):
        def encode(self, sentences):
            return np.ones((len(sentences), DIM), dtype=np.float32)

    encoder = Constant()
    with pytest.raises(ValueError, match="the development score was undefined at every look"):
        fit_frozen(encoder, TRAIN, "pearson", parameters=FAST, projected=Projected(encoder, DIM), dev=DEV)
