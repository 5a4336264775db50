"""Settings drawn at random, or proposed by optuna's TPE from the scores of those before, on clean dev only."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from pcclab.complaints import near
from pcclab.runs import Run
from pcclab.sweep.sheets import Drawing, Range, Search

DEV = {"02_stage1_contrastive": "dev", "03_stage2_pcc_tuning": "dev"}
"""Notebook -> the entry of its result with Spearman x 100 on clean dev pairs; no test is ever searched on."""
FAILED = math.nan
_STARTUP = 10


def check(notebook: str) -> None:
    """Refuse to search with a notebook whose result has no score on clean dev.

    Raises: ValueError; ImportError's sentence where optuna is not installed.
    """
    if notebook not in DEV:
        raise ValueError(f"tpe searches on clean dev, and {notebook} gives no score on it: {near(notebook, DEV)}")
    _optuna()


def drawn(wanted: Drawing) -> list[dict[str, Any]]:
    """So many different settings; the same for the same seed, on every machine.

    Raises: ValueError where the choices do not offer so many.
    """
    generator = random.Random(wanted.seed)
    spaces = wanted.spaces()
    found: list[dict[str, Any]] = []
    for _ in range(100 * wanted.trials):
        setting = {name: _draw(space, generator) for name, space in spaces.items()}
        if setting not in found:
            found.append(setting)
        if len(found) == wanted.trials:
            return found
    raise ValueError(f"the ranges offer about {len(found)} settings, not {wanted.trials}: ask for fewer trials")


def proposed(wanted: Search, scores: tuple[float, ...]) -> list[dict[str, Any]]:
    """The next settings of a search, `width` of them, after the scores of all before; none at the end.

    Nothing is stored: the same scores lead to the same settings again, so a search goes on where it was from the
    results of the runs that are finished.

    Args:
        wanted: ranges, number of settings, width and seed.
        scores: of the settings so far, in their order; NaN for one that failed.
    """
    return [dict(setting) for setting in _replayed(wanted.model_dump_json(), scores)]


@lru_cache(maxsize=1024)
def _replayed(text: str, scores: tuple[float, ...]) -> list[dict[str, Any]]:
    wanted, optuna = Search.model_validate_json(text), _optuna()
    sampler = optuna.samplers.TPESampler(
        seed=wanted.seed, constant_liar=True, n_startup_trials=min(_STARTUP, max(2, wanted.trials // 3))
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    spaces = {name: _distribution(space, optuna) for name, space in wanted.spaces().items()}
    for begin in range(0, wanted.trials, wanted.width):
        asked = [study.ask(spaces) for _ in range(min(wanted.width, wanted.trials - begin))]
        if begin >= len(scores):
            return [{name: _rounded(value) for name, value in trial.params.items()} for trial in asked]
        for trial, value in zip(asked, scores[begin : begin + wanted.width], strict=True):
            failed = math.isnan(value)
            study.tell(trial, None if failed else value, state=optuna.trial.TrialState.FAIL if failed else None)
    return []


def score(runs: Sequence[Run]) -> float | None:
    """The mean score on clean dev of one setting's runs; NaN where one failed, None where one is not done.

    Raises: ValueError where a finished run has no such score.
    """
    states = [run.state for run in runs]
    if any(state in ("new", "running", "interrupted") for state in states):
        return None
    if "failed" in states:
        return FAILED
    scores = []
    for run in runs:
        value = run.result.get(DEV[run.notebook])
        if value == "undefined":
            return FAILED
        if not isinstance(value, float | int):
            raise ValueError(f"run {run.name} has no score {DEV[run.notebook]!r} on clean dev: run it again")
        scores.append(float(value))
    return sum(scores) / len(scores)


def _draw(space: Range | list[Any], generator: random.Random) -> Any:
    if isinstance(space, list):
        return generator.choice(space)
    low, high = (math.log(end) if space.log else float(end) for end in (space.low, space.high))
    if space.whole and not space.log:
        return generator.randint(int(space.low), int(space.high))
    value = generator.uniform(low, high)
    value = math.exp(value) if space.log else value
    return min(max(round(value), space.low), space.high) if space.whole else _rounded(value)


def _distribution(space: Range | list[Any], optuna: Any) -> Any:
    if isinstance(space, list):
        return optuna.distributions.CategoricalDistribution(space)
    kind = optuna.distributions.IntDistribution if space.whole else optuna.distributions.FloatDistribution
    return kind(space.low, space.high, log=space.log)


def _rounded(value: Any) -> Any:
    """Four digits say all that a drawn number has to say, and a person can type them."""
    return float(f"{value:.4g}") if isinstance(value, float) else value


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise ValueError(
            "tpe needs optuna, which is not installed: pip install -e '.[sweep]' -c constraints.txt"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
