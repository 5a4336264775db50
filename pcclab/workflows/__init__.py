"""What the comparing notebooks train: from a run's parameters to the rows of their tables, each resumable."""

from __future__ import annotations

from pcclab.training.cards import card_of
from pcclab.workflows.ablations import SECTIONS, ablate, by_setting
from pcclab.workflows.bench import Bench, Trial, frozen, rated
from pcclab.workflows.costs import RECIPES, measure_costs, ratios
from pcclab.workflows.exporting import card, export
from pcclab.workflows.geometry import Geometry, geometry, other_models
from pcclab.workflows.grid import Cell, by_task, grid
from pcclab.workflows.judging import Judged, by_part, judge
from pcclab.workflows.leakage import JUDGING, choices, looked, stage2_looks, with_looks
from pcclab.workflows.models import Model, load_models, trained
from pcclab.workflows.planning import PLANNED, Plan, plan
from pcclab.workflows.proposing import in_one_graph, proposal
from pcclab.workflows.race import PAIR_LOSSES, race, race_of, standing
from pcclab.workflows.ranking import METHODS, PRINTED, load_student, load_teachers, rankcse, term_sizes
from pcclab.workflows.regression import from_scratch, two_phase
from pcclab.workflows.relations import relations
from pcclab.workflows.transferring import judge_transfer, paired

__all__ = [
    "JUDGING",
    "METHODS",
    "PAIR_LOSSES",
    "PLANNED",
    "PRINTED",
    "RECIPES",
    "SECTIONS",
    "Bench",
    "Cell",
    "Geometry",
    "Judged",
    "Model",
    "Plan",
    "Trial",
    "ablate",
    "by_part",
    "by_setting",
    "by_task",
    "card",
    "card_of",
    "choices",
    "export",
    "from_scratch",
    "frozen",
    "geometry",
    "grid",
    "in_one_graph",
    "judge",
    "judge_transfer",
    "load_models",
    "load_student",
    "load_teachers",
    "looked",
    "measure_costs",
    "other_models",
    "paired",
    "plan",
    "proposal",
    "race",
    "race_of",
    "rankcse",
    "rated",
    "ratios",
    "relations",
    "stage2_looks",
    "standing",
    "term_sizes",
    "trained",
    "two_phase",
    "with_looks",
]
