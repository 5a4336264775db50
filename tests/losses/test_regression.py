"""The regression losses against slow loops, what both ends of the labels forgive, what the published code did."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics
from torch.testing import assert_close

from pcclab import losses

REGRESSION = {
    "l1": (losses.l1, lambda x: x),
    "mse": (losses.mse, lambda x: x * x),
    "translated_relu": (losses.translated_relu, lambda x: 2.5 * (x - 0.25) if x >= 0.25 else 0.0),
    "smooth_k2": (losses.smooth_k2, lambda x: 2 * (x * x - 2 * 0.25 * x + 0.25 * 0.25) if x >= 0.25 else 0.0),
}
every_loss = pytest.mark.parametrize("name", REGRESSION)
buffered = pytest.mark.parametrize("loss", [losses.translated_relu, losses.smooth_k2])


def tensor(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def gradient(loss, prediction: float, gold: float, **options) -> float:
    x = tensor(prediction).requires_grad_()
    loss(x, tensor(gold), **options).backward()
    return float(x.grad)


def slow(cost, predictions, golds, ends, label_range):
    """The papers' piecewise formulas, pair by pair; the published code as facts say it."""
    total = 0.0
    for prediction, gold in zip(predictions, golds, strict=True):
        if ends == "published":
            prediction, gold = max(prediction, 0.0), int(gold)
        elif ends == "both" and label_range is not None:
            low, high = label_range
            if (gold == high and prediction > high) or (gold == low and prediction < low):
                continue
        total += cost(abs(prediction - gold))
    return total / len(golds)


batches = st.lists(st.tuples(st.floats(-3, 8), st.integers(0, 25)), min_size=1, max_size=12)


@every_loss
@settings(deadline=None)
@given(batches, st.sampled_from(["both", "published", "none"]), st.booleans())
def test_equals_a_slow_loop(name, batch, ends, ranged):
    loss, cost = REGRESSION[name]
    predictions, golds = [p for p, _ in batch], [step / 5 for _, step in batch]
    label_range = (0.0, 5.0) if ranged else None
    fast = loss(tensor(*predictions), tensor(*golds), ends=ends, label_range=label_range)
    assert float(fast) == pytest.approx(slow(cost, predictions, golds, ends, label_range), abs=1e-9)


@every_loss
def test_beyond_an_end_costs_nothing_where_the_gold_is_that_end(name):
    loss, _ = REGRESSION[name]
    for prediction, gold in ((3.57, 3.0), (-1.2, 0.0), (1e6, 3.0)):
        assert loss(tensor(prediction), tensor(gold), label_range=(0, 3)) == 0
        assert gradient(loss, prediction, gold, label_range=(0, 3)) == 0
        assert loss(tensor(prediction), tensor(gold), label_range=(0, 3), ends="none") > 0


@every_loss
@settings(deadline=None)
@given(st.floats(-4, 6), st.integers(0, 3))
def test_every_other_prediction_keeps_its_cost_and_its_gradient(name, prediction, gold):
    loss, _ = REGRESSION[name]
    if (gold == 3 and prediction > 3) or (gold == 0 and prediction < 0):
        return
    options = {"label_range": (0, 3)}
    assert loss(tensor(prediction), tensor(gold), **options) == loss(tensor(prediction), tensor(gold))
    assert gradient(loss, prediction, gold, **options) == gradient(loss, prediction, gold, ends="none")


@every_loss
def test_published_variant_is_dead_below_zero_and_the_default_is_alive(name):
    loss, _ = REGRESSION[name]
    for gold in (0.0, 1.0, 2.0):
        assert gradient(loss, -0.7, gold, ends="published", label_range=(0, 2)) == 0
    assert loss(tensor(-0.7), tensor(2.0), ends="published") > 0  # it costs, and nothing can be done about it
    for gold in (1.0, 2.0):
        assert gradient(loss, -0.7, gold, label_range=(0, 2)) < 0  # downhill is upwards


