"""One, two and four processes: the same loss and the same gradients, whatever is shared out and however unevenly."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, distributed, multiprocessing, nn
from torch.nn import functional
from torch.testing import assert_close

from pcclab import encoders, losses
from pcclab.training import cached
from pcclab.training.ranks import Ranks

WORDS = ["stone", "river", "under", "seven"]
TEXTS = [" ".join(WORDS[: 1 + i % 4] * (1 + i % 5)) + f" {i}" for i in range(24)]


def info_nce(embeddings: Tensor, head: nn.Module) -> Tensor:
    return losses.info_nce(*embeddings.split(len(embeddings) // 3), temperature=0.1)


def pearson(embeddings: Tensor, head: nn.Module) -> Tensor:
    first, second = embeddings.split(len(embeddings) // 2)
    gold = torch.linspace(0, 5, len(first), dtype=embeddings.dtype).roll(2)
    return losses.pearson(functional.cosine_similarity(first, second), gold)


def rankcse(embeddings: Tensor, head: nn.Module) -> Tensor:
    first, second = functional.normalize(embeddings, dim=-1).split(len(embeddings) // 2)
    lists = first @ second.T
    teacher = torch.linspace(-1, 1, lists.numel(), dtype=lists.dtype).sin().view_as(lists)
    consistency = losses.ranking_consistency(lists, lists.T, temperature=0.05)
    distilled = losses.listnet(lists, teacher, student_temperature=0.025, teacher_temperature=0.0125)
    return losses.info_nce(first, second) + consistency + distilled


def judged(embeddings: Tensor, head: nn.Module) -> Tensor:
    """A loss with weights of its own."""
    return head(embeddings).square().mean()


LOSSES: dict[str, Callable[[Tensor, nn.Module], Tensor]] = {
    "info_nce": info_nce, "pearson": pearson, "rankcse": rankcse, "judged": judged,
}  # fmt: skip
# texts, micro_tokens, keep_tokens: an even batch in two passes and in one, and a last batch of few texts.
BATCHES = {"two passes": (24, 60, 0), "one pass": (24, 60, 10**6), "last batch": (6, 60, 0), "few": (6, 2048, 10**6)}


def gradients(ranks: Ranks, name: str, batch: str) -> dict[str, Tensor]:
    """Loss and gradients of one backward on a fresh encoder and head."""
    texts, micro, keep = BATCHES[batch]
    encoder, head = encoders.load("tiny", dtype="float64"), nn.Linear(64, 1, dtype=torch.float64)
    with torch.no_grad():
        head.weight.copy_(torch.linspace(-1, 1, 64)[None])
        head.bias.fill_(0.3)
    trained = dict(encoder.trunk.named_parameters()) | {f"head.{n}": p for n, p in head.named_parameters()}
    loss = cached.backward(
        encoder.embed,
        encoder.tokenize(TEXTS[:texts]),
        lambda embeddings: LOSSES[name](embeddings, head),
        pad_id=0,
        micro_tokens=micro,
        keep_tokens=keep,
        ranks=ranks,
        weights=list(trained.values()),
    )
    found = {name: p.grad for name, p in trained.items() if p.grad is not None}
    return {"loss": loss, **found}


def _process(rank: int, world: int, folder: str, work: Callable[[Ranks], Any]) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=world)
    save_file(work(Ranks.here()), Path(folder) / f"{rank}.safetensors")
    distributed.destroy_process_group()


def together(world: int, folder: Path, work: Callable[[Ranks], dict[str, Tensor]]) -> list[dict[str, Tensor]]:
    """The tensors that each of several processes gives."""
    multiprocessing.spawn(_process, (world, str(folder), work), nprocs=world)
    return [load_file(folder / f"{rank}.safetensors") for rank in range(world)]


def _all(ranks: Ranks) -> dict[str, Tensor]:
    """Loss and gradients of every case, by "case: name"."""
    cases = {f"{name}, {batch}": gradients(ranks, name, batch) for name in LOSSES for batch in BATCHES}
    return {f"{case}: {name}": value for case, found in cases.items() for name, value in found.items()}


@pytest.mark.parametrize("world", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_several_processes_give_what_one_gives(world: int, tmp_path: Path) -> None:
    alone = _all(Ranks())
    for found in together(world, tmp_path, _all):
        for name, value in alone.items():
            assert_close(found[name], value, atol=1e-9, rtol=1e-9, msg=lambda m, n=name: f"{n} {m}")
        assert all(not found[name].any() for name in found if name not in alone)


def _counted(ranks: Ranks) -> dict[str, Tensor]:
    """Exchanges of one step."""
    calls, plain = [0], distributed.all_reduce

    def counting(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        return plain(*args, **kwargs)

    distributed.all_reduce = counting
    gradients(ranks, "pearson", "two passes")
    return {"exchanges": torch.tensor(calls[0])}


def test_a_step_exchanges_embeddings_once_and_gradients_once(tmp_path: Path) -> None:
    assert [int(found["exchanges"]) for found in together(2, tmp_path, _counted)] == [2, 2]


def _broken(ranks: Ranks) -> dict[str, Tensor]:
    if ranks.rank == 1:
        raise RuntimeError("this rank broke")
    return gradients(ranks, "pearson", "two passes")


def test_a_broken_process_ends_all_with_its_own_error(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(multiprocessing.ProcessRaisedException, match="this rank broke"):
        together(2, tmp_path, _broken)
    assert time.monotonic() - began < 60


def test_work_is_shared_out_evenly_and_once() -> None:
    costs = [9, 1, 7, 3, 5, 5, 2, 8]
    shares = [Ranks(rank, 3).share(costs) for rank in range(3)]
    assert sorted(piece for share in shares for piece in share) == list(range(8))
    sums = [sum(costs[piece] for piece in share) for share in shares]
    assert max(sums) - min(sums) <= 2
    assert Ranks(3, 4).share([1.0]) == []


@pytest.mark.parametrize(("rank", "world"), [(2, 2), (-1, 1), (0, 0)])
def test_a_rank_outside_its_world_is_refused(rank: int, world: int) -> None:
    with pytest.raises(ValueError, match=f"rank is {rank} of {world}"):
        Ranks(rank, world)


def test_without_a_launcher_one_process_is_all() -> None:
    assert Ranks.here() == Ranks(0, 1)
