"""The notebooks as people run them: plain papermill, the smoke sets, a kernel of their own."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
import yaml

from pcclab import ceiling, widgets

CHECKOUT = Path(__file__).resolve().parent.parent


def papermill(root: Path, notebook: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a notebook of the checkout with its smoke set into `out.ipynb`, as the README does."""
    command = [sys.executable, "-m", "papermill", f"notebooks/{notebook}.ipynb", "out.ipynb", "--no-progress-bar"]
    command += ["-f", f"parameters/{notebook}/smoke.yaml", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def smoke(notebook: str) -> dict[str, Any]:
    """A notebook's smoke set."""
    return dict(yaml.safe_load((CHECKOUT / "parameters" / notebook / "smoke.yaml").read_text(encoding="utf8")))


def only_run(root: Path, notebook: str, **parameters: object) -> Path:
    """The folder of the one finished run of a notebook whose result holds these values."""
    found = []
    for file in sorted((root / "runs" / notebook).glob("*/result.json")):
        result = json.loads(file.read_text(encoding="utf8"))
        if all(result.get(name) == value for name, value in parameters.items()):  # a grid's cells lie beside it
            found.append(file.parent)
    assert len(found) == 1, found
    return found[0]


def test_the_ceiling_runs_and_asserts_its_equations(own_root: Path) -> None:
    done = papermill(own_root, "01_ceiling")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "01_ceiling")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    assert result["ceiling"]["paper"] == 0.875
    assert result["ceiling"]["midrank"] == pytest.approx(3**0.5 / 2)
    assert len(list((folder / "figures").glob("*.pdf"))) >= 5


def test_stage_2_makes_its_stage_1_and_keeps_the_levels_apart(own_root: Path) -> None:
    done = papermill(own_root, "03_stage2_pcc_tuning")
    assert done.returncode == 0, done.stderr[-2000:]
    first = json.loads((only_run(own_root, "02_stage1_contrastive") / "result.json").read_text(encoding="utf8"))
    results = {
        level: json.loads((only_run(own_root, "03_stage2_pcc_tuning", leakage=level) / "result.json").read_text())
        for level in ("filter", "keep")
    }
    for result in results.values():
        # Stage 2 starts where stage 1 ended, and gains on every level.
        assert result["baseline"]["average"] == pytest.approx(first["after"]["average"], abs=1e-3)
        assert result["after"]["average"] > result["baseline"]["average"] + 1
    # The planted leaks pay: all pairs beat the filtered ones on the tests that leak most.
    assert results["keep"]["after"]["sts14"] > results["filter"]["after"]["sts14"]
    drawn = {path.stem for path in (only_run(own_root, "03_stage2_pcc_tuning", leakage="filter") / "figures").iterdir()}
    assert drawn == {"leakage", "training_curve", "stage2_levels"}
    said = nbformat.read(own_root / "out.ipynb", as_version=4).cells[-1].outputs[0]["data"]["text/markdown"]
    assert said.startswith("**Verdict.**")


def verdict(root: Path) -> str:
    """What the last cell of `out.ipynb` says."""
    said: str = nbformat.read(root / "out.ipynb", as_version=4).cells[-1].outputs[0]["data"]["text/markdown"]
    assert said.startswith("**Verdict.** On synthetic data")
    return said


def drawn(folder: Path) -> set[str]:
    """Names of a run's figures, each of which is there as PDF, PNG and numbers."""
    files = {path.name for path in (folder / "figures").iterdir()}
    names = {name.split(".")[0] for name in files}
    assert files == {f"{name}.{suffix}" for name in names for suffix in ("pdf", "png", "json")}
    return names


def test_the_race_has_every_loss_and_the_ablations_their_figures(own_root: Path) -> None:
    done = papermill(own_root, "04_ablations")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "04_ablations")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("04_ablations")
    assert set(result["race"]) == set(given["losses"])
    for row in result["race"].values():
        assert row["seeds"] == len(given["seeds"])
        assert 0 < row["average"] < 100
    assert max(row["average"] for row in result["race"].values()) > result["before"]
    assert set(result["spans"]) == set(given["ablations"])
    assert all(0 < span["least"] <= span["most"] < 100 for span in result["spans"].values())
    assert drawn(folder) == {"race_frozen", "batch_size", "temperatures", "costs_as_they_are"}
    best = max(result["race"], key=lambda name: result["race"][name]["average"])
    assert f"{best} leads with {result['race'][best]['average']:.2f}" in verdict(own_root)
    rows = pd.read_csv(folder.parent / "race.csv")
    assert set(rows["loss"]) == set(given["losses"])
    assert rows["average"].notna().sum() == len(given["losses"]) * len(given["seeds"])


