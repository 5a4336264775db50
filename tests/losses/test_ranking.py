"""RankCSE's listwise losses: scipy, counted permutations and slow loops as references, padding, the public port."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy
from torch.testing import assert_close

from pcclab import losses

NAN = float("nan")
DISTILLING = [losses.listnet, losses.listmle]
distilling = pytest.mark.parametrize("loss", DISTILLING)
seeds = st.integers(0, 999)


def lists(rows: int, items: int, seed: int = 0) -> list[torch.Tensor]:
    """Two matrices of cosines."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.rand(rows, items, generator=generator, dtype=torch.float64) * 2 - 1 for _ in range(2)]


def alive(student: torch.Tensor) -> torch.Tensor:
    return student.clone().requires_grad_()


# --- ranking consistency


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(2, 7), seeds, st.sampled_from([0.05, 0.3, 1.0]))
def test_consistency_equals_scipys_jensen_shannon(rows, items, seed, temperature):
    first, second = lists(rows, items, seed)
    p, q = ((side / temperature).softmax(1).numpy() for side in (first, second))
    reference = (jensenshannon(p, q, axis=1) ** 2).mean()
    value = losses.ranking_consistency(first, second, temperature=temperature)
    assert value.item() == pytest.approx(reference, abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(deadline=None)
@given(st.integers(2, 7), seeds, st.floats(-0.5, 0.5))
def test_consistency_of_a_view_with_itself_is_zero_and_flat(dtype, items, seed, shift):
    view = lists(4, items, seed)[0].to(dtype)
    one, other = alive(view), alive(view)
    value = losses.ranking_consistency(one, other)
    value.backward()
    assert value == 0
    assert one.grad.abs().max() < 1e-5 and other.grad.abs().max() < 1e-5
    assert abs(float(losses.ranking_consistency(view, view + shift))) < 1e-6


@settings(deadline=None)
@given(st.integers(2, 7), seeds, st.sampled_from([1e-3, 0.05, 1.0]))
def test_consistency_is_symmetric_and_at_most_log_two(items, seed, temperature):
    first, second = lists(4, items, seed)
    value = losses.ranking_consistency(first, second, temperature=temperature)
    assert_close(losses.ranking_consistency(second, first, temperature=temperature), value)
    assert -1e-12 <= value <= math.log(2) + 1e-12


def test_consistency_of_views_that_share_nothing_is_log_two_and_finite():
    first = alive(torch.tensor([[1.0, -1.0], [-1.0, 1.0]]))
    value = losses.ranking_consistency(first, -first.detach(), temperature=1e-3)  # either side underflows
    value.backward()
    assert value.item() == pytest.approx(math.log(2))
    assert torch.isfinite(first.grad).all()


@settings(deadline=None)
@given(st.integers(2, 7), seeds)
def test_the_ports_divergence_is_negative_entropy(items, seed):
    first, second = lists(4, items, seed)
    p, q = ((side / 0.05).softmax(1) for side in (first, second))
    published = losses.ranking_consistency(first, second, variant="published")
    assert float(published) == pytest.approx(-(entropy(p, axis=1) + entropy(q, axis=1)).mean() / 2, abs=1e-9)
    # As the port comes to it: the logarithm of the mixture clamped to a small positive number.
    mixture = ((p + q) / 2).log().clamp(min=1e-7)
    port = sum((side * (side.log() - mixture)).nansum(1).mean() for side in (p, q)) / 2
    assert_close(published, port, atol=1e-6, rtol=0)


def test_the_ports_divergence_does_not_compare_and_ours_does():
    view, other = lists(4, 5)
    published = [float(losses.ranking_consistency(view, side, variant="published")) for side in (view, view.flip(1))]
    assert published[0] == pytest.approx(published[1]) and published[0] < -0.01  # the same for a view turned about
    ours = [float(losses.ranking_consistency(view, side)) for side in (view, view.flip(1))]
    assert ours[0] == 0 and ours[1] > 0.1
    same = alive(view)
    losses.ranking_consistency(same, view, variant="published").backward()
    assert same.grad.abs().max() > 0.01  # it moves views that agree already
    assert losses.ranking_consistency(view, other) > 0


# --- listnet


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(2, 7), seeds)
def test_listnet_equals_a_slow_loop(rows, items, seed):
    student, teacher = lists(rows, items, seed)
    total = 0.0
    for i in range(rows):
        kept = [j for j in range(items) if rows != items or j != i]
        top = sum(math.exp(float(teacher[i, j]) / 0.3) for j in kept)
        guess = sum(math.exp(float(student[i, j]) / 0.5) for j in kept)
        for j in kept:
            truth = math.exp(float(teacher[i, j]) / 0.3) / top
            total -= truth * math.log(math.exp(float(student[i, j]) / 0.5) / guess)
    value = losses.listnet(student, teacher, student_temperature=0.5, teacher_temperature=0.3)
    assert value.item() == pytest.approx(total / rows, abs=1e-9)


