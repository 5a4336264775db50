"""Head first with the trunk frozen, then both; the trunk alone for contrast; and all from a trunk drawn anew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pcclab import data, sheet
from pcclab.workflows import from_scratch, grid, regression, two_phase

FIGURES = {"dev", "step", "seconds", "tests"}
TASKS = {*data.STS_TASKS, "average"}


@pytest.fixture
def one(begin: Any) -> Any:
    """A run of one cell."""

    def run(**other: Any) -> Any:
        small = {"nli_pairs": 60, "scratch_pairs": 60, "scratch_layers": 2, "head_epochs": 1.0, "seeds": [0]}
        return begin("06_regression", **{**small, "objectives": ["smooth_k2"], "scratch": [], **other})

    return run


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """What both phases were given: the table, objective, settings, options, and the trunk and head before and after."""
    calls: dict[str, dict[str, Any]] = {}

    def spy(name: str) -> None:
        original = getattr(regression.training, name)

        def called(encoder: Any, table: Any, loss: str, **given: Any) -> Any:
            trunk = encoder.encoder if name == "fit_frozen" else encoder
            head = given.get("head")
            told = {"table": table, "loss": loss, **given, "trunk before": getattr(trunk, "fingerprint", None)}
            told["head before"] = head.fingerprint if head is not None else None
            history = original(encoder, table, loss, **given)
            told["trunk after"], told["head after"] = (
                getattr(trunk, "fingerprint", None),
                head.fingerprint if head is not None else None,
            )
            calls[name] = told
            return history

        monkeypatch.setattr(regression.training, name, called)

    spy("fit")
    spy("fit_frozen")
    return calls


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save the evaluation where only the trainings matter."""
    monkeypatch.setattr(regression, "_judged", lambda p, encoder, history, head: {"dev": history.best_dev})


def test_two_phases_give_the_documented_figures(one: Any, spied: Any) -> None:
    run = one()
    cell = two_phase(run, {})
    assert set(cell) == {*FIGURES, "head", "order"}
    assert set(cell["tests"]) == set(cell["head"]) == TASKS
    assert set(cell["order"]) == {"stsb", "sickr"}
    assert set(cell["order"]["sickr"]) == {"forward", "backward", "agreement", "difference"}
    assert cell["order"]["stsb"]["forward"] == pytest.approx(cell["head"]["stsb"])
    assert cell["tests"]["average"] == pytest.approx(np.mean([cell["tests"][task] for task in data.STS_TASKS]))
    assert cell["step"] in (1, 2)
    told = sheet.read(run.folder)["provenance"]
    assert set(told["data"]) == {"train", "dev"}
    assert told["encoder"]["fingerprint"] == spied["fit"]["trunk before"]


def test_the_head_learns_first_and_the_trunk_only_then(one: Any, spied: Any, unjudged: None) -> None:
    two_phase(one(spacing=1.0), {})
    first, second = spied["fit_frozen"], spied["fit"]
    assert first["trunk before"] == first["trunk after"] == second["trunk before"] != second["trunk after"]
    assert first["head before"] != first["head after"] == second["head before"] != second["head after"]
    assert first["head"] is second["head"]
    assert first["table"].fingerprint == data.nli_pairs(source="synthetic", limit=60, seed=0).rated().fingerprint
    assert second["table"].fingerprint == data.stage2_pairs(leakage="filter", source="synthetic").fingerprint


def test_the_first_phase_has_settings_of_its_own(one: Any, spied: Any, unjudged: None) -> None:
    run = one(head_learning_rate=0.5, head_epochs=3.0, seeds=[4])
    two_phase(run, {})
    first, second = spied["fit_frozen"]["parameters"], spied["fit"]["parameters"]
    assert (first.learning_rate, first.epochs, first.max_steps, first.seed) == (0.5, 3.0, -1, 4)
    assert (second.learning_rate, second.max_steps, second.layer_decay, second.seed) == (1e-3, 2, 0.95, 4)
    assert "dev" not in spied["fit_frozen"]
    assert spied["fit"]["dev"].fingerprint == data.dev_pairs(source="synthetic").fingerprint


