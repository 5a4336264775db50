"""A training planned from its config: nothing loaded, memory to be believed, a refusal that says what would do."""

from __future__ import annotations

import json
import signal
import socket
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedModel

from pcclab import cli, encoders, runs, workflows
from pcclab.parameters import load_file
from pcclab.training import FitSettings, cached
from pcclab.training.cards import CARDS, Card, card_of
from pcclab.training.rehearsal import Live
from pcclab.workflows import batches

NOTEBOOKS = ("02_stage1_contrastive", "03_stage2_pcc_tuning")
QUICK = ("paper_mistral_eol", "paper_opt_sth")
SETS = [
    pytest.param(name, file.stem, marks=() if file.stem in QUICK else pytest.mark.slow)
    for name in NOTEBOOKS
    for file in sorted((Path(__file__).parents[2] / "parameters" / name).glob("paper*.yaml"))
]
TINY = {"encoder": "tiny-mistral", "lora_rank": 4, "quantization": "none", "batch_size": 24, "dtype": "float32"}
CPU = Card("cpu", 4.0, None, cuda=False)


def of(notebook: str, named: str, **changes: Any) -> Any:
    return load_file(notebook, runs.root() / "parameters" / notebook / f"{named}.yaml", changes)


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a plan loads no weights")

    monkeypatch.setattr(PreTrainedModel, "from_pretrained", refused)
    monkeypatch.setattr("pcclab.encoders.load", refused)


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize(("notebook", "named"), SETS)
def test_every_paper_set_fits_80_gb_and_is_planned_without_weights(notebook: str, named: str) -> None:
    p = of(notebook, named)
    plan = workflows.plan(notebook, p, card_of("80GB"))
    assert plan.fits and 6e9 < plan.sizes.frozen < 8e9 and 1.5e8 < plan.sizes.trained < 1.7e8
    assert "declared" in plan.works[0].counted and "assumed" in plan.works[0].counted and "assumed" in plan.rated
    assert all(texts * width <= p.micro_tokens for texts, width in (work.largest for work in plan.works))
    assert plan.works[0].rows == (275_601 if notebook.startswith("02") else 10_249)


def test_a_plan_is_what_the_training_takes() -> None:
    p = of(NOTEBOOKS[1], "smoke", **TINY, stage1="", prompt="EOL", pooling="last", micro_tokens=256, keep_tokens=0)
    plan = workflows.plan(NOTEBOOKS[1], p, CPU)
    encoder = encoders.load("tiny-mistral", **p.loading(), device="cpu")
    encoder.trunk.train()
    steps = batches.lengths_of(NOTEBOOKS[1], p, plan.blueprint)
    settings = FitSettings.of(p)
    heaviest = max(steps, key=lambda step: np.prod(batches.graph(step, settings)[0]))
    optimizer = torch.optim.AdamW(encoder.weights, lr=1e-5, fused=True)
    own = [*encoder.trunk.parameters(), *encoder.trunk.buffers()]
    with Live(own) as live:
        for step in (steps[0], heaviest):
            tokens = [torch.randint(5, 300, (length,)).tolist() for length in step]
            cached.backward(encoder.embed, tokens, lambda vectors: vectors.square().mean(), pad_id=0,
                            micro_tokens=settings.micro_tokens, keep_tokens=0)  # fmt: skip
            optimizer.step()
            optimizer.zero_grad()
    measured = live.peak + sum(w.numel() * w.element_size() for w in own)
    assert sum(plan.memory().values()) == pytest.approx(measured, rel=0.05)


def test_texts_are_counted_where_they_are_at_hand() -> None:
    p = of(NOTEBOOKS[1], "smoke")
    plan = workflows.plan(NOTEBOOKS[1], p, CPU, rate=1e9)
    assert [work.label for work in plan.works] == list(p.levels)
    assert all(work.counted == "counted on synthetic data (generated, not a corpus)" for work in plan.works)
    assert plan.works[0].steps == 8 and plan.works[0].texts == 64 and plan.works[0].kept == 1
    longer = workflows.plan(NOTEBOOKS[1], p, CPU, rate=1e9, mean=25)
    assert longer.works[0].tokens > 1.3 * plan.works[0].tokens and "assumed" in longer.works[0].counted
    assert longer.seconds()["training, keep"] > plan.seconds()["training, keep"]
    assert plan.total() < longer.total()