@settings(deadline=None)
@given(st.integers(2, 7), seeds, st.floats(-0.5, 0.5))
def test_listnets_minimum_is_the_teachers_entropy_where_tempered_lists_agree(items, seed, shift):
    other, teacher = lists(4, items, seed)
    floor = entropy((teacher / 0.2).softmax(1), axis=1).mean()
    options = {"student_temperature": 0.5, "teacher_temperature": 0.2, "positive": "keep"}
    student = alive(teacher * 0.5 / 0.2 + shift)
    value = losses.listnet(student, teacher, **options)
    value.backward()
    assert value.item() == pytest.approx(floor, abs=1e-9)
    assert student.grad.abs().max() < 1e-9
    assert losses.listnet(other, teacher, **options) >= floor - 1e-9


# --- listmle


def likelihood(scores: list[float], order: tuple[int, ...]) -> float:
    """Plackett-Luce: draw the items one by one."""
    chance = 1.0
    for place in range(len(order)):
        left = [math.exp(scores[j]) for j in order[place:]]
        chance *= left[0] / sum(left)
    return chance


@settings(deadline=None)
@given(st.integers(2, 6), seeds, st.sampled_from([0.3, 1.0]))
def test_listmle_equals_the_brute_force_permutation_probability(items, seed, temperature):
    student, teacher = (side[:1] for side in lists(2, items, seed))
    scores = [float(s) / temperature for s in student[0]]
    chances = {order: likelihood(scores, order) for order in itertools.permutations(range(items))}
    assert sum(chances.values()) == pytest.approx(1)
    order = tuple(teacher[0].argsort(descending=True).tolist())
    value = losses.listmle(student, teacher, temperature=temperature, variant="sum", positive="keep")
    assert value.item() == pytest.approx(-math.log(chances[order]), abs=1e-9)
    mean = losses.listmle(student, teacher, temperature=temperature, positive="keep")
    assert_close(mean * items, value)


@settings(deadline=None)
@given(st.integers(2, 7), st.data())
def test_tied_items_compete_with_each_other(items, data):
    student = lists(1, items, seed=items)[0]
    teacher = torch.tensor([data.draw(st.lists(st.integers(0, 2), min_size=items, max_size=items))]).double()
    total = 0.0
    for i in range(items):
        rivals = [math.exp(float(student[0, j]) / 0.5) for j in range(items) if teacher[0, j] <= teacher[0, i]]
        total -= math.log(math.exp(float(student[0, i]) / 0.5) / sum(rivals))
    value = losses.listmle(student, teacher, temperature=0.5)
    assert value.item() == pytest.approx(total / items, abs=1e-9)
    turned = losses.listmle(student.flip(1), teacher.flip(1), temperature=0.5)
    assert_close(turned, value)  # no order of the columns is learned


