"""Our rows of the papers' tables: from the results of finished runs to labels, scores and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from pcclab import reference, runs, sheet
from pcclab.parameters import load_spoken

OURS = "this lab"
"""The part of a table that holds our rows: STS-Regression has rows of its own called Ours."""
_TASKS = {
    "STS-B": "stsb",
    "SICK-R": "sickr",
    "Avg.": "average",
    **{f"STS{year}": f"sts{year}" for year in range(12, 17)},
}
_TRANSFER = {name.upper(): name for name in ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")} | {"Avg.": "average"}
_SLOPED = {"smooth_k2": "Smooth K2 Loss", "translated_relu": "Translated ReLU"}


class Result(NamedTuple):
    """A finished run: its name, its result, its parameters and its sheet."""

    run: str
    values: dict[str, Any]
    parameters: dict[str, Any]
    sheet: dict[str, Any]


Results = Mapping[str, Result]


class Row(NamedTuple):
    """A row of ours: part and method, scores by column, and small text beside them."""

    label: tuple[str, str]
    values: dict[str, float]
    beside: dict[str, str]


def result(place: str) -> Result:
    """The finished run that is spoken of.

    Raises: FileNotFoundError where it is not finished.
    """
    run = runs.spoken(place)
    _, parameters = load_spoken(runs.root(), place)
    return Result(run.name, run.result, parameters.model_dump(mode="json"), sheet.read(run.folder))


def made_by(found: Results) -> str:
    """What a caption says of our rows: encoder, data, seeds and machine."""
    first = next(iter(found.values()))
    encoder = first.parameters.get("encoder", "minilm")
    told = first.sheet.get("provenance", {})
    names = {"minilm": "all-MiniLM-L6-v2 (22 million weights)"}
    models = ", as it comes and trained further" if "models" in first.parameters else ""
    seeds = first.parameters.get("seeds") or {entry.parameters.get("seed") for entry in found.values()}
    device = {"cpu": f"a CPU with {told.get('cpus', '?')} cores"}.get(
        told.get("device"), told.get("device", "a machine")
    )
    source = {"senteval": "SentEval's data"}.get(first.parameters["source"], first.parameters["source"] + " data")
    counted = f"{len(seeds)} seed" + "s" * (len(seeds) > 1)
    return f"{names.get(encoder, encoder)}{models} on {source}, {counted}, on {device}"


def stage2_tasks(found: Results) -> list[Row]:
    """03: before and after, a level of leakage each, over seeds."""
    levels: dict[str, list[Result]] = {}
    for entry in found.values():
        levels.setdefault(entry.parameters["leakage"], []).append(entry)
    before = next(iter(found.values())).values["baseline"]
    rows = [Row((OURS, "before stage 2"), {name: before[task] for name, task in _TASKS.items()}, {})]
    for level, entries in levels.items():
        scores = {name: [entry.values["after"][task] for entry in entries] for name, task in _TASKS.items()}
        rows.append(_over_seeds(f"Pcc-tuning, {level}", scores))
    return rows


def stage2_averages(found: Results) -> list[Row]:
    """03: the averages alone."""
    return [
        Row(row.label, {"Spearman": row.values["Avg."]}, {"Spearman": row.beside.get("Avg.", "")})
        for row in stage2_tasks(found)
    ]


def prompts(found: Results) -> list[Row]:
    """04: templates around the sentence, on the small encoder; without one also stage 1, the encoder as it is."""
    rows = []
    for names, told in _settings(found, "prompts"):
        if names[0] != "minilm":
            continue
        row = _setting("no template" if names[1] == "none" else f"Prompt{names[1]}", "Stage-2, filtered", told)
        if names[1] == "none":
            row.values["Stage-1"] = _only(found).values["before"]
        rows.append(row)
    return rows


def batch_sizes(found: Results) -> list[Row]:
    """04: batch sizes of stage 2."""
    return [_setting(f"batch {names[0]}", "Spearman", told) for names, told in _settings(found, "batch size")]


def slopes(found: Results) -> list[Row]:
    """04: slope and threshold of the two losses with a buffer, by the trunk's cosine, where the paper has them too."""
    theirs = reference.cells("sts-regression", table="5")["row"].str.split(" / ", n=1).str[1]
    printed = set(theirs.str.replace(" / ", ", "))
    rows = [
        _setting(f"{_SLOPED[names[0]]}, k {float(names[1]):g}, x0 {float(names[2]):g}", "Spearman", told)
        for names, told in _settings(found, "slope and threshold")
    ]
    return [row for row in rows if row.label[1] in printed]


def features(found: Results) -> list[Row]:
    """04: what the node is given."""
    return [
        _setting(f"({names[0].replace(',', ', ').replace('u-v', 'u - v')})", "Spearman", told)
        for names, told in _settings(found, "concatenation")
    ]