@every_loss
def test_published_variant_forgives_the_left_end_alone(name):
    loss, _ = REGRESSION[name]
    options = {"label_range": (0, 2), "ends": "published"}
    assert loss(tensor(-0.9), tensor(0.0), **options) == 0
    assert loss(tensor(2.9), tensor(2.0), **options) > 0


@every_loss
def test_published_variant_cuts_ratings_to_whole_numbers(name):
    loss, _ = REGRESSION[name]
    assert loss(tensor(4.0), tensor(4.8), ends="published") == 0
    assert loss(tensor(4.0), tensor(4.8)) > 0


@every_loss
def test_no_label_range_forgives_nothing(name):
    loss, _ = REGRESSION[name]
    assert loss(tensor(9.0), tensor(5.0)) == loss(tensor(9.0), tensor(5.0), ends="none") > 0


@every_loss
def test_a_last_label_is_met_in_the_precision_of_the_gold(name):
    loss, _ = REGRESSION[name]
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        prediction, gold = torch.tensor([1.5], dtype=dtype), torch.tensor([0.6], dtype=dtype)
        assert loss(prediction, gold, label_range=(0, 0.6)) == 0


@every_loss
@settings(deadline=None)
@given(st.floats(-2, 4), st.sampled_from(["both", "published", "none"]), st.sampled_from([0, 1, 2]))
def test_is_continuous_in_the_prediction(name, prediction, ends, gold):
    loss, _ = REGRESSION[name]
    here, there = (
        loss(tensor(p), tensor(gold), ends=ends, label_range=(0, 2)) for p in (prediction, prediction + 1e-7)
    )
    assert abs(float(here - there)) < 1e-5