def test_a_teacher_that_ties_all_and_a_student_that_agrees_have_nothing_to_learn():
    student = alive(torch.full((3, 5), 0.4))
    losses.listmle(student, torch.ones(3, 5)).backward()
    assert student.grad.abs().max() < 1e-6


@settings(deadline=None)
@given(st.integers(2, 7), seeds)
def test_listmle_reads_the_teachers_order_alone(items, seed):
    student, teacher = lists(4, items, seed)
    assert_close(losses.listmle(student, teacher.exp() * 3), losses.listmle(student, teacher))


def test_only_the_mean_is_of_infonces_size():
    teacher = lists(128, 128)[1]
    same = torch.zeros_like(teacher)
    embeddings = torch.ones(128, 2)
    contrast = float(losses.info_nce(embeddings, embeddings))
    published = float(losses.listmle(same, teacher, variant="published"))
    assert contrast == pytest.approx(math.log(128), abs=1e-4)  # 4.9
    assert published == pytest.approx(math.lgamma(129)) and published == pytest.approx(496, abs=1)
    ours = float(losses.listmle(same, teacher))
    assert ours == pytest.approx(math.lgamma(128) / 127) and contrast / 2 < ours < contrast


def test_listmle_stays_finite_where_probabilities_underflow():
    student = alive(torch.linspace(-1, 1, 300)[None])
    value = losses.listmle(student, -student.detach(), temperature=1e-3)  # the teacher wants it upside down
    value.backward()
    assert torch.isfinite(value) and torch.isfinite(student.grad).all() and student.grad.abs().max() > 0


# --- the positive pair


@distilling
def test_the_positive_pair_is_out_of_both_lists(loss):
    student, teacher = lists(5, 5)
    off = ~torch.eye(5, dtype=torch.bool)
    without = loss(student[off].view(5, 4), teacher[off].view(5, 4))
    one = alive(student + 100 * torch.eye(5))
    value = loss(one, teacher - 100 * torch.eye(5))
    value.backward()
    assert_close(value, without)
    assert not one.grad.diagonal().any()
    assert not torch.isclose(loss(student, teacher, positive="keep"), without)


@distilling
def test_lists_that_are_not_square_keep_every_item(loss):
    student, teacher = lists(4, 5)
    assert loss(student, teacher) == loss(student, teacher, positive="keep")


def test_the_ports_listmle_keeps_the_positive_pair_and_sums():
    student, teacher = lists(5, 5)
    for positive in ("drop", "keep"):
        published = losses.listmle(student, teacher, variant="published", positive=positive)
        assert_close(published, losses.listmle(student, teacher, variant="sum", positive="keep"))


@distilling
def test_one_item_left_is_nothing_to_rank(loss):
    student = alive(lists(2, 2)[0])
    value = loss(student, lists(2, 2)[1])
    value.backward()
    assert value == 0 and not student.grad.any()


# --- padding


@distilling
@pytest.mark.parametrize("junk", [0.0, 7.0, NAN, math.inf])
def test_padding_leaves_both_lists(loss, junk):
    student, teacher = lists(3, 6)
    lengths = [6, 4, 2]
    alone = [float(loss(student[i : i + 1, :n], teacher[i : i + 1, :n])) for i, n in enumerate(lengths)]
    padded, short = student.clone(), teacher.clone()
    for i, n in enumerate(lengths):
        padded[i, n:], short[i, n:] = junk, NAN
    padded.requires_grad_()
    value = loss(padded, short)
    value.backward()
    assert value.item() == pytest.approx(sum(alone) / 3, abs=1e-9)
    assert torch.isfinite(padded.grad).all()
    assert not any(padded.grad[i, n:].any() for i, n in enumerate(lengths))


@distilling
def test_padding_may_stand_anywhere(loss):
    student, teacher = lists(1, 5)
    teacher[0, 1] = teacher[0, 3] = NAN
    assert_close(loss(student, teacher), loss(student[:, [0, 2, 4]], teacher[:, [0, 2, 4]]))


