"""Training: where encoders meet losses."""

from __future__ import annotations

import logging

# Importing the Trainer imports bitsandbytes, which tells of an optional 4-bit kernel that the CPU does without.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

from pcclab.training import teachers  # noqa: E402
from pcclab.training.costs import Cost, apart, cost, peak  # noqa: E402
from pcclab.training.first_step import first_step  # noqa: E402
from pcclab.training.frozen import Projected, Remembered, fit_frozen  # noqa: E402
from pcclab.training.history import History  # noqa: E402
from pcclab.training.objectives import Objective, bind  # noqa: E402
from pcclab.training.settings import FitSettings  # noqa: E402
from pcclab.training.teachers import Teachers  # noqa: E402
from pcclab.training.trainer import fit  # noqa: E402

__all__ = [
    "Cost",
    "FitSettings",
    "History",
    "Objective",
    "Projected",
    "Remembered",
    "Teachers",
    "apart",
    "bind",
    "cost",
    "first_step",
    "fit",
    "fit_frozen",
    "peak",
    "teachers",
]
