"""Every cell a run of its own: found again whatever stood beside it, never trained twice, resumed where it broke."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pcclab import runs
from pcclab.evaluation import Results
from pcclab.evaluation.results import TaskScore
from pcclab.workflows import grid
from pcclab.workflows.grid import CELL, by_task, flat, told

NOTEBOOK = "07_rankcse"


@pytest.fixture
def start(checkout: Path) -> Any:
    """Begin a run of notebook 07 with other lists."""

    def begin(**lists: Any) -> runs.Run:
        smoke = runs.load_file(NOTEBOOK, checkout / "parameters" / NOTEBOOK / "smoke.yaml")
        return runs.start(NOTEBOOK, **{**smoke.model_dump(mode="json"), "encoder": "tiny", **lists})

    return begin


class Work:
    """What a cell does: remembers what it was asked for, and breaks where it is told to."""

    def __init__(self, breaks: str = "", error: BaseException | None = None) -> None:
        self.done: list[tuple[str, int]] = []
        self.breaks, self.error = breaks, error or ValueError("no such luck")

    def __call__(self, run: runs.Run, shared: dict[str, Any]) -> dict[str, Any]:
        (method,), (seed,) = run.parameters.methods, run.parameters.seeds  # type: ignore[attr-defined]
        if method == self.breaks:
            raise self.error
        self.done.append((method, seed))
        shared["cells"] = shared.get("cells", 0) + 1
        average = 70.0 + seed + len(method)
        return {"dev": 80.0, "step": shared["cells"], "tests": {"stsb": 75.0, "average": average}}


def over(run: runs.Run, work: Any) -> Any:
    p: Any = run.parameters
    return grid(run, work, axes={"methods": p.methods, "seeds": p.seeds})


def cell_of(run: runs.Run, method: str, seed: int = 0) -> runs.Run:
    return run.variant(methods=[method], seeds=[seed])


def test_every_cell_is_a_run_and_a_row_the_last_axis_fastest(start: Any, capsys: Any) -> None:
    run, work = start(methods=["simcse", "listnet"], seeds=[0, 1]), Work()
    frame = over(run, work)
    assert work.done == [("simcse", 0), ("simcse", 1), ("listnet", 0), ("listnet", 1)]
    assert list(frame.columns) == ["methods", "seeds", "dev", "step", "tests/stsb", "tests/average"]
    assert frame["tests/average"].tolist() == [76, 77, 77, 78]
    assert frame["step"].tolist() == [1, 2, 3, 4]  # what is shared is shared by all
    for method, seed in work.done:
        assert cell_of(run, method, seed).finished
    assert run.state == "running"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 of 4: simcse, 0: tests 76.00 (0 s)"
    assert len(lines) == 4


def test_a_finished_cell_is_found_whatever_the_other_entries_were(start: Any, capsys: Any) -> None:
    first = over(start(methods=["simcse", "listnet"]), Work())
    capsys.readouterr()
    other, work = start(methods=["listmle", "listnet"]), Work()
    frame = over(other, work)
    assert work.done == [("listmle", 0)]
    assert frame.iloc[1].to_dict() == first.iloc[1].to_dict()
    assert "2 of 2: listnet, 0: tests 77.00 (done before)" in capsys.readouterr().out


def test_the_same_figures_come_fresh_and_from_the_disk(start: Any) -> None:
    run = start(methods=["simcse", "listnet"])
    assert over(run, Work()).equals(over(run, None))  # a second call asks no work


@pytest.mark.parametrize(
    ("error", "state"), [(ValueError("no such luck"), "failed"), (KeyboardInterrupt(), "interrupted")]
)
def test_a_cell_that_breaks_leaves_those_before_it_done_and_a_second_call_resumes(
    start: Any, error: BaseException, state: str
) -> None:
    run = start(methods=["simcse", "listnet", "listmle"])
    with pytest.raises(type(error)):
        over(run, Work("listnet", error))
    # Looked up without `variant`, which would begin them.
    broken, undone = (
        runs.locate(NOTEBOOK, runs.validate(NOTEBOOK, {**run.parameters.model_dump(mode="json"), "methods": [name]}))
        for name in ("listnet", "listmle")
    )
    assert cell_of(run, "simcse").finished
    assert (broken.state, undone.state, run.state) == (state, "new", "running")
    work = Work()
    assert len(over(run, work)) == 3
    assert work.done == [("listnet", 0), ("listmle", 0)]


def test_a_figure_that_no_result_may_hold_fails_the_cell(start: Any) -> None:
    run = start(methods=["simcse", "listnet"])
    with pytest.raises(ValueError, match="result.dev is nan"):
        over(run, lambda run, shared: {"dev": float("nan")})
    p = runs.validate(NOTEBOOK, {**run.parameters.model_dump(mode="json"), "methods": ["simcse"]})
    assert runs.locate(NOTEBOOK, p).state == "failed"


def test_the_only_cell_is_the_run_itself_and_stays_the_notebooks_to_finish(start: Any) -> None:
    run, work = start(methods=["simcse"]), Work()
    frame = over(run, work)
    assert work.done == [("simcse", 0)]
    assert run.state == "running"
    run.finish({"methods": {"simcse": 76.0}})
    assert over(run, None).equals(frame)  # a second look at a finished notebook trains nothing
    assert run.result == {"methods": {"simcse": 76.0}}


def test_a_notebook_of_one_cell_serves_a_larger_grid_and_keeps_its_own_result(start: Any) -> None:
    alone = start(methods=["simcse"])
    one = over(alone, Work())
    alone.finish({"methods": {"simcse": 76.0}})
    work = Work()
    both = over(start(methods=["simcse", "listnet"]), work)
    assert work.done == [("listnet", 0)]
    assert both.iloc[0]["tests/average"] == one.iloc[0]["tests/average"]
    assert alone.result == {"methods": {"simcse": 76.0}}


def test_a_cell_finished_before_cells_had_a_file_is_read_from_its_result(start: Any) -> None:
    run = start(methods=["simcse", "listnet"])
    first = over(run, Work())
    for path in run.folder.parent.glob(f"*/{CELL}"):
        path.unlink()
    assert over(run, None).equals(first)


def test_a_damaged_cell_is_told_by_its_path(start: Any) -> None:
    run = start(methods=["simcse", "listnet"])
    over(run, Work())
    (cell_of(run, "simcse").folder / CELL).write_text("{")
    with pytest.raises(ValueError, match=r"cell\.json is damaged: delete it"):
        over(run, None)


def test_a_cell_killed_before_it_was_finished_is_finished_from_its_file(start: Any) -> None:
    run = start(methods=["simcse", "listnet"])
    over(run, Work())
    cell = cell_of(run, "simcse")
    (cell.folder / "result.json").unlink()
    assert cell.state == "interrupted"
    over(run, None)
    assert cell.finished
    assert cell.result == json.loads((cell.folder / CELL).read_text())


def test_fixed_parameters_are_part_of_a_cells_name(checkout: Path) -> None:
    smoke = runs.load_file("06_regression", checkout / "parameters/06_regression/smoke.yaml").model_dump(mode="json")
    run = runs.start("06_regression", **{**smoke, "encoder": "tiny", "objectives": ["mse"], "scratch": ["mse"]})
    seen: list[Any] = []

    def work(at: runs.Run, shared: dict[str, Any]) -> dict[str, Any]:
        seen.append((at.parameters.objectives, at.parameters.scratch))  # type: ignore[attr-defined]
        return {"dev": 1.0}

    grid(run, work, axes={"objectives": ["mse"], "seeds": [0]}, fixed={"scratch": []})
    grid(run, work, axes={"scratch": ["mse"], "seeds": [0]}, fixed={"objectives": []})
    assert seen == [(("mse",), ()), ((), ("mse",))]


def test_flat_joins_the_names_of_nested_figures() -> None:
    nested = {"dev": 1.0, "order": {"sickr": {"forward": 2.0}, "stsb": {"forward": 3.0}}, "note": "x"}
    assert flat(nested) == {"dev": 1.0, "order/sickr/forward": 2.0, "order/stsb/forward": 3.0, "note": "x"}


def test_undefined_scores_are_told_as_a_word(start: Any, capsys: Any) -> None:
    results = Results({"stsb": TaskScore(3, None, None, reason="constant"), "sickr": TaskScore(3, 1.0, 1.0)})
    assert told(results) == {"stsb": "undefined", "sickr": 1.0, "average": "undefined"}
    over(start(methods=["simcse", "listnet"]), lambda run, shared: {"tests": told(results)})
    assert "simcse, 0: tests undefined" in capsys.readouterr().out


def test_scores_by_method_and_task_with_their_deviation() -> None:
    cells = pd.DataFrame(
        {"methods": ["b", "b", "a"], "seeds": [0, 1, 0], "dev": 80.0, "tests/stsb": [82.0, 84.0, 70.0],
         "tests/sickr": [77.0, float("nan"), 60.0]}
    )  # fmt: skip
    told = by_task(cells, "methods")
    assert list(told) == ["b", "a"]
    assert told["b"]["stsb"] == pytest.approx([83.0, 2**0.5])
    assert "sickr" not in told["b"]  # undefined in one seed: no mean of the others
    assert told["a"] == {"stsb": [70.0], "sickr": [60.0]}