def test_geometry_places_models_and_grades_their_levels(own_root: Path) -> None:
    done = papermill(own_root, "05_alignment_uniformity")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "05_alignment_uniformity", source="synthetic")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("05_alignment_uniformity")
    assert result["models"] == ["minilm", "tiny", "stage 1"] and result["others"] == 0
    points = result["points"]
    # Random weights put everything in one place: close pairs, and no spread at all.
    assert points["tiny"]["alignment"] < points["minilm"]["alignment"]
    assert points["tiny"]["uniformity"] > points["minilm"]["uniformity"]
    # Two tasks are no average: only the trained model has one, the one its run wrote down.
    first = json.loads((only_run(own_root, "02_stage1_contrastive") / "result.json").read_text(encoding="utf8"))
    averages = {name: point["average"] for name, point in points.items()}
    assert averages == {"minilm": "undefined", "tiny": "undefined", "stage 1": first["after"]["average"]}
    assert set(result["levels"]["minilm"]) == set(given["tasks"])
    assert all(1 <= levels < 3 for row in result["levels"].values() for levels in row.values())
    assert result["levels"]["minilm"]["stsb"] > result["levels"]["tiny"]["stsb"]
    assert result["orders"]["alignment and average"] == {"spearman": "undefined", "p": "undefined", "n": 1}
    assert drawn(folder) == {"plane", "cosine_groups", "effective_levels"}
    assert "undefined: n = 1: an order takes 4 methods" in verdict(own_root)
    # The groups stand in the order of their ratings, and MiniLM's cosines rise with it.
    numbers = json.loads((folder / "figures" / "cosine_groups.json").read_text(encoding="utf8"))["numbers"]["minilm"]
    means = [row["mean"] for row in numbers.values()]
    assert list(numbers) == ["0-1", "1-2", "2-3", "3-4", "4-5"] and means == sorted(means)


def test_regression_compares_with_contrast_and_with_no_training(own_root: Path) -> None:
    done = papermill(own_root, "06_regression")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "06_regression", source="synthetic")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("06_regression")
    assert set(result["phases"]) == {*given["objectives"], "start"}
    assert "contrast" in result["phases"]
    assert set(result["scratch"]) == {*given["scratch"], "start"}
    assert result["phases"]["start"] == pytest.approx(result["before"]["average"])
    # A trunk cut off and partly drawn anew knows less than the encoder it was.
    assert result["scratch"]["start"] < result["phases"]["start"]
    assert all(0 < score < 100 for part in ("phases", "scratch") for score in result[part].values())
    assert drawn(folder) == {"figure_2", "objectives", "scratch", "two_phase"}
    assert "contrast" in verdict(own_root)
    cells = {path.parent.name for path in folder.parent.glob("*/cell.json")}
    assert len(cells) == (len(given["objectives"]) + len(given["scratch"])) * len(given["seeds"])
    assert folder.name not in cells


def test_rankcse_trains_every_method_from_one_student(own_root: Path) -> None:
    done = papermill(own_root, "07_rankcse")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "07_rankcse", source="synthetic")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("07_rankcse")
    assert set(result["methods"]) == set(given["methods"])
    assert result["seeds"] == len(given["seeds"])
    scores = list(result["methods"].values())
    assert all(0 < score < 100 for score in scores)
    assert len(set(scores)) == len(scores)
    assert result["before"]["average"] not in scores
    assert drawn(folder) == {"terms"}
    best = max(result["methods"], key=result["methods"].__getitem__)
    assert f"{best} does best with {max(scores):.2f}" in verdict(own_root)
    assert len(list((own_root / "runs" / "teachers").iterdir())) == 2