@buffered
@settings(deadline=None)
@given(st.floats(0, 1), st.floats(-1, 1), st.floats(0.1, 5))
def test_the_buffer_zone_is_free_and_without_gradient(loss, share, side, slope):
    threshold = 0.25 * share
    prediction = 3 + side * threshold * 0.999
    options = {"slope": slope, "threshold": threshold}
    assert loss(tensor(prediction), tensor(3.0), **options) == 0
    assert gradient(loss, prediction, 3.0, **options) == 0


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("k", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("d", [0.5, 1.0, 2.0])
def test_smooth_k2_starts_flat_at_x0_and_has_the_papers_value_and_slope_at_d(side, k, d):
    x0 = d / 4
    options = {"slope": k, "threshold": x0, "interval": d}
    assert losses.smooth_k2(tensor(4 + side * x0), tensor(4.0), **options) == 0
    assert gradient(losses.smooth_k2, 4 + side * x0, 4.0, **options) == 0
    value = losses.smooth_k2(tensor(4 + side * d), tensor(4.0), **options)
    assert float(value) == pytest.approx(k * (d * d - 2 * x0 * d + x0 * x0))
    assert gradient(losses.smooth_k2, 4 + side * d, 4.0, **options) == pytest.approx(side * 2 * k * (d - x0))


def test_translated_relu_jumps_to_its_slope_at_x0_where_smooth_k2_does_not():
    just = 1e-6
    assert gradient(losses.translated_relu, 0.25 + just, 0.0, slope=2) == 2
    assert gradient(losses.smooth_k2, 0.25 + just, 0.0, slope=2) == pytest.approx(4 * just, rel=1e-3)


@settings(deadline=None)
@given(batches)
def test_without_a_buffer_zone_they_are_l1_and_mse(batch):
    prediction, gold = tensor(*(p for p, _ in batch)), tensor(*(step / 5 for _, step in batch))
    options = {"slope": 1, "threshold": 0}
    assert_close(losses.translated_relu(prediction, gold, **options), losses.l1(prediction, gold))
    assert_close(losses.smooth_k2(prediction, gold, **options), losses.mse(prediction, gold))
    assert float(losses.l1(prediction, gold)) == pytest.approx(metrics.mean_absolute_error(gold, prediction))
    assert float(losses.mse(prediction, gold)) == pytest.approx(metrics.mean_squared_error(gold, prediction))


@buffered
def test_a_threshold_above_half_the_interval_is_refused(loss):
    loss(tensor(1.0), tensor(1.0), threshold=0.5)  # half itself is the paper's limit
    with pytest.raises(ValueError, match=r"threshold is 0\.51: .*half the label interval, 0\.5,.*lower it"):
        loss(tensor(1.0), tensor(1.0), threshold=0.51)
    loss(tensor(1.0), tensor(1.0), threshold=0.51, interval=2)
    for threshold in (-0.01, math.nan):
        with pytest.raises(ValueError, match="threshold is"):
            loss(tensor(1.0), tensor(1.0), threshold=threshold)


@buffered
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_a_slope_or_interval_that_is_not_above_zero_is_refused(loss, value):
    with pytest.raises(ValueError, match="slope is"):
        loss(tensor(1.0), tensor(1.0), slope=value)
    with pytest.raises(ValueError, match="interval is"):
        loss(tensor(1.0), tensor(1.0), interval=value)


@every_loss
@pytest.mark.parametrize("ends", ["both", "published", "none"])
def test_a_gold_outside_the_label_range_is_refused(name, ends):
    loss, _ = REGRESSION[name]
    for wrong in (5.2, -0.2):
        with pytest.raises(ValueError, match=f"gold {wrong} is outside label_range 0 to 5"):
            loss(tensor(1.0, 1.0), tensor(2.0, wrong), label_range=(0, 5), ends=ends)


@every_loss
def test_other_bad_input_is_refused(name):
    loss, _ = REGRESSION[name]
    for label_range in ((5, 0), (1, 1), (0, math.nan), (0, math.inf)):
        with pytest.raises(ValueError, match="label_range is"):
            loss(tensor(1.0), tensor(1.0), label_range=label_range)
    with pytest.raises(ValueError, match="ends is 'right'"):
        loss(tensor(1.0), tensor(1.0), ends="right")
    with pytest.raises(ValueError, match="gold holds NaN"):
        loss(tensor(1.0), tensor(math.nan))
    with pytest.raises(ValueError, match=r"shapes \(2,\) and \(1,\)"):
        loss(tensor(1.0, 2.0), tensor(1.0))
    with pytest.raises(ValueError, match=r"0 pair\(s\)"):
        loss(tensor(), tensor())


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(2, 5), st.integers(0, 999))
def test_cross_entropy_equals_torch_and_sklearn(rows, classes, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    label = torch.randint(classes, (rows,), generator=generator)
    value = losses.cross_entropy(logits, label)
    assert_close(value, torch.nn.CrossEntropyLoss()(logits, label))
    shares = logits.softmax(1)
    reference = metrics.log_loss(label.numpy(), (shares / shares.sum(1, keepdim=True)).numpy(), labels=range(classes))
    assert float(value) == pytest.approx(reference, abs=1e-9)


def test_cross_entropy_does_not_know_the_order_of_the_classes():
    near, far = tensor(0.0, 4.0, 0.0)[None], tensor(4.0, 0.0, 0.0)[None]
    entailment = torch.tensor([2])
    assert losses.cross_entropy(near, entailment) == losses.cross_entropy(far, entailment)
    assert losses.mse(tensor(1.0), tensor(2.0)) < losses.mse(tensor(0.0), tensor(2.0))


def test_cross_entropy_refuses_what_is_no_class():
    logits = torch.zeros(2, 3)
    for wrong in (3, -1):
        with pytest.raises(ValueError, match=f"label {wrong} is outside 0 to 2"):
            losses.cross_entropy(logits, torch.tensor([0, wrong]))
    for label in (torch.tensor([0.0, 1.0]), torch.tensor([False, True])):
        with pytest.raises(ValueError, match="whole number; give int64"):
            losses.cross_entropy(logits, label)
    for shape, label in (((2, 3), [0]), ((3,), [0, 1, 2])):
        with pytest.raises(ValueError, match="shapes"):
            losses.cross_entropy(torch.zeros(shape), torch.tensor(label))
    with pytest.raises(ValueError, match=r"1 class\(es\): a choice needs at least 2"):
        losses.cross_entropy(torch.zeros(2, 1), torch.tensor([0, 0]))
    with pytest.raises(ValueError, match=r"0 pair\(s\)"):
        losses.cross_entropy(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64))
