"""Batched probes equal scikit-learn's and SentEval's one at a time, on SentEval's folds; a text is embedded once."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from pcclab import data
from pcclab.data import LabelledTexts
from pcclab.evaluation import folds, logistic, probes
from pcclab.evaluation.correlation import Undefined
from pcclab.evaluation.embeddings import embed
from pcclab.evaluation.folds import Fit
from pcclab.evaluation.transfer import GRIDS, TASKS, transfer

module = import_module("pcclab.evaluation.transfer")  # the package's attribute of that name is the function


class Words:
    """A stand-in encoder: each word adds to two places that its hash chooses."""

    def __init__(self, dim=32, fingerprint="words"):
        self.dim, self.fingerprint, self.asked = dim, fingerprint, []

    def encode(self, sentences):
        self.asked += sentences
        return np.stack([self.vector(text) for text in sentences]).astype(np.float32)

    def vector(self, text):
        found = np.zeros(self.dim)
        for word in text.lower().split():
            digest = hashlib.sha256(word.encode()).digest()
            found[digest[0] % self.dim] += 1 if digest[1] % 2 else -1
            found[digest[2] % self.dim] += 1 if digest[3] % 2 else -1
        return found / len(text.split())


def problem(rows, dim, classes, seed):
    """Features and classes that a line tells apart only in part, and no class is rare."""
    draw = np.random.default_rng(seed)
    labels = np.arange(rows) % classes
    centres = draw.normal(size=(classes, dim))
    return centres[labels] + 2 * draw.normal(size=(rows, dim)), labels


def ten(labels, rows=None):
    rows = np.arange(len(labels)) if rows is None else rows
    made = StratifiedKFold(n_splits=10, shuffle=True, random_state=1111).split(rows, labels[rows])
    return [Fit(rows[train], rows[test], rows[test]) for train, test in made]


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 4), st.integers(1, 7), st.integers(0, 10**6))
def test_every_regression_is_scikit_learns_alone(classes, dim, seed):
    features, labels = problem(90, dim, classes, seed)
    fits = ten(labels)[:4]
    strengths = np.array([[0.25, 2.0, 32.0], [0.5, 1.0, 4.0], [8.0, 8.0, 0.01], [1.0, 16.0, 100.0]])
    weights = logistic.solve(features, labels, fits, strengths, tolerance=1e-10)
    sizes = np.array([[len(fit.train)] for fit in fits])
    # Of two classes a mean loss with a decay of both outputs is scikit-learn's with twice the C.
    predicted = logistic.lbfgs(features, labels, fits, (2 if classes == 2 else 1) / (sizes * strengths))
    for at, fit in enumerate(fits):
        for place, strength in enumerate(strengths[at]):
            alone = LogisticRegression(C=strength, tol=1e-12, solver="newton-cholesky", max_iter=1000)
            alone.fit(features[fit.train], labels[fit.train])
            ours, theirs = weights[at, place], np.column_stack([alone.coef_, alone.intercept_])
            if classes > 2:  # all intercepts may move together; ours have mean 0
                theirs[:, -1] -= theirs[:, -1].mean()
            np.testing.assert_allclose(ours, theirs, atol=1e-6, rtol=1e-6)
            np.testing.assert_array_equal(predicted[at][place], alone.predict(features[fit.test]))


def test_nearly_separable_rows_converge_too():
    draw = np.random.default_rng(0)
    labels = np.arange(120) % 2
    features = 5 * (labels[:, None] - 0.5) + 0.5 * draw.normal(size=(120, 40))
    weights = logistic.solve(features, labels, ten(labels), np.tile([1e-3, 1.0, 1e4], (10, 1)), tolerance=1e-8)
    alone = LogisticRegression(C=1e4, tol=1e-12, solver="newton-cholesky", max_iter=1000)
    alone.fit(features[ten(labels)[3].train], labels[ten(labels)[3].train])
    np.testing.assert_allclose(weights[3, 2, 0, :-1], alone.coef_[0], rtol=1e-5)


MAX_EPOCHS = 200


def alone(features, labels, train, dev, held_out, decay, classes, seed=1111):
    """SentEval's training of one classifier, one step after another with torch's own layer, loss and Adam."""
    torch.manual_seed(seed)
    draw = np.random.RandomState(seed)
    layer = torch.nn.Linear(features.shape[1], classes)
    optimiser = torch.optim.Adam(layer.parameters(), weight_decay=decay)
    if held_out:
        order = draw.permutation(len(train))
        cut = int(0.05 * len(train))
        train, dev = train[order[cut:]], train[order[:cut]]
    inputs, answers = torch.tensor(features, dtype=torch.float32), torch.tensor(labels)
    best, kept, failures, epoch, stop = -1.0, None, 0, 0, False
    while not stop and epoch <= MAX_EPOCHS:
        for _ in range(4):
            order = draw.permutation(len(train))
            for start in range(0, len(train), 64):
                rows = train[order[start : start + 64]]
                optimiser.zero_grad()
                torch.nn.functional.cross_entropy(layer(inputs[rows]), answers[rows]).backward()
                optimiser.step()
        epoch += 4
        with torch.no_grad():
            accuracy = (layer(inputs[dev]).argmax(1) == answers[dev]).sum().item() / len(dev)
        if accuracy > best:
            best, kept = accuracy, torch.cat([layer.weight.detach().T, layer.bias.detach()[None]]).clone()
        else:
            stop = failures >= 5
            failures += 1
    return kept


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("held_out", [False, True])
def test_sentevals_loop_in_one_is_the_loop_one_fold_at_a_time(classes, held_out, monkeypatch):
    features, labels = problem(154, 5, classes, 3)  # the folds differ in size, and the last batches too
    labels.setflags(write=False)  # as a table's are
    fits = [Fit(fit.train, None if held_out else fit.dev, fit.test) for fit in ten(labels)[2:6]]
    assert len({len(fit.train) for fit in fits}) == 2
    strengths = np.tile([1e-5, 1e-2], (4, 1))
    strengths[1] = [1e-3, 1e-1]
    monkeypatch.setattr(probes, "WORKING", 2 * 64 * 6)  # two fits a loop
    found = []
    train = probes._train
    monkeypatch.setattr(probes, "_train", lambda *given: found.append(train(*given)) or found[-1])
    drawn = torch.get_rng_state(), np.random.get_state()[1].copy()
    predicted = probes.senteval(features, labels, fits, strengths)
    assert torch.equal(torch.get_rng_state(), drawn[0]) and (np.random.get_state()[1] == drawn[1]).all()
    sizes = [len(fit.train) for fit in fits]
    in_order = [at for size in dict.fromkeys(sizes) for at in range(4) if sizes[at] == size]
    ours = dict(zip(in_order, torch.cat(found), strict=True))
    for at, fit in enumerate(fits):
        for place, decay in enumerate(strengths[at]):
            theirs = alone(features, labels, fit.train, fit.dev, held_out, decay, classes)
            mine = ours[at][:, place * classes : (place + 1) * classes]
            torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)
            logits = np.column_stack([features[fit.test], np.ones(len(fit.test))]) @ theirs.double().numpy()
            np.testing.assert_array_equal(predicted[at][place], logits.argmax(axis=1))


def slow(scheme, features, labels, parts):
    """SentEval's protocol as a plain loop over folds and decays, one classifier after another."""

    def accuracy(train, dev, held_out, decay, test):
        weights = alone(features, labels, train, dev, held_out, decay, int(labels.max()) + 1)
        inputs = torch.tensor(np.column_stack([features[test], np.ones(len(test))]), dtype=torch.float32)
        return 100 * np.mean((inputs @ weights).argmax(1).numpy() == labels[test])

    def chosen(fits):
        scores = [np.mean([accuracy(f.train, f.dev, False, decay, f.dev) for f in fits]) for decay in DECAYS]
        best = max(range(len(DECAYS)), key=lambda at: (round(scores[at], 2), -at))
        return scores[best], DECAYS[best]

    if scheme == "nested":
        outer = ten(labels)
        picked = [chosen(ten(labels, fit.train)) for fit in outer]
        tested = [accuracy(f.train, None, True, decay, f.test) for f, (_, decay) in zip(outer, picked, strict=True)]
        return np.mean([score for score, _ in picked]), np.mean(tested), tuple(decay for _, decay in picked)
    score, decay = chosen(ten(labels, parts[0]))
    return score, accuracy(parts[0], None, True, decay, parts[1]), (decay,)


