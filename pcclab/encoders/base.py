"""What every encoder is: text in, one vector a text out; and how it is saved."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from pcclab import files
from pcclab.encoders import engine, interchange, projection
from pcclab.encoders.pooling import Pooling, pool

SETTINGS_FILE = "pcclab.json"


@dataclass(frozen=True)
class Settings:
    """What an encoder is beside its weights; saved with them.

    Args:
        name: what it was loaded as.
        revision: commit of a hub model, "local" otherwise.
        pooling: how token states become a vector.
        max_tokens: longer texts are cut there, special tokens included.
    """

    name: str
    revision: str
    pooling: Pooling
    max_tokens: int


class Encoder:
    """A transformer trunk with its tokenizer and pooling.

    Build one with `pcclab.encoders.load`. `trunk` is the model that training changes; `embed` is the differentiable
    path, `encode` the fast one without gradients.
    """

    def __init__(self, trunk: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, settings: Settings) -> None:
        self.trunk, self.tokenizer, self.settings = trunk, tokenizer, settings
        if tokenizer.pad_token_id is None:
            raise ValueError(
                f"the tokenizer of {settings.name} has no padding token: set one before building an encoder"
            )

    def __repr__(self) -> str:
        s = self.settings
        return f"Encoder({s.name}, {s.pooling} pooling, {self.dim} dimensions, {s.max_tokens} tokens, {self.device})"

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        layers = projection.layers_of(self.trunk)
        return layers[-1].linear.out_features if layers else int(self.trunk.config.hidden_size)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.trunk.parameters()).device

    @property
    def fingerprint(self) -> str:
        """sha256 of the weights and settings: two encoders with the same one give the same embeddings."""
        digest = hashlib.sha256(json.dumps(self._identity).encode())
        for name, weights in sorted(self._tensors().items()):
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @property
    def _identity(self) -> list[Any]:
        """What the embeddings depend on beside the weights."""
        return [self.settings.pooling, self.settings.max_tokens]

    def _tensors(self) -> Mapping[str, Tensor]:
        """The weights that tell this encoder from another of the same identity."""
        return self.trunk.state_dict()

    def tokenize(self, texts: Sequence[str], *, max_tokens: int | None = None) -> list[list[int]]:
        """Token ids of each text, cut at `max_tokens` (None: the encoder's own); warns how many texts were cut.

        Raises: ValueError naming the first text that is empty or no string.
        """
        for i, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise ValueError(f"text {i} is {text!r}: an empty text has no embedding; drop it or give it words")
        if not texts:
            return []
        limit = min(max_tokens or self.settings.max_tokens, self.settings.max_tokens)
        rows, lengths = self._rows(texts, limit)
        if long := sum(length > limit for length in lengths):
            warnings.warn(
                f"{long} of {len(texts)} texts are longer than {limit} tokens (the longest has "
                f"{max(lengths)}) and were cut; raise max_tokens to read them whole",
                stacklevel=3,
            )
        return rows

    def _rows(self, texts: Sequence[str], limit: int) -> tuple[list[list[int]], list[int]]:
        """Token ids of each text, cut at a limit, and how many it has uncut."""
        rows: list[list[int]] = self.tokenizer(list(texts), add_special_tokens=True, verbose=False)["input_ids"]
        lengths = [len(row) for row in rows]
        if long := [i for i, length in enumerate(lengths) if length > limit]:
            cut = self.tokenizer([texts[i] for i in long], truncation=True, max_length=limit)
            for i, row in zip(long, cut["input_ids"], strict=True):
                rows[i] = row
        return rows, lengths

    def embed(self, ids: Int[Tensor, "texts tokens"], mask: Int[Tensor, "texts tokens"]) -> Float[Tensor, "texts dim"]:
        """Embeddings of one padded batch, differentiable, in the trunk's training or evaluation mode."""
        first_last = self.settings.pooling == "first-last"
        # A batch without padding needs no mask at all, which lets the attention take its fastest kernel.
        attention = None if bool(mask.all()) else mask
        output = self.trunk(input_ids=ids, attention_mask=attention, output_hidden_states=first_last)
        hidden = (output.hidden_states[1], output.hidden_states[-1]) if first_last else (output.last_hidden_state,)
        vectors = pool(self.settings.pooling, hidden, mask)
        for layer in projection.layers_of(self.trunk):
            vectors = layer(vectors)
        return vectors

    def encode(
        self, sentences: Sequence[str], *, normalize: bool = False, progress: str | None = "encoding"
    ) -> Float[np.ndarray, "texts dim"]:
        """Embeddings of sentences, without gradients and without dropout.

        Args:
            sentences: texts; repeated ones are computed once.
            normalize: give vectors of length 1, so that a dot product is a cosine.
            progress: what the progress line says; None for none.

        Returns:
            float32 (texts, dim) in the order given. A row does not depend on the other texts, to 1e-5.

        Raises: ValueError naming the first empty text.
        """
        texts, inverse = engine.distinct(sentences)
        if not texts:
            return np.empty((0, self.dim), dtype=np.float32)
        with engine.evaluating(self.trunk):
            vectors = engine.run(
                self.embed,
                self.tokenize(texts),
                pad_id=self.tokenizer.pad_token_id,
                padding_side=self.tokenizer.padding_side,
                budget=engine.token_budget(self.device),
                device=self.device,
                title=progress,
            )
        if normalize:
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors if len(texts) == len(sentences) else vectors[inverse]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a folder that `pcclab.encoders.load` and transformers' AutoModel read; whole or not at all.

        Raises: OSError when the disk has no room for the weights; nothing is left behind then.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        need = sum(p.numel() * p.element_size() for p in self.weights)
        free = shutil.disk_usage(path.parent).free
        if free < 1.1 * need:
            raise OSError(
                f"{path} needs {need / 1e6:,.0f} MB and the disk has {free / 1e6:,.0f} MB free: make room, save again"
            )
        with files.replacing_folder(path) as folder:
            self.write_weights(folder)
            self.tokenizer.save_pretrained(folder)
            files.write_json(folder / SETTINGS_FILE, asdict(self.settings))
            for number, layer in enumerate(projection.layers_of(self.trunk), 2):
                projection.write(folder / f"{number}_Dense", layer)
        return path

    @property
    def weights(self) -> list[torch.nn.Parameter]:
        """What a training may change: everything, or an adapter alone."""
        return [weights for weights in self.trunk.parameters() if weights.requires_grad]

    def write_weights(self, folder: Path) -> None:
        """Write what a training may change into a folder, without anything around it."""
        self.trunk.save_pretrained(folder)

    def read_weights(self, folder: Path) -> None:
        """Take the weights that `write_weights` or `save` left in a folder.

        Raises: ValueError when the file is damaged, or made for another model.
        """
        file = folder / "model.safetensors"
        try:
            self.trunk.load_state_dict(load_file(file))
        except (SafetensorError, OSError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise ValueError(f"{file} cannot be read ({reason}): move {folder} away to train it again") from error

    def to_sentence_transformer(self, path: str | os.PathLike[str], *, card: Mapping[str, Any] | None = None) -> Path:
        """Write a folder that sentence-transformers loads, which gives the same embeddings, of length 1.

        Args:
            path: the folder; whole or not at all.
            card: facts of the model card, such as base model, data, leakage, objective, seeds, scores and command; a
                mapping in it becomes a table. What is not given is not told.

        Raises: ValueError for first-last pooling, which sentence-transformers does not have, an adapter, which it would
            leave out, and a tokenizer that cannot hold the template.
        """
        interchange.refuse(self.settings)
        tokenizer, max_tokens = self._for_others()
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        told = interchange.model_card(path.name, {"base model": self.settings.name, **(card or {})})
        with files.replacing_folder(path) as folder:
            dense = projection.layers_of(self.trunk)
            interchange.write(folder, pooling=self.settings.pooling, dim=int(self.trunk.config.hidden_size), card=told,
                              max_tokens=max_tokens, dense=dense)  # fmt: skip
            self.trunk.save_pretrained(folder, state_dict=projection.without(self.trunk) if dense else None)
            tokenizer.save_pretrained(folder)
            interchange.verify(folder, self.tokenize(interchange.PROBES))
        return path

    def _for_others(self) -> tuple[PreTrainedTokenizerBase, int]:
        """A tokenizer that does by itself all that is done to a text here, and the most tokens it may give."""
        return self.tokenizer, self.settings.max_tokens


def read_settings(folder: Path) -> dict[str, Any]:
    """The saved settings of an encoder folder, empty where another tool wrote it."""
    file = folder / SETTINGS_FILE
    return json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}