def test_cards_share_a_batch_and_processes_share_a_processors_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    p = of(NOTEBOOKS[0], "paper_mistral_eol", **TINY)
    one, eight = (workflows.plan(NOTEBOOKS[0], p, card_of("80GB"), cards=n, rate=1e12) for n in (1, 8))
    ratio = one.seconds()["training, stage 1"] / eight.seconds()["training, stage 1"]
    assert 4 < ratio < 8.2 and one.works[0].steps == eight.works[0].steps
    assert eight.moments()["behind a step"] - one.moments()["behind a step"] == one.sizes.trained_bytes
    monkeypatch.setenv("PCCLAB_PROCESSES", "2")
    assert workflows.plan(NOTEBOOKS[0], p, CPU).room == 2 * 2**30


def test_what_is_refused_is_proposed_smaller_and_that_fits() -> None:
    p = of(NOTEBOOKS[0], "paper_mistral_eol")
    refused = workflows.plan(NOTEBOOKS[0], p, card_of("24GB"), rate=1e13)
    assert not refused.fits
    changed, fitting = workflows.proposal(refused) or ({}, refused)
    assert set(changed) == {"micro_tokens", "keep_tokens"} and 256 <= changed["micro_tokens"] < 8192
    again = workflows.plan(NOTEBOOKS[0], of(NOTEBOOKS[0], "paper_mistral_eol", **changed), card_of("24GB"))
    assert fitting.fits and again.fits and again.total() > 0.8 * again.room
    whole, one = workflows.in_one_graph(refused) or ({}, refused)
    assert whole["recompute"] and one.fits and one.works[0].kept == 1 and one.total() < fitting.total()
    assert one.seconds()["training, stage 1"] == pytest.approx(fitting.seconds()["training, stage 1"], rel=0.02)


def test_quantised_weights_are_proposed_where_no_micro_batch_would_do() -> None:
    p = of(NOTEBOOKS[0], "paper_llama_eol", quantization="none")
    refused = workflows.plan(NOTEBOOKS[0], p, card_of("24GB"), rate=1e13)
    changed, fitting = workflows.proposal(refused) or ({}, refused)
    assert changed["quantization"] == "nf4" and fitting.fits
    tight = workflows.plan(NOTEBOOKS[0], of(NOTEBOOKS[0], "paper_llama_eol"), card_of(None, 6), rate=1e13)
    assert workflows.proposal(tight) is None


def test_activations_computed_again_take_less_and_longer_and_are_proposed_where_one_long_text_is_too_much() -> None:
    kept, again = (of(NOTEBOOKS[0], "paper_mistral_eol", **TINY, recompute=r) for r in (False, True))
    usual, second = (workflows.plan(NOTEBOOKS[0], p, CPU, rate=1e9) for p in (kept, again))
    assert second.memory() == usual.memory(recompute=True) and second.total() < usual.total()
    name = "activations of the largest graph"
    assert second.memory()[name] < 0.5 * usual.memory()[name] == 0.5 * second.memory(recompute=False)[name]
    cost, work = usual.costs[False], usual.works[0]
    forwards = 2 - work.kept  # a batch whose graph is not kept is read once more
    ratio = ((forwards + 1) * cost.forward + cost.back) / (forwards * cost.forward + cost.back)
    assert second.operations(work) / usual.operations(work) == pytest.approx(ratio)
    long = of(NOTEBOOKS[0], "paper_mistral_eol", max_tokens=2048, micro_tokens=2048)
    refused = workflows.plan(NOTEBOOKS[0], long, card_of("24GB"), mean=2000, rate=1e13)
    assert not refused.fits and refused.heaviest.largest[0] == 1
    changed, fitting = workflows.proposal(refused) or ({}, refused)
    assert changed == {"recompute": True} and fitting.fits


