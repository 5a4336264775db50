"""Heads that judge a pair of embeddings: the linear node of a Siamese network."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from pcclab import files

Features = Literal["u,v", "|u-v|", "u,v,|u-v|"]
PARTS = {"u,v": 2, "|u-v|": 1, "u,v,|u-v|": 3}
FILE = "head.safetensors"


class SiameseHead(nn.Module):
    r"""A linear layer on what two sentence embeddings u and v say together: one node that rates, or one a class.

    .. math:: W\,[u;\; v;\; |u - v|] + b

    Args:
        dim: length of an embedding.
        features: what is concatenated. Only ``|u-v|`` alone gives both orders of a pair the same judgement.
        levels: the ratings that classes stand for, rising, for a classification head with one output each; None makes
            one node whose output is the rating itself.
        start: bias of one node, the rating it begins with. The mean of the gold is what it should be: from 0, a small
            learning rate takes long to reach it, and meanwhile the other weights and the trunk are bent to supply it.
        seed: of the random weights; the caller's random state is left alone.

    Source: STS-Regression, section 3.1 and figure 1; classification is Sentence-BERT's (arXiv 1908.10084).
    Raises: ValueError for unknown features, a dimension below 1, or levels that do not rise.

    >>> SiameseHead(4)(torch.ones(2, 4), torch.zeros(2, 4)).shape
    torch.Size([2])
    """

    def __init__(
        self,
        dim: int,
        *,
        features: Features = "u,v,|u-v|",
        levels: Sequence[float] | None = None,
        start: float = 0.0,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if features not in PARTS:
            raise ValueError(f"unknown features {features!r}: choose one of {', '.join(map(repr, get_args(Features)))}")
        if dim < 1:
            raise ValueError(f"dim is {dim}: give the length of an embedding, at least 1")
        self.dim, self.features = dim, features
        self.levels = None if levels is None else tuple(float(level) for level in levels)
        if self.levels is not None and (
            len(self.levels) < 2 or any(not a < b for a, b in zip(self.levels, self.levels[1:], strict=False))
        ):
            raise ValueError(f"levels are {self.levels}: give at least 2 ratings, each above the one before")
        self.outputs = 1 if self.levels is None else len(self.levels)
        # Without torch's own first weights: they would be drawn from the caller's random state.
        self.linear = nn.utils.skip_init(nn.Linear, PARTS[features] * dim, self.outputs)
        bound = 1 / math.sqrt(self.linear.in_features)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for weights in self.linear.parameters():
                weights.uniform_(-bound, bound, generator=generator)
            if self.outputs == 1:
                self.linear.bias += start

    def forward(self, first: Float[Tensor, "pairs dim"], second: Float[Tensor, "pairs dim"]) -> Tensor:
        """Ratings (pairs,) of one node, logits (pairs, classes) of several."""
        if first.shape != second.shape or first.shape[-1] != self.dim:
            raise ValueError(
                f"shapes {tuple(first.shape)} and {tuple(second.shape)}: this head takes two of (pairs, {self.dim})"
            )
        difference = (first - second).abs()
        parts = {"u,v": [first, second], "|u-v|": [difference], "u,v,|u-v|": [first, second, difference]}
        judged: Tensor = self.linear(torch.cat(parts[self.features], dim=-1))
        return judged.squeeze(-1) if self.outputs == 1 else judged

    def score(
        self, first: Float[np.ndarray, "pairs dim"], second: Float[np.ndarray, "pairs dim"]
    ) -> Float[np.ndarray, " pairs"]:
        """Rating of each pair in float64: the node's output, or the mean of the levels under the classes' chances."""
        with torch.no_grad():
            weight = self.linear.weight
            sides = [torch.as_tensor(side, dtype=weight.dtype, device=weight.device) for side in (first, second)]
            judged = self(*sides).double().cpu()
            if self.levels is not None:
                judged = judged.softmax(-1) @ torch.tensor(self.levels, dtype=torch.float64)
        return judged.numpy()

    @property
    def fingerprint(self) -> str:
        """sha256 of the weights and of what they mean."""
        digest = hashlib.sha256(json.dumps([self.dim, self.features, self.levels]).encode())
        for weights in self.linear.parameters():
            digest.update(weights.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `head.safetensors` into a folder, whole or not at all."""
        path = Path(folder) / FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        told = {"features": self.features, "levels": json.dumps(self.levels), "dim": str(self.dim)}
        with files.replacing(path) as temporary:
            save_file({name: value.detach().cpu().contiguous() for name, value in self.state_dict().items()},
                      temporary, metadata=told)  # fmt: skip
        return path

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> SiameseHead:
        """Read what `save` wrote.

        Raises: ValueError when the file is missing or damaged.
        """
        path = Path(folder) / FILE
        try:
            with safe_open(path, framework="pt") as file:
                told = file.metadata()
                head = cls(int(told["dim"]), features=told["features"], levels=json.loads(told["levels"]))
                head.load_state_dict({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except (SafetensorError, OSError, KeyError, TypeError, ValueError, RuntimeError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{path} cannot be read ({reason}): save the head again") from error
        return head


def nearest(prediction: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Number of the level nearest to each prediction: a rating rounded to its class, the lower one of two as near.

    >>> nearest(np.array([-0.4, 0.6, 9.0]), [0.0, 1.0, 2.0]).tolist()
    [0, 1, 2]
    """
    return np.abs(np.asarray(prediction)[:, None] - np.asarray(levels, dtype=float)).argmin(1)