def test_leakage_splits_the_gain_and_looks_once_a_run(own_root: Path) -> None:
    done = papermill(own_root, "10_leakage")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "10_leakage", source="synthetic")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("10_leakage")
    gains = {level: result[f"gain, {level}"] for level in given["levels"]}
    for level, rows in gains.items():
        # The parts are those of `keep`, whichever level is judged; the untrained encoder stands before all of them.
        assert rows["sts14, seen"]["before"] == gains["keep"]["sts14, seen"]["before"]
        assert rows["average, all"]["low"] < rows["average, all"]["gain"] < rows["average, all"]["high"], level
    # The planted leaks pay on the pairs that were seen.
    more = result["keep over filter"]
    assert more["pair, seen"]["gain"] > more["pair, unseen"]["gain"]
    whole = gains["keep"]["average, all"]["gain"] - gains["filter"]["average, all"]["gain"]
    blocks = result["comparisons, keep over filter"]
    assert sum(block["gain"] for block in blocks.values()) == pytest.approx(whole)
    assert sum(block["possible"] for block in blocks.values()) == pytest.approx(100)
    assert set(result["optimism"]) == {f"{level}, seed 0" for level in given["selected"]}
    assert all(row["optimism"] >= 0 for row in result["optimism"].values())
    assert drawn(folder) == {"ledger", "triples", "seen_unseen", "comparisons", "optimism"}
    assert "`keep` gains" in verdict(own_root)
    for run in (own_root / "runs" / "03_stage2_pcc_tuning").glob("*/run.json"):
        assert len(json.loads(run.read_text(encoding="utf8"))["vault"]) == 1


def test_the_playground_is_static_pictures_of_its_parameters(own_root: Path) -> None:
    done = papermill(own_root, "11_playground", "-p", "share", "0.3")
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads((only_run(own_root, "11_playground") / "result.json").read_text(encoding="utf8"))
    assert result["ceiling"]["two levels, 300 of 1,000, midrank"] == pytest.approx(ceiling.binary(1000, 300))
    made = nbformat.read(own_root / "out.ipynb", as_version=4)
    assert "widgets" not in made.metadata
    outputs = [out for cell in made.cells for out in cell.get("outputs", ()) if "data" in out]
    assert not any("widget" in mime for out in outputs for mime in out["data"])
    pictures = [base64.b64decode(out["data"]["image/png"]) for out in outputs if "image/png" in out["data"]]
    assert len(pictures) == 7
    # What a slider at 0.3 draws: the same bytes.
    given = {name: smoke("11_playground")[name] for name in ("n", "levels", "hardness", "distinct")}
    moved = widgets.explore(widgets.ceiling, share=0.5, **given)
    moved.controls["share"].value = 0.3
    assert pictures[0] == moved.now.png
    assert "two levels reach 0.8660 at best" in verdict(own_root)


def test_a_fault_in_a_view_fails_the_batch_run(own_root: Path) -> None:
    done = papermill(own_root, "11_playground", "-p", "first", " ")
    assert done.returncode == 1
    assert "first is empty: type a sentence" in done.stderr


def test_rank_tasks_order_lists_and_show_the_widest(own_root: Path) -> None:
    done = papermill(own_root, "09_rank_tasks")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "09_rank_tasks")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("09_rank_tasks")
    assert result["lists"]["all"] == sum(count for name, count in result["lists"].items() if name != "all") == 112
    for measure in ("kendall", "ndcg"):
        assert list(result[measure]) == given["models"]
        # A trained encoder orders better than random weights, which still see shared words.
        assert 0 < result[measure]["tiny"]["average"] < result[measure]["minilm"]["average"] < 100
    assert drawn(folder) == {"rank_tasks"}
    assert "told apart from minilm: tiny" in verdict(own_root)
    cells = nbformat.read(own_root / "out.ipynb", as_version=4).cells
    shown = [out["data"]["text/markdown"] for cell in cells for out in cell.get("outputs", ()) if "text/markdown" in
             out.get("data", {})]  # fmt: skip
    assert sum("minilm rank" in text and "gold rank" in text for text in shown) == given["cases"]


