"""Intervals of accuracy and geometry equal a slow resampling of the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest

from pcclab.evaluation import accuracy_interval
from pcclab.evaluation.correlation import spearman
from pcclab.evaluation.geometry import alignment, anisotropy, uniformity
from pcclab.evaluation.intervals import accuracy_intervals, geometry_intervals, sts_intervals
from pcclab.evaluation.statistics import bootstrap
from pcclab.evaluation.transfer_results import TransferScore


def rows(frame):
    return frame.set_index("task")


def test_a_task_has_the_bootstrap_of_its_pairs_and_the_average_is_narrower():
    draw = np.random.default_rng(0)
    gold = draw.integers(0, 6, 300).astype(float)
    scored = {name: (gold + draw.normal(size=300) * noise, gold) for name, noise in (("a", 1.0), ("b", 2.0))}
    found = rows(sts_intervals(scored, resamples=800))
    for name, (similarity, _) in scored.items():
        alone = bootstrap(similarity, gold, resamples=800)
        assert found.value[name] == pytest.approx(100 * spearman(similarity, gold))
        # Another stream of the same bootstrap: the ends agree to the error of 800 resamples.
        assert (found.low[name], found.high[name]) == pytest.approx((alone.low, alone.high), abs=1.2)
    assert found.value["average"] == pytest.approx(found.value[["a", "b"]].mean())
    width = found.high - found.low
    assert width["average"] < width[["a", "b"]].mean()


def test_a_task_without_a_value_spoils_the_average_only():
    gold = np.arange(20.0)
    found = rows(sts_intervals({"flat": (np.ones(20), gold), "good": (gold, gold)}, resamples=50))
    assert np.isnan(found.value["flat"]) and np.isnan(found.value["average"])
    assert found.value["good"] == pytest.approx(100)


def test_an_accuracy_has_wilsons_interval_and_their_average_a_bootstrap():
    right = {"mr": np.arange(200) < 170, "cr": np.arange(120) < 60}
    scores = {task: TransferScore(100, len(rows), None, 100 * rows.mean()) for task, rows in right.items()}
    found = rows(accuracy_intervals(scores, resamples=20_000))
    for task, answers in right.items():
        assert (found.low[task], found.high[task]) == pytest.approx(accuracy_interval(answers))
    draw = np.random.default_rng(1)
    drawn = 50 * sum(draw.choice(answers, (20_000, len(answers))).mean(axis=1) for answers in right.values())
    ends = (found.low["average"], found.high["average"])
    assert ends == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=0.3)
    assert "average" not in rows(accuracy_intervals({"mr": scores["mr"]})).index
    both = rows(accuracy_intervals({"mr": scores["mr"], "cr": TransferScore(9, 9, None, None)}))
    assert both[["value", "low", "high"]].loc["average"].isna().all()
    perfect = rows(accuracy_intervals({"trec": TransferScore(9, 9, None, 100.0)}))
    assert perfect.low["trec"] < perfect.high["trec"] == pytest.approx(100)


def test_geometry_is_what_its_functions_say_and_its_intervals_those_of_drawn_sentences():
    draw = np.random.default_rng(3)
    vectors = draw.normal(size=(60, 8)) + 0.7
    first, second = vectors[:25], vectors[:25] + 0.3 * draw.normal(size=(25, 8))
    found = rows(geometry_intervals(first, second, vectors, resamples=2000))
    assert found.value["alignment"] == pytest.approx(alignment(first, second))
    assert found.value["uniformity"] == pytest.approx(uniformity(vectors).value)
    assert found.value["mean cosine"] == pytest.approx(anisotropy(vectors).cosine)
    assert found.value["first component's share"] == pytest.approx(anisotropy(vectors).first_share)
    assert np.isnan(found.low["first component's share"])
    assert found.number.to_list() == [25, 60, 60, 60]
    slow = {"alignment": [], "uniformity": [], "mean cosine": []}
    for _ in range(400):
        pairs, texts = draw.integers(0, 25, 25), draw.integers(0, 60, 60)
        slow["alignment"].append(alignment(first[pairs], second[pairs]))
        unit = vectors[texts] / np.linalg.norm(vectors[texts], axis=1, keepdims=True)
        apart = texts[:, None] != texts  # a sentence is never paired with its own copy
        cosines = (unit @ unit.T)[apart]
        slow["mean cosine"].append(cosines.mean())
        slow["uniformity"].append(np.log(np.exp(-2 * (2 - 2 * cosines)).mean()))
    for name, drawn in slow.items():
        low, high = np.quantile(drawn, [0.025, 0.975])
        ends = (found.low[name], found.high[name])
        assert ends == pytest.approx((low, high), abs=0.35 * (high - low)), name
        assert found.low[name] < found.value[name] < found.high[name]


def test_a_level_that_is_none_is_refused():
    with pytest.raises(ValueError, match="level=95"):
        accuracy_intervals({"mr": TransferScore(9, 9, None, 50.0)}, level=95)
