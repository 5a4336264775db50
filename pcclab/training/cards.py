"""What there is to compute with: a card's memory and the rate of its matrix units, known by name or looked up here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from pcclab.encoders.engine import token_budget


@dataclass(frozen=True)
class Card:
    """One device of a training.

    Args:
        name: for people.
        gib: memory, GiB.
        tflops: dense bfloat16 products with float32 sums, 10^12 operations a second, as its maker publishes; None where
            nobody does, as for a CPU.
        cuda: a GPU, or this machine's processor.
    """

    name: str
    gib: float
    tflops: float | None
    cuda: bool = True

    @property
    def budget(self) -> int:
        """Padded tokens that an evaluation embeds at once."""
        return token_budget(torch.device("cuda" if self.cuda else "cpu"))


SEEN = 0.985
"""Share of the memory a card is sold with that a program sees."""
_SOLD: Mapping[str, tuple[str, float, float]] = {
    "rtx3090": ("RTX 3090", 24, 71),
    "rtx4090": ("RTX 4090", 24, 165),
    "a100-40": ("A100 40GB", 40, 312),
    "l40s": ("L40S", 48, 362),
    "a100-80": ("A100 80GB", 80, 312),
    "h100": ("H100", 80, 989),
    "h200": ("H200", 141, 989),
}
CARDS = {key: Card(name, SEEN * gib, tflops) for key, (name, gib, tflops) in _SOLD.items()}
"""Cards by name: memory that a program sees, and the rate that their makers publish for dense bfloat16 products."""


def card_of(name: str | None = None, gib: float | None = None) -> Card:
    """A card by its name, or by a size such as 80GB, as fast as the slowest one known of at least that.

    Args:
        name: of `CARDS`, or a size; None for this machine's own.
        gib: its memory, instead or beside the name.

    Raises: ValueError for a name that is neither, or no memory.

    >>> card_of("24GB").name, card_of("H100").tflops
    ('24 GB card (RTX 3090)', 989)
    """
    if name is None:
        return here() if gib is None else sized(gib)
    if gib is not None:
        return replace(card_of(name), gib=sized(gib).gib)
    known = name.lower()
    if known in CARDS:
        return CARDS[known]
    size = known.removesuffix("gb")
    if not size.replace(".", "", 1).isdigit():
        raise ValueError(f"card is {name!r}: give {', '.join(CARDS)}, or a size such as 80GB")
    return sized(float(size))


def sized(gib: float) -> Card:
    """A card sold with so many GiB, as fast as the slowest one known of at least that."""
    if not 0 < gib < 10_000:
        raise ValueError(f"memory is {gib:g} GiB: give more than 0")
    alike = min((c for c in _SOLD.values() if c[1] >= gib), key=lambda c: c[1:], default=_SOLD["h200"])
    name = f"{gib:g} GB card" if alike[1] == gib else f"{gib:g} GB card, as fast as the next larger"
    return Card(f"{name} ({alike[0]})", SEEN * gib, alike[2])


def here() -> Card:
    """The first GPU of this machine, or its processor."""
    if torch.cuda.is_available():
        found = torch.cuda.get_device_properties(0)
        alike = [c for c in CARDS.values() if c.name.split()[-1] in found.name or c.name.split()[0] in found.name]
        return Card(found.name, found.total_memory / 2**30, alike[0].tflops if alike else None)
    import psutil

    return Card("cpu", psutil.virtual_memory().total / 2**30, None, cuda=False)
