"""A shallower encoder from a deeper one: its lowest layers, of which the uppermost may forget what they learned."""

from __future__ import annotations

from copy import deepcopy
from typing import Any
from zlib import crc32

import torch
from torch import nn
from transformers import PreTrainedModel


def cut(trunk: PreTrainedModel, name: str, *, layers: int | None = None, fresh: int = 0, seed: int = 0) -> str:
    """Keep the lowest layers of a trunk and give the uppermost of those new weights, in place.

    Args:
        trunk: the model; its config is changed with it, so that what it saves loads as it is.
        name: of the encoder.
        layers: how many layers to keep, counted from the input; None keeps all.
        fresh: how many of the kept layers, counted from the output, are initialised again as the model itself does it.
        seed: of those weights; the caller's random state is left alone.

    Returns:
        The name, with what was done to it.

    Raises: ValueError when `layers` is not 1 to the number there is, `fresh` not 0 to the number kept, or when the
        model has no list of layers to cut.
    """
    if layers is None and fresh == 0:
        return name
    stack = _layers(trunk, name)
    there = len(stack)
    kept = _within("layers", there if layers is None else layers, 1, there, f"{name} has {there} layers")
    _within("fresh", fresh, 0, kept, f"{kept} of the {there} layers of {name} are kept")
    if kept < there:
        del stack[kept:]
        trunk.config.num_hidden_layers = kept
        if getattr(trunk.config, "layer_types", None):  # models of two kinds of attention list the kind of each layer
            trunk.config.layer_types = list(trunk.config.layer_types)[:kept]
        name = f"{name}, first {kept} of {there} layers"
    if fresh:
        stack[kept - fresh :].load_state_dict(_initial(trunk, seed)[kept - fresh :].state_dict())
        name = f"{name}, upper {fresh} fresh (seed {seed})"
    return name


def _layers(trunk: PreTrainedModel, name: str) -> nn.ModuleList:
    """The list that holds the layers: the heaviest of the config's length, under whatever name the model gives it."""
    depth = trunk.config.num_hidden_layers
    lists = [module for module in trunk.modules() if isinstance(module, nn.ModuleList) and len(module) == depth]
    if not lists:
        raise ValueError(
            f"{name} has a trunk of type {trunk.config.model_type} without a list of its {depth} layers (they may "
            "share their weights): leave out layers and fresh"
        )
    return max(lists, key=lambda module: sum(weights.numel() for weights in module.parameters()))


def _initial(trunk: PreTrainedModel, seed: int) -> nn.ModuleList:
    """The layers of a new model of the same config: a whole one, because only as a whole it initialises itself."""
    kind: Any = type(trunk)
    with torch.random.fork_rng(devices=[]):
        # A stream apart: from the seed itself `tiny` would draw the very weights it already has. The CPU's generator
        # alone, because torch.manual_seed would also set the GPUs', which the fork does not give back.
        torch.default_generator.manual_seed(crc32(f"fresh layers, seed {seed}".encode()))
        return _layers(kind(deepcopy(trunk.config)), "the new model")


def _within(option: str, asked: int, least: int, most: int, why: str) -> int:
    if not isinstance(asked, int) or not least <= asked <= most:
        raise ValueError(f"{option} is {asked!r}: {why}, give {least} to {most}")
    return asked
