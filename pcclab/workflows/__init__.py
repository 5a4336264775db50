"""What the comparing notebooks train: from a run's parameters to the rows of their tables, each resumable."""

from __future__ import annotations

from pcclab.workflows.ablations import SECTIONS, ablate, frozen
from pcclab.workflows.bench import Bench, Trial, rated
from pcclab.workflows.grid import Cell, grid
from pcclab.workflows.race import PAIR_LOSSES, race, standing
from pcclab.workflows.ranking import METHODS, rankcse
from pcclab.workflows.regression import from_scratch, two_phase

__all__ = [
    "METHODS",
    "PAIR_LOSSES",
    "SECTIONS",
    "Bench",
    "Cell",
    "Trial",
    "ablate",
    "from_scratch",
    "frozen",
    "grid",
    "race",
    "rankcse",
    "rated",
    "standing",
    "two_phase",
]
