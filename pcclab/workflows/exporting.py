"""A trained encoder handed on: a folder for sentence-transformers with a card that says how it came about."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pcclab import data
from pcclab.encoders import CausalEncoder, Encoder, interchange
from pcclab.encoders.prompts import SLOT, fill
from pcclab.parameters import nearest_set
from pcclab.runs import Run
from pcclab.workflows.judging import judge
from pcclab.workflows.judging_units import Rows
from pcclab.workflows.models import Model

RATED = "STS-B train and SICK-R train"
UNRATED = "none: no rated pair is trained on"
TOLD: dict[str, tuple[str, str]] = {
    "02_stage1_contrastive": ("triplets of NLI", "InfoNCE with hard negatives, temperature {temperature}"),
    "03_stage2_pcc_tuning": (RATED, "{loss}"),
    "06_regression": (f"NLI pairs, then {RATED}", "a regression head: {objectives} {scratch}"),
    "07_rankcse": ("unlabelled sentences", "RankCSE: {methods}"),
}
"""Notebook -> what its encoders are trained on, and by which objective, with parameters in braces."""
WORDED = {"pearson": "Pearson's correlation, 1 - r"}


def export(
    model: Model,
    folder: str | os.PathLike[str],
    root: Path,
    *,
    source: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    tell: Callable[[str], None] = print,
) -> Path:
    """Write an encoder for sentence-transformers with its card; its STS scores are taken, or read where they are kept.

    Args:
        model: as `load_models` gives it.
        folder: new, or replaced whole.
        root: the checkout.
        source: what it is judged on; None: the source that its run was trained on, and without a run not at all.
        options: further options of `encoders.load`.
        tell: takes each line of progress.

    Raises: ValueError for first-last pooling, which sentence-transformers does not have; as `judge`.
    """
    encoder = whole(model.load(**(options or {})), lambda: model.load(**{**(options or {}), "quantization": "none"}))
    interchange.refuse(encoder.settings)
    where = source if source is not None else model.run.parameters.source if model.run is not None else None
    rows = {} if where is None else judge(encoder, root, source=where, only=("sts",), tell=tell)["sts"].rows
    told = (
        facts(model.run) if model.run is not None else {"base model": str(model.place), "training": "none by this lab"}
    )
    told = {**told, **reads(encoder)}
    return encoder.to_sentence_transformer(folder, card=sheet(told, rows, data.describe(where) if rows else ""))


def whole(encoder: Encoder, again: Callable[[], Encoder]) -> Encoder:
    """The encoder as one model: an adapter is added into weights that are not quantised, for which `again` loads it."""
    if not isinstance(encoder, CausalEncoder) or encoder.settings.adapter is None:
        return encoder
    plain = encoder if encoder.settings.quantization == "none" else again()
    return plain.merged() if isinstance(plain, CausalEncoder) else plain


def reads(encoder: Encoder) -> dict[str, str]:
    """What a card says of how the encoder reads a sentence; nothing where there is nothing but tokens."""
    template = getattr(encoder.settings, "template", "")
    if not template:
        return {}
    filled, most = fill(template, SLOT), encoder.settings.max_tokens
    return {
        "template": f"`{filled}`, which the tokenizer fills by itself: give it bare sentences",
        "long sentences": f"in pcclab cut after {most} tokens with the template left whole, elsewhere never cut, so "
        "that one beyond the model's positions loses the template's end",
    }


def card(name: str, told: Mapping[str, Any], rows: Rows, source: str) -> str:
    """The text of a model card.

    Args:
        name: of the model.
        told: as `facts` gives them.
        rows: of the unit "sts", see `judge`; empty where nothing was judged.
        source: what it was judged on.

    >>> text = card("mine", {"base model": "minilm"}, {"stsb": {"pairs": 9, "spearman": [82.034, 80.0, 84.0]}}, "here")
    >>> print(text[text.index("# mine"):])
    # mine
    <BLANKLINE>
    Made with pcclab.
    <BLANKLINE>
    - **base model**: minilm
    - **judged on**: here, 95 % intervals by bootstrap over the pairs
    <BLANKLINE>
    | Spearman x 100 | |
    |:---|---:|
    | stsb | 82.03 [80.00, 84.00] |
    <BLANKLINE>
    """
    return interchange.model_card(name, sheet(told, rows, source))


def sheet(told: Mapping[str, Any], rows: Rows, source: str) -> dict[str, Any]:
    """What stands on a card: the facts, then the scores with their intervals, or that there are none."""
    if not rows:
        return {**told, "judged on": "nothing yet: it has no scores"}
    scores = {task: _interval(row["spearman"]) for task, row in rows.items()}
    judged = f"{source}, 95 % intervals by bootstrap over the pairs"
    return {**told, "judged on": judged, "Spearman x 100": scores}


def facts(run: Run) -> dict[str, Any]:
    """How the encoder of a finished run came about: base model, data, leakage, objective, seeds, command.

    Raises: ValueError for a run that trains no encoder.
    """
    if run.notebook not in TOLD:
        raise ValueError(f"run {run.name} trains no encoder: name a run of {', '.join(TOLD)}")
    trained, objective = TOLD[run.notebook]
    values = run.parameters.model_dump()
    known = _provenance(run)
    rated = RATED in trained and values.get("objectives", True)  # 06 may train on the NLI pairs alone
    before = run.parameters.stands_on()
    seeds = values.get("seeds", [values["seed"]])
    git, used = known.get("git", {}), known.get("data", {})
    dirty = ", with changes not committed" if git.get("dirty") else ""
    return {
        "base model": values["encoder"] + (f", continued from {', '.join(before)}" if before else ""),
        "data": f"{trained if rated or RATED not in trained else 'NLI pairs'}, source {values['source']}"
        + _fingerprints(used),
        "leakage": _leakage(values.get("leakage", "filter")) if rated else UNRATED,
        "objective": objective.format(
            **{name: WORDED.get(t := _listed(value), t) for name, value in values.items()}
        ).strip(),
        "seeds": _listed(seeds),
        "training": f"learning rate {values['learning_rate']:g}, batch {values['batch_size']}, {values['epochs']:g} "
        f"epochs, {values['max_tokens']} tokens",
        "command": f"`{command(run)}`",
        "run": f"{run.name}, commit {git.get('commit', 'unknown')[:12]}{dirty}",
    }


def command(run: Run) -> str:
    """The command that makes this run again: the set that is nearest, and what differs from it.

    Raises: FileNotFoundError where the checkout has no set of the notebook.
    """
    nearest, changes = nearest_set(run.root, run.notebook, run.parameters)
    words = [f"-p {shlex.quote(change)}" for change in changes]
    return " ".join([f"./lab run {run.notebook[:2]} --set {nearest}", *words])


def _provenance(run: Run) -> dict[str, Any]:
    file = run.folder / "run.json"
    return dict(json.loads(file.read_text(encoding="utf8")).get("provenance", {})) if file.is_file() else {}


def _leakage(level: str) -> str:
    meant = {"keep": "no pair left out, those that occur in a test set among them",
             "filter": "pairs that occur in a test set left out",
             "strict": "pairs that share a sentence with a test set left out"}  # fmt: skip
    return f"{level}: {meant[level]}"


def _fingerprints(used: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {str(value)[:12]}" for name, value in used.items() if isinstance(value, str))
    return f" (fingerprints: {told})" if told else ""


def _interval(cell: Any) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(*cell) if isinstance(cell, list) else str(cell)


def _listed(value: Any, between: str = ", ") -> str:
    return between.join(map(str, value)) if isinstance(value, list | tuple) else str(value)
