"""Parameters of notebook 10: what leaked, what it brought, and what choosing on the tests would have promised.

Source: Pcc-tuning, sections 4 and 5: stage 2 on pairs of which some stand in the tests.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from pcclab.parameters.base import Seeds, Training, Tupled, distinct
from pcclab.parameters.pcc_tuning import Leakage
from pcclab.parameters.places import speaks_of_a_run

Levels = Annotated[tuple[Leakage, ...], Tupled, AfterValidator(distinct)]


class LeakageParameters(Training):
    """10_leakage: the ledger of leaks, gains on seen and unseen test pairs, the optimism of choosing on the tests."""

    stage2: str = Field(description="set of notebook 03 whose runs are judged, such as '03 real'; leakage= and seed= "
                        "are added for each of levels and seeds")  # fmt: skip
    levels: Levels = Field(description="leakage levels to judge; keep is always the one whose pairs are called seen")
    seeds: Seeds = Field(min_length=1, description="seeds of the trainings; the interval over seeds is over them")
    least: int = Field(ge=3, description="fewest pairs of a part of a test that is scored")
    resamples: int = Field(ge=100, le=100_000, description="bootstrap resamples of each interval over test pairs")
    selected: Levels = Field(min_length=1, description="leakage levels trained with looks at the tests")
    look_pairs: int = Field(ge=0, description="random pairs of each test that a look scores; 0: all")
    warmup_steps: int = Field(ge=0, description="steps over which the learning rate rises")

    def places(self, level: str) -> tuple[str, ...]:
        """The runs of one level of leakage as they are spoken of, one a seed."""
        return tuple(f"{self.stage2} leakage={level} seed={seed}" for seed in self.seeds) if self.stage2 else ()

    def stands_on(self) -> tuple[str, ...]:
        start = (self.encoder,) if speaks_of_a_run(self.encoder) else ()
        return start + tuple(place for level in self.levels for place in self.places(level))

    @field_validator("stage2")
    @classmethod
    def _is_stage2(cls, value: str) -> str:
        if value and not (speaks_of_a_run(value) and value.startswith("03")):
            raise ValueError("must be empty or a set of notebook 03, such as '03 real' or '03 real epochs=1'")
        return value

    @model_validator(mode="after")
    def _compares(self) -> Self:
        if bool(self.stage2) != bool(self.levels):
            raise ValueError(
                f"stage2 = {self.stage2!r} and levels = {list(self.levels)}: give both, or neither to judge no runs"
            )
        return self
