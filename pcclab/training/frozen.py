"""Training in seconds: a projection, or a head, on the embeddings of an encoder that stays as it is.

Every text is embedded once; after that a step costs two small matrix products, so that whole grids of losses and
settings run on a laptop. What is learnt is linear: how a loss does here says which way it pulls, not how far it would
bring all weights.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from pcclab.data import ScoredPairs, Sentences
from pcclab.encoders.heads import SiameseHead
from pcclab.training.history import History
from pcclab.training.objectives import Loss, Objective, bind
from pcclab.training.quantities import Trainable
from pcclab.training.rhythm import total_steps
from pcclab.training.selection import ranked
from pcclab.training.settings import FitSettings
from pcclab.training.teachers import Teachers

DROPOUT = 0.1
"""Share of an embedding's entries zeroed in each view of a sentence: what a trunk's own dropout is in full training."""


class Encodes(Protocol):
    """All that is asked of the encoder that stays as it is."""

    def encode(self, sentences: Sequence[str], /) -> np.ndarray: ...


class Remembered:
    """An encoder that embeds each text once and then remembers it.

    Args:
        encoder: anything with `encode`; its weights must not change meanwhile.
    """

    def __init__(self, encoder: Encodes) -> None:
        self.encoder = encoder
        self._place: dict[str, int] = {}
        self._vectors: list[np.ndarray] = []

    def encode(self, sentences: Sequence[str]) -> Float[np.ndarray, "texts dim"]:
        """Embeddings in the order given; only texts not seen before are embedded."""
        new = list(dict.fromkeys(text for text in sentences if text not in self._place))
        if new:
            found = np.asarray(self.encoder.encode(new))
            self._place.update({text: len(self._place) + i for i, text in enumerate(new)})
            self._vectors = [np.concatenate([*self._vectors, found])]
        if not self._vectors:
            return np.asarray(self.encoder.encode([]))
        return self._vectors[0][[self._place[text] for text in sentences]]

    def detached(self) -> Remembered:
        """The same memory without the encoder: it gives what it knows, and a text it does not know is an error."""
        known = Remembered(_Gone(str(self.encoder)))
        known._place, known._vectors = dict(self._place), self._vectors
        return known

    def __str__(self) -> str:
        return str(self.encoder)


class _Gone:
    """Stands for an encoder whose weights have changed since."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        raise ValueError(f"{self.name} was not asked for {sentences[0][:80]!r} before its weights changed")

    def __str__(self) -> str:
        return self.name


class Projected:
    """An encoder behind a learnt linear map, which starts as the identity.

    Args:
        encoder: what gives the embeddings; a `Remembered` one makes repeated use cheap.
        dim: length of its embeddings.
    """

    def __init__(self, encoder: Encodes, dim: int) -> None:
        self.encoder = encoder
        self.map = nn.Linear(dim, dim, bias=False)
        nn.init.eye_(self.map.weight)

    def encode(self, sentences: Sequence[str]) -> Float[np.ndarray, "texts dim"]:
        """Projected embeddings, float32."""
        with torch.no_grad():
            projected: np.ndarray = self.map(_tensor(self.encoder.encode(sentences))).numpy()
        return projected

    def __str__(self) -> str:
        return f"{self.encoder} behind a projection"


def fit_frozen(
    encoder: Encodes,
    table: Trainable,
    loss: str | Loss,
    *,
    parameters: Any,
    projected: Projected | None = None,
    dev: ScoredPairs | None = None,
    options: dict[str, Any] | None = None,
    head: SiameseHead | None = None,
    teachers: Teachers | None = None,
) -> History:
    """Train a projection, a head or both on embeddings that stay as they are; the best step on `dev` is left in place.

    Args:
        encoder: what embeds; its weights are not touched.
        table, loss, options, head, teachers: as in `fit`.
        parameters: as in `fit`; those about memory, number formats and checkpoints have no effect.
        projected: the projection to train, over this encoder; None trains the head alone.
        dev: rated pairs that choose the step by the cosines' Spearman; None keeps the last. Without a projection the
            cosines never change, so there is nothing to choose and it is refused.

    Raises: ValueError as `fit`, and when there is nothing to train.
    """
    settings = FitSettings.of(parameters)
    if projected is None and (head is None or dev is not None):
        raise ValueError(
            "nothing to train: give projected=, a head, or both"
            if head is None
            else "without a projection the cosines stay the same: leave dev out, the head's last step is kept"
        )
    objective = bind(table, loss, options, head=head, teachers=teachers)
    if projected is None and not any({"prediction", "logits"} & set(names) for _, _, names in objective.terms):
        raise ValueError(f"nothing to train: {objective.name} never asks the head; give projected=")
    return _Loop(encoder, objective, settings, projected, dev).run()


