"""What every loss of the catalogue promises, whatever it computes."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from pcclab import losses

NAMES = sorted(losses.CATALOGUE)
CLASSES = 3
# These judge each row alone; all others compare rows, so that one row is nothing to learn from.
ROW_BY_ROW = {"cosine_mse", "l1", "mse", "translated_relu", "smooth_k2", "cross_entropy"}
# These learn from the order of the ratings or from their deviations: equal ratings teach them nothing.
GRADED = {"pearson", "pearson_ranks", "ccc", "soft_spearman", "cosent", "angle", "kendall"}
LISTS = {"student", "teacher"}


def positional(name: str, optional: bool = True) -> list[str]:
    """Names of a loss's positional arguments."""
    parameters = inspect.signature(losses.CATALOGUE[name]).parameters.values()
    return [
        p.name
        for p in parameters
        if p.kind is not p.KEYWORD_ONLY and (optional or p.default is inspect.Parameter.empty)
    ]


def kind(argument: str, beside: list[str]) -> str:
    """What an argument of that name holds; `first` and `second` are embeddings beside ratings and lists otherwise."""
    if argument in LISTS or (argument in ("first", "second") and "gold" not in beside):
        return "lists"
    if argument in ("anchor", "positive", "negative", "first", "second", "features"):
        return "vectors"
    return argument


