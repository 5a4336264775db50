"""QLoRA through the same loop: quantised weights stay, an adapter learns, and everything resumes to the bit."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_array_equal

from pcclab import data, encoders, losses, runs
from pcclab.encoders import adapters
from pcclab.training import fit

LORA = {"rank": 8, "alpha": 16.0, "dropout": 0.05}
SETTINGS = {"batch_size": 16, "learning_rate": 5e-3, "max_tokens": 24, "micro_tokens": 700, "keep_tokens": 0}
pytestmark = pytest.mark.filterwarnings("ignore:.*texts are longer than")


def qlora(seed: int = 0, **options: Any) -> Any:
    options = {"prompt": "STH", "adapter": LORA, "quantization": "nf4", **options}
    return encoders.load("tiny-mistral", seed=seed, **options)


def stored(encoder: Any) -> dict[str, torch.Tensor]:
    """All that training must leave alone."""
    learns = set(adapters.trained(encoder.trunk))
    return {name: value.clone() for name, value in encoder.trunk.named_parameters() if name not in learns}


TASKS = {
    "stage 1": lambda: (data.nli_triplets(source="synthetic"), "info_nce"),
    "stage 2": lambda: (data.stage2_pairs(source="synthetic"), "pearson"),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("task", list(TASKS))
def test_a_step_changes_the_adapter_and_nothing_else(task: str, dtype: Any) -> None:
    encoder, (table, loss) = qlora(), TASKS[task]()
    before, learnt = stored(encoder), [weights.detach().clone() for weights in encoder.weights]
    fit(encoder, table, loss, parameters={**SETTINGS, "max_steps": 2, "dtype": dtype})
    for name, value in stored(encoder).items():
        assert value.equal(before[name]), name
    changed = [not new.equal(old) for new, old in zip(encoder.weights, learnt, strict=True)]
    assert all(changed)


@pytest.mark.parametrize("task", list(TASKS))
def test_the_loss_falls_over_thirty_steps(task: str) -> None:
    """Over the same 48 rows at every step, so that no other batch hides it."""
    encoder, (table, loss) = qlora(), TASKS[task]()
    few = table.select(np.arange(len(table)) < 48)
    history = fit(encoder, few, loss, parameters={**SETTINGS, "max_steps": 30, "batch_size": 48, "max_tokens": 12})
    told = [step["loss"] for step in history.steps if "loss" in step]
    assert len(told) == 30
    assert np.mean(told[-5:]) < 0.8 * np.mean(told[:5])


def test_a_look_in_evaluation_mode_leaves_the_gradients_alone() -> None:
    """bitsandbytes packs weights at such a look where the CPU has bfloat16 instructions, and loses the gradients."""
    gradients = []
    for look in (False, True):
        encoder = qlora(adapter={**LORA, "dropout": 0.0})
        for weights in encoder.weights:
            torch.nn.init.normal_(weights.data, std=0.1, generator=torch.Generator().manual_seed(1))
        if look:
            encoder.encode(["a heron", "a wall"])
        encoder.trunk.train()
        ids = torch.tensor(encoder.tokenize(["a bridge"]))
        encoder.embed(ids, torch.ones_like(ids)).float().square().sum().backward()
        gradients.append([weights.grad for weights in encoder.weights])
    assert all(one.abs().max() > 0 and one.equal(other) for one, other in zip(*gradients, strict=True))


class Stop(RuntimeError):
    """Ends a training from within."""


def test_a_broken_training_goes_on_to_the_bit_and_stage_2_takes_over_the_adapter(
    own_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, dev = data.stage2_pairs(source="synthetic"), data.dev_pairs(source="synthetic")
    settings = {**SETTINGS, "max_steps": 6, "evaluate_every": 2, "checkpoint_seconds": 0.0}
    whole = runs.spoken("02 smoke seed=1")
    whole.begin()
    history = fit(straight := qlora(), pairs, "pearson", parameters=settings, run=whole, dev=dev)

    calls, plain = [0], losses.pearson

    @functools.wraps(plain)
    def breaking(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == 5:
            raise Stop
        return plain(*args, **kwargs)

    broken = runs.spoken("02 smoke seed=2")
    broken.begin()
    monkeypatch.setitem(losses.CATALOGUE, "pearson", breaking)
    with pytest.raises(Stop):
        fit(qlora(), pairs, "pearson", parameters=settings, run=broken, dev=dev)
    monkeypatch.setitem(losses.CATALOGUE, "pearson", plain)
    kept = [path for path in broken.checkpoints.glob("checkpoint-*") if path.is_dir()]
    assert kept and all((path / "adapter_model.safetensors").is_file() for path in kept)
    again = fit(resumed := qlora(), pairs, "pearson", parameters=settings, run=broken, dev=dev)
    assert again.resumed_from > 0 and again.best_step == history.best_step
    assert all(ours.equal(theirs) for ours, theirs in zip(resumed.weights, straight.weights, strict=True))

    final = encoders.load(broken.checkpoints / "final", adapter=LORA, quantization="nf4", prompt="STH")
    assert final.fingerprint == straight.fingerprint
    started = [weights.detach().clone() for weights in final.weights]
    fit(final, pairs, "pearson", parameters={**SETTINGS, "max_steps": 1})
    assert not any(new.equal(old) for new, old in zip(final.weights, started, strict=True))


@pytest.mark.parametrize("quantization", ["none", "nf4"])
def test_recomputed_activations_give_the_same_training(quantization: Any) -> None:
    pairs = data.stage2_pairs(source="synthetic")
    trained = []
    for recompute in (False, True):
        encoder = qlora(quantization=quantization)
        fit(encoder, pairs, "pearson", parameters={**SETTINGS, "max_steps": 3, "recompute": recompute})
        trained.append(encoder)
    for one, other in zip(trained[0].weights, trained[1].weights, strict=True):
        assert_array_equal(one.detach().numpy(), other.detach().numpy())
