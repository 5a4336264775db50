"""RankCSE's methods are the rows of its table 4, and an objective holds the terms its method keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pcclab import data, encoders, losses, reference, runs, sheet
from pcclab.workflows import METHODS, PRINTED, grid, load_student, load_teachers, rankcse, ranking

TERMS = {
    "contrast": "info_nce",
    "consistency": "ranking_consistency",
    "listnet": "listnet",
    "listmle": "listmle",
    "ported consistency": "ranking_consistency",
    "ported listmle": "listmle",
}


def test_the_methods_are_the_papers_table_4() -> None:
    rows = set(reference.cells("rankcse", table="4")["row"])
    assert set(METHODS) - set(PRINTED) == {"listnet as ported", "listmle as ported"}
    assert set(PRINTED) <= set(METHODS)
    assert set(PRINTED.values()) == rows
    assert len(set(PRINTED.values())) == len(PRINTED)


@pytest.mark.parametrize("method", PRINTED)
def test_a_method_keeps_the_terms_its_row_does_not_take_away(method: str) -> None:
    terms, row = METHODS[method], PRINTED[method]
    if row == "SimCSE":
        assert terms == ("contrast",)
        return
    left_out = row.split(" / ")[1] if " / " in row else ""
    assert ("consistency" in terms) == ("consistency" not in left_out)
    assert ("contrast" in terms) == ("InfoNCE" not in left_out)
    ranks = {"listnet", "listmle"} & set(terms)
    assert ranks == (set() if "rank" in left_out else {"listnet" if "ListNet" in row else "listmle"})


@pytest.mark.parametrize("method", METHODS)
def test_an_objective_has_the_terms_weights_and_temperatures_of_its_method(begin: Any, method: str) -> None:
    p = begin(
        "07_rankcse", beta=0.5, gamma=1.5, temperature=0.06, student_temperature=0.03, teacher_temperature=0.02,
        listmle_temperature=0.07,
    ).parameters  # fmt: skip
    wanted = {
        "contrast": (1.0, {"temperature": 0.06}),
        "consistency": (0.5, {"temperature": 0.06}),
        "listnet": (1.5, {"student_temperature": 0.03, "teacher_temperature": 0.02}),
        "listmle": (1.5, {"temperature": 0.07}),
        "ported consistency": (1.0, {"temperature": 0.06, "variant": "published"}),  # the port never reads beta
        "ported listmle": (1.5, {"temperature": 0.07, "variant": "published"}),
    }
    found = losses.parse(ranking.expression(p, method))
    assert [(term.name, term.weight, term.options) for term in found] == [
        (TERMS[name], *wanted[name]) for name in METHODS[method]
    ]


@pytest.mark.parametrize("method", ["simcse", "listnet", "listmle without contrast", "listmle as ported"])
def test_a_method_trains_and_gives_the_documented_figures(begin: Any, method: str) -> None:
    run = begin("07_rankcse", methods=[method], sentences=40, teacher="tiny", second_teacher="", layers=1)
    cell = rankcse(run, {})
    assert set(cell) == {"dev", "step", "seconds", "tests"}
    assert set(cell["tests"]) == {*data.STS_TASKS, "average"}
    told = sheet.read(run.folder)["provenance"]
    assert ("teachers" in told) == ("list" in method)
    student = load_student(run.parameters, 0)
    assert told["encoder"] == {"name": student.settings.name, "fingerprint": student.fingerprint}
    assert told["data"]["train"] == data.sentences(source="synthetic", limit=40, seed=0).fingerprint


def test_the_teachers_are_loaded_once_for_a_grid_and_only_where_a_term_follows_them(
    begin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    monkeypatch.setattr(ranking, "load_teachers", lambda *given: loaded.append(1) or load_teachers(*given))
    few = {"sentences": 40, "teacher": "tiny", "second_teacher": ""}
    run = begin("07_rankcse", methods=["listnet", "listmle"], **few)
    frame = grid(run, rankcse, axes={"methods": run.parameters.methods, "seeds": [0]})
    assert frame["tests/average"].notna().all()
    assert loaded == [1]


def test_the_student_is_the_lower_layers(begin: Any) -> None:
    def student(layers: int) -> Any:
        return load_student(begin("07_rankcse", layers=layers).parameters, 0)

    cut, whole = student(1), student(0)
    assert cut.trunk.config.num_hidden_layers == 1 < whole.trunk.config.num_hidden_layers
    assert whole.fingerprint == encoders.load("tiny").fingerprint != cut.fingerprint


def test_two_teachers_are_mixed_by_alpha_and_kept_on_the_disk(begin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = data.sentences(source="synthetic", limit=12, seed=0).text
    run = begin("07_rankcse", teacher="tiny", second_teacher="tiny", alpha=0.6)
    made = encoders.load
    numbers = iter((1, 2, 1, 2))
    monkeypatch.setattr(ranking.encoders, "load", lambda place: made(place, seed=next(numbers)))
    both = load_teachers(run, texts)
    assert both.mix == pytest.approx((0.6, 0.4))
    assert len(set(both.encoders)) == 2
    first, second = (made("tiny", seed=seed).encode(texts, normalize=True, progress=None) for seed in (1, 2))
    wanted = 0.6 * (first[:3] @ first[:3].T) + 0.4 * (second[:3] @ second[:3].T)
    assert both.similarity([0, 1, 2]).numpy() == pytest.approx(wanted, abs=1e-5)
    kept = sorted((run.root / "runs" / "teachers").iterdir())
    assert len(kept) == 2
    written = [path.stat().st_mtime_ns for path in kept]
    assert load_teachers(run, texts).fingerprint == both.fingerprint
    assert [path.stat().st_mtime_ns for path in kept] == written


def test_a_parameter_file_of_stage_1_is_the_teacher_that_its_run_trained(
    begin: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = "parameters/02_stage1_contrastive/smoke.yaml"
    run, other = (begin("07_rankcse", teacher="tiny", second_teacher=given) for given in (file, ""))
    assert run.parameters.stands_on() == (f"02 {file}",)
    assert other.parameters.stands_on() == ()
    assert run.id != other.id

    class Finished:
        checkpoints = tmp_path / "checkpoints"

    trained = encoders.load("tiny", seed=7)
    trained.save(Finished.checkpoints / "final")
    asked = []
    monkeypatch.setattr(runs, "ensure", lambda *given: asked.append(given) or Finished)
    taught = load_teachers(run, ("a wren", "a crow", "rain"))
    assert asked == [("02_stage1_contrastive", file)]
    assert taught.encoders == (encoders.load("tiny").fingerprint, trained.fingerprint)


def test_every_term_is_weighed_before_training(begin: Any) -> None:
    run = begin("07_rankcse", teacher="tiny", second_teacher="", beta=0.0, gamma=5.0)
    sizes = ranking.term_sizes(run, {})
    assert list(sizes.index) == ["contrast", "consistency", "listnet", "listmle"]
    assert (sizes > 0).all(axis=None)  # whatever the weights: a term that is left out is weighed too
    assert sizes.loc["consistency", "loss"] < np.log(2)
