"""Parameters of the notebooks that train many times and compare: 04, 06 and 07.

Their lists span a grid whose every cell is a run of its own: the same notebook with each list cut to one entry, found
again whatever the other entries were.

Source: STS-Regression, sections 4.1, 4.2 and table 2; RankCSE, appendix A and table 9, for the values of the `paper`
sets.
"""

from __future__ import annotations

from shlex import quote
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from pcclab.parameters.base import Names, Seeds, Training, Tupled, distinct

Rates = Annotated[tuple[Annotated[float, Field(gt=0, le=1)], ...], Tupled, AfterValidator(distinct)]
Sizes = Annotated[tuple[Annotated[int, Field(ge=2, le=65_536)], ...], Tupled, AfterValidator(distinct)]
Regression = Literal["smooth_k2", "mse", "l1", "translated_relu"]
Workflows = Annotated[tuple[Literal[Regression, "contrast"], ...], Tupled, AfterValidator(distinct)]
Scratch = Annotated[tuple[Literal[Regression, "cross_entropy"], ...], Tupled, AfterValidator(distinct)]


class TrainingGrid(Training):
    """What every training of the grid takes."""

    seeds: Seeds = Field(min_length=1, description="seeds of the trainings; the interval is over them")
    warmup_share: float = Field(ge=0, lt=1, description="share of the steps over which the learning rate rises")
    layer_decay: float = Field(gt=0, le=1, description="factor on the learning rate from each layer to the one below")


class RegressionParameters(TrainingGrid):
    """06_regression: a linear node on two embeddings, with a buffer around the label, on NLI and on rated pairs."""

    objectives: Workflows = Field(
        description="second phases to compare from the encoder as it is: " + "smooth_k2, mse, l1, translated_relu, "
        "contrast (InfoNCE on the pairs rated 4 or higher)"
    )
    features: Literal["u,v", "|u-v|", "u,v,|u-v|"] = Field(description="what the node is given of both embeddings")
    slope: float = Field(gt=0, description="k of smooth_k2")
    relu_slope: float = Field(gt=0, description="k of translated_relu")
    threshold: float = Field(ge=0, description="x0 of both: errors below it are free; at most half the label interval")
    spacing: float = Field(
        gt=0,
        description="label interval d of the NLI classes in the first of two phases: contradiction 0, neutral d, 2d",
    )
    nli_pairs: int = Field(ge=0, description="NLI pairs the head learns from first, the trunk frozen; 0: all")
    head_learning_rate: float = Field(gt=0, le=1, description="peak of the learning rate of that first phase")
    head_epochs: float = Field(gt=0, description="passes over the NLI pairs of that first phase")
    temperature: float = Field(gt=0, le=10, description="temperature of InfoNCE")
    scratch: Scratch = Field(
        description="objectives to compare on the NLI pairs alone, from a trunk cut off and partly drawn anew: "
        "cross_entropy, l1, mse, translated_relu, smooth_k2"
    )
    scratch_pairs: int = Field(ge=0, description="NLI pairs of that comparison; 0: all")
    scratch_spacing: float = Field(gt=0, description="label interval d of the NLI classes in that comparison")
    scratch_layers: int = Field(ge=1, description="layers of the trunk that are kept for that comparison")
    scratch_fresh: int = Field(ge=0, description="upper ones of these that are drawn anew")
    scratch_epochs: float = Field(gt=0, description="passes over the NLI pairs in that comparison")
    scratch_learning_rate: float = Field(gt=0, le=1, description="peak of the learning rate in that comparison")

    @field_validator("threshold")
    @classmethod
    def _half(cls, value: float) -> float:
        if value > 0.5:
            raise ValueError("more than half the interval of 1 between two labels: give at most 0.5")
        return value

    @model_validator(mode="after")
    def _layers(self) -> Self:
        if self.scratch_fresh > self.scratch_layers:
            raise ValueError(
                f"scratch_fresh = {self.scratch_fresh} of scratch_layers = {self.scratch_layers}: draw at most all anew"
            )
        if not self.objectives and not self.scratch:
            raise ValueError("objectives and scratch are both empty: name something to train")
        return self


