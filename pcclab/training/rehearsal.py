"""A micro-batch rehearsed on tensors that have a shape and no values: what it keeps, what it needs at most, its work.

The very modules that will be trained run forward and back; only nothing is stored and nothing is computed. A counter
sees every tensor come and go, as a GPU's allocator would. So no formula for a family of models has to be believed.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only
from torch.utils.flop_counter import FlopCounterMode
from torch.utils.weak import WeakIdKeyDictionary
from transformers import AttentionInterface, PreTrainedModel

from pcclab.encoders.blueprint import Blueprint, stored
from pcclab.training import rhythm


class Live(TorchDispatchMode):
    """Counts the bytes of the tensors that were made inside it and are still held, `now` and at most, `peak`."""

    def __init__(self, resident: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._known: Any = WeakIdKeyDictionary()
        for tensor in resident:
            self._known[tensor.untyped_storage()] = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        tree_map_only(Tensor, self._see, result)
        return result

    def _see(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        if storage in self._known:
            return
        size = self._known[storage] = storage.nbytes()
        self.now += size
        self.peak = max(self.peak, self.now)
        weakref.finalize(storage, self._gone, size)

    def _gone(self, size: int) -> None:
        self.now -= size


@dataclass(frozen=True)
class Cost:
    """What one micro-batch costs beside weights, optimiser and gradients.

    Args:
        kept: bytes that wait for the way back.
        peak: bytes at most, on the way there and back.
        there: bytes at most on the way there alone, without a graph.
        forward, back: floating-point operations of the two ways, recomputing included.
    """

    kept: float
    peak: float
    there: float
    forward: float
    back: float


@dataclass(frozen=True)
class Way:
    """How a micro-batch is computed.

    Args:
        half: whether activations are bfloat16, by autocast.
        recompute: whether a layer's activations are computed again on the way back.
        cuda: by a GPU's rules of autocast and attention, or a CPU's.
        trains: with dropout and gradients, or as `Encoder.encode` does.
        held: whether the weights have gradients already, from a micro-batch before.
    """

    half: bool
    recompute: bool
    cuda: bool
    trains: bool = True
    held: bool = True


def rehearse(blueprint: Blueprint, texts: int, width: int, way: Way) -> Cost:
    """The cost of a micro-batch of so many texts of so many tokens.

    All layers of a model are alike: two short models tell what a layer adds, and the rest follows.
    """
    shallow, deep = (min(depth, blueprint.depth) for depth in (2, 3))
    less = _rehearsed(blueprint, shallow, texts, width, way)
    more = _rehearsed(blueprint, deep, texts, width, way) if deep > shallow else less
    layers = blueprint.depth - shallow
    cost = Cost(*(a + layers * (b - a) for a, b in zip(astuple(less), astuple(more), strict=True)))
    if not way.recompute or not way.trains:
        return cost
    plain = remembered(blueprint, texts, width, replace(way, recompute=False))
    return replace(cost, forward=plain.forward, back=plain.back + plain.forward)


def _rehearsed(blueprint: Blueprint, depth: int, texts: int, width: int, way: Way) -> Cost:
    trunk, fake = _prepared(blueprint, depth, way)
    trained = [weights for weights in trunk.parameters() if weights.requires_grad]
    with fake:
        for weights in trained:
            weights.grad = torch.zeros_like(weights) if way.held and way.trains else None
        ids = torch.zeros((texts, width), dtype=torch.long)
    gradients = [weights.grad for weights in trained if weights.grad is not None]
    counted = Live([*trunk.parameters(), *trunk.buffers(), *gradients, ids])
    options = {"use_cache": False} if blueprint.reads_on else {}
    # The counter of operations would hold on to what is computed again.
    flops = FlopCounterMode(display=False)
    with fake, counted, nullcontext() if way.recompute else flops:
        with torch.no_grad(), _autocast(way):
            trunk(input_ids=ids, **options)
        there, forward, counted.peak = counted.peak, flops.get_total_flops(), counted.now
        if not way.trains:
            return Cost(0, there, there, forward, 0)
        with _autocast(way):
            vectors = trunk(input_ids=ids, **options).last_hidden_state.mean(1)
        kept = counted.now
        vectors.backward(torch.ones_like(vectors))
        return Cost(kept, counted.peak, there, forward, flops.get_total_flops() - 2 * forward)


def _prepared(blueprint: Blueprint, depth: int, way: Way) -> tuple[PreTrainedModel, FakeTensorMode]:
    """The model of so many layers, its weights without values, as `way` runs it."""
    trunk, fake = blueprint.trunk(depth), FakeTensorMode()
    rhythm.recompute(trunk, way.recompute and way.trains)
    trunk.train(way.trains)
    if blueprint.quantization != "none":
        for linear in stored(trunk):
            linear.__class__ = _Packed if blueprint.quantization == "nf4" else _Packed8
    for module in trunk.modules():
        if way.half and way.cuda and type(module) is nn.LayerNorm:
            module.__class__ = _FullNorm
        # peft's layer over quantised weights leaves a number format alone where a GPU's autocast is at work.
        if way.half and way.cuda and blueprint.quantization != "none" and hasattr(module, "cast_input_dtype_enabled"):
            setattr(module, "cast_input_dtype_enabled", False)  # noqa: B010
        with fake:
            for name, weights in module._parameters.items():
                if weights is not None:
                    empty = torch.empty(weights.shape, dtype=weights.dtype)
                    module._parameters[name] = nn.Parameter(empty, requires_grad=weights.requires_grad)
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = torch.zeros(buffer.shape, dtype=buffer.dtype)
    # Where values are missing, transformers builds a mask that a batch without padding does not have.
    AttentionInterface.register("rehearsed", partial(_attention, keeps_matrix=not way.cuda))
    trunk.config._attn_implementation = "rehearsed"
    return trunk, fake


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Any,
    *,
    keeps_matrix: bool,
    dropout: float = 0.0,
    scaling: float | None = None,
    **other: Any,
) -> tuple[Tensor, None]:
    """The attention as transformers calls it; a GPU's kernels drop out without keeping a matrix, a CPU's do not."""
    causal = query.shape[2] > 1 and bool(getattr(module, "is_causal", True))
    told: dict[str, Any] = {"dropout_p": dropout if keeps_matrix else 0.0, "scale": scaling, "is_causal": causal}
    result = nn.functional.scaled_dot_product_attention(
        query, key, value, **told, enable_gqa=query.shape[1] != key.shape[1]
    )
    return result.transpose(1, 2).contiguous(), None


def _autocast(way: Way) -> torch.autocast:
    return torch.autocast("cpu", dtype=torch.bfloat16, enabled=way.half)


class _FullNorm(nn.LayerNorm):
    """A GPU's autocast computes layer norms in float32, where a CPU's leaves them as they come."""

    def forward(self, input: Tensor) -> Tensor:
        full = (input.float(), self.normalized_shape, self.weight.float(), self.bias.float(), self.eps)
        return nn.functional.layer_norm(*full)


class _Product(torch.autograd.Function):
    """A product with packed weights, which are unpacked each way and not kept; int8's keeps its input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, keeps: bool) -> Tensor:
        ctx.weight, ctx.input = weight, x if keeps else None
        return nn.functional.linear(x, torch.empty_like(weight, dtype=x.dtype), bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = gradients
        return gradient @ torch.empty_like(ctx.weight, dtype=gradient.dtype), None, None, None


class _Packed(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = _Product.apply(input.to(self.weight.dtype), self.weight, self.bias, False)
        return result.to(input.dtype)


class _Packed8(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        result: Tensor = _Product.apply(input.to(torch.float16), self.weight, self.bias, True)
        return result.to(input.dtype)


remembered = lru_cache(maxsize=64)(rehearse)