def test_transfer_judges_every_model_once_under_both_protocols(own_root: Path) -> None:
    done = papermill(own_root, "08_transfer")
    assert done.returncode == 0, done.stderr[-2000:]
    folder = only_run(own_root, "08_transfer", source="synthetic")
    result = json.loads((folder / "result.json").read_text(encoding="utf8"))
    given = smoke("08_transfer")
    assert set(result["accuracy"]) == {f"{m}, {protocol}" for m in given["models"] for protocol in given["protocols"]}
    assert all(set(row) == {*given["tasks"], "average"} for row in result["accuracy"].values())
    for model, differences in result["protocols"].items():
        for task in given["tasks"]:
            by = {protocol: result["accuracy"][f"{model}, {protocol}"][task] for protocol in given["protocols"]}
            assert differences[task] == pytest.approx(
                by["senteval"] - by["lbfgs"], abs=0.1
            )  # folds may differ by a row
    # Weights drawn at random know less of words than trained ones.
    assert result["models"]["tiny"]["average"] < 0
    assert drawn(folder) == {"protocols", "models"}
    assert "minilm averages" in verdict(own_root)
    cells = len(given["models"]) * len(given["tasks"]) * len(given["protocols"])
    assert len(list((own_root / "runs" / "transfer").iterdir())) == cells


def test_a_mistyped_parameter_stops_the_notebook_before_it_works(own_root: Path) -> None:
    done = papermill(own_root, "03_stage2_pcc_tuning", "-p", "leakge", "keep")
    assert done.returncode == 1
    assert "did you mean leakage" in done.stderr.lower() or "leakage" in done.stderr.split("leakge")[-1]
    assert not list((own_root / "runs").rglob("checkpoints"))


def test_the_paper_sets_run_both_stages_with_a_small_model_in_place_of_the_7b(own_root: Path) -> None:
    """Template, NF4, LoRA, bfloat16 and batch are the paper's; weights are random, data generated, steps two."""
    small = {"encoder": "tiny-mistral", "source": "synthetic", "max_steps": 2, "warmup_steps": 1, "recompute": True}
    first = yaml.safe_load((CHECKOUT / "parameters/02_stage1_contrastive/paper.yaml").read_text(encoding="utf8"))
    (own_root / "stage1.yaml").write_text(yaml.safe_dump({**first, **small}), encoding="utf8")
    command = [sys.executable, "-m", "papermill", "notebooks/03_stage2_pcc_tuning.ipynb", "out.ipynb"]
    command += ["--no-progress-bar", "-f", "parameters/03_stage2_pcc_tuning/paper.yaml"]
    for name, value in {**small, "stage1": "stage1.yaml"}.items():
        command += ["-p", name, str(value)]
    done = subprocess.run(command, cwd=own_root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    stage1 = only_run(own_root, "02_stage1_contrastive")
    stage2 = only_run(own_root, "03_stage2_pcc_tuning", leakage="keep")
    for folder in (stage1, stage2):
        kept = {path.name for path in (folder / "checkpoints" / "final").iterdir()}
        assert "adapter_model.safetensors" in kept and "model.safetensors" not in kept
        told = json.loads((folder / "checkpoints" / "final" / "pcclab.json").read_text(encoding="utf8"))
        assert (told["template"], told["quantization"], told["adapter"]["rank"]) == ("STH", "nf4", 64)
        assert told["base"] == "tiny-mistral" and told["pooling"] == "last"
    results = [json.loads((folder / "result.json").read_text(encoding="utf8")) for folder in (stage1, stage2)]
    assert results[1]["baseline"]["average"] == pytest.approx(results[0]["after"]["average"], abs=1e-3)
    assert results[1]["after"]["average"] != results[1]["baseline"]["average"]


def test_the_papers_figures_are_made_from_a_run_and_again_from_themselves(own_root: Path) -> None:
    done = papermill(own_root, "12_paper")
    assert done.returncode == 0, done.stderr[-2000:]
    assert only_run(own_root, "01_ceiling", source="synthetic").is_dir()
    folder = only_run(own_root, "12_paper", source="synthetic")
    pdfs = {path.stem for path in (folder / "figures").glob("*.pdf")}
    assert pdfs == {"binary_scorer", "ceiling_over_share", "gold_ceilings"}
    assert "3 figures and 0 tables" in verdict(own_root)
    saved = sorted((CHECKOUT / "figures" / "tables").glob("*.json"))
    if not saved:
        pytest.skip("no table is committed yet: pcclab figures --from-runs makes them from finished runs")
    (own_root / "figures").symlink_to(CHECKOUT / "figures")
    again = papermill(
        own_root, "12_paper", "-p", "numbers", "saved", "-y", f"entries: [{saved[0].stem}, binary_scorer]"
    )
    assert again.returncode == 0, again.stderr[-2000:]
    assert "1 figures and 1 tables" in verdict(own_root)