@pytest.mark.parametrize(
    ("objective", "slope"), [("smooth_k2", 3.0), ("translated_relu", 2.5), ("mse", None), ("l1", None)]
)
def test_the_buffer_is_a_share_of_the_label_interval(
    one: Any, spied: Any, unjudged: None, objective: str, slope: Any
) -> None:
    two_phase(one(objectives=[objective], spacing=2.0, threshold=0.25), {})
    if slope is None:
        assert spied["fit_frozen"]["options"] == spied["fit"]["options"] == {}
    else:
        assert spied["fit_frozen"]["options"] == {"slope": slope, "threshold": 0.5, "interval": 2.0}
        assert spied["fit"]["options"] == {"slope": slope, "threshold": 0.25, "interval": 1.0}
    assert sorted(set(spied["fit_frozen"]["table"].gold)) == [0, 2, 4]


def test_contrast_has_no_head_and_uses_the_pairs_rated_high(one: Any, spied: Any) -> None:
    cell = two_phase(one(objectives=["contrast"], temperature=0.07), {})
    assert set(cell) == FIGURES
    assert set(spied) == {"fit"}
    told = spied["fit"]
    assert (told["loss"], told["options"]) == ("info_nce", {"temperature": 0.07})
    assert "head" not in told or told["head"] is None
    assert told["table"].gold.min() >= 4
    pairs = data.stage2_pairs(leakage="filter", source="synthetic")
    assert len(told["table"]) == (pairs.gold >= 4).sum()


def test_a_second_cell_embeds_the_frozen_texts_no_more_and_gives_what_it_gives_alone(
    one: Any, spied: Any, unjudged: None
) -> None:
    alone = two_phase(one(objectives=["mse"]), {}), spied["fit"]["trunk after"], spied["fit"]["head after"]
    shared: dict[str, Any] = {}
    two_phase(one(), shared)
    (memory,) = shared.values()
    with pytest.raises(ValueError, match="was not asked for 'a new text' before its weights changed"):
        memory.encode(["a new text"])
    # A field that changes no figure makes it another run, which trains again.
    after = (
        two_phase(one(objectives=["mse"], keep_tokens=16385), shared),
        *(spied["fit"][name] for name in ("trunk after", "head after")),
    )
    assert after == alone
    assert len(shared) == 1


def test_a_run_that_is_called_again_reads_its_checkpoint(one: Any, spied: Any, unjudged: None) -> None:
    run, found = one(), []
    for _ in range(2):
        cell = two_phase(run, {})
        found.append((cell, spied["fit"]["trunk after"], spied["fit"]["head after"]))
    assert found[0] == found[1]


def test_from_scratch_gives_the_documented_figures(one: Any, spied: Any) -> None:
    run = one(objectives=[], scratch=["smooth_k2"], scratch_spacing=2.0, threshold=0.25, scratch_learning_rate=2e-3)
    cell = from_scratch(run, {})
    assert set(cell) == {*FIGURES, "head", "order"}
    told = spied["fit"]
    assert set(spied) == {"fit"}  # no phase on frozen embeddings
    assert told["options"] == {"slope": 3.0, "threshold": 0.5, "interval": 2.0}
    assert (told["parameters"].learning_rate, told["parameters"].epochs) == (2e-3, 1.0)
    assert sorted(set(told["table"].gold)) == [0, 2, 4]
    assert len(told["table"]) == 60


def test_classification_has_an_output_a_class_that_stands_for_its_rating(one: Any, spied: Any) -> None:
    cell = from_scratch(one(objectives=[], scratch=["cross_entropy"], scratch_spacing=1.5), {})
    head = spied["fit"]["head"]
    assert (head.outputs, head.levels) == (3, (0.0, 1.5, 3.0))
    assert set(cell) == {*FIGURES, "head", "order"}


def test_the_upper_layers_are_drawn_anew(one: Any, spied: Any, unjudged: None) -> None:
    prints = []
    for fresh in (0, 1, 2):
        from_scratch(one(objectives=[], scratch=["mse"], scratch_fresh=fresh), {})
        prints.append(spied["fit"]["trunk before"])
    assert len(set(prints)) == 3


def test_as_a_grid_both_parts_are_cells_of_their_own(one: Any) -> None:
    run = one(objectives=["smooth_k2", "contrast"], scratch=["mse"])
    p = run.parameters
    phases = grid(run, two_phase, axes={"objectives": p.objectives, "seeds": p.seeds}, fixed={"scratch": []})
    scratch = grid(run, from_scratch, axes={"scratch": p.scratch, "seeds": p.seeds}, fixed={"objectives": []})
    assert phases["objectives"].tolist() == ["smooth_k2", "contrast"]
    assert phases["head/average"].isna().tolist() == [False, True]
    assert "order/sickr/agreement" in scratch
    assert len(list((run.folder.parent).glob("*/cell.json"))) == 3
