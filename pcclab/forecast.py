"""A training's plan as a command line asks for it and as a person reads it in a terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pcclab import runs
from pcclab.report import table


def planned(
    place: str, named: str, assignments: list[str], *, card: str | None, memory: float | None, cards: int | None,
    tokens: float | None, rate: float | None,
) -> Any:  # fmt: skip
    """The plan that a command line asks for.

    Args:
        place: beginning of a notebook's name, or the path of a parameter file in a folder of its notebook's name.
        named: the set, where `place` is a notebook.
        assignments: other values, as ``name=value``.
        card, memory, cards, tokens, rate: as `pcclab plan` takes them.

    Raises: ValueError for what none of them means.
    """
    from pcclab import workflows
    from pcclab.parameters import MODELS, load_file, notebook_named, parameter_file, read_overrides

    file = Path(place) if place.endswith((".yaml", ".yml")) else None
    folders = [part for part in file.resolve().parts if part in MODELS] if file else [place]
    if not folders:
        raise ValueError(f"{place} lies in no folder of a notebook's name: write 02 --set {place}, or 03")
    name = notebook_named(folders[-1], workflows.PLANNED)
    p = load_file(name, file or parameter_file(runs.root(), name, named), read_overrides(name, assignments))
    return workflows.plan(name, p, workflows.card_of(card, memory), cards=cards, mean=tokens,
                          rate=rate and rate * 1e12)  # fmt: skip


def of_plan(plan: Any) -> str:
    """A plan as a person reads it: weights, memory of a card by part, steps and time, and what of it is assumed."""
    sizes, p = plan.sizes, plan.parameters
    stored = "" if p.quantization == "none" else f", {p.quantization}"
    rank = f", LoRA of rank {p.lora_rank}" if p.lora_rank else ""
    head = f"{plan.notebook}: {p.encoder}{stored}{rank} (its config: {plan.blueprint.origin})\n"
    head += f"on {plan.cards} x {plan.card.name}, {_gib(plan.room)} GiB each; nothing was loaded"
    weights = {
        "trained": {"number": f"{sizes.trained:,}", "GiB": _gib(sizes.trained_bytes)},
        "frozen": {"number": f"{sizes.frozen:,}", "GiB": _gib(sizes.frozen_bytes)},
    }
    memory: dict[str, dict[str, str]] = {}
    other = not p.recompute
    for column, recompute in (("as set", p.recompute), (f"-p recompute={str(other).lower()}", other)):
        parts, moments = plan.memory(recompute=recompute), plan.moments(recompute=recompute)
        told = {**parts, **{f"= {moment}": size for moment, size in moments.items()}}
        told["at most, with what is around"] = plan.total(recompute=recompute)
        for part, size in told.items():
            memory.setdefault(part, {})[column] = _gib(size)
    work = {
        f"training, {w.label}": {
            "rows": f"{w.rows:,}", "steps": f"{w.steps:,}", "texts": f"{w.texts:,}", "tokens": f"{w.tokens:,.0f}",
        }
        for w in plan.works
    }  # fmt: skip
    seconds = plan.seconds()
    times = {part: {**work.get(part, {}), "hours": f"{taken / 3600:.3f}"} for part, taken in seconds.items()}
    times["together"] = {"hours": f"{sum(seconds.values()) / 3600:.3f}"}
    texts, width = plan.heaviest.largest
    notes = [
        f"largest graph: {texts} texts of {width} tokens; texts and tokens above are a step's, padding included",
        f"vocabulary logits are not computed: they would take {_gib(plan.logits)} GiB more",
        f"what is around: {plan.around} (assumed)",
        *dict.fromkeys(f"rows and tokens: {w.counted}" for w in plan.works),
        f"rate: {plan.rate / 1e12:.3g} TFLOP/s a card, {plan.rated}",
        *(f"it continues another run: pcclab plan {place}" for place in plan.before),
    ]
    tables = [table(weights, title="weights"), table(memory, title="memory, GiB"), table(times, title="work")]
    return "\n\n".join([head, *tables, "\n".join(notes)])


def of_refusal(refused: Any) -> str:
    """One sentence for a plan that cannot fit: what it needs, what there is, and what would do."""
    from pcclab import workflows

    told = f"this needs {_gib(refused.total())} GiB and a card has {_gib(refused.room)}: "
    found = [workflows.proposal(refused), workflows.in_one_graph(refused)]
    ways = [
        " ".join(f"-p {name}={str(value).lower()}" for name, value in changed.items())
        + f", which needs {_gib(fitting.total())}"
        for changed, fitting in filter(None, found)
    ]
    if ways:
        return f"{told}add {', or '.join(dict.fromkeys(ways))}"
    moments = refused.moments(recompute=True)  # of the least that a step can take
    most = max(moments, key=lambda moment: moments[moment])
    return f"{told}no micro-batch fits, the most is taken {most}; take a smaller encoder or a larger card"


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f}"
