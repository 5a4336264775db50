"""Low-rank adapters and quantised weights: what is trained of a large model, and how the rest is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import BitsAndBytesConfig, PreTrainedModel

Quantization = Literal["none", "nf4", "int8"]
QUANTIZATIONS: tuple[str, ...] = get_args(Quantization)
WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
_PEFT = "base_model.model."
"""What names begin with in peft's files: its own wrapper, which is not here."""


@dataclass(frozen=True)
class LoRA:
    """A low-rank adapter on every linear layer; the weights under it stay as they are.

    Args:
        rank: inner width of each pair of matrices.
        alpha: the product is scaled by alpha / rank.
        dropout: in front of the pair, in training.

    Source: arXiv 2106.09685; Pcc-tuning, section 5: rank 64, alpha 16, dropout 0.05 on all linear layers.
    Raises: ValueError outside these limits.
    """

    rank: int = 64
    alpha: float = 16.0
    dropout: float = 0.05

    def __post_init__(self) -> None:
        if self.rank < 1 or not self.alpha > 0 or not 0 <= self.dropout < 1:
            raise ValueError(
                f"adapter has rank {self.rank}, alpha {self.alpha}, dropout {self.dropout}: give a rank of at least 1, "
                "alpha above 0 and a dropout from 0 to below 1"
            )

    @classmethod
    def of(cls, given: LoRA | Mapping[str, Any] | None) -> LoRA | None:
        """The adapter that a caller means: itself, its fields by name, or none."""
        if given is None or isinstance(given, cls):
            return given
        if not isinstance(given, Mapping) or (set(given) - {"rank", "alpha", "dropout"}):
            raise ValueError(f"adapter={given!r}: give a LoRA, or a mapping with rank, alpha and dropout")
        return cls(**given)

    @classmethod
    def saved(cls, folder: Path) -> LoRA | None:
        """The adapter that a folder holds; None without one."""
        if not (folder / CONFIG).is_file():
            return None
        told = json.loads((folder / CONFIG).read_text(encoding="utf8"))
        return cls(rank=told["r"], alpha=float(told["lora_alpha"]), dropout=float(told["lora_dropout"]))


def attach(trunk: PreTrainedModel, lora: LoRA, *, base: str, revision: str, seed: int) -> None:
    """Freeze a model and put an adapter on each of its linear layers, which changes no output until it is trained.

    Its weights are float32 whatever the model's are: an optimiser's small steps are lost in half precision.

    Args:
        trunk: changed in place.
        base, revision: what the adapter belongs to; saved with it.
        seed: of its random weights; the caller's random state is left alone.
    """
    from peft import LoraConfig

    trunk.requires_grad_(False)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,  # type: ignore[arg-type]
        lora_dropout=lora.dropout,
        target_modules="all-linear",
        base_model_name_or_path=base,
        revision=revision,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        trunk.add_adapter(config)
    # transformers writes where it read the base, which may be a folder that is gone tomorrow.
    trunk.peft_config["default"].base_model_name_or_path = base
    for weights in trained(trunk).values():
        weights.data = weights.data.float()


def trained(trunk: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The weights that training changes, by name."""
    return {name: weights for name, weights in trunk.named_parameters() if weights.requires_grad}


def save(trunk: PreTrainedModel, folder: Path) -> None:
    """Write the adapter alone, in the form that peft reads."""
    config = trunk.peft_config["default"]
    config.save_pretrained(folder)
    tensors = {_PEFT + _bare(name): weights.detach().cpu().contiguous() for name, weights in trained(trunk).items()}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def restore(trunk: PreTrainedModel, folder: Path) -> None:
    """Put a saved adapter's weights into the one that `attach` put on.

    Raises: ValueError when the file is damaged, or made for another model or rank.
    """
    file, ours = folder / WEIGHTS, {_PEFT + _bare(name): weights for name, weights in trained(trunk).items()}
    try:
        found = load_file(file)
        if strange := sorted(set(ours) ^ set(found)):
            raise ValueError(f"{len(strange)} tensors differ, the first is {strange[0]}")
        with torch.no_grad():
            for name, weights in ours.items():
                if weights.shape != found[name].shape:
                    raise ValueError(f"{name} is {tuple(found[name].shape)}, wanted {tuple(weights.shape)}")
                weights.copy_(found[name])
    except (SafetensorError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{file} cannot be read ({reason}): save the adapter again, or train it again") from error


def merge(trunk: PreTrainedModel) -> None:
    """Add the adapter into the weights under it and take it off."""
    from peft.tuners.lora import LoraLayer

    for name, layer in [(n, module) for n, module in trunk.named_modules() if isinstance(module, LoraLayer)]:
        layer.merge()
        place, _, last = name.rpartition(".")
        setattr(trunk.get_submodule(place), last, layer.get_base_layer())
    trunk._hf_peft_config_loaded = False


def _bare(name: str) -> str:
    """A weight's name without the adapter's own, which peft leaves out in a file."""
    return name.replace(".default.", ".")


def quantized(quantization: Quantization, compute: torch.dtype) -> BitsAndBytesConfig | None:
    """How the library is told to store the weights: NF4 with double quantisation, 8 bits, or as they are.

    Args:
        quantization: nf4, int8 or none.
        compute: number format of the products with NF4 weights.

    Source: QLoRA, arXiv 2305.14314.
    Raises: ValueError for another name.
    """
    if quantization not in QUANTIZATIONS:
        raise ValueError(f"quantization={quantization!r}: choose one of {', '.join(QUANTIZATIONS)}")
    if quantization == "none":
        return None
    if quantization == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=compute,
    )


def keep_unpacked(trunk: torch.nn.Module) -> None:
    """Keep NF4 weights in the one layout that has gradients.

    On a CPU with bfloat16 instructions bitsandbytes (0.50) packs a layer's weights at its first use in evaluation mode,
    for good, and the packed product has no derivative: after one look at the development set the gradient of every
    layer below would be lost, without an error.
    """
    from bitsandbytes.nn.modules import Linear4bit

    for module in trunk.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False


def told(lora: LoRA | None) -> dict[str, Any] | None:
    """An adapter as it stands in a settings file."""
    return None if lora is None else asdict(lora)
