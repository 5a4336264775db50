"""Training: where encoders meet losses."""

from __future__ import annotations

from pcclab.training.history import History
from pcclab.training.objectives import Objective, bind
from pcclab.training.settings import FitSettings
from pcclab.training.trainer import fit

__all__ = ["FitSettings", "History", "Objective", "bind", "fit"]
