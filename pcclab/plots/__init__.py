"""The lab's figures: a tidy table in, Axes out; nothing here loads data or a model.

Every plot draws in `paper_style` on the Axes it is given as `ax`, or on a new figure of its own at a printed width, and
leaves pyplot alone. What the sliders draw is in `explorations`: pages, whose axes stand still while a value moves.
"""

from __future__ import annotations

from pcclab.plots.ceilings import ceiling_levels, ceiling_over_share, gold_ceilings, hardening, scorer_scatter
from pcclab.plots.costs import cost_pairs
from pcclab.plots.curves import learning_curves
from pcclab.plots.geometry import cosine_groups, effective_levels, plane
from pcclab.plots.leaks import chosen_steps, part_gains
from pcclab.plots.objectives import ablation_lines, error_curves, race_intervals
from pcclab.plots.ranks import rank_scores
from pcclab.plots.scores import leakage_matrix, similarity_by_gold, stage_levels, task_differences, training_curve
from pcclab.plots.style import COLUMN, TEXT, paper_style

__all__ = [
    "COLUMN",
    "TEXT",
    "ablation_lines",
    "ceiling_levels",
    "ceiling_over_share",
    "chosen_steps",
    "cosine_groups",
    "cost_pairs",
    "effective_levels",
    "error_curves",
    "gold_ceilings",
    "hardening",
    "leakage_matrix",
    "learning_curves",
    "paper_style",
    "part_gains",
    "plane",
    "race_intervals",
    "rank_scores",
    "scorer_scatter",
    "similarity_by_gold",
    "stage_levels",
    "task_differences",
    "training_curve",
]