def _tensor(vectors: np.ndarray) -> Tensor:
    """Embeddings in the dtype of what is learnt on them."""
    return torch.tensor(np.asarray(vectors), dtype=torch.float32)


class _Loop:
    """One training: the embeddings, the weights, and the order of the rows."""

    def __init__(
        self,
        encoder: Encodes,
        objective: Objective,
        settings: FitSettings,
        projected: Projected | None,
        dev: ScoredPairs | None,
    ) -> None:
        self.objective, self.settings, self.projected, self.dev = objective, settings, projected, dev
        self.sides = [_tensor(encoder.encode(list(column))) for column in objective.columns]
        self.random = torch.Generator().manual_seed(settings.seed)
        self.trained = nn.ModuleList(
            part for part in (projected.map if projected else None, objective.head) if part is not None
        )

    def run(self) -> History:
        settings, began = self.settings, time.monotonic()
        steps = total_steps(settings, len(self.objective), self.objective.least)
        warmup = round(settings.warmup_share * steps) if settings.warmup_share else settings.warmup_steps
        optimiser = torch.optim.AdamW(
            self.trained.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        lines: list[dict[str, Any]] = []
        # Step 0 is told but never chosen, as in `fit`: a loss that only harms must show it.
        best: tuple[float, int, Any] = (float("-inf"), 0, None)
        if self.dev is not None:
            lines.append({"step": 0, "dev_spearman": self.score()})
        batches = self.batches()
        for step in range(1, steps + 1):
            rate = min(step / max(1, warmup), (steps - step + 1) / max(1, steps - warmup))
            for group in optimiser.param_groups:
                group["lr"] = settings.learning_rate * min(1.0, rate)
            lines.append({"step": step, **self.step(next(batches), optimiser)})
            last = step == steps
            if self.dev is not None and (last or (settings.evaluate_every and step % settings.evaluate_every == 0)):
                lines[-1]["dev_spearman"] = score = self.score()
                if score > best[0]:
                    best = (score, step, copy.deepcopy(self.trained.state_dict()))
        if self.dev is not None:
            if best[0] == float("-inf"):
                raise ValueError("the development score was undefined at every look: lower the learning rate")
            self.trained.load_state_dict(best[2])
        seconds = round(time.monotonic() - began, 3)
        looked = self.dev is not None
        return History(
            steps=tuple(lines),
            best_step=best[1] if looked else steps,
            best_dev=best[0] if looked else None,
            seconds=seconds,
            left_out=self.left_out,
        )

    @property
    def left_out(self) -> int:
        rest = len(self.objective) % self.settings.batch_size
        return rest if rest < self.objective.least else 0

    def batches(self) -> Any:
        """Rows of one batch after another, shuffled anew each epoch; a last one too small for the loss is left out."""
        size = self.settings.batch_size
        while True:
            order = torch.randperm(len(self.objective), generator=self.random)
            yield from (part.tolist() for part in order.split(size) if len(part) >= self.objective.least)

    def step(self, rows: list[int], optimiser: torch.optim.Optimizer) -> dict[str, float]:
        optimiser.zero_grad()
        loss = self.objective.loss(rows)(torch.cat([self.view(side[rows]) for side in self.sides]))
        if not torch.isfinite(loss):
            raise ValueError(f"the loss is {float(loss.detach())}: lower the learning rate")
        loss.backward()
        length = nn.utils.clip_grad_norm_(self.trained.parameters(), self.settings.max_grad_norm)
        optimiser.step()
        return {"loss": float(loss.detach()), "grad_norm": float(length)}

    def view(self, vectors: Tensor) -> Tensor:
        if isinstance(self.objective.table, Sentences):
            kept = torch.rand(vectors.shape, generator=self.random) >= DROPOUT
            vectors = vectors * kept / (1 - DROPOUT)
        return self.projected.map(vectors) if self.projected else vectors

    def score(self) -> float:
        """Spearman x 100 of the cosines on the development pairs; minus infinity where they are constant."""
        if self.dev is None or self.projected is None:
            return float("-inf")
        first, second = (torch.from_numpy(self.projected.encode(side)) for side in (self.dev.first, self.dev.second))
        return ranked(functional.cosine_similarity(first, second).numpy(), self.dev.gold)
