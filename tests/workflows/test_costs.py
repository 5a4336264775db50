"""The papers' methods, what each of them costs, and that nothing is measured twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from pcclab import data, parameters, reference
from pcclab.training import Cost
from pcclab.workflows import RECIPES, costs, measure_costs, ratios


def test_every_method_runs_at_its_papers_length_and_batch(begin: Callable[..., Any], monkeypatch) -> None:
    seen: list[dict[str, Any]] = []

    def measured(place: str, table: Any, loss: str, *, settings: Any, steps: int, **more: Any) -> Cost:
        seen.append({"place": place, "table": table, "loss": loss, "settings": settings, **more})
        return Cost((1.0, 3.0, 2.0), 2 * 10**9, 6.0 if more["taught_by"] else 0.0, "cpu", 1)

    monkeypatch.setattr(costs.costs, "cost", measured)
    run = begin("04_ablations", costs=list(RECIPES), cost_encoder="tiny", cost_steps=3, cost_texts=["as they are"])
    frame = measure_costs(run).set_index(["method", "path"])
    assert len(frame) == 2 * len(RECIPES) == len(seen)
    batch = {name: frame.loc[(name, "cached"), "batch"] for name in RECIPES}
    assert list(batch.values()) == [512, 16, 128, 128, 224, 224]
    # The papers' own figures, where their tables hold them.
    lengths = reference.cells("sts-regression", table="4").query("column == 'Length'").set_index("row")["value"]
    assert frame.loc[("SimCSE, labelled", "cached"), "tokens"] == lengths["BERT-base / SimCSE"]
    assert frame.loc[("regression", "cached"), "tokens"] == lengths["BERT-base / Ours"]
    table11 = reference.cells("rankcse", table="11").pivot(index="row", columns="column", values="value")
    for method in ("SimCSE", "RankCSE"):
        told = frame.loc[(method, "cached")]
        assert [told["batch"], told["epochs"]] == list(table11.loc[f"{method} / base", ["Batch size", "Epoch"]])
    stage2 = parameters.load_file("03_stage2_pcc_tuning", run.root / "parameters/03_stage2_pcc_tuning/paper.yaml")
    told = frame.loc[("Pcc stage 2", "cached")]
    assert (told["batch"], told["tokens"], told["epochs"]) == (stage2.batch_size, stage2.max_tokens, stage2.epochs)
    # Four batches, drawn from the corpus; a median of 2 s over 46 steps.
    assert all(len(call["table"]) == 4 * call["settings"].batch_size for call in seen)
    assert told["steps"] == 46 and told["minutes"] == pytest.approx(46 * 2 / 60)
    assert (told["low"], told["high"], told["memory"]) == (1.5, 2.5, 2.0)
    taught = frame.loc[("RankCSE", "cached")]
    texts = next(call["table"].text for call in seen if call["taught_by"])
    assert taught["once"] == pytest.approx(6 / len(set(texts)) * 1e6 / 60) and (frame["once"] > 0).sum() == 2
    keeps = [call["settings"].keep_tokens for call in seen]
    assert keeps == [2**31, 0] * len(RECIPES)
    # What is measured is read.
    again = measure_costs(run)
    assert len(seen) == 2 * len(RECIPES)
    pd.testing.assert_frame_equal(again, frame.reset_index()[list(again)], check_dtype=False)


@pytest.mark.parametrize("texts", ["as they are", "filled"])
def test_a_method_is_trained_and_measured(begin: Callable[..., Any], texts: str) -> None:
    run = begin("04_ablations", costs=["RankCSE"], cost_encoder="tiny", cost_steps=1, cost_texts=[texts])
    frame = measure_costs(run)
    assert list(frame["path"]) == ["one graph", "cached"] and (frame["seconds"] > 0).all()
    assert frame["memory"].iloc[1] < frame["memory"].iloc[0] < 4
    assert (run.folder / "costs.csv").is_file()


def test_filled_texts_reach_the_length_and_keep_the_rest() -> None:
    pairs = data.ScoredPairs(("a b", "one two three four five"), ("c", "d e"), [1.0, 4.0])
    longer = costs.filled(pairs, 4)
    assert longer.first == ("a b a b", "one two three four five") and longer.second == ("c c c c", "d e d e")
    assert list(longer.gold) == [1.0, 4.0]


def test_ratios_set_side_by_side_what_one_paper_compares() -> None:
    rows = [("RankCSE", "cached", 30.0, 2.0, 128), ("SimCSE", "cached", 20.0, 1.0, 128),
            ("SimCSE", "one graph", 10.0, 1.0, 128)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["method", "path", "minutes", "seconds", "batch"]).assign(
        texts="as they are", memory=1.0
    )
    # What was measured on one side alone is compared with nothing.
    assert ratios(frame).to_dict() == {"as they are, cached": {"minutes an epoch: RankCSE / SimCSE": 1.5}}
    assert ratios(frame.iloc[:0]).empty