def test_the_rate_is_that_of_a_finished_run_of_this_machine(own_root: Path) -> None:
    p = of(NOTEBOOKS[1], "smoke", encoder="tiny", stage1="", levels=["filter"])
    before = workflows.plan(NOTEBOOKS[1], p, CPU)
    assert before.rated.startswith("assumed")
    run = runs.locate(NOTEBOOKS[1], p)
    history = {"steps": [], "seconds": 20.0}
    run.checkpoints.joinpath("history.json").write_text(json.dumps(history))
    (run.folder / "parameters.yaml").write_text(run.yaml)
    told = {"notebook": run.notebook, "id": run.id, "process": {"host": socket.gethostname()}}
    sheet = run.folder / "run.json"
    sheet.write_text(json.dumps({**told, "provenance": {"device": "cpu"}}))
    plan = workflows.plan(NOTEBOOKS[1], p, CPU)
    assert plan.rated.startswith(f"measured: run {run.name}")
    seconds = plan.seconds()
    assert seconds["training, filter"] + seconds["looks at the development set"] == pytest.approx(20)
    # A run of a version that lacked some of today's parameters counts; one whose values mean nothing now does not.
    earlier = run.folder / "parameters.yaml"
    lines = earlier.read_text().splitlines(keepends=True)
    earlier.write_text("".join(line for line in lines if line.split(":")[0] not in type(p).LATER))
    assert len(type(p).LATER) == 2 and workflows.plan(NOTEBOOKS[1], p, CPU).rated == plan.rated
    earlier.write_text("gone: 1\n")
    assert workflows.plan(NOTEBOOKS[1], p, CPU).rated.startswith("assumed")
    earlier.write_text(run.yaml)
    for other in ({**told, "process": {"host": "elsewhere"}}, {**told, "provenance": {"device": "a GPU"}}):
        sheet.write_text(json.dumps({"provenance": {"device": "cpu"}, **other}))
        assert workflows.plan(NOTEBOOKS[1], p, CPU).rated.startswith("assumed")


def test_a_card_is_known_by_name_and_by_size() -> None:
    assert card_of("H100") == CARDS["h100"] and card_of("80GB").tflops == CARDS["a100-80"].tflops
    assert card_of("24").gib == card_of(None, 24).gib < 24 and card_of("h100", 40).gib < 40
    assert card_of().gib > 0
    for name, gib in (("h101", None), (None, 0), ("0GB", None)):
        with pytest.raises(ValueError, match="card is 'h101': give rtx3090|memory is 0 GiB: give more than 0"):
            card_of(name, gib)


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command in this process: exit code, output, errors."""
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["pcclab", "plan", *arguments])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        told = capsys.readouterr()
        return int(stopped.value.code or 0), told.out, told.err

    yield run
    signal.signal(signal.SIGTERM, before)


def test_the_command_prints_every_part_and_names_what_comes_first(call: Any) -> None:
    code, out, _ = call("03", "--set", "smoke", "--rate", "0.05")
    assert code == 0
    for part in ("optimiser (AdamW", "activations of the largest graph", "recompute", "= in the tests", "hours"):
        assert part in out
    assert "22,565,376" in out and "0.05 TFLOP/s a card, given" in out
    assert "pcclab plan 02 --set parameters/02_stage1_contrastive/smoke.yaml" in out
    path = str(runs.root() / "parameters" / NOTEBOOKS[1] / "smoke.yaml")
    assert call(path, "--rate", "0.05")[1] == out


def test_a_refusal_is_exit_code_two_and_what_it_says_is_accepted(call: Any) -> None:
    code, out, err = call("02", "--set", "paper_opt_sth", "--card", "24GB")
    assert code == 2 and "memory, GiB" in out and "a card has 23.64: add -p micro_tokens=" in err
    mends = [mend.split(", which")[0].split() for mend in err.split("add ")[1].split(", or ")]
    assert mends[0][1].startswith("micro_tokens=")
    for mend in mends:
        assert call("02", "--set", "paper_opt_sth", "--card", "24GB", *mend)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["01"], "names 0 notebooks"),
        (["02", "--set", "paper", "--card", "h101"], "give rtx3090"),
        (["02", "--set", "paper", "--cards", "0"], "cards is 0"),
        (["02", "-p", "encoder=no/such"], "unknown encoder 'no/such'"),
        (["elsewhere/set.yaml"], "lies in no folder of a notebook's name"),
    ],
)
def test_bad_input_is_one_sentence(call: Any, arguments: list[str], told: str) -> None:
    code, out, err = call(*arguments)
    assert code == 2 and told in err and "Traceback" not in err and not out
