"""The words of the synthetic corpora: a small taxonomy of concepts and the ways to say each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Verb(NamedTuple):
    """The five forms of a verb."""

    base: str
    third: str
    ing: str
    past: str
    participle: str


class Noun(NamedTuple):
    """A noun and its plural."""

    one: str
    many: str


@dataclass(frozen=True)
class Concept:
    """A node of the taxonomy: the nouns, verbs, phrases or adjectives that say it, and the concept above it."""

    name: str
    parent: str
    words: tuple[str, ...]


# concept > the concept above : its synonyms; a second form after a slash where the rules would miss it.
_AGENTS = """
person : person/people
adult > person : adult, grown-up
man > adult : man/men, gentleman/gentlemen, guy
woman > adult : woman/women, lady
child > person : child/children, kid, youngster
boy > child : boy, lad
girl > child : girl, schoolgirl
worker > person : worker, labourer
farmer > worker : farmer, grower
cook > worker : cook, chef
carpenter > worker : carpenter, woodworker
nurse > worker : nurse, caregiver
animal : animal, creature
pet > animal : pet, house pet
dog > pet : dog, hound
cat > pet : cat, tomcat
livestock > animal : farm animal, barnyard animal
horse > livestock : horse, pony
goat > livestock : goat, billy goat
"""
_OBJECTS = """
food : piece of food/pieces of food
vegetable > food : vegetable, veggie
carrot > vegetable : carrot
onion > vegetable : onion
potato > vegetable : potato, spud
fruit > food : fruit, piece of fruit/pieces of fruit
apple > fruit : apple
melon > fruit : melon
instrument : musical instrument
strings > instrument : string instrument
guitar > strings : guitar
violin > strings : violin, fiddle
drum > instrument : drum
flute > instrument : flute
vehicle : vehicle
car > vehicle : car, automobile
truck > vehicle : truck, lorry
bicycle > vehicle : bicycle, bike
cart > vehicle : cart, wagon
structure : structure
wall > structure : wall
fence > structure : fence, railing
roof > structure : roof, rooftop
gate > structure : gate
container : container
basket > container : basket, hamper
box > container : box, crate
bucket > container : bucket, pail
"""
_ACTIONS = """
prepare : prepare
slice > prepare : slice, cut up/cuts up/cutting up/cut up/cut up
boil > prepare : boil
fry > prepare : fry, pan-fry
peel > prepare : peel
consume : consume
eat > consume : eat/eats/eating/ate/eaten, munch
taste > consume : taste, sample
restore : restore
repair > restore : repair, mend, fix
paint > restore : paint
clean > restore : clean, wash, scrub/scrubs/scrubbing/scrubbed/scrubbed
move : move
carry > move : carry
push > move : push, shove
pull > move : pull, drag/drags/dragging/dragged/dragged
lift > move : lift, pick up
use : use
play > use : play
tune > use : tune
observe : observe
watch > observe : watch, look at
photograph > observe : photograph, snap/snaps/snapping/snapped/snapped
sketch > observe : sketch, draw/draws/drawing/drew/drawn
travel : move around, go around/goes around/going around/went around/gone around
run > travel : run/runs/running/ran/run, jog/jogs/jogging/jogged/jogged, race
walk > travel : walk, stroll
swim > travel : swim/swims/swimming/swam/swum, paddle
rest : rest, relax
sleep > rest : sleep/sleeps/sleeping/slept/slept, nap/naps/napping/napped/napped, doze
sit > rest : sit/sits/sitting/sat/sat, sit down/sits down/sitting down/sat down/sat down
noise : make noise/makes noise/making noise/made noise/made noise
shout > noise : shout, yell
sing > noise : sing/sings/singing/sang/sung, chant
"""
_PLACES = """
outdoors : outdoors, outside
garden > outdoors : in the garden, in the yard
field > outdoors : in the field, in the meadow
beach > outdoors : on the beach, at the seashore
forest > outdoors : in the forest, in the woods
street > outdoors : on the street, on the road
indoors : indoors, inside
kitchen > indoors : in the kitchen
workshop > indoors : in the workshop, in the garage
library > indoors : in the library
barn > indoors : in the barn, in the stable
"""
_ATTRIBUTES = """
young : young, youthful
old : old, elderly
cheerful : cheerful, happy
tired : tired, weary
tall : tall
angry : angry, furious
"""
_NUMBERS = """
one : a
two : two, a pair of
three : three
several : several, a group of
"""

TAKES = {
    "prepare": ("food",),
    "consume": ("food",),
    "restore": ("vehicle", "structure", "instrument"),
    "move": ("container", "vehicle", "instrument"),
    "use": ("instrument",),
    "observe": ("vehicle", "structure", "container"),
    "travel": (),
    "rest": (),
    "noise": (),
}
"""What each family of actions takes as its object; an empty tuple: none."""

ANIMAL_ACTIONS = ("consume", "travel", "rest", "noise")
"""The families of actions that an animal can do."""


def _parse(table: str) -> dict[str, Concept]:
    concepts = {}
    for line in table.strip().splitlines():
        head, words = line.split(" : ")
        name, _, parent = head.partition(" > ")
        concepts[name] = Concept(name, parent, tuple(words.split(", ")))
    return concepts


TAXONOMY = {
    "agent": _parse(_AGENTS),
    "action": _parse(_ACTIONS),
    "object": _parse(_OBJECTS),
    "place": _parse(_PLACES),
    "attribute": _parse(_ATTRIBUTES),
    "number": _parse(_NUMBERS),
}
"""Role -> concept -> its node."""


def line_of(role: str, name: str) -> tuple[str, ...]:
    """A concept and all above it, itself first: `("man", "adult", "person")`."""
    found = []
    while name:
        found.append(name)
        name = TAXONOMY[role][name].parent
    return tuple(found)


def noun(word: str) -> Noun:
    """Both forms of a noun written "one" or "one/many"."""
    one, _, many = word.partition("/")
    if many:
        return Noun(one, many)
    if one.endswith("y") and one[-2] not in "aeiou":
        return Noun(one, one[:-1] + "ies")
    return Noun(one, one + ("es" if one.endswith(("x", "o", "s", "ch", "sh")) else "s"))


def verb(word: str) -> Verb:
    """The five forms of a verb written as its base, or as all five between slashes."""
    if "/" in word:
        return Verb(*word.split("/"))
    head, space, tail = word.partition(" ")
    tail = space + tail
    if head.endswith("e"):
        third, ing, past = head + "s", head[:-1] + "ing", head + "d"
    elif head.endswith("y") and head[-2] not in "aeiou":
        third, ing, past = head[:-1] + "ies", head + "ing", head[:-1] + "ied"
    else:
        third = head + ("es" if head.endswith(("x", "s", "ch", "sh")) else "s")
        ing, past = head + "ing", head + "ed"
    return Verb(word, third + tail, ing + tail, past + tail, past + tail)