DECAYS = (1e-5, 1e-4, 1e-3, 1e-2)


@pytest.mark.parametrize(("scheme", "classes"), [("nested", 2), ("folded", 3)])
def test_the_protocol_is_the_slow_loop_over_folds_and_decays(scheme, classes, monkeypatch):
    features, labels = problem(128, 6, classes, 5)
    features = features.astype(np.float32)
    parts = np.arange(100), np.arange(100, 128)
    monkeypatch.setattr(probes, "MAX_EPOCHS", 4)  # both sides stop after 8 epochs at the latest
    monkeypatch.setitem(globals(), "MAX_EPOCHS", 4)
    if scheme == "nested":
        judged = folds.nested(probes.senteval, features, labels, DECAYS)
    else:
        judged = folds.folded(probes.senteval, features, labels, DECAYS, *parts)
    dev, accuracy, decays = slow(scheme, features, labels, parts)
    assert judged.strengths == decays and module.GRIDS["senteval"] == pytest.approx(DECAYS)
    assert judged.dev == pytest.approx(dev) and judged.accuracy == pytest.approx(accuracy)


def majority(features, labels, fits, strengths):
    """A solver that remembers what it is asked, and right only with the third strength."""
    majority.asked.append((fits, strengths))
    right = np.asarray(strengths) == 4.0
    return [np.where(right[at][:, None], labels[fit.test], 1 - labels[fit.test]) for at, fit in enumerate(fits)]


