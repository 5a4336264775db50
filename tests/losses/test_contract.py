"""What every loss of the catalogue promises, whatever it computes."""

from __future__ import annotations

import inspect

import pytest
import torch

from pcclab import losses

NAMES = sorted(losses.CATALOGUE)


def arguments(name: str, rows: int = 6, dtype: torch.dtype = torch.float64) -> list[torch.Tensor]:
    """Random arguments of a loss, by the names of its parameters."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for parameter in inspect.signature(losses.CATALOGUE[name]).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY:
            continue
        shape = (rows,) if parameter.name in ("similarity", "gold") else (rows, 5)
        scale = 5 if parameter.name == "gold" else 1
        values = torch.rand(shape, generator=generator, dtype=torch.float64) * scale
        made.append(values.to(dtype).requires_grad_(parameter.name != "gold"))
    return made


@pytest.mark.parametrize("name", NAMES)
def test_gives_a_finite_scalar(name):
    value = losses.CATALOGUE[name](*arguments(name))
    assert value.shape == () and torch.isfinite(value)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_the_derivative(name):
    assert torch.autograd.gradcheck(losses.CATALOGUE[name], arguments(name))


@pytest.mark.parametrize("name", NAMES)
def test_order_of_the_batch_does_not_matter(name):
    values = arguments(name)
    shuffled = torch.tensor([3, 0, 5, 1, 4, 2])
    torch.testing.assert_close(losses.CATALOGUE[name](*(v[shuffled] for v in values)), losses.CATALOGUE[name](*values))


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
    value = losses.CATALOGUE[name](*values)
    value.backward()
    assert value.dtype == torch.float32 and torch.isfinite(value)
    assert all(torch.isfinite(v.grad).all() for v in values if v.requires_grad)


@pytest.mark.parametrize("name", NAMES)
def test_bfloat16_autocast_is_finite(name):
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.isfinite(losses.CATALOGUE[name](*arguments(name, dtype=torch.float32)))


@pytest.mark.parametrize("name", NAMES)
def test_one_row_is_refused_where_rows_are_compared(name):
    values = arguments(name, rows=1)
    if name == "info_nce":
        values = values[:2]
    with pytest.raises(ValueError, match=r"1 pair\(s\).*at least 2"):
        losses.CATALOGUE[name](*values)


@pytest.mark.parametrize("name", NAMES)
def test_unequal_shapes_are_refused(name):
    first, *rest = arguments(name)
    with pytest.raises(ValueError, match="shapes"):
        losses.CATALOGUE[name](first[:-1], *rest)


@pytest.mark.parametrize("name", NAMES)
def test_says_where_it_comes_from(name):
    text = inspect.getdoc(losses.CATALOGUE[name]) or ""
    assert all(part in text for part in ("Source:", "Relations:", "Raises:", "Args:"))


def test_unknown_name_tells_the_near_one():
    with pytest.raises(ValueError, match="unknown loss 'pearsn': did you mean pearson"):
        losses.by_name("pearsn")
    assert losses.by_name("pearson") is losses.pearson