def arguments(
    name: str, rows: int = 6, dtype: torch.dtype = torch.float64, optional: bool = True, seed: int = 0
) -> list[Tensor]:
    """Random arguments of a loss, by the names of its parameters."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    names = positional(name, optional)
    rating = 5 * uniform(rows)
    made = {
        "similarity": lambda: 2 * uniform(rows) - 1,
        "gold": lambda: rating,
        "prediction": lambda: rating + 2 * uniform(rows) - 1,
        "logits": lambda: 4 * uniform(rows, CLASSES) - 2,
        "label": lambda: torch.randint(0, CLASSES, (rows,), generator=generator),
        "vectors": lambda: 2 * uniform(rows, 5) - 1,
        "lists": lambda: 2 * uniform(rows, rows) - 1,
    }
    values = [made[kind(argument, names)]() for argument in names]
    return [
        value if argument == "label" else value.to(dtype).requires_grad_(argument not in ("gold", "teacher"))
        for argument, value in zip(names, values, strict=True)
    ]


def with_filled(name: str, chosen: set[str], value: float, **options: object) -> list[Tensor]:
    """Arguments of which those of the chosen kinds hold one value everywhere."""
    names = positional(name)
    return [
        torch.full_like(tensor, value, requires_grad=tensor.requires_grad)
        if kind(argument, names) in chosen
        else tensor
        for argument, tensor in zip(names, arguments(name, **options), strict=True)
    ]


def permuted(name: str, values: list[Tensor], order: Tensor) -> list[Tensor]:
    """The same batch in another order; the items of a square list are the rows of the batch, so they move too."""
    names = positional(name)
    return [
        value[order][:, order] if kind(argument, names) == "lists" else value[order]
        for argument, value in zip(names, values, strict=True)
    ]


def checked_step(name: str, values: list[Tensor]) -> Tensor:
    """The loss of the values after a backward pass; value and gradients are finite."""
    value = losses.CATALOGUE[name](*values)
    assert value.shape == () and torch.isfinite(value)
    value.backward()
    assert all(v.grad is not None and torch.isfinite(v.grad).all() for v in values if v.requires_grad)
    return value


@pytest.mark.parametrize("rows", [2, 3, 6, 40])
@pytest.mark.parametrize("name", NAMES)
def test_gives_a_finite_scalar_and_a_finite_gradient(name, rows):
    assert checked_step(name, arguments(name, rows=rows)).dtype == torch.float64


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_the_derivative(name):
    assert torch.autograd.gradcheck(losses.CATALOGUE[name], arguments(name))


@pytest.mark.parametrize("name", NAMES)
def test_order_of_the_batch_does_not_matter(name):
    values = arguments(name)
    shuffled = permuted(name, values, torch.tensor([3, 0, 5, 1, 4, 2]))
    assert_close(losses.CATALOGUE[name](*shuffled), losses.CATALOGUE[name](*values))


@pytest.mark.parametrize("name", NAMES)
def test_leaves_its_inputs_alone(name):
    values = arguments(name)
    before = [value.detach().clone() for value in values]
    losses.CATALOGUE[name](*values).backward()
    for value, copy in zip(values, before, strict=True):
        assert torch.equal(value, copy)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_widened_and_finite(name, dtype):
    values = arguments(name, dtype=dtype)
    value = checked_step(name, values)
    assert value.dtype == torch.float32
    wide = losses.CATALOGUE[name](*(v.detach().float() if v.is_floating_point() else v for v in values))
    assert_close(value, wide)  # rounding the input is the only loss


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("filled", [None, 0.5])
@pytest.mark.parametrize("name", NAMES)
def test_autocast_is_finite(name, filled, dtype):
    chosen = set() if filled is None else {"similarity", "prediction", "logits", "vectors", "lists"}
    values = with_filled(name, chosen, filled or 0.0, dtype=torch.float32)
    with torch.autocast("cpu", dtype):
        checked_step(name, values)


# Terms that only an option brings in.
OPTIONS: dict[str, dict[str, float]] = {"angle": {"cosine_weight": 1.0, "contrast_weight": 1.0, "positive_from": 2.0}}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NAMES)
def test_autocast_changes_neither_value_nor_gradient(name, dtype):
    values = arguments(name, rows=12, dtype=torch.float32)
    learnt = [value for value in values if value.requires_grad]

    plain = losses.CATALOGUE[name](*values, **OPTIONS.get(name, {}))
    with torch.autocast("cpu", dtype):
        ours = losses.CATALOGUE[name](*values, **OPTIONS.get(name, {}))
    # The backward pass stays outside, as torch asks: inside, its own products would be rounded.
    found = [[value, *torch.autograd.grad(value, learnt)] for value in (ours, plain)]
    for one, other in zip(*found, strict=True):
        assert one.dtype == other.dtype == torch.float32
        assert torch.equal(one, other)


@pytest.mark.parametrize("value", [0.0, 0.5, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_constant_similarities_break_nothing(name, dtype, value):
    chosen = {"similarity", "prediction", "logits", "vectors", "lists"}
    checked_step(name, with_filled(name, chosen, value, dtype=dtype))


@pytest.mark.parametrize("name", [name for name in NAMES if {"gold", "label"} & set(positional(name))])
def test_tied_gold_breaks_nothing_and_teaches_no_order(name):
    values = with_filled(name, {"gold", "label"}, 1, dtype=torch.float32)
    checked_step(name, values)
    if name in GRADED:
        assert not any(v.grad.any() for v in values if v.requires_grad)


@pytest.mark.parametrize("name", [name for name in NAMES if {"gold", "label"} & set(positional(name))])
def test_everything_constant_breaks_nothing(name):
    chosen = {"similarity", "prediction", "logits", "vectors", "gold", "label"}
    checked_step(name, with_filled(name, chosen, 1, dtype=torch.float32))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ROW_BY_ROW])
def test_one_row_is_refused_where_rows_are_compared(name):
    with pytest.raises(ValueError, match=r"1 (pair|list|item)\(s\).*at least [23]"):
        losses.CATALOGUE[name](*arguments(name, rows=1, optional=False))


@pytest.mark.parametrize("name", sorted(ROW_BY_ROW))
def test_a_row_counts_by_itself_where_rows_are_not_compared(name):
    values = arguments(name)
    alone = [losses.CATALOGUE[name](*(value[row : row + 1] for value in values)) for row in range(6)]
    assert_close(torch.stack(alone).mean(), losses.CATALOGUE[name](*values))


@pytest.mark.parametrize("name", NAMES)
def test_no_row_is_refused(name):
    with pytest.raises(ValueError, match=r"0 (pair|list|item)\(s\).*at least"):
        losses.CATALOGUE[name](*arguments(name, rows=0, optional=False))


@pytest.mark.parametrize("name", NAMES)
def test_unequal_shapes_are_refused(name):
    first, *rest = arguments(name)
    with pytest.raises(ValueError, match="shapes"):
        losses.CATALOGUE[name](first[:-1], *rest)


@pytest.mark.parametrize("name", [name for name in NAMES if "gold" in positional(name)])
def test_gold_that_is_no_number_is_refused(name):
    values = arguments(name)
    values[positional(name).index("gold")][2] = float("nan")
    with pytest.raises(ValueError, match="gold holds NaN"):
        losses.CATALOGUE[name](*values)


WITH_TEMPERATURE = [
    (name, option)
    for name in NAMES
    for option in inspect.signature(losses.CATALOGUE[name]).parameters
    if option.endswith("temperature")
]


@pytest.mark.parametrize("value", [0, -0.1, float("nan")])
@pytest.mark.parametrize(("name", "option"), WITH_TEMPERATURE)
def test_a_temperature_that_is_not_above_zero_is_refused(name, option, value):
    with pytest.raises(ValueError, match="temperature is"):
        losses.CATALOGUE[name](*arguments(name), **{option: value})


@pytest.mark.parametrize("name", NAMES)
def test_says_where_it_comes_from(name):
    text = inspect.getdoc(losses.CATALOGUE[name]) or ""
    assert all(part in text for part in ("Source:", "Relations:", "Raises:", "Args:", "Returns:", ">>> "))


def test_the_sets_above_name_losses_that_exist():
    assert set(NAMES) >= (ROW_BY_ROW | GRADED)


def test_unknown_name_tells_the_near_one():
    with pytest.raises(ValueError, match="unknown loss 'pearsn': did you mean pearson"):
        losses.by_name("pearsn")
    assert losses.by_name("pearson") is losses.pearson