def test_the_folds_are_sentevals_and_one_call_has_them_all():
    labels = np.repeat([0, 1], [70, 55])
    majority.asked = []
    judged = folds.nested(majority, np.zeros((125, 1)), labels, [1.0, 2.0, 4.0, 8.0])
    (inner, grid), (outer, chosen) = majority.asked
    assert grid.shape == (100, 4) and chosen.ravel().tolist() == [4.0] * 10 == list(judged.strengths)
    for at, fit in enumerate(ten(labels)):
        assert (outer[at].train == fit.train).all() and (outer[at].test == fit.test).all() and outer[at].dev is None
        for place, within in enumerate(ten(labels, fit.train)):
            one = inner[10 * at + place]
            assert (one.train == within.train).all() and (one.dev == within.test).all() and one.dev is one.test
    assert judged.dev == judged.accuracy == 100

    majority.asked = []
    train, dev, test = np.arange(0, 110), np.arange(110, 118), np.arange(118, 125)
    judged = folds.folded(majority, np.zeros((125, 1)), labels, [1.0, 4.0], train, test)
    (inner, _), (final, chosen) = majority.asked
    assert [fit.dev.tolist() for fit in inner] == [fit.dev.tolist() for fit in ten(labels, train)]
    assert (final[0].train == train).all() and final[0].dev is None and (final[0].test == test).all()
    assert judged.strengths == (4.0,) and (judged.predicted == labels[test]).all()

    majority.asked = []
    folds.split(majority, np.zeros((125, 1)), labels, [1.0, 4.0], train, dev, test)
    (inner, _), (final, _) = majority.asked
    assert (inner[0].dev == dev).all() and (inner[0].test == dev).all() and (final[0].dev == dev).all()


def test_equal_accuracies_fall_on_the_first_strength():
    labels = np.arange(60) % 2
    half = folds.nested(
        lambda x, y, fits, s: [np.zeros((s.shape[1], len(fit.test)), int) for fit in fits], labels, labels, [1.0, 2.0]
    )
    assert half.strengths == (1.0,) * 10 and half.accuracy == 50


def test_what_folds_cannot_judge_is_undefined():
    for labels, told in (
        (np.zeros(50, int), "all 50 rows are of one class"),
        (np.repeat([0, 1], [40, 9]), "class 1 has 9 of 49 rows, and 10 folds need one each"),
        (np.repeat([0, 1], [40, 10]), "class 1 has 9 of 45 rows"),  # an inner fold is short of one
    ):
        with pytest.raises(Undefined, match=told):
            folds.nested(logistic.lbfgs, np.zeros((len(labels), 1)), labels, [1.0])
    rows, labels = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 2
    with pytest.raises(Undefined, match="fold 0 has no training row of class 1"):
        logistic.lbfgs(rows, labels, [Fit(np.array([0, 2]), None, np.arange(4))], np.ones((1, 1)))
    with pytest.raises(Undefined, match="5 % of 12 training rows are none to stop on"):
        probes.senteval(rows, labels, [Fit(np.arange(12), None, np.arange(4))], np.ones((1, 1)))
    with pytest.raises(ValueError, match="a strength is 0: give C above 0"):
        logistic.solve(rows, labels, [Fit(np.arange(12), None, np.arange(4))], np.zeros((1, 1)))
    with pytest.raises(ValueError, match="a decay is 0: give it above 0"):
        logistic.lbfgs(rows, labels, [Fit(np.arange(12), None, np.arange(4))], np.zeros((1, 1)))
    rows[3, 0] = np.nan
    with pytest.raises(ValueError, match="features of row 3 are not finite"):
        logistic.lbfgs(rows, labels, [Fit(np.arange(12), None, np.arange(4))], np.ones((1, 1)))


