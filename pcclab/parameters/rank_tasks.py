"""Parameters of notebook 09.

Source: RankCSE, appendix G and table 13, for the values of the `paper` set.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from pcclab.parameters.base import Names, Parameters
from pcclab.parameters.places import speaks_of_a_run


class RankTaskParameters(Parameters):
    """09_rank_tasks: the partners of one sentence, ordered by people and by models."""

    models: Names = Field(
        min_length=1,
        description="encoders (minilm, tiny, a folder, a hub name) and runs, such as '03 real leakage=keep'; what is "
        "said of differences compares the first with each other one",
    )
    pooling: Literal["default", "cls", "mean", "first-last", "last"] = Field(
        description="how token states become one vector, for all models; default: as each says"
    )
    more_than: int = Field(ge=1, le=100, description="a list has more partners than this; the paper: 3")
    over: Literal["lists", "groups"] = Field(
        description="what the bootstrap draws: lists, or groups of lists that share sentences"
    )
    resamples: int = Field(ge=100, le=1_000_000, description="resamples of the bootstrap")
    cases: int = Field(ge=1, le=100, description="lists shown one by one")

    def loading(self) -> dict[str, Any]:
        """The keyword arguments of `pcclab.encoders.load` among these parameters."""
        return {} if self.pooling == "default" else {"pooling": self.pooling}

    def stands_on(self) -> tuple[str, ...]:
        return tuple(place for place in self.models if speaks_of_a_run(place))
