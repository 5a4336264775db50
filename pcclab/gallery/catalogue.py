"""Which figures there are: what draws each, how wide, from which run, and what it stands beside."""

from __future__ import annotations

from typing import NamedTuple

from pcclab.plots.style import COLUMN, TEXT


class Shown(NamedTuple):
    """A figure of the catalogue.

    Args:
        plot: the function of `pcclab.plots` that draws it.
        width: in inches, ACL's column or text.
        place: the run it comes from, as `pcclab run` takes it.
        figure: its name in that run.
        papers: what in the papers it redraws, and which of their values stand in it.
    """

    plot: str
    width: float
    place: str
    figure: str
    papers: str


FIGURES: dict[str, Shown] = {
    "binary_scorer": Shown(
        "scorer_scatter", COLUMN, "01 real", "scorer_scatter", "Pcc-tuning, figure 1, a scheme without values"
    ),
    "ceiling_over_share": Shown(
        "ceiling_over_share", COLUMN, "01 real", "ceiling_over_share", "Pcc-tuning, equations 2 to 7: 0.875"
    ),
    "gold_ceilings": Shown(
        "gold_ceilings", COLUMN, "01 real", "gold_ceilings", "Pcc-tuning, section 2.3, on the real ratings: 0.875"
    ),
    "stage2_levels": Shown(
        "stage_levels", TEXT, "03 real", "stage2_levels", "Pcc-tuning, table 2: Mistral-7B before and after stage 2"
    ),
    "race_frozen": Shown("race_intervals", COLUMN, "04 real", "race_frozen", "new: every loss on the same pairs"),
    "ablation_batch_size": Shown(
        "ablation_lines", COLUMN, "04 real", "batch_size", "Pcc-tuning, table 5 (its values in the table)"
    ),
    "ablation_temperatures": Shown(
        "ablation_lines", COLUMN, "04 real", "temperatures", "RankCSE, figure 3: points drawn, not printed"
    ),
    "costs": Shown(
        "cost_pairs",
        TEXT,
        "04 real",
        "costs_as_they_are",
        "STS-Regression, table 4; RankCSE, table 11 (another machine)",
    ),
    "plane": Shown("plane", COLUMN, "05 real", "plane", "RankCSE, figure 4: points drawn, not printed"),
    "cosine_groups": Shown(
        "cosine_groups", TEXT, "05 real", "cosine_groups", "RankCSE, figure 5: outlines drawn, not printed"
    ),
    "effective_levels": Shown(
        "effective_levels", TEXT, "05 real", "effective_levels", "Pcc-tuning, section 2.3: is an encoder binary?"
    ),
    "regression_objectives": Shown(
        "error_curves", COLUMN, "06 real", "figure_2", "STS-Regression, figure 2: k = 2, x0 = 0.25"
    ),
    "regression_scratch": Shown(
        "race_intervals", COLUMN, "06 real", "scratch", "STS-Regression, table 1: averages of both encoders"
    ),
    "regression_two_phase": Shown(
        "race_intervals", COLUMN, "06 real", "two_phase", "STS-Regression, table 3: averages of Nomic and Jina"
    ),
    "rankcse_terms": Shown("race_intervals", COLUMN, "07 real", "terms", "RankCSE, table 4: BERT-base"),
    "transfer_models": Shown(
        "task_differences", TEXT, "08 real", "models", "Pcc-tuning, table 6; RankCSE, table 3 (values in the tables)"
    ),
    "transfer_protocols": Shown("task_differences", TEXT, "08 real", "protocols", "new: two protocols, same rows"),
    "rank_tasks": Shown("rank_scores", TEXT, "09 real", "rank_tasks", "RankCSE, figure 1 and table 13: BERT-base"),
    "leakage_ledger": Shown("leakage_matrix", TEXT, "10 real", "ledger", "Pcc-tuning, section 4.1: who was seen"),
    "leakage_triples": Shown("stage_levels", TEXT, "10 real", "triples", "Pcc-tuning, table 2, over seeds"),
    "leakage_seen_unseen": Shown("part_gains", TEXT, "10 real", "seen_unseen", "new: the gain, seen and unseen"),
    "leakage_optimism": Shown("chosen_steps", COLUMN, "10 real", "optimism", "new: choosing a step on the tests"),
}

NONE: dict[str, str] = {
    "Pcc-tuning, figure 2": "a diagram of the two stages, no values",
    "STS-Regression, figure 1": "a diagram of the network, no values",
    "STS-Regression, figure 3": "a diagram of the two phases, no values",
    "RankCSE, figure 2": "a diagram of the method, no values",
    "Pcc-tuning, table 3": "three templates, no scores: pcclab.encoders.prompts",
    "STS-Regression, table 2": "settings of BERT and RoBERTa: ours stand in parameters/06_regression",
    "STS-Regression, table 4": "GPU memory: ours is measured on a CPU, figure `costs` and notebook 04, section 3",
    "STS-Regression, table 7": "sentences, which are not held here: notebook 10 counts the pairs of this kind",
    "RankCSE, table 1": "sentences, which are not held here: notebook 09 shows cases of its own",
    "RankCSE, table 7": "numbers of rows, which pcclab.data checks whenever it reads a set",
    "RankCSE, table 8": "numbers of rows, which pcclab.data checks whenever it reads a set",
    "RankCSE, table 9": "settings: ours stand in parameters/07_rankcse",
    "RankCSE, table 10": "table 3 again with settings chosen on each task: ours were chosen on none",
    "RankCSE, table 11": "minutes on another machine: ours are in figure `costs` and notebook 04, section 3",
    "RankCSE, table 12": "sentences, which are not held here: notebook 09 shows cases of its own",
}
"""Figures and tables of the papers that are not redrawn, and why."""