@distilling
def test_a_list_of_fewer_than_two_items_leaves_the_mean(loss):
    student, teacher = lists(3, 4)
    teacher[1] = NAN
    teacher[2, 1:] = NAN
    one = alive(student)
    value = loss(one, teacher)
    value.backward()
    assert_close(value, loss(student[:1], teacher[:1]))
    assert torch.isfinite(one.grad).all() and not one.grad[1:].any()


# --- what all promise


@distilling
@settings(deadline=None)
@given(st.integers(2, 6), st.integers(2, 6), seeds)
def test_gradient_is_the_derivative(loss, rows, items, seed):
    student, teacher = lists(rows, items, seed)
    teacher[0, 0] = NAN
    assert torch.autograd.gradcheck(lambda s: loss(s, teacher, **warm(loss)), alive(student))


def warm(loss) -> dict[str, float]:
    """Temperatures at which a finite difference is exact enough."""
    return {"temperature": 0.5} if loss is losses.listmle else {"student_temperature": 0.5, "teacher_temperature": 0.3}


@distilling
@pytest.mark.parametrize("positive", ["drop", "keep"])
def test_the_teacher_gets_no_gradient_and_is_not_overwritten(loss, positive):
    student, teacher = (alive(side) for side in lists(4, 4))
    before = teacher.detach().clone()
    loss(student, teacher, positive=positive).backward()
    assert teacher.grad is None and torch.equal(teacher, before)
    assert student.grad.abs().max() > 0


@pytest.mark.parametrize("loss", [*DISTILLING, losses.ranking_consistency])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_constant_rows_are_finite_in_every_precision(loss, dtype):
    for rows in (2, 6):
        student, teacher = alive(torch.full((rows, rows), 0.3, dtype=dtype)), torch.ones(rows, rows, dtype=dtype)
        value = loss(student, teacher)
        value.backward()
        assert value.dtype == torch.float32 and torch.isfinite(value) and torch.isfinite(student.grad).all()


@pytest.mark.parametrize("loss", [*DISTILLING, losses.ranking_consistency])
def test_another_count_of_texts_and_one_item_are_refused(loss):
    with pytest.raises(ValueError, match=r"shapes \(4, 4\) and \(4, 3\): .*must score"):
        loss(lists(4, 4)[0], lists(4, 3)[0])
    with pytest.raises(ValueError, match="shapes"):
        loss(torch.rand(4), torch.rand(4))
    with pytest.raises(ValueError, match=r"1 pair\(s\).*at least 2"):
        loss(*lists(1, 1))


@pytest.mark.parametrize("value", [0, -0.1, NAN, math.inf])
def test_a_temperature_that_is_not_above_zero_is_refused(value):
    sides = lists(3, 3)
    for loss, name in (
        (losses.ranking_consistency, "temperature"),
        (losses.listmle, "temperature"),
        (losses.listnet, "student_temperature"),
        (losses.listnet, "teacher_temperature"),
    ):
        with pytest.raises(ValueError, match=f"^{name} is"):
            loss(*sides, **{name: value})


@distilling
def test_a_teacher_of_infinity_or_nan_alone_is_refused(loss):
    student, teacher = lists(3, 3)
    with pytest.raises(ValueError, match="teacher holds NaN alone"):
        loss(student, torch.full_like(teacher, NAN))
    with pytest.raises(ValueError, match="teacher holds infinity"):
        loss(student, teacher.fill_diagonal_(-math.inf))


def test_an_unknown_choice_is_refused():
    sides = lists(3, 3)
    for loss, option in (
        (losses.ranking_consistency, "variant"),
        (losses.listmle, "variant"),
        (losses.listmle, "positive"),
        (losses.listnet, "positive"),
    ):
        with pytest.raises(ValueError, match=f"{option} is 'neither': give '"):
            loss(*sides, **{option: "neither"})
