"""RankCSE: what each of its terms adds, learnt without labels from one or two teachers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pcclab import data, encoders, evaluation, runs, training
from pcclab.parameters.comparisons import RankingParameters
from pcclab.runs import Run
from pcclab.training import FitSettings, Teachers, teachers
from pcclab.workflows.grid import Cell, told

if TYPE_CHECKING:
    import pandas as pd

METHODS: dict[str, tuple[str, ...]] = {
    "simcse": ("contrast",),
    "listnet": ("contrast", "consistency", "listnet"),
    "listnet without consistency": ("contrast", "listnet"),
    "listnet without contrast": ("consistency", "listnet"),
    "listnet alone": ("listnet",),
    "listmle": ("contrast", "consistency", "listmle"),
    "listmle without consistency": ("contrast", "listmle"),
    "listmle without contrast": ("consistency", "listmle"),
    "listmle alone": ("listmle",),
    "without ranking": ("contrast", "consistency"),
    "consistency alone": ("consistency",),
    "listnet as ported": ("contrast", "ported consistency", "listnet"),
    "listmle as ported": ("contrast", "ported consistency", "ported listmle"),
}
"""The rows of RankCSE's table 4, each with the terms of equation 6 that it keeps; then what the public port trains."""


PRINTED = {
    "simcse": "SimCSE",
    "listnet": "RankCSE-ListNet",
    "listnet without consistency": "RankCSE-ListNet / without consistency",
    "listnet without contrast": "RankCSE-ListNet / without InfoNCE",
    "listnet alone": "RankCSE-ListNet / without consistency and InfoNCE",
    "listmle": "RankCSE-ListMLE",
    "listmle without consistency": "RankCSE-ListMLE / without consistency",
    "listmle without contrast": "RankCSE-ListMLE / without InfoNCE",
    "listmle alone": "RankCSE-ListMLE / without consistency and InfoNCE",
    "without ranking": "RankCSE / without rank",
    "consistency alone": "RankCSE / without InfoNCE and rank",
}
"""Where each method stands in `pcclab.reference`, table 4."""


def rankcse(run: Run, shared: dict[str, Any]) -> Cell:
    """Train a student on unlabelled sentences with one of `METHODS`.

    Args:
        run: with one entry in `methods` and in `seeds`.
        shared: keeps the teachers for the next cell.

    Returns:
        The chosen step, its score on the clean development pairs, seconds, and the tests by cosine.

    Source: RankCSE, equation 6 and tables 2 and 4.
    """
    p = run.parameters
    assert isinstance(p, RankingParameters)
    (method,), (seed,) = p.methods, p.seeds
    student = load_student(p, seed)
    sentences = data.sentences(source=p.source, limit=p.sentences or None, seed=p.seed)
    dev = data.dev_pairs(source=p.source)
    run.record(
        data={"train": sentences.fingerprint, "dev": dev.fingerprint},
        encoder={"name": student.settings.name, "fingerprint": student.fingerprint},
    )
    taught = None
    if any("list" in term for term in METHODS[method]):
        taught = shared.get("teachers") or shared.setdefault("teachers", load_teachers(run, sentences.text))
        run.record(teachers=taught.fingerprint)
    settings = replace(FitSettings.of(p), seed=seed)
    history = training.fit(
        student, sentences, expression(p, method), parameters=settings, run=run, dev=dev, teachers=taught
    )
    tests = told(evaluation.sts(student, source=p.source))
    return {"dev": history.best_dev, "step": history.best_step, "seconds": history.seconds, "tests": tests}


def expression(p: RankingParameters, method: str) -> str:
    """The objective of a method as `pcclab.losses.parse` reads it: equation 6 with the parameters' values."""
    return " + ".join(terms(p)[term] for term in METHODS[method])


def terms(p: RankingParameters) -> dict[str, str]:
    """The terms of equation 6 and what the port makes of them, each as `pcclab.losses.parse` reads it."""
    return {
        "contrast": f"info_nce(temperature={p.temperature})",
        "consistency": f"{p.beta} * ranking_consistency(temperature={p.temperature})",
        "listnet": f"{p.gamma} * listnet(student_temperature={p.student_temperature}, "
        f"teacher_temperature={p.teacher_temperature})",
        "listmle": f"{p.gamma} * listmle(temperature={p.listmle_temperature})",
        # The port never reads beta.
        "ported consistency": f"ranking_consistency(temperature={p.temperature}, variant='published')",
        "ported listmle": f"{p.gamma} * listmle(temperature={p.listmle_temperature}, variant='published')",
    }


def term_sizes(run: Run, shared: dict[str, Any]) -> pd.DataFrame:
    """What each term of equation 6 weighs before training, on the student's first batch.

    Args:
        run: of notebook 07.
        shared: keeps the teachers, as in `rankcse`.

    Returns:
        Indexed by term: its loss and the length of its gradient, without the weights beta and gamma.
    """
    import pandas as pd

    p = run.parameters
    assert isinstance(p, RankingParameters)
    student = load_student(p, p.seeds[0])
    sentences = data.sentences(source=p.source, limit=p.sentences or None, seed=p.seed)
    taught = shared.get("teachers") or shared.setdefault("teachers", load_teachers(run, sentences.text))
    settings = replace(FitSettings.of(p), seed=p.seeds[0])
    alone = p.model_copy(update={"beta": 1.0, "gamma": 1.0})
    rows = {
        term: training.first_step(student, sentences, text, parameters=settings,
                                  teachers=taught if "list" in term else None)
        for term, text in terms(alone).items()
        if "ported" not in term
    }  # fmt: skip
    return pd.DataFrame(rows, index=["loss", "gradient"]).T.rename_axis("term")


def load_student(p: RankingParameters, seed: int) -> encoders.Encoder:
    """The student before training: the encoder's lower layers.

    Args:
        p: the notebook's parameters.
        seed: as `encoders.load` takes it.
    """
    return encoders.load(p.encoder, **p.loading(), seed=seed, layers=p.layers or None)


def load_teachers(run: Run, texts: tuple[str, ...]) -> Teachers:
    """The teachers' embeddings of the sentences, from the disk where they were computed before.

    Args:
        run: whose parameters name the teachers.
        texts: the sentences of the training.
    """
    p = run.parameters
    assert isinstance(p, RankingParameters)
    places: list[Any] = [p.teacher]
    if p.second_teacher.endswith(".yaml"):
        places.append(runs.ensure("02_stage1_contrastive", p.second_teacher).checkpoints / "final")
    elif p.second_teacher:
        places.append(p.second_teacher)
    taught = [encoders.load(place) for place in places]
    mix = [p.alpha, 1 - p.alpha] if len(taught) == 2 else [1.0]
    return teachers.gather(taught, texts, mix=mix, cache=run.root / "runs" / "teachers")
