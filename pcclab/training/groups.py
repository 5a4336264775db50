"""Groups of weights that learn at different speeds."""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from pcclab.training.settings import FitSettings

_LAYER = re.compile(r"\.(?:layers?|h|block)\.(\d+)\.")


class Trained(nn.Module):
    """All that is trained: the trunk, and the head where there is one."""

    def __init__(self, trunk: nn.Module, head: nn.Module | None) -> None:
        super().__init__()
        self.trunk, self.head = trunk, head


def parameter_groups(model: nn.Module, settings: FitSettings, decayed: set[str]) -> list[dict[str, Any]]:
    """One group for each depth, with and without weight decay: the lower a layer, the slower it learns.

    A head and the trunk's top layer learn at the full rate, the layer below at `layer_decay` times it, and so on down
    to the embeddings, which lie below the lowest layer. What is in the trunk but in no layer and not in the embeddings,
    such as a last normalisation, counts as the top.

    Args:
        model: its parameters' names tell the layers, as in ``trunk.encoder.layer.3.output``.
        settings: learning rate, weight decay and layer decay.
        decayed: names of the parameters that decay.

    Raises: ValueError when the learning rate should fall from layer to layer and no name tells a layer.

    Source: STS-Regression's settings (0.95); the scheme is discriminative fine-tuning, arXiv 1801.06146.
    """
    named = [(name, weights) for name, weights in model.named_parameters() if weights.requires_grad]
    layers = [int(found[1]) for name, _ in named if (found := _LAYER.search(name))]
    if settings.layer_decay < 1 and not layers:
        raise ValueError(
            f"layer_decay is {settings.layer_decay} and no layers can be told from the names of the weights, the first "
            f"of which is {named[0][0]}: set layer_decay to 1"
        )
    top = max(layers, default=-1)
    groups: dict[tuple[int, bool], list[nn.Parameter]] = {}
    for name, weights in named:
        found = _LAYER.search(name)
        depth = top - int(found[1]) if found else top + 1 if "embed" in name else 0
        groups.setdefault((depth, name in decayed), []).append(weights)
    return [
        {
            "params": weights,
            "lr": settings.learning_rate * settings.layer_decay**depth,
            "weight_decay": settings.weight_decay if decays else 0.0,
        }
        for (depth, decays), weights in groups.items()
    ]