Methods = Annotated[
    tuple[
        Literal[
            "simcse",
            "listnet",
            "listnet without consistency",
            "listnet without contrast",
            "listnet alone",
            "listmle",
            "listmle without consistency",
            "listmle without contrast",
            "listmle alone",
            "without ranking",
            "consistency alone",
            "listnet as ported",
            "listmle as ported",
        ],
        ...,
    ],
    Tupled,
    AfterValidator(distinct),
]


class RankingParameters(TrainingGrid):
    """07_rankcse: InfoNCE, ranking consistency and ranking distillation without labels."""

    layers: int = Field(ge=0, description="lower layers of the encoder the student keeps; 0: all")
    methods: Methods = Field(min_length=1, description="objectives to compare, by the names of RankCSE's table 4")
    sentences: int = Field(ge=0, description="unlabelled sentences to train on; 0: all there are")
    teacher: str = Field(min_length=1, description="first teacher: minilm, tiny, a folder with weights, or a hub name")
    second_teacher: str = Field(
        description="second teacher: an encoder like the first, or a parameter file of 02_stage1_contrastive whose "
        "run is the teacher; empty for none"
    )
    alpha: float = Field(ge=0, le=1, description="share of the first of two teachers")
    beta: float = Field(ge=0, description="weight of ranking consistency")
    gamma: float = Field(ge=0, description="weight of ranking distillation")
    temperature: float = Field(gt=0, le=10, description="tau 1: of InfoNCE and of ranking consistency")
    student_temperature: float = Field(gt=0, le=10, description="tau 2 of ListNet: the student's lists")
    teacher_temperature: float = Field(gt=0, le=10, description="tau 3 of ListNet: the teacher's lists")
    listmle_temperature: float = Field(gt=0, le=10, description="tau 2 of ListMLE")

    def stands_on(self) -> tuple[str, ...]:
        return (f"02 {quote(self.second_teacher)}",) if self.second_teacher.endswith(".yaml") else ()


Costed = Annotated[
    tuple[Literal["SimCSE, labelled", "regression", "SimCSE", "RankCSE", "Pcc stage 1", "Pcc stage 2"], ...],
    Tupled,
    AfterValidator(distinct),
]


class ComparisonParameters(TrainingGrid):
    """04_ablations: the loss race, and the papers' ablations with what was run here beside."""

    form: Literal["frozen", "full"] = Field(
        description="what the race trains: a projection on frozen embeddings, or all weights"
    )
    losses: Names = Field(min_length=2, description="losses of the race, or sums of them: names of losses.CATALOGUE")
    learning_rates: Rates = Field(min_length=1, description="grid of the race; each loss takes its best on clean dev")
    ablations: Annotated[
        tuple[
            Literal[
                "prompts", "batch size", "slope and threshold", "concatenation", "terms", "teachers", "temperatures"
            ],
            ...,
        ],
        Tupled,
        AfterValidator(distinct),
    ] = Field(description="sections to run, on frozen embeddings")
    backbones: Names = Field(min_length=1, description="encoders of the section on prompts")
    batch_sizes: Sizes = Field(min_length=1, description="of the section on batch sizes")
    sentences: int = Field(ge=0, description="unlabelled sentences of the sections on RankCSE; 0: all there are")
    student_layers: int = Field(ge=1, description="lower layers of the encoder that RankCSE's student keeps")
    ablation_rate: float = Field(gt=0, le=1, description="learning rate of the ablations' projections")
    costs: Costed = Field(description="methods whose memory and time are measured, each in processes of its own")
    cost_encoder: str = Field(min_length=1, description="trunk they all train: minilm, tiny, a folder, or a hub name")
    cost_steps: int = Field(ge=1, le=1000, description="timed steps of each")
    cost_texts: Annotated[
        tuple[Literal["as they are", "filled"], ...], Tupled, AfterValidator(distinct)
    ] = Field(min_length=1, description="lengths of the texts: as they are, or filled to the method's length, which is "
              "what a batch can cost at most")  # fmt: skip
