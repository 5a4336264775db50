"""What a training will need, before anything is loaded: weights, memory part by part, steps and time."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from pcclab import runs
from pcclab.encoders.blueprint import Blueprint, Sizes, blueprint
from pcclab.parameters import load_recorded
from pcclab.training import launch
from pcclab.training.cards import Card
from pcclab.training.rehearsal import Cost, Way, remembered
from pcclab.workflows.batches import DEV_TEXTS, STS_TEXTS, Work, works

PLANNED = ("02_stage1_contrastive", "03_stage2_pcc_tuning")
SHARE = 0.35
"""Assumed share of a card's published matrix rate that a training reaches where no run was measured."""
CPU_RATE = 2e10
"""Assumed operations a second of one processor where no run was measured."""
AROUND = {True: 0.6, False: 0.8}
"""Assumed GiB beside all tensors: of a GPU's context and libraries, else of Python and its libraries."""
LOOSE = 0.03
"""Assumed share that an allocator loses between blocks."""


@dataclass(frozen=True)
class Plan:
    """A training planned for one card, or several alike.

    Args:
        notebook, parameters: what is planned.
        blueprint, sizes: of the encoder.
        card, cards: what there is, and how many of it.
        works: the trainings of the notebook, one after the other.
        costs: of the largest micro-batch, with its activations kept and computed again.
        judging: bytes that an evaluation needs beside the weights at a look at the development set, and on the tests.
        mean: tokens of a sentence where they were given.
        rate, rated: operations a second, and where that is known from.
    """

    notebook: str
    parameters: Any
    blueprint: Blueprint
    sizes: Sizes
    card: Card
    cards: int
    works: list[Work]
    costs: Mapping[bool, Cost]
    judging: tuple[float, float]
    mean: float | None
    rate: float
    rated: str

    @property
    def heaviest(self) -> Work:
        """The training with the largest graph."""
        return max(self.works, key=lambda work: work.largest[0] * work.largest[1])

    def memory(self, *, recompute: bool | None = None) -> dict[str, float]:
        """Bytes by part at the moment a training step needs most; `recompute` None is as the parameters say."""
        again = self.parameters.recompute if recompute is None else recompute
        cost, sizes, work = self.costs[again], self.sizes, self.heaviest
        # A graph that is embedded once has no gradients before its activations begin to go.
        first = work.kept == 1 and self.cards == 1
        beside = cost.peak - cost.kept
        gradients = min(sizes.trained_bytes, beside) if first else sizes.trained_bytes
        texts, width = work.texts, self.blueprint.width
        return {
            "frozen weights": sizes.frozen_bytes,
            "trained weights": sizes.trained_bytes,
            "optimiser (AdamW, two moments)": 2 * sizes.trained_bytes,
            "gradients": gradients,
            "embeddings of the whole batch": 3 * 4 * texts * width,
            "activations of the largest graph": cost.kept,
            "workspace": max(beside - (gradients if first else 0), 0),
        }

    def moments(self, *, recompute: bool | None = None) -> dict[str, float]:
        """Bytes at each moment of a notebook that may need the most."""
        trained = self.sizes.trained_bytes
        weights = self.sizes.frozen_bytes + trained
        # Several processes add up their gradients in one piece, which is a copy.
        return {
            "in a step": sum(self.memory(recompute=recompute).values()),
            "behind a step": weights + 3 * trained + (trained if self.cards > 1 else 0),
            "at a look at the development set": weights + 2 * trained + self.judging[0],
            "in the tests": weights + self.judging[1],
        }

    def total(self, *, recompute: bool | None = None) -> float:
        """Bytes on one card at the most, with what is around."""
        return max(self.moments(recompute=recompute).values()) * (1 + LOOSE) + AROUND[self.card.cuda] * 2**30

    @property
    def around(self) -> str:
        """What is added to the tensors."""
        what = "the GPU's context and libraries" if self.card.cuda else "Python and its libraries"
        return f"{AROUND[self.card.cuda]:g} GiB for {what}, {LOOSE:.0%} between an allocator's blocks"

    @property
    def logits(self) -> float:
        """Bytes of the largest graph's logits over the vocabulary, which no encoder here computes."""
        texts, width = self.heaviest.largest
        return texts * width * int(self.blueprint.config.vocab_size) * (2 if self.parameters.dtype == "bfloat16" else 4)

    @property
    def before(self) -> tuple[str, ...]:
        """Runs that come first, as `pcclab plan` takes them."""
        return tuple(place.replace(" ", " --set ", 1) for place in self.parameters.stands_on())

    @property
    def room(self) -> float:
        """Bytes of one card; processes on one processor share its memory."""
        return self.card.gib * 2**30 / (1 if self.card.cuda else self.cards)

    @property
    def fits(self) -> bool:
        """Whether one card holds it."""
        return self.total() <= self.room

    def operations(self, work: Work) -> float:
        """Floating-point operations of one step, on the process that has most of it."""
        cost = self.costs[False]
        tokens = work.largest[0] * work.largest[1]
        once = (2 if self.parameters.recompute else 1) * cost.forward + cost.back
        twice = cost.forward + once
        return work.share * work.tokens / tokens * (work.kept * once + (1 - work.kept) * twice)

    def seconds(self) -> dict[str, float]:
        """Time by part: the steps of each training, the looks at the development set, the tests."""
        return {
            **{f"training, {w.label}": w.steps * self.operations(w) / self.rate for w in self.works},
            "looks at the development set": sum(map(self.looking, self.works)) / self.rate,
            "tests, before and after": (1 + len(self.works)) * STS_TEXTS * self._forward / self.rate,
        }

    def looking(self, work: Work) -> float:
        """Operations of a training's looks at the development set."""
        every = self.parameters.evaluate_every or work.steps
        return (1 + -(-work.steps // every)) * DEV_TEXTS * self._forward

    @cached_property
    def _forward(self) -> float:
        """Operations of reading one text."""
        work = self.heaviest
        return self.costs[False].forward / (work.largest[0] * work.largest[1]) * work.tokens / work.texts


def plan(
    notebook: str, parameters: Any, card: Card, *, cards: int | None = None, mean: float | None = None,
    rate: float | None = None,
) -> Plan:  # fmt: skip
    """Plan a notebook's trainings; reads configs and texts, never weights.

    Args:
        notebook: one of `PLANNED`.
        parameters: its validated parameters.
        card: what it is to run on.
        cards: how many of it share each batch; None takes the environment's PCCLAB_PROCESSES.
        mean: tokens of a sentence on average; None counts them where data and tokenizer are at hand.
        rate: operations a second; None takes that of this machine's finished runs, or an assumption.

    Raises: ValueError for a notebook without such a training, or an encoder of which nothing is known.
    """
    if notebook not in PLANNED:
        raise ValueError(f"{notebook} has no single training to plan: give {' or '.join(PLANNED)}")
    cards = launch.wanted() if cards is None else cards
    for given, value in {"cards": cards, "tokens": mean or 1, "rate": rate or 1}.items():
        if not value > 0:
            raise ValueError(f"{given} is {value}: give more than 0")
    p, loading = parameters, parameters.loading()
    drawn = _drawn(p.encoder, json.dumps(loading, sort_keys=True), card.cuda)
    found = works(notebook, p, drawn, world=cards, mean=mean)
    texts, width = max((work.largest for work in found), key=lambda shape: shape[0] * shape[1])
    ways = {r: Way(p.dtype == "bfloat16", r, card.cuda, held=found[0].kept < 1) for r in (False, True)}
    costs = {r: remembered(drawn, texts, width, way) for r, way in ways.items()}
    told = (rate, "given") if rate else _measured(p, card) or _assumed(card)
    # An evaluation's need grows with its tokens, up to the most that it embeds at once.
    each = max(1, round(found[0].tokens / found[0].texts))
    tests = remembered(drawn, card.budget // each, each, Way(False, False, card.cuda, trains=False)).there
    dev = tests * min(1.0, DEV_TEXTS * each / card.budget)
    return Plan(notebook, p, drawn, _sizes(drawn), card, cards, found, costs, (dev, tests), mean, *told)


@lru_cache(maxsize=8)
def _drawn(name: str, loading: str, cuda: bool) -> Blueprint:
    return blueprint(name, **json.loads(loading), cuda=cuda)


@lru_cache(maxsize=8)
def _sizes(drawn: Blueprint) -> Sizes:
    return drawn.sizes()


def _measured(p: Any, card: Card) -> tuple[float, str] | None:
    """Operations a second of this machine's newest finished run of the same encoder in the same number formats."""
    alike = ("encoder", "dtype", "quantization", "lora_rank")
    for sheet in sorted(runs.root().glob("runs/0[23]_*/*/run.json"), key=lambda file: -file.stat().st_mtime):
        folder, told = sheet.parent, json.loads(sheet.read_bytes())
        history = folder / "checkpoints" / "history.json"
        device = card.name if card.cuda else "cpu"
        at_home = told.get("process", {}).get("host") == socket.gethostname()
        if told.get("provenance", {}).get("device") != device or not at_home or not history.is_file():
            continue
        try:
            before = load_recorded(told["notebook"], folder / "parameters.yaml")
        except (ValueError, OSError):  # of an older version
            continue
        if any(getattr(before, name) != getattr(p, name) for name in alike):
            continue
        seconds = json.loads(history.read_bytes())["seconds"]
        known = plan(told["notebook"], before, card, cards=1, rate=1.0)
        work = next(w for w in known.works if w.label in ("stage 1", getattr(before, "leakage", "")))
        done = work.steps * known.operations(work) + known.looking(work)
        return done / seconds, f"measured: run {told['notebook']}/{told['id']}, {seconds:,.0f} s"
    return None


def _assumed(card: Card) -> tuple[float, str]:
    if card.tflops is None:
        return CPU_RATE, f"assumed: {CPU_RATE / 1e9:g} GFLOP/s of a processor"
    return SHARE * card.tflops * 1e12, f"assumed: {SHARE:.0%} of the {card.tflops:g} TFLOP/s its maker publishes"
