"""What would fit where a plan does not: the largest micro-batch, by halving, and other ways to hold less."""

from __future__ import annotations

from typing import Any

from pcclab.parameters import validate
from pcclab.workflows.batches import works
from pcclab.workflows.planning import LOOSE, Plan, plan


def proposal(refused: Plan) -> tuple[dict[str, Any], Plan] | None:
    """The largest micro-batch that fits, as changed parameters and their plan; None where none does.

    Where no micro-batch would do, activations computed again are tried, then quantised weights, then both.

    Args:
        refused: a plan that does not fit.
    """
    p = refused.parameters
    again: list[dict[str, Any]] = [{}] if p.recompute else [{}, {"recompute": True}]
    can_pack = p.quantization == "none" and p.lora_rank and refused.blueprint.reads_on
    for packed in [*again, *({"quantization": "nf4", **more} for more in again if can_pack)]:
        changed, tried = packed, _with(refused, packed)
        allowed = _graph(tried)
        while allowed and not tried.fits:
            within = _within(refused, allowed, packed)
            if within is None:
                break
            changed, tried = within, _with(refused, within)
            allowed = min(_graph(tried), int(0.95 * allowed))
        if tried.fits:
            return changed, tried
    return None


def in_one_graph(refused: Plan) -> tuple[dict[str, Any], Plan] | None:
    """The whole batch in one graph with its activations computed again, as changed parameters and their plan.

    As many operations as micro-batches that are read twice, in less memory; None where it does not fit either.

    Args:
        refused: a plan that does not fit.
    """
    p, batch = refused.parameters, max(work.texts for work in refused.works)
    most = 64 * -(-batch * (p.max_tokens + refused.blueprint.overhead()) // 64)
    changed = {"recompute": True, "keep_tokens": max(p.keep_tokens, most)}
    tried = _with(refused, changed)
    return (changed, tried) if tried.fits else None


def _with(refused: Plan, changed: dict[str, Any]) -> Plan:
    """The plan under changed parameters."""
    if not changed:
        return refused
    p = validate(refused.notebook, {**refused.parameters.model_dump(mode="json"), **changed})
    return plan(refused.notebook, p, refused.card, cards=refused.cards, mean=refused.mean, rate=refused.rate)


def _graph(known: Plan) -> int:
    """Tokens of the largest graph that the card has room for, by what a token takes in a plan."""
    texts, width = known.heaviest.largest
    cost = known.costs[known.parameters.recompute]
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
