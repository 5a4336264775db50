"""Token ids of sentences inside a template: the sentence is cut, never the template, and nothing follows it."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from tokenizers import Regex, Tokenizer, normalizers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from pcclab.encoders.prompts import SLOT, TEMPLATES, fill


def rows(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], template: str, limit: int
) -> tuple[list[list[int]], list[int]]:
    """Token ids of each text in the template, beginning as the tokenizer begins, ending with the template's end.

    The filled template is read as a whole, so that a sentence's full stop and the template's quote may be one token,
    as the model knows it. A token that holds a part of both belongs to the template.

    Args:
        tokenizer: a fast one, which tells where in the text a token lies.
        texts: sentences.
        template: a name of `TEMPLATES`, a text with one slot, or empty for none.
        limit: most tokens of a sentence.

    Returns:
        The rows, and for each text how many tokens its sentence has uncut.
    """
    whole = template or SLOT
    start = len(TEMPLATES.get(whole, whole).split(SLOT)[0])
    filled = [fill(whole, text) for text in texts]
    read = tokenizer(
        filled, add_special_tokens=True, return_offsets_mapping=True, return_special_tokens_mask=True, verbose=False
    )
    cut, lengths = [], []
    for ids, spans, special, text in zip(
        read["input_ids"], read["offset_mapping"], read["special_tokens_mask"], texts, strict=True
    ):
        last = max((i for i, mark in enumerate(special) if not mark), default=-1) + 1
        end = start + len(text)
        inside = [i for i in range(last) if not special[i] and spans[i][0] >= start and start < spans[i][1] <= end]
        first, after = (inside[0], inside[-1] + 1) if inside else (last, last)
        lengths.append(after - first)
        cut.append(ids[: min(after, first + limit)] + ids[after:last])
    return cut, lengths


def overhead(tokenizer: PreTrainedTokenizerBase, template: str) -> int:
    """Tokens of the template and of what begins a text."""
    (row,), (length,) = rows(tokenizer, ["a"], template, 1)
    return len(row) - min(length, 1)


_END = r"\z"


def carrying(tokenizer: PreTrainedTokenizerBase, template: str) -> PreTrainedTokenizerBase:
    """A copy that fills the template by itself: what it normalises, it first puts into the slot.

    So a tool that knows no templates reads a sentence as this lab does, its last full stop and the template's quote as
    one token where the model knows them as one. Two things it cannot do: cut a long sentence and leave the template
    whole, and fill the template once where the sentence holds a special token of the tokenizer's own.
    """
    if not template:
        return tokenizer
    before, after = TEMPLATES.get(template, template).split(SLOT)
    core = copy.deepcopy(tokenizer.backend_tokenizer)
    steps = [*([normalizers.Prepend(before)] if before else []), normalizers.Replace(Regex(_END), after)]
    core.normalizer = normalizers.Sequence([*steps, *([core.normalizer] if core.normalizer else [])])
    # A family's own class would build its own normaliser when it is read; this one keeps what it is given.
    return PreTrainedTokenizerFast(
        tokenizer_object=core, model_max_length=tokenizer.model_max_length, **tokenizer.special_tokens_map
    )


def carried(tokenizer: PreTrainedTokenizerBase) -> tuple[PreTrainedTokenizerBase, str]:
    """The tokenizer without the template that `carrying` gave it, and the template; empty without one."""
    told: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    steps = (told.get("normalizer") or {}).get("normalizers") or []
    before = steps[0]["prepend"] if steps and steps[0]["type"] == "Prepend" else ""
    rest = steps[1:] if before else steps
    if not rest or rest[0].get("pattern") != {"Regex": _END}:
        # Prepending alone is what SentencePiece's tokenizers do of their own.
        return tokenizer, ""
    text = f"{before}{SLOT}{rest[0]['content']}"
    told["normalizer"] = rest[1] if len(rest) > 1 else None
    bare = copy.deepcopy(tokenizer)
    bare._tokenizer = Tokenizer.from_str(json.dumps(told))
    return bare, next((name for name, template in TEMPLATES.items() if template == text), text)
