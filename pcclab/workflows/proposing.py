"""What would fit where a plan does not: the largest micro-batch, by halving."""

from __future__ import annotations

from typing import Any

from pcclab.parameters import validate
from pcclab.workflows.batches import works
from pcclab.workflows.planning import LOOSE, Plan, plan


def proposal(refused: Plan) -> tuple[dict[str, Any], Plan] | None:
    """The largest micro-batch that fits, as changed parameters and their plan; None where none does.

    Where no micro-batch would do and the weights are not quantised yet, quantised ones are tried.

    Args:
        refused: a plan that does not fit.
    """
    p = refused.parameters
    can_pack = p.quantization == "none" and p.lora_rank and refused.blueprint.reads_on
    for packed in ({}, {"quantization": "nf4"}) if can_pack else ({},):
        allowed = _graph(refused)
        while allowed:
            changed = _within(refused, allowed, packed)
            if changed is None:
                break
            p = validate(refused.notebook, {**refused.parameters.model_dump(mode="json"), **changed})
            tried = plan(refused.notebook, p, refused.card, cards=refused.cards, mean=refused.mean, rate=refused.rate)
            if tried.fits:
                return changed, tried
            again = _graph(tried)
            allowed = min(again, int(0.95 * allowed))
    return None


def _graph(known: Plan) -> int:
    """Tokens of the largest graph that the card has room for, by what a token takes in a plan."""
    texts, width = known.heaviest.largest
    cost = known.costs[False]
    over = (known.total() - known.room) / (1 + LOOSE)
    return max(0, int(texts * width * (1 - over / cost.peak)))


def _within(refused: Plan, allowed: int, packed: dict[str, Any]) -> dict[str, Any] | None:
    """The largest micro_tokens, and the keep_tokens beside it, whose graphs have at most so many tokens."""
    p, found = refused.parameters, None
    least, most = -(-p.max_tokens // 64), max(p.micro_tokens, p.keep_tokens) // 64
    while least <= most:
        middle = (least + most) // 2
        told = {"micro_tokens": 64 * middle, "keep_tokens": min(p.keep_tokens, 64 * middle), **packed}
        changed = validate(refused.notebook, {**p.model_dump(mode="json"), **told})
        cut = works(refused.notebook, changed, refused.blueprint, world=refused.cards, mean=refused.mean)
        if max(work.largest[0] * work.largest[1] for work in cut) <= allowed:
            found, least = told, middle + 1
        else:
            most = middle - 1
    return found
