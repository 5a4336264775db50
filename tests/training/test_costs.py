"""What a training costs, measured in a process of its own."""

from __future__ import annotations

import os

import pytest
import torch

from pcclab import data
from pcclab.training import FitSettings, apart, cost, peak

TABLE = data.Triplets(*(tuple(f"{word} {i} of many small ones" for i in range(64)) for word in ("this", "that", "no")))


def hold(megabytes: int) -> int:
    """The peak of a process that holds so much for a moment."""
    del_me = torch.ones(megabytes * 2**20 // 4)
    assert float(del_me[-1]) == 1
    del del_me
    return peak(torch.device("cpu"))


def test_a_process_apart_has_its_own_memory_and_its_own_end():
    assert apart(os.getpid) != os.getpid()
    small, large = apart(hold, 1), apart(hold, 200)
    # The second knows nothing of the first, and what it held for a moment counts.
    assert 190 * 2**20 < large - small < 230 * 2**20
    with pytest.raises(ZeroDivisionError):
        apart(divmod, 1, 0)
    with pytest.raises(MemoryError, match="lower the batch, the tokens or micro_tokens"):
        apart(os._exit, 9)


def test_a_cached_step_takes_less_memory_and_its_seconds_are_told():
    table = data.nli_triplets(source="synthetic").select(range(256))  # enough to be seen above a process's own noise
    whole = FitSettings(batch_size=256, micro_tokens=10**6, keep_tokens=10**6)
    plain = cost("tiny", table, "info_nce", settings=whole, steps=3)
    assert len(plain.seconds) == 3 and all(0 < seconds < 60 for seconds in plain.seconds)
    assert plain.device == "cpu" and plain.threads >= 1 and plain.before == 0
    parts = FitSettings(batch_size=256, micro_tokens=128, keep_tokens=0)
    cached = cost("tiny", table, "info_nce", settings=parts, steps=1)
    assert 0 < cached.memory < 0.5 * plain.memory


def test_an_error_of_the_training_comes_back():
    with pytest.raises(ValueError, match="Triplets does not hold"):
        cost("tiny", TABLE, "pearson", settings=FitSettings(), steps=1)
