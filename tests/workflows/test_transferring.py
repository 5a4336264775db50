"""A task is judged once for each model and protocol, whichever run asks; sides are compared on the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pcclab import evaluation, runs
from pcclab.workflows import judge_transfer, load_models, paired

NOTEBOOK = "08_transfer"


def begin(checkout: Path, **changes: Any) -> runs.Run:
    smoke = runs.load_file(NOTEBOOK, checkout / "parameters" / NOTEBOOK / "smoke.yaml")
    given = {"models": ["tiny"], "tasks": ["cr", "mrpc"], "protocols": ["lbfgs"], **changes}
    return runs.start(NOTEBOOK, **{**smoke.model_dump(mode="json"), **given})


def judged(run: runs.Run) -> pd.DataFrame:
    p: Any = run.parameters
    return judge_transfer(run, load_models(p.models))


def test_what_was_judged_is_not_judged_again(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    first = judged(begin(checkout))
    tiny = load_models(["tiny"])["tiny"].load()
    found = evaluation.transfer(tiny, tasks=["cr", "mrpc"], source="synthetic", limit=120)
    for row in first.itertuples():
        score = found.tasks[str(row.task)]
        assert row.accuracy == score.accuracy and row.decays == list(score.strengths)
        assert score.right is not None and row.wrong == np.flatnonzero(~score.right).tolist()
        assert row.low < row.accuracy < row.high
    assert np.isnan(first.f1[0]) and first.f1[1] == found.tasks["mrpc"].f1

    asked = []
    transfer = evaluation.transfer
    monkeypatch.setattr(evaluation, "transfer", lambda *a, **o: asked.append(o["tasks"]) or transfer(*a, **o))
    capsys.readouterr()
    again = judged(begin(checkout, tasks=["mrpc", "sst2", "cr"], resamples=7))
    assert asked == [["sst2"]] and capsys.readouterr().out.count("done before") == 2
    pd.testing.assert_frame_equal(again[again.task == "cr"].reset_index(drop=True), first[:1])
    judged(begin(checkout, limit=110))
    assert asked[1:] == [["cr"], ["mrpc"]]  # other rows are another question


def test_what_is_undefined_says_why_and_leaves_no_average(checkout: Path) -> None:
    frame = judged(begin(checkout, tasks=["cr", "trec", "mrpc"], protocols=["lbfgs", "senteval"], limit=40))
    trec = frame[frame.task == "trec"]
    assert trec.accuracy.isna().all() and trec.low.isna().all() and trec.reason.str.contains("10 folds need").all()
    found = paired(frame, by="protocol", first="senteval", second="lbfgs", resamples=500, seed=0)
    assert found.index.tolist() == ["cr", "mrpc"]
    defined = frame[frame.task != "trec"]
    whole = paired(defined, by="protocol", first="senteval", second="lbfgs", resamples=500, seed=0)
    assert whole.index.tolist() == ["cr", "mrpc", "average"]
    table = defined.pivot(index="task", columns="protocol", values="accuracy")
    np.testing.assert_allclose(whole.difference[:2], table.senteval - table.lbfgs, atol=0.1)
