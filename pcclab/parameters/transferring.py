"""Parameters of the notebook that judges models by what a linear classifier reads off their embeddings: 08."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from pcclab.parameters.base import Names, Parameters, Tupled, distinct

Tasks = Annotated[
    tuple[Literal["mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc"], ...], Tupled, AfterValidator(distinct)
]
Protocols = Annotated[tuple[Literal["lbfgs", "senteval"], ...], Tupled, AfterValidator(distinct)]


class TransferParameters(Parameters):
    """08_transfer: SentEval's seven transfer tasks, several models, two protocols."""

    models: Names = Field(
        min_length=1,
        description="models to compare, the first is what the others are set against: minilm, tiny, a folder, a hub "
        "name, or a run such as '03 real leakage=keep'",
    )
    tasks: Tasks = Field(min_length=1, description="among mr, cr, subj, mpqa, sst2, trec, mrpc")
    protocols: Protocols = Field(
        min_length=1, description="lbfgs (the minimum of each regression), senteval (that toolkit's Adam)"
    )
    limit: int = Field(ge=0, description="rows of each part at most, for a first look; 0: all")
    resamples: int = Field(ge=1, description="bootstrap resamples of the test rows; `seed` is theirs alone")