def teachers(found: Results) -> list[Row]:
    """04: teachers, a column an objective."""
    columns = {"listnet": "RankCSE-ListNet", "listmle": "RankCSE-ListMLE"}
    rows: dict[str, Row] = {}
    for (teacher, objective), told in _settings(found, "teachers"):
        one = _setting(teacher, columns[objective], told)
        row = rows.setdefault(teacher, one)
        row.values.update(one.values)
        row.beside.update(one.beside)
    return list(rows.values())


def scratch(found: Results) -> list[Row]:
    """06: from a trunk that has not learnt it."""
    from pcclab.plots.style import named

    return [_by_task(named(name), told) for name, told in _only(found).values["scratch, tasks"].items()]


def two_phase(found: Results) -> list[Row]:
    """06: the encoder as it is, and after the two phases."""
    from pcclab.plots.style import named

    values = _only(found).values
    before = Row((OURS, "as it is"), {name: values["before"][task] for name, task in _TASKS.items()}, {})
    return [before, *(_by_task(named(name), told) for name, told in values["phases, tasks"].items())]


def rankcse_tasks(found: Results) -> list[Row]:
    """07: the student before, and every method."""
    values = _only(found).values
    before = Row((OURS, "student before"), {name: values["before"][task] for name, task in _TASKS.items()}, {})
    return [before, *(_by_task(_printed(name), told) for name, told in values["tasks"].items())]


def terms(found: Results) -> list[Row]:
    """07: the averages, as table 4 has them."""
    return [
        Row(row.label, {"STS Avg.": row.values["Avg."]}, {"STS Avg.": row.beside.get("Avg.", "")})
        for row in rankcse_tasks(found)[1:]
    ]


def deviations(found: Results) -> list[Row]:
    """07: means and deviations over seeds, as table 6 has them."""
    return [
        Row((OURS, _printed(name)), dict(zip(("STS Avg.", "STS deviation"), told["average"], strict=False)), {})
        for name, told in _only(found).values["tasks"].items()
    ]


def transfer(found: Results) -> list[Row]:
    """08: accuracies, a model and protocol each, with half their 95 % interval."""
    values, rows = _only(found).values, []
    for name, scores in values["accuracy"].items():
        ends = values.get("intervals", {}).get(name, {})
        beside = {c: f"±{(ends[t][1] - ends[t][0]) / 2:.1f}" for c, t in _TRANSFER.items() if t in ends}
        given = {c: scores[t] for c, t in _TRANSFER.items() if isinstance(scores.get(t), float)}
        rows.append(Row((OURS, name), given, beside))
    return rows


def rank_tasks(found: Results) -> list[Row]:
    """09: Kendall and NDCG, with half their 95 % interval."""
    values, rows = _only(found).values, []
    for part, measure in (("KCC", "kendall"), ("NDCG", "ndcg")):
        for model, scores in values[measure].items():
            ends = {task: values.get("intervals", {}).get(f"{task}, {model}, {measure}") for task in scores}
            beside = {c: f"±{(ends[t][2] - ends[t][1]) / 2:.1f}" for c, t in _TASKS.items() if ends.get(t)}
            known = {c: scores[t] for c, t in _TASKS.items() if isinstance(scores.get(t), float)}
            rows.append(Row((f"{part}, {OURS}", model), known, beside))
    return rows


def _only(found: Results) -> Result:
    (entry,) = found.values()
    return entry


def _over_seeds(method: str, scores: Mapping[str, list[float]]) -> Row:
    beside = {name: f"±{np.std(many, ddof=1):.2f}" for name, many in scores.items() if len(many) > 1}
    return Row((OURS, method), {name: float(np.mean(many)) for name, many in scores.items()}, beside)


def _by_task(method: str, told: Mapping[str, list[float]]) -> Row:
    """From task to mean and, with several seeds, deviation."""
    values = {name: told[task][0] for name, task in _TASKS.items()}
    beside = {name: f"±{told[task][1]:.2f}" for name, task in _TASKS.items() if len(told[task]) > 1}
    return Row((OURS, method), values, beside)


def _settings(found: Results, section: str) -> Iterator[tuple[list[str], dict[str, float]]]:
    for name, told in _only(found).values["settings"][section].items():
        yield name.split(" / "), told


def _setting(label: str, column: str, told: Mapping[str, float]) -> Row:
    beside = {column: f"±{told['deviation']:.2f}"} if "deviation" in told else {}
    return Row((OURS, label), {column: told["mean"]}, beside)


def _printed(method: str) -> str:
    """A method as RankCSE names it, short enough for a table of eight columns."""
    from pcclab.workflows.ranking import PRINTED

    name = PRINTED.get(method, method).replace(" / ", ", ")
    return name.removeprefix("RankCSE-").replace("without", "w/o")
