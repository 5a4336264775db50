"""Parameters of notebook 12: which figures and tables are made, and from which runs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pcclab.parameters.base import Names, Parameters


class PaperParameters(Parameters):
    """12_paper: every figure and table of the papers, from saved results."""

    entries: Names = Field(description="figures and tables by name, as `pcclab figures --list` has them; none: all")
    numbers: str = Field(
        pattern="^[a-z0-9_]+$",
        description="saved: the numbers in figures/; else a set such as smoke or real: those of its finished runs",
    )
    missing: Literal["tell", "run"] = Field(
        description="what happens where a run is not finished: it is told, or the run is made now"
    )
