"""The meaning of a synthetic sentence, how alike two meanings are, and when one entails or excludes another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from pcclab.data.lexicon import ANIMAL_ACTIONS, TAKES, TAXONOMY, line_of

ROLES = ("agent", "action", "object", "place", "attribute", "number")

WEIGHTS = {"agent": 0.25, "action": 0.30, "object": 0.25, "place": 0.10, "attribute": 0.05, "number": 0.05}
"""What each role counts for in the similarity of two scenes."""

ONE_SIDED = 0.5
"""Agreement of a role that only one of the two scenes fills: less is said, nothing is denied."""

SHARPNESS = 2.0
"""Power of the weighted mean: raters give the last step, from alike to the same, more room than the first."""

NEGATION = 0.6
"""What is left of the similarity when one scene is denied and the other is not."""


@dataclass(frozen=True)
class Scene:
    """Who does what to what, where; "" where a role is left open, `denied` when the sentence says it is not so."""

    agent: str
    action: str
    object: str = ""
    place: str = ""
    attribute: str = ""
    number: str = "one"
    denied: bool = False

    def value(self, role: str) -> str:
        """The concept in a role."""
        return str(getattr(self, role))


@cache
def kinship(role: str, first: str, second: str) -> float:
    """Likeness of two concepts: 1 the same, else twice the depth they share over the sum of their depths.

    Attributes and numbers have no taxonomy: they are the same or they are not.

    Example:
        >>> kinship("agent", "man", "man"), kinship("agent", "man", "dog"), round(kinship("agent", "man", "woman"), 2)
        (1.0, 0.0, 0.67)
    """
    if first == second:
        return 1.0
    if not first or not second:
        return ONE_SIDED
    above, others = line_of(role, first), line_of(role, second)
    return 2.0 * len(set(above) & set(others)) / (len(above) + len(others))


def similarity(first: Scene, second: Scene) -> float:
    """The true similarity of two scenes, 0..1.

    The mean of the roles' kinship by `WEIGHTS` (roles that neither fills left out), to the power `SHARPNESS`, times
    `NEGATION` when exactly one of the scenes is denied.

    Example:
        >>> similarity(Scene("man", "sleep"), Scene("man", "sleep")), similarity(
        ...     Scene("man", "sleep"), Scene("man", "sleep", denied=True)
        ... )
        (1.0, 0.6)
    """
    used = [role for role in ROLES if first.value(role) or second.value(role)]
    agreed = sum(WEIGHTS[role] * kinship(role, first.value(role), second.value(role)) for role in used)
    mean = agreed / sum(WEIGHTS[role] for role in used)
    return float(mean**SHARPNESS) * (NEGATION if first.denied != second.denied else 1.0)


def entails(premise: Scene, hypothesis: Scene) -> bool:
    """Whether the hypothesis says the same or less: every role it fills is the premise's concept or one above it."""
    if premise.denied or hypothesis.denied:
        return premise == hypothesis
    for role in ROLES:
        wanted, given = hypothesis.value(role), premise.value(role)
        if wanted and (not given or wanted not in line_of(role, given)):
            return False
    return True


def excludes(premise: Scene, hypothesis: Scene) -> bool:
    """Whether both cannot hold of one event: one denies what the other says, or who, what or where are disjoint."""
    if premise.denied != hypothesis.denied:
        said, denied = (hypothesis, premise) if premise.denied else (premise, hypothesis)
        return entails(said, replace(denied, denied=False))
    if premise.denied:
        return False
    for role in ROLES[:4]:
        first, second = premise.value(role), hypothesis.value(role)
        if first and second and first not in line_of(role, second) and second not in line_of(role, first):
            return True
    return False


def _leaves(role: str) -> tuple[str, ...]:
    parents = {concept.parent for concept in TAXONOMY[role].values()}
    return tuple(name for name in TAXONOMY[role] if name not in parents)


LEAVES = {role: _leaves(role) for role in ROLES}
"""The most specific concepts of each role."""


def draw(rng: random.Random, families: Sequence[str] = tuple(TAKES)) -> Scene:
    """A scene that makes sense: animals do what animals do, and each action takes an object that fits it.

    Args:
        rng: draws every role.
        families: which families of actions it may be about.
    """
    action = rng.choice([name for name in LEAVES["action"] if line_of("action", name)[-1] in families])
    family = line_of("action", action)[-1]
    agents = [name for name in LEAVES["agent"] if family in ANIMAL_ACTIONS or line_of("agent", name)[-1] == "person"]
    scene = Scene(rng.choice(agents), action, rng.choice(fitting(action)) if TAKES[family] else "")
    place = rng.choice(LEAVES["place"]) if rng.random() < 0.6 else ""
    number = rng.choice(LEAVES["number"]) if rng.random() < 0.4 else "one"
    return replace(scene, place=place, attribute=_attribute(rng, scene.agent), number=number)


@cache
def fitting(action: str) -> tuple[str, ...]:
    """The objects an action can have, most specific concepts only."""
    kinds = TAKES[line_of("action", action)[-1]]
    return tuple(name for name in LEAVES["object"] if line_of("object", name)[-1] in kinds)


def _attribute(rng: random.Random, agent: str, chance: float = 0.4) -> str:
    # "an old child" would say two things at once
    fits = [
        name for name in LEAVES["attribute"] if "child" not in line_of("agent", agent) or name not in ("young", "old")
    ]
    return rng.choice(fits) if rng.random() < chance else ""


def edit(scene: Scene, role: str, rng: random.Random) -> Scene:
    """The scene with one role changed: to a near concept, to a far one, to a broader one, or left open."""
    now = scene.value(role)
    if role == "attribute":
        return replace(scene, attribute=_other(rng, [*LEAVES[role][2:], ""], now))
    if role == "number":
        return replace(scene, number=_other(rng, LEAVES[role], now))
    if role == "place":
        return replace(scene, place=_other(rng, [*LEAVES[role], ""], now))
    if not now:
        return scene
    way = rng.random()
    above = line_of(role, now)[1:]
    if way < 0.25 and above:
        return replace(scene, **{role: above[0]})  # type: ignore[arg-type]
    options = fitting(scene.action) if role == "object" else LEAVES[role]
    if role == "action":
        options = tuple(name for name in options if _takes_alike(name, scene))
    if role == "agent" and line_of("action", scene.action)[-1] not in ANIMAL_ACTIONS:
        options = tuple(name for name in options if line_of(role, name)[-1] == "person")
    near = [name for name in options if set(line_of(role, name)[1:2]) & set(above[:1])]
    return replace(scene, **{role: _other(rng, near if way < 0.65 and len(near) > 1 else options, now)})  # type: ignore[arg-type]


def _takes_alike(action: str, scene: Scene) -> bool:
    family = line_of("action", action)[-1]
    if family not in ANIMAL_ACTIONS and line_of("agent", scene.agent)[-1] == "animal":
        return False
    return line_of("object", scene.object)[-1] in TAKES[family] if scene.object else not TAKES[family]


def _other(rng: random.Random, options: Sequence[str], now: str) -> str:
    left = [name for name in options if name != now]
    return rng.choice(left) if left else now
