"""Token ids of sentences inside a template: the sentence is cut, never the template, and nothing follows it."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

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
