"""Sliders over the lab's own functions: each view is a pure function of its values, and `explore` puts it in a cell.

>>> explore(ceiling, n=10, share=0.5, levels=2, hardness=40.0).now.said
'sigmoid, h = 40: 1.0000; two levels, 5 of 10: 0.8704; two levels at best: 0.8704; 2 levels at best: 0.8704'
"""

from __future__ import annotations

from pcclab.widgets.ceilings import ceiling, ceiling_points
from pcclab.widgets.controls import choices, linear, powers
from pcclab.widgets.exploring import Explorer, Shown, explore
from pcclab.widgets.finished import browse, finished_runs
from pcclab.widgets.live import Live
from pcclab.widgets.objectives import bent_points, error_points, errors, list_points, lists, rivals
from pcclab.widgets.stage2 import stage2
from pcclab.widgets.texts import leaks, ledger, pair_cosines, sentences

__all__ = [
    "Explorer",
    "Live",
    "Shown",
    "bent_points",
    "browse",
    "ceiling",
    "ceiling_points",
    "choices",
    "error_points",
    "errors",
    "explore",
    "finished_runs",
    "leaks",
    "ledger",
    "linear",
    "list_points",
    "lists",
    "pair_cosines",
    "powers",
    "rivals",
    "sentences",
    "stage2",
]
