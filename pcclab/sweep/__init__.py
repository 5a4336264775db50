"""Many runs of one notebook from one file: settings times seeds, shared out over slots, resumed wherever they broke.

A sweep's file, `parameters/sweeps/<name>.yaml`, says what is swept; `parameters/sweeps/losses.yaml` shows it at work::

    notebook: 03_stage2_pcc_tuning
    base: real                       # a set's name, a parameter file, or a list of them
    values: {levels: []}             # what all runs have instead of the base's values
    grid:                            # each value with each
      leakage: [keep, filter]
      learning_rate: [1.0e-5, 5.0e-5]
    seeds: [0, 1, 2]                 # each setting once a seed; without: the base's own seed

Instead of a `grid`, or beside it and then each with each: `cases`, a list of settings one by one, which may name a
`base` of their own; or `random`, settings drawn from ranges and lists::

    random: {trials: 8, seed: 0, ranges: {learning_rate: {low: 1.0e-6, high: 1.0e-4, log: true}, batch_size: [64, 128]}}

`tpe` takes the same and a `width`, and lets optuna propose `width` settings at a time by the scores on clean dev of
those before. A run of a sweep is the very run that `pcclab run NOTEBOOK --set BASE -p NAME=VALUE` makes.
"""

from __future__ import annotations

from pcclab.sweep.launching import launch
from pcclab.sweep.plan import Sweep, Trial, load
from pcclab.sweep.slots import Slot, slots

__all__ = ["Slot", "Sweep", "Trial", "launch", "load", "slots"]
