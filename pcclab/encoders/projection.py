"""Dense layers behind the pooling, as sentence-transformers has them: LaBSE's tanh, a smaller or larger embedding."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pcclab import files

NAME = "projection"
"""Name of the layers inside the trunk: there they are trained, moved, saved and fingerprinted with it."""

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "torch.nn.modules.linear.Identity": nn.Identity,
    "torch.nn.modules.activation.Tanh": nn.Tanh,
    "torch.nn.modules.activation.ReLU": nn.ReLU,
    "torch.nn.modules.activation.GELU": nn.GELU,
    "torch.nn.modules.activation.Sigmoid": nn.Sigmoid,
}
"""Activations that may stand in a folder, by the name it gives them: no other class is imported for it."""

_WEIGHTS = "model.safetensors"


class Dense(nn.Module):
    """A linear map of an embedding and an activation.

    Args:
        in_features, out_features: lengths of the embedding before and after.
        bias: whether the map has an offset.
        activation: a name of `ACTIVATIONS`.
    """

    def __init__(self, in_features: int, out_features: int, *, bias: bool, activation: str) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=bias)
        self.activation_name, self.activation = activation, ACTIVATIONS[activation]()

    def forward(self, vectors: Tensor) -> Tensor:
        """(texts, in_features) to (texts, out_features)."""
        return torch.as_tensor(self.activation(self.linear(vectors)))


def layers_of(trunk: nn.Module) -> list[Dense]:
    """The dense layers that a trunk carries, in order; none for most."""
    projection = getattr(trunk, NAME, None)
    return [layer for layer in projection if isinstance(layer, Dense)] if isinstance(projection, nn.Sequential) else []


def without(trunk: nn.Module) -> dict[str, Tensor]:
    """The weights of a trunk less those of its dense layers."""
    return {name: value for name, value in trunk.state_dict().items() if not name.startswith(f"{NAME}.")}


def attach(trunk: nn.Module, layers: Sequence[Dense], dim: int) -> None:
    """Let a trunk carry dense layers.

    Args:
        trunk: whose pooled vectors they take.
        layers: in the order in which they apply.
        dim: length of the pooled vectors.

    Raises: ValueError when the lengths do not fit together.
    """
    for layer in layers:
        if layer.linear.in_features != dim:
            raise ValueError(
                f"a dense layer takes vectors of {layer.linear.in_features} and is given {dim}: "
                "the folder's modules do not fit together"
            )
        dim = layer.linear.out_features
    if layers:
        setattr(trunk, NAME, nn.Sequential(*layers))


def read(folder: Path) -> Dense:
    """One dense module from its folder, safetensors only.

    Raises: ValueError for an activation outside `ACTIVATIONS`, a residual, other inputs than the embedding, missing or
        broken weights.
    """
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} has no readable config.json ({error}): save the model again") from error
    activation = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"{folder} applies {activation}: a dense layer's activation is one of {', '.join(ACTIVATIONS)}"
        )
    places = {config.get(name) or "sentence_embedding" for name in ("module_input_name", "module_output_name")}
    if config.get("use_residual") or places != {"sentence_embedding"}:
        raise ValueError(f"{folder} has a residual or reads {', '.join(sorted(places))}: a plain dense layer is read")
    bias = bool(config.get("bias", True))
    layer = Dense(int(config["in_features"]), int(config["out_features"]), bias=bias, activation=activation)
    if not (folder / _WEIGHTS).is_file():
        raise ValueError(f"{folder} has no {_WEIGHTS}: save the model again as safetensors; nothing else is read")
    try:
        layer.load_state_dict(load_file(folder / _WEIGHTS), strict=True)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"the weights in {folder} do not fit its config.json ({error}): save the model again"
        ) from error
    return layer


def write(folder: Path, layer: Dense) -> None:
    """One dense module as a folder that sentence-transformers and `read` take."""
    folder.mkdir(parents=True)
    linear = layer.linear
    config = {"in_features": linear.in_features, "out_features": linear.out_features, "bias": linear.bias is not None}
    files.write_json(folder / "config.json", {**config, "activation_function": layer.activation_name})
    weights = {name: value.detach().cpu().contiguous() for name, value in layer.state_dict().items()}
    save_file(weights, folder / _WEIGHTS)
