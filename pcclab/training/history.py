"""What a training run did, step by step."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pcclab import files

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class History:
    """The record of one call of `fit`.

    Args:
        steps: one mapping a step: step, loss, grad_norm, learning_rate, and dev_spearman (x 100) where it was taken.
        best_step: the step whose weights were kept; the last one where there was no development set.
        best_dev: Spearman x 100 on the development set at that step, or None.
        seconds: time spent, over all resumed parts.
        resumed_from: the step an interrupted run went on from, 0 for a run in one piece.
        left_out: rows left out of each epoch because they would have been a batch too small for the loss.
    """

    steps: tuple[dict[str, Any], ...]
    best_step: int
    best_dev: float | None
    seconds: float
    resumed_from: int = 0
    left_out: int = 0

    def to_frame(self) -> pd.DataFrame:
        """One row a step, indexed by step."""
        import pandas as pd

        return pd.DataFrame(list(self.steps)).set_index("step")

    def save(self, path: Path) -> None:
        """Write JSON, atomically."""
        files.write_json(path, asdict(self))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read what `save` wrote."""
        saved = json.loads(path.read_text(encoding="utf8"))
        return cls(**{**saved, "steps": tuple(saved["steps"])})
