"""A template has one slot, and what goes into it stays as it was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pcclab import encoders
from pcclab.encoders.prompts import SLOT, TEMPLATES, Prompted, fill

ODD = ['He said "no".', "two\nlines", "an [X] in it", "{braces} %s \\1", " spaces ", ""]


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_name_stands_for_its_template(name: str) -> None:
    assert fill(name, "A cat.") == fill(TEMPLATES[name], "A cat.") == TEMPLATES[name].replace(SLOT, "A cat.")


@pytest.mark.parametrize("sentence", ODD)
@pytest.mark.parametrize("template", [*TEMPLATES, SLOT, f"({SLOT})"])
def test_quotes_newlines_and_slots_of_the_sentence_are_kept(template: str, sentence: str) -> None:
    before, after = TEMPLATES.get(template, template).split(SLOT)
    assert fill(template, sentence) == before + sentence + after


@given(st.text(), st.text().filter(lambda text: SLOT not in text))
def test_any_sentence_comes_out_whole(sentence: str, around: str) -> None:
    assert fill(f"<{around}>{SLOT}", sentence) == f"<{around}>{sentence}"


@pytest.mark.parametrize(("template", "slots"), [("", 0), ("eol", 0), (f"{SLOT} {SLOT}", 2), ("[x]", 0)])
def test_a_template_without_just_one_slot_is_refused(template: str, slots: int) -> None:
    for refused in (lambda: fill(template, "a"), lambda: Prompted(None, template)):
        with pytest.raises(ValueError, match=rf"has {slots} slots \[X\]: give one of EOL, SUM, STH, or a text"):
            refused()


class Seen:
    """An encoder that tells what it was asked."""

    def encode(self, sentences: Sequence[str]) -> np.ndarray:
        self.sentences = list(sentences)
        return np.arange(len(sentences), dtype=np.float32)[:, None]

    def __str__(self) -> str:
        return "Seen"


def test_an_encoder_is_asked_for_the_filled_templates_in_order() -> None:
    seen = Seen()
    prompted = Prompted(seen, "STH")
    assert prompted.encode(["b", "a", "b"]).tolist() == [[0], [1], [2]]
    assert seen.sentences == [fill("STH", text) for text in ("b", "a", "b")]
    assert str(prompted) == "Seen with STH"


def test_a_real_encoder_gives_what_it_gives_for_the_filled_text() -> None:
    tiny = encoders.load("tiny")
    prompted = Prompted(tiny, "EOL").encode(["a cat", "rain"])
    assert np.array_equal(prompted, tiny.encode([fill("EOL", "a cat"), fill("EOL", "rain")]))
    assert np.abs(prompted - tiny.encode(["a cat", "rain"])).max() > 1e-3


def test_encoder_and_template_make_the_fingerprint() -> None:
    one, two = encoders.load("tiny", seed=1), encoders.load("tiny", seed=2)
    prints = {Prompted(encoder, name).fingerprint for encoder in (one, two) for name in TEMPLATES}
    assert len(prints) == 2 * len(TEMPLATES)
    assert Prompted(one, "EOL").fingerprint == Prompted(one, TEMPLATES["EOL"]).fingerprint
