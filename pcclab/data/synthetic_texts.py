"""The generated corpora that are not rated pairs: inference, plain sentences and the labelled transfer tasks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from pcclab.data.catalogue import Corpus
from pcclab.data.lexicon import line_of
from pcclab.data.pairs import LabelledTexts, NLIPairs, Provenance, Sentences, Table, Triplets
from pcclab.data.scenes import LEAVES, Scene, draw, edit, entails, excludes
from pcclab.data.wording import STYLES, say

PREMISES = 750
"""Premises of each of the two parts of the inference corpus; each has one hypothesis of every label."""

SENTENCES = 2000
"""Plain sentences."""

ROWS: Mapping[tuple[str, str], int] = {
    ("mr", "all"): 400,
    ("cr", "all"): 300,
    ("subj", "all"): 400,
    ("mpqa", "all"): 300,
    ("sst2", "train"): 400,
    ("sst2", "dev"): 100,
    ("sst2", "test"): 150,
    ("trec", "train"): 360,
    ("trec", "test"): 120,
    ("mrpc", "train"): 300,
    ("mrpc", "test"): 120,
}
"""Texts of each part of the labelled corpora."""


def declared() -> dict[tuple[str, str], int]:
    """Rows of every part made here."""
    pairs = 3 * PREMISES
    inference = {("nli", "dev"): pairs, ("nli", "test"): pairs, ("nli", "all"): 2 * pairs}
    return {**ROWS, **inference, ("nli_for_simcse", "train"): 2 * PREMISES, ("wiki1m", "train"): SENTENCES}


@dataclass(frozen=True)
class Inference:
    """A premise and a hypothesis with their meanings, which give the label."""

    premise: str
    hypothesis: str
    label: str
    scenes: tuple[Scene, Scene]


def load(corpus: Corpus, split: str, seed: str, provenance: tuple[Provenance, ...]) -> Table:
    """One split of a corpus that is not rated pairs; `seed` already names the generator's version."""
    rng = random.Random(f"{seed}/{corpus.name}/{split}")
    if corpus.kind == "sentences":
        styles = list(STYLES)
        return Sentences(
            tuple(say(draw(rng), rng.choice(styles), rng) for _ in range(SENTENCES)), provenance=provenance
        )
    if corpus.kind == "labelled":
        return _labelled(corpus, ROWS[corpus.name, split], rng, provenance)
    rows = inferences(split, seed)
    if corpus.kind == "nli":
        columns = zip(*((row.premise, row.hypothesis, row.label) for row in rows), strict=True)
        return NLIPairs(*columns, provenance=provenance)
    by_premise = zip(rows[0::3], rows[2::3], strict=True)
    anchors, positives, negatives = zip(*((a.premise, a.hypothesis, c.hypothesis) for a, c in by_premise), strict=True)
    return Triplets(anchors, positives, negatives, provenance=provenance)


@cache
def inferences(split: str, seed: str) -> tuple[Inference, ...]:
    """Rows of the inference corpus: for each premise an entailment, a neutral sentence and a contradiction, in turn."""
    if split in ("all", "train"):
        return inferences("dev", seed) + inferences("test", seed)
    # Captions in one part and plain sentences in the other, so that no premise stands in both.
    style = "captions" if split == "dev" else "plain"
    rng = random.Random(f"{seed}/nli/{split}")
    makers = {"entailment": _less, "neutral": _more, "contradiction": _against}
    premises: set[str] = set()
    rows: list[Inference] = []
    while len(premises) < PREMISES:
        scene = draw(rng)
        premise = say(scene, style, rng)
        if premise in premises or (scene.place and scene.attribute):
            continue
        premises.add(premise)
        for label, maker in makers.items():
            other = maker(scene, rng)
            rows.append(Inference(premise, say(other, style, rng, avoid=premise), label, (scene, other)))
    return tuple(rows)


def _less(scene: Scene, rng: random.Random) -> Scene:
    """The same scene or a broader one: details left out, concepts replaced by those above them."""
    other = replace(scene, place="" if rng.random() < 0.5 else scene.place)
    other = replace(other, attribute="" if rng.random() < 0.5 else scene.attribute)
    role = rng.choice(("agent", "action", "object", ""))
    above = line_of(role, scene.value(role))[1:2] if role else ()
    return _with(other, role, above[0]) if above else other


