"""The benchmark of a 7B runs with a tiny model on the CPU, and needs nothing that a bare machine with a GPU lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))
ABSENT = ("bitsandbytes", "datasets", "papermill", "ipykernel", "pydantic", "nbformat", "jupyter_client", "optuna")


def test_every_part_runs_in_small(tmp_path, capsys):
    import seven_billion

    out = tmp_path / "told.json"
    told = seven_billion.main(["--small", "--rounds", "1", "--micro-tokens", "64", "--out", str(out)])
    assert json.loads(out.read_text()) == told
    sides = {"ours, cached", "ours, recomputed", "published", "published, recomputed"}
    for part in ("stage1", "stage2"):
        assert set(told[part]["tokens_a_second"]) == set(told[part]["share_of_rate"]) == sides
        assert all(0 < share < 1 for share in told[part]["share_of_rate"].values())
        assert told[part]["rows"] == 8
    # Products in bfloat16 against float32, on a batch whose loss is about log 8.
    assert told["stage1"]["difference"]["losses"] < 0.05
    assert told["inference"]["sentences"] == 40 and told["inference"]["least_cosine"] > 0.9999
    assert '"stage2"' in capsys.readouterr().out


def test_without_a_gpu_it_says_so(capsys):
    import seven_billion
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(SystemExit):
        seven_billion.main([])
    assert "no GPU here: --small" in capsys.readouterr().err


def test_a_bare_machine_can_import_it():
    hide = f"import sys; sys.modules.update(dict.fromkeys({ABSENT!r})); sys.path.insert(0, {str(FOLDER)!r})"
    environment = {**os.environ, "PYTHONPATH": str(FOLDER.parents[1])}
    done = subprocess.run([sys.executable, "-c", f"{hide}; import seven_billion; print(seven_billion.HOW[:6])"],
                          env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.stdout.strip() == "random", done.stderr[-1500:]
