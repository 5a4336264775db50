"""Several processes at one batch: each embeds its share, all see the whole, and the gradient is that of one process.

Every process holds the whole batch's texts, which are small, and computes the loss over all embeddings, which is cheap;
what is shared out is the embedding itself. Summed over the processes, the gradients of the shares are the gradient of
the batch: nothing is averaged, nothing is lost at a process's border, and the texts can be shared out by length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together.

    Args:
        rank: its number, from 0.
        world: how many there are.
    """

    rank: int = 0
    world: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.world:
            raise ValueError(f"rank is {self.rank} of {self.world}: give one from 0 to {self.world - 1}")

    @classmethod
    def here(cls) -> Ranks:
        """What the launcher has set up; one process alone where it has not."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return cls()
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def leads(self) -> bool:
        """Whether this process writes the files and says how far the training is."""
        return self.rank == 0

    def wait(self) -> None:
        """Until all processes are here."""
        if self.world > 1:
            distributed.barrier()

    def agree(self, number: float) -> float:
        """The leading process's number, on every process."""
        if self.world == 1:
            return number
        # NCCL knows tensors on the GPU alone.
        device = torch.device("cuda") if distributed.get_backend() == "nccl" else torch.device("cpu")
        told = torch.tensor([number], dtype=torch.float64, device=device)
        distributed.broadcast(told, 0)
        return float(told)

    def share(self, costs: Sequence[float]) -> list[int]:
        """Positions of the pieces of work that are this process's; dearest first to whoever has least so far.

        >>> [Ranks(rank, 2).share([5, 4, 3, 3]) for rank in (0, 1)]
        [[0, 3], [1, 2]]
        """
        sums = [0.0] * self.world
        mine = []
        for piece in sorted(range(len(costs)), key=lambda piece: (-costs[piece], piece)):
            owner = min(range(self.world), key=lambda rank: (sums[rank], rank))
            sums[owner] += costs[piece]
            if owner == self.rank:
                mine.append(piece)
        return sorted(mine)

    def whole(self, parts: Tensor, rows: Tensor, count: int) -> Tensor:
        """All embeddings of the batch on every process, without a graph.

        Args:
            parts: this process's embeddings (its texts, dim).
            rows: their positions in the batch.
            count: texts of the batch.
        """
        full = parts.new_zeros((count, parts.shape[1]))
        full[rows] = parts
        if self.world > 1:
            distributed.all_reduce(full)
        return full

    def add_up(self, weights: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over the processes, in one exchange for each number format."""
        if self.world == 1:
            return
        kinds: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
        for parameter in weights:
            if not parameter.requires_grad:
                continue
            if parameter.grad is None:  # a process without a share of this batch
                parameter.grad = torch.zeros_like(parameter)
            kinds.setdefault((parameter.grad.dtype, parameter.grad.device), []).append(parameter.grad)
        for gradients in kinds.values():
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            distributed.all_reduce(flat)
            for gradient, summed in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
                gradient.copy_(summed.view_as(gradient))