def _more(scene: Scene, rng: random.Random) -> Scene:
    """The scene with a detail added of which it says nothing."""
    if not scene.attribute:
        return replace(scene, attribute=rng.choice(("cheerful", "tired", "tall", "angry")))
    return replace(scene, place=rng.choice(LEAVES["place"]))


def _against(scene: Scene, rng: random.Random) -> Scene:
    """What cannot be true at once: a broader scene denied, or another agent, action, object or place."""
    if rng.random() < 0.35:
        return replace(_less(scene, rng), denied=True)
    while True:
        other = edit(scene, rng.choice(("agent", "action", "object", "place")), rng)
        if excludes(scene, other):
            return other


def _with(scene: Scene, role: str, concept: str) -> Scene:
    values: dict[str, str] = {role: concept}
    return replace(scene, **values)  # type: ignore[arg-type]


Maker = Callable[[Scene, int, random.Random], tuple[str, str | None]]

_GOOD = ("wonderful", "charming", "a delight", "well made", "moving", "superb", "funny and warm")
_BAD = ("dull", "a mess", "badly made", "tiresome", "a let-down", "clumsy", "flat and cold")


def _labelled(corpus: Corpus, rows: int, rng: random.Random, provenance: tuple[Provenance, ...]) -> LabelledTexts:
    """Equal numbers of each class; what makes a text one class or the other stands in its maker below."""
    maker = _MAKERS[corpus.name]
    labels = [at % len(corpus.classes) for at in range(rows)]
    rng.shuffle(labels)
    texts, seconds = zip(*(maker(draw(rng), label, rng) for label in labels), strict=True)
    second = tuple(seconds) if corpus.name == "mrpc" else None
    return LabelledTexts(texts, second, np.array(labels), corpus.classes, provenance=provenance)


def _review(kind: str) -> Maker:
    """An opinion word decides: class 1 praises, class 0 does not."""

    def make(scene: Scene, label: int, rng: random.Random) -> tuple[str, None]:
        told = say(replace(scene, place="", attribute="", number="one"), "definitions", rng)
        word = rng.choice(_GOOD if label else _BAD)
        frame = rng.choice((f"a {kind} about {told} , and it is {word}", f"{word} : this {kind} shows {told}"))
        return frame, None

    return make


def _phrase(scene: Scene, label: int, rng: random.Random) -> tuple[str, None]:
    """As a review, in three words."""
    return f"{rng.choice(('rather', 'truly', 'simply', 'quite'))} {rng.choice(_GOOD if label else _BAD)}", None


def _subjective(scene: Scene, label: int, rng: random.Random) -> tuple[str, None]:
    """Class 1 tells a belief, class 0 a caption."""
    return say(scene, "beliefs" if label else "captions", rng).rstrip(" .").lower() + " .", None


def _question(scene: Scene, label: int, rng: random.Random) -> tuple[str, None]:
    """The role asked for decides: abbreviation, reason, object, agent, place or number."""
    scene = draw(rng, ("prepare", "restore", "move", "use")) if not scene.object else scene
    told = say(replace(scene, place="", number="one"), "headlines", rng).lower()
    action = scene.action
    frames = (
        f"What does {scene.agent[0].upper()}.{action[0].upper()}. stand for in {told} ?",
        f"Why would it be said that {told} ?",
        f"What thing did the {scene.agent} {action} ?",
        f"Who can {action} the {scene.object} ?",
        f"Where does the {scene.agent} {action} the {scene.object} ?",
        f"How many times does the {scene.agent} {action} the {scene.object} ?",
    )
    return frames[label], None


def _paraphrase(scene: Scene, label: int, rng: random.Random) -> tuple[str, str]:
    """Class 1 says one scene twice; class 0 changes its agent, action or object."""
    other = scene
    while not label and (entails(scene, other) or entails(other, scene)):
        other = edit(scene, rng.choice(("agent", "action", "object")), rng)
    first = say(scene, "reports", rng)
    return first, say(other, "reports", rng, avoid=first)


_MAKERS: Mapping[str, Maker] = {
    "mr": _review("film"),
    "sst2": _review("story"),
    "cr": _review("toy"),
    "mpqa": _phrase,
    "subj": _subjective,
    "trec": _question,
    "mrpc": _paraphrase,
}