@pytest.mark.parametrize("protocol", ["lbfgs", "senteval"])
def test_the_suite_asks_for_each_sentence_once_and_names_its_protocol(protocol):
    encoder = Words(64)
    names = list(TASKS) if protocol == "lbfgs" else ["sst2", "mrpc"]
    results = transfer(encoder, tasks=names, protocol=protocol, source="synthetic")
    assert len(encoder.asked) == len(set(encoder.asked))
    assert list(results.tasks) == names and results.source == "synthetic"
    frame = results.to_frame()
    assert (frame.protocol == protocol).all() and f"protocol {protocol}" in str(results)
    assert results.average == pytest.approx(np.mean([task.accuracy for task in results.tasks.values()]))
    assert frame.loc["average", "accuracy"] == results.average
    for name, task in results.tasks.items():
        assert (task.f1 is not None) == (name == "mrpc")
        assert len(task.strengths) == (10 if TASKS[name][0] == "nested" else 1)
        assert set(task.strengths) <= set(GRIDS[protocol])
        assert len(task.right) == task.test
        # Outer folds may differ by one row, so that the mean of their accuracies is not quite that of the rows.
        assert 100 * task.right.mean() == pytest.approx(task.accuracy, abs=0.1)
    assert results.tasks["sst2"].accuracy > 70
    json.dumps(results.to_dict(), allow_nan=False)


def test_mrpc_is_scikit_learn_on_the_two_features():
    results = transfer(Words(), tasks=["mrpc"], source="synthetic")
    sides = {}
    for part in ("train", "test"):
        table = data.load("mrpc", split=part, source="synthetic")
        first, second = (Words().encode(list(side)) for side in (table.text, table.second))
        sides[part] = np.hstack([abs(first - second), first * second]), table.label
    (decay,) = results.tasks["mrpc"].strengths
    best = LogisticRegression(C=2 / (300 * decay), tol=1e-10, max_iter=10000).fit(*sides["train"])
    predicted = best.predict(sides["test"][0])
    assert results.tasks["mrpc"].accuracy == pytest.approx(100 * np.mean(predicted == sides["test"][1]))
    assert results.tasks["mrpc"].f1 == pytest.approx(100 * f1_score(sides["test"][1], predicted))
    assert (results.tasks["mrpc"].train, results.tasks["mrpc"].test) == (300, 120)


def test_rows_stand_in_sentevals_order(monkeypatch):
    table = LabelledTexts(("a b", ".", "c", "d e", "f", "g h"), None, [0, 0, 1, 1, 0, 0], ("no", "yes"))
    assert module._ordered("cr", table).text == (".", "f", "c", "a b", "g h", "d e")
    assert module._ordered("mr", table).text[:3] == (".", "f", "c")
    assert module._ordered("subj", table).text == ("c", ".", "f", "d e", "a b", "g h")
    pairs = LabelledTexts(("a b", "a", "b"), ("c", "d e", "f"), [0, 0, 1], ("no", "yes"))
    assert module._ordered("mrpc", pairs).text == ("b", "a", "a b")


def test_too_few_rows_are_undefined_and_spoil_the_average():
    results = transfer(Words(), tasks=["mr", "trec"], source="synthetic", limit=40)
    assert results.tasks["mr"].accuracy is not None and results.tasks["mr"].train == 40
    assert results.scores["trec"] is None and results.average is None
    frame = results.to_frame()
    assert frame.loc["trec", "accuracy"] == frame.loc["average", "accuracy"] == "undefined"
    assert "trec: class" in str(results) and "at most 40 rows a part" in str(results)
    assert results.to_dict()["average"] == "undefined"


