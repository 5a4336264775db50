"""The sweeps of Pcc-tuning's tables 4 and 5: the runs those tables hold, with the published values."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from pcclab import parameters, reference, runs, sweep
from pcclab.cli.app import app

MODELS = {
    "OPT-6.7b": "facebook/opt-6.7b",
    "LLaMA-7b": "huggyllama/llama-7b",
    "LLaMA2-7b": "meta-llama/Llama-2-7b-hf",
    "Mistral-7b": "mistralai/Mistral-7B-v0.1",
}
STAGE1 = {"OPT-6.7b": 256, "LLaMA-7b": 248, "LLaMA2-7b": 248, "Mistral-7b": 240}


def test_the_table_of_prompts_has_every_model_and_template_on_both_kinds_of_pairs(own_root: Path) -> None:
    asked = [trial.run.parameters for trial in sweep.load("paper_prompts").trials]
    rows = reference.cells("pcc-tuning", table="4")["row"].unique()
    printed = [(MODELS[row.split(" / ")[0]], row.rsplit("Prompt", 1)[1]) for row in rows]
    found = {(p.encoder, p.prompt, p.leakage) for p in asked}
    assert len(asked) == len(found) == 24
    assert found == {(*row, leakage) for row in printed for leakage in ("keep", "filter")}
    names = {place: name for name, place in MODELS.items()}
    for p in asked:
        assert (p.quantization, p.lora_rank, p.learning_rate, p.warmup_steps, p.max_tokens) == (
            "nf4",
            64,
            5e-4,
            100,
            64,
        )
        assert p.levels == (p.leakage,) and 192 <= p.batch_size <= 240 and p.epochs in (8, 10)
        (place,) = p.stands_on()
        first = parameters.load_spoken(own_root, place)[1]
        assert (first.encoder, first.prompt, first.max_tokens, first.epochs) == (p.encoder, p.prompt, 32, 1)
        assert first.batch_size == (224 if (names[p.encoder], p.prompt) == ("Mistral-7b", "STH") else
                                    STAGE1[names[p.encoder]])  # fmt: skip


def test_the_table_of_batch_sizes_changes_nothing_else(own_root: Path) -> None:
    trials = sweep.load("paper_batch_sizes").trials
    rows = [row.split(" / batch ") for row in reference.cells("pcc-tuning", table="5")["row"]]
    asked = [trial.run.parameters for trial in trials]
    assert [(p.encoder, p.batch_size) for p in asked] == [(MODELS[model], int(size)) for model, size in rows]
    assert all(p.prompt == "STH" and p.leakage == "keep" for p in asked)
    # Table 4's own sizes are the same runs, which are done once.
    shared = {trial.run.id for trial in trials} & {trial.run.id for trial in sweep.load("paper_prompts").trials}
    assert len(shared) == 4


def test_a_dry_run_lists_them_and_runs_none(own_root: Path) -> None:
    done = CliRunner().invoke(app, ["sweep", "paper_batch_sizes", "--dry-run"])
    assert done.exit_code == 0, done.output
    for trial in sweep.load("paper_batch_sizes").trials:
        assert trial.run.id in done.output
    assert not (runs.root() / "runs").exists()
