"""The meanings behind the synthetic corpora: likeness, entailment and exclusion are what they are said to be."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab.data.lexicon import ANIMAL_ACTIONS, TAKES, TAXONOMY, line_of, noun, verb
from pcclab.data.scenes import (
    LEAVES,
    NEGATION,
    ROLES,
    SHARPNESS,
    WEIGHTS,
    Scene,
    draw,
    edit,
    entails,
    excludes,
    kinship,
    similarity,
)
from pcclab.data.wording import STYLES, say

seeds = st.integers(0, 10_000)
roles = st.sampled_from(ROLES)


def scene(seed: int) -> Scene:
    return draw(random.Random(seed))


def test_the_weights_are_shares() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert set(WEIGHTS) == set(ROLES)


@given(seeds, seeds)
def test_similarity_is_a_similarity(one: int, other: int) -> None:
    a, b = scene(one), scene(other)
    assert similarity(a, a) == 1.0
    assert 0.0 <= similarity(a, b) <= 1.0
    assert similarity(a, b) == pytest.approx(similarity(b, a))


@given(seeds, seeds)
def test_denying_one_side_costs_the_stated_share(one: int, other: int) -> None:
    a, b = scene(one), scene(other)
    denied = replace(b, denied=True)
    assert similarity(a, denied) == pytest.approx(NEGATION * similarity(a, b))
    assert similarity(replace(a, denied=True), denied) == pytest.approx(similarity(a, b))


def test_the_stated_function_by_hand() -> None:
    # man and woman share two of three levels each; carrot and onion too; slice is the same; number is the same
    a, b = Scene("man", "slice", "carrot"), Scene("woman", "slice", "onion")
    mean = (0.25 * 2 / 3 + 0.30 + 0.25 * 2 / 3 + 0.05) / 0.85
    assert similarity(a, b) == pytest.approx(mean**SHARPNESS)


@given(roles, st.data())
def test_kinship_falls_with_the_distance_in_the_taxonomy(role: str, given_data: st.DataObject) -> None:
    name = given_data.draw(st.sampled_from(sorted(TAXONOMY[role])))
    steps = [kinship(role, name, above) for above in line_of(role, name)]
    assert steps[0] == 1.0
    assert all(near > far > 0 for near, far in pairwise(steps))


@given(seeds, roles)
def test_drawn_and_edited_scenes_make_sense(seed: int, role: str) -> None:
    rng = random.Random(seed)
    first = draw(rng)
    for each in (first, edit(first, role, rng)):
        family = line_of("action", each.action)[-1]
        if each.object:
            assert line_of("object", each.object)[-1] in TAKES[family]
        else:
            assert not TAKES[family]
        assert line_of("agent", each.agent)[-1] == "person" or family in ANIMAL_ACTIONS


@given(seeds, roles)
def test_entailment_and_exclusion_never_hold_together(seed: int, role: str) -> None:
    rng = random.Random(seed)
    first = draw(rng)
    second = edit(first, role, rng)
    assert entails(first, first)
    assert not excludes(first, first)
    assert not (entails(first, second) and excludes(first, second))
    assert excludes(first, second) == excludes(second, first)


def test_entailment_goes_up_the_taxonomy_and_not_down() -> None:
    boy = Scene("boy", "slice", "carrot", "kitchen")
    assert entails(boy, Scene("child", "prepare", "vegetable"))
    assert not entails(Scene("child", "slice", "carrot"), boy)
    assert not entails(boy, Scene("boy", "slice", "carrot", "garden"))
    assert excludes(boy, Scene("boy", "slice", "carrot", "garden"))
    assert excludes(boy, Scene("child", "prepare", "vegetable", denied=True))
    assert not excludes(Scene("child", "sleep"), Scene("boy", "sleep", denied=True))
    assert not excludes(boy, replace(boy, attribute="tired"))


@given(seeds, st.sampled_from(sorted(STYLES)), st.booleans())
def test_every_scene_can_be_said_in_every_style(seed: int, style: str, denied: bool) -> None:
    rng = random.Random(seed)
    told = replace(draw(rng), denied=denied)
    text = say(told, style, rng)
    assert text == " ".join(text.split())
    assert not set(text) & set("{}/")
    marks = {"not", "no"} & set(text.lower().split())
    assert bool(marks) == denied


@pytest.mark.parametrize("style", sorted(STYLES))
def test_one_meaning_has_many_wordings(style: str) -> None:
    meaning = Scene("man", "repair", "bicycle", "garden", "old")
    texts = {say(meaning, style, random.Random(seed)) for seed in range(60)}
    assert len(texts) >= 25


def test_forms_of_words() -> None:
    assert noun("box").many == "boxes"
    assert noun("lady").many == "ladies"
    assert noun("boy").many == "boys"
    assert noun("man/men").many == "men"
    assert verb("carry") == ("carry", "carries", "carrying", "carried", "carried")
    assert verb("look at").ing == "looking at"
    assert verb("slice").past == "sliced"
    assert verb("eat/eats/eating/ate/eaten").participle == "eaten"


def test_the_taxonomy_is_closed() -> None:
    for role, concepts in TAXONOMY.items():
        for concept in concepts.values():
            assert concept.words
            assert concept.parent == "" or concept.parent in concepts, (role, concept.name)
        assert len(LEAVES[role]) >= 4