def test_wrong_options_are_refused_before_anything_is_embedded():
    encoder = Words()
    for options, told in (
        ({"tasks": ["sst5"]}, "unknown transfer task 'sst5': choose among mr, cr"),
        ({"tasks": []}, "no tasks to judge"),
        ({"protocol": "adam"}, "protocol is 'adam': take 'lbfgs' or 'senteval'"),
        ({"limit": 0}, "limit is 0: give at least 1 row"),
    ):
        with pytest.raises(ValueError, match=told):
            transfer(encoder, source="synthetic", **options)
    assert encoder.asked == []


def test_a_cache_is_read_in_place_of_the_encoder(tmp_path):
    first, again, other, cache = Words(), Words(), Words(fingerprint="other weights"), tmp_path / "cache"
    plain = transfer(Words(), tasks=["cr", "mrpc"], source="synthetic")
    cached = [transfer(one, tasks=["cr", "mrpc"], source="synthetic", cache=cache) for one in (first, again, other)]
    assert first.asked and again.asked == [] and other.asked == first.asked
    assert all(results.tasks == plain.tasks for results in cached)
    more = Words()
    transfer(more, tasks=["cr", "sst2"], source="synthetic", cache=cache)
    assert more.asked and not set(more.asked) & set(first.asked)
    assert not [file for file in cache.rglob("*") if file.is_file() and file.suffix != ".safetensors"]


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=20))
def test_embeddings_come_in_the_order_asked_for(texts):
    embedded = embed(Words(), texts)
    assert list(embedded.position) == list(dict.fromkeys(texts))
    np.testing.assert_array_equal(embedded.of(texts[::-1]), Words().encode(texts[::-1]))


def test_an_interrupted_run_loses_one_shard_and_broken_files_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("pcclab.evaluation.embeddings.SHARD", 2)
    texts = ["a", "b", "c", "d", "e"]

    class Breaks(Words):
        def encode(self, sentences):
            if "c" in sentences:
                raise KeyboardInterrupt
            return super().encode(sentences)

    with pytest.raises(KeyboardInterrupt):
        embed(Breaks(), texts, cache=tmp_path)
    resumed = Words()
    np.testing.assert_array_equal(embed(resumed, texts, cache=tmp_path).vectors, Words().encode(texts))
    assert resumed.asked == ["c", "d", "e"]
    (broken, *_) = tmp_path.rglob("*.safetensors")
    broken.write_bytes(b"no")
    with pytest.raises(ValueError, match="is no cache of embeddings .*: delete it"):
        embed(Words(), texts, cache=tmp_path)


def test_a_cache_that_cannot_be_written_is_told_and_costs_nothing(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pcclab.evaluation.embeddings._write", full)
    with pytest.warns(UserWarning, match="embeddings cannot be kept in .*: No space left on device"):
        embedded = embed(Words(), ["a", "b"], cache=tmp_path)
    np.testing.assert_array_equal(embedded.vectors, Words().encode(["a", "b"]))


def test_embeddings_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="SimpleNamespace has no fingerprint"):
        embed(SimpleNamespace(encode=len), ["a"], cache=tmp_path)
    with pytest.raises(ValueError, match=r"an array of shape \(1, 2\) for 2 sentences"):
        embed(SimpleNamespace(encode=lambda texts: np.ones((1, 2))), ["a", "b"])
    with pytest.raises(ValueError, match="embedding 1 is not finite"):
        embed(SimpleNamespace(encode=lambda texts: np.array([[1.0], [np.inf]])), ["a", "b"])


@pytest.mark.real_data
def test_real_questions_and_pairs_are_judged_on_sentevals_parts(senteval):
    results = transfer(Words(64), tasks=["trec", "mrpc"], source=senteval)
    assert [(task.train, task.test) for task in results.tasks.values()] == [(5452, 500), (4076, 1725)]
    guessing = {"trec": 100 * 138 / 500, "mrpc": 100 * 1147 / 1725}  # the most frequent class of the test rows
    for name, task in results.tasks.items():
        counts = np.bincount(data.load(name, split="test", source=senteval).label)
        assert guessing[name] == 100 * counts.max() / counts.sum() < task.accuracy
