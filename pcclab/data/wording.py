"""Says a scene in words: ten styles, each with several word orders, active and passive, and a draw of synonyms."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import cache

from pcclab.data.lexicon import TAXONOMY, Noun, Verb, noun, verb
from pcclab.data.scenes import Scene

STYLES: dict[str, tuple[str, ...]] = {
    "captions": (
        "{S} {be} {ing} {O} {P}.",
        "{O} {obe} being {pp} by {S} {P}.",
        "{P}, {S} {be} {ing} {O}.",
        "There {be} {S} {ing} {O} {P}.",
    ),
    "plain": ("{S} {be} {ing} {O} {P}", "{O} {obe} being {pp} by {S} {P}", "There {be} {S} {ing} {O} {P}"),
    "headlines": ("{S} {third} {O} {P}", "{O} {pp} by {S} {P}", "{P}: {S} {third} {O}"),
    "definitions": (
        "{S} that {third} {O} {P}",
        "the act of {ing} {O} {P}, done by {S}",
        "when {S} {third} {O} {P}",
        "the state of {O} that {obe} {pp} by {S} {P}",
    ),
    "forum": (
        "has anyone seen {S} {ing} {O} {P} ?",
        "does somebody know whether {S} {be} {ing} {O} {P} ?",
        "need advice : {S} {be} {ing} {O} {P} .",
        "what do you make of {O} being {pp} by {S} {P} ?",
    ),
    "questions": (
        "Why {be} {S} {ing} {O} {P}?",
        "How can {S} {base} {O} {P}?",
        "What is the reason that {S} {third} {O} {P}?",
        "Why {obe} {O} {pp} by {S} {P}?",
    ),
    "answers": (
        "yes, {S} can {base} {O} {P}.",
        "as far as I can tell, {S} {third} {O} {P}.",
        "{O} can be {pp} by {S} {P}, I would say.",
    ),
    "reports": (
        "{S} {past} {O} {P}, neighbours said.",
        "{O} was {pp} by {S} {P}, according to witnesses.",
        "{P}, {S} {past} {O} on Monday.",
        "Witnesses told us that {S} {past} {O} {P}.",
    ),
    "beliefs": (
        "i believe that {S} {past} {O} {P} .",
        "it seems to me that {O} was {pp} by {S} {P} .",
        "my guess is that {S} {past} {O} {P} .",
    ),
    "notices": (
        "just saw {S} {ing} {O} {P} !",
        "{S} {ing} {O} {P} , right now",
        "look : {O} being {pp} by {S} {P}",
    ),
}
"""Style -> frames: S subject, O object, P place, and forms of the verb; a passive serves scenes with an object."""

_NOT = {
    "{be} {ing}": "{be} not {ing}",
    "{obe} being": "{obe} not being",
    "{obe} {pp}": "{obe} not {pp}",
    "can {base}": "can not {base}",
    "can {S} {base}": "can {S} not {base}",
    "can be {pp}": "can not be {pp}",
    "was {pp}": "was not {pp}",
    "{third}": "{do} not {base}",
    "{past}": "did not {base}",
    "being {pp}": "not being {pp}",
    "Why {be} {S} {ing}": "Why {be} {S} not {ing}",
    "Why {obe} {O} {pp}": "Why {obe} {O} not {pp}",
    "There {be} {S}": "There {be} no {N}",
    "{O} {pp}": "{O} not {pp}",
    "of {ing}": "of not {ing}",
    "{S} {ing}": "{S} not {ing}",
}
"""How each frame is denied: the first phrase that occurs in it is replaced."""


@dataclass(frozen=True)
class _Words:
    """The synonyms of a concept with all their forms."""

    nouns: tuple[Noun, ...]
    verbs: tuple[Verb, ...]


@cache
def _words(role: str, name: str) -> _Words:
    words = TAXONOMY[role][name].words
    if role == "action":
        return _Words((), tuple(map(verb, words)))
    return _Words(tuple(map(noun, words)), ())


def say(scene: Scene, style: str, rng: random.Random, *, avoid: str = "") -> str:
    """A sentence for a scene.

    Args:
        scene: what to say.
        style: a key of `STYLES`.
        rng: draws the frame and the synonyms.
        avoid: a sentence not to repeat, as a paraphrase of it is wanted; after a few draws it is given up.

    Example:
        >>> say(Scene("dog", "sleep", place="garden"), "plain", random.Random(1))
        'A dog is dozing in the garden'
    """
    for _ in range(8):
        text = _say(scene, style, rng)
        if text != avoid:
            break
    return text


def _say(scene: Scene, style: str, rng: random.Random) -> str:
    frames = [f for f in STYLES[style] if scene.object or "{pp}" not in f]
    frame = rng.choice([f for f in frames if scene.place or not f.startswith("{P}")])
    if scene.denied:
        found = next(phrase for phrase in _NOT if phrase in frame)
        frame = frame.replace(found, _NOT[found], 1)
    many = scene.number != "one"
    action = rng.choice(_words("action", scene.action).verbs)
    name = rng.choice(_words("agent", scene.agent).nouns)
    quality = rng.choice(TAXONOMY["attribute"][scene.attribute].words) + " " if scene.attribute else ""
    bare = quality + (name.many if many else name.one)
    count = rng.choice(TAXONOMY["number"][scene.number].words)
    subject = f"{count} {bare}" if many else f"{_article(bare)} {bare}"
    thing = rng.choice(_words("object", scene.object).nouns).one if scene.object else ""
    filled = frame.format(
        S=subject,
        N=bare,
        O=f"{_article(thing)} {thing}" if thing else "",
        P=rng.choice(TAXONOMY["place"][scene.place].words) if scene.place else "",
        be="are" if many else "is",
        obe="is",
        do="do" if many else "does",
        base=action.base,
        third=action.base if many else action.third,
        ing=action.ing,
        past=action.past,
        pp=action.participle,
    )
    return _finish(filled, style)


def _finish(text: str, style: str) -> str:
    """Spaces and marks set right, then the style's own habits: no articles in headlines, capitals where it has them."""
    words = text.split()
    if style == "headlines":
        words = [word for word in words if word not in ("a", "an", "the")]
    text = " ".join(words)
    for mark in (",", ".", "?", ":"):
        if style not in ("forum", "beliefs", "notices"):
            text = text.replace(f" {mark}", mark)
    if style in ("forum", "beliefs", "notices", "definitions", "answers"):
        return text
    return text[0].upper() + text[1:]


def _article(word: str) -> str:
    return "an" if word[:1] in "aeiou" else "a"
