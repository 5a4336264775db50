"""From a sweep's file to its runs: settings times seeds, each checked, none twice."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pcclab import runs
from pcclab.parameters import MODELS, notebook_named, parameter_file, validate
from pcclab.runs import Run
from pcclab.sweep import search, sheets
from pcclab.values import Place, read_yaml

Setting = dict[str, Any]
"""Parameter -> value, with the parameter file under `base`."""
BASE = "base"
_TOLD = 12


@dataclass(frozen=True)
class Trial:
    """One run of a sweep.

    Attributes:
        run: the run.
        changes: what sets it apart from the sweep's other runs: parameter -> value, `base` where there are several,
            and `seed` last where there are seeds.
    """

    run: Run
    changes: dict[str, Any]

    @property
    def setting(self) -> dict[str, Any]:
        """The changes without the seed: what runs that are averaged have in common."""
        return {name: value for name, value in self.changes.items() if name != "seed"}

    @property
    def seed(self) -> int:
        """The run's seed."""
        return self.run.parameters.seed


@dataclass(frozen=True)
class Sweep:
    """What a sweep's file asks for.

    Attributes:
        path: of the file.
        notebook: the one notebook it runs.
        sheet: what the file says.
        lines: the line of everything in it.
        root: the checkout.
    """

    path: Path
    notebook: str
    sheet: sheets.Sheet
    lines: Mapping[Place, int]
    root: Path

    @property
    def name(self) -> str:
        """The file's name without its suffix."""
        return self.path.stem

    @property
    def folder(self) -> Path:
        """Where what belongs to the sweep as a whole lies; each run keeps its own folder."""
        return self.root / "runs" / "sweeps" / self.name

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All runs in order; of a search those that the finished ones so far lead to."""
        return self._fixed if self.sheet.tpe is None else tuple(self._searched())

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs of `trials`."""
        return tuple(trial.run for trial in self.trials)

    @property
    def planned(self) -> int:
        """How many runs there will be at the end."""
        proposals = self.sheet.tpe.trials if self.sheet.tpe is not None else 1
        return len(self._settings) * proposals * max(1, len(self.sheet.seeds))

    @cached_property
    def _settings(self) -> list[tuple[Setting, dict[str, Place]]]:
        """Each setting of the file with the place of each of its names; those a search proposes are not among them."""
        return list(_settings(self.sheet))

    @cached_property
    def _fixed(self) -> tuple[Trial, ...]:
        return self._trials(self._settings)

    def _searched(self) -> Iterator[Trial]:
        """The settings of a search as far as they are known: the next ones follow from the scores of all before."""
        wanted = self.sheet.tpe
        assert wanted is not None
        ((fixed, places),) = self._settings
        where: dict[str, Place] = {name: ("tpe", "ranges", name) for name in wanted.ranges}
        scores: tuple[float, ...] = ()
        each = max(1, len(self.sheet.seeds))
        while settings := search.proposed(wanted, scores):
            trials = self._trials([({**fixed, **s}, {**places, **where}) for s in settings], distinct=False)
            yield from trials
            found = [search.score([t.run for t in trials[i : i + each]]) for i in range(0, len(trials), each)]
            known = [score for score in found if score is not None]
            if len(known) < len(found):
                return
            scores += tuple(known)

    def _trials(self, settings: list[tuple[Setting, dict[str, Place]]], *, distinct: bool = True) -> tuple[Trial, ...]:
        """The settings with their seeds as checked runs; all faults come at once."""
        seeds: list[int | None] = [*self.sheet.seeds] or [None]
        several = len({setting[BASE] for setting, _ in self._settings}) > 1
        trials, faults, known = [], dict[str, None](), dict[str, int]()
        for number, (setting, places) in enumerate(settings, 1):
            for seed in seeds:
                given = {**setting, **({} if seed is None else {"seed": seed})}
                try:
                    run = self._run(given, {**places, "seed": ("seeds",)})
                except ValueError as error:
                    faults.update(dict.fromkeys(str(error).splitlines()))
                    continue
                if distinct and run.id in known:
                    where = sheets.at(self.path, self.lines, [*places.values()][-1])
                    faults[f"{where}: settings {known[run.id]} and {number} are the same run: drop one of them"] = None
                known[run.id] = number
                trials.append(Trial(run, {k: v for k, v in given.items() if k != BASE or several}))
        if faults:
            more = [f"and {len(faults) - _TOLD} more"] if len(faults) > _TOLD else []
            raise ValueError("\n".join([*itertools.islice(faults, _TOLD), *more]))
        return tuple(trials)

    def _run(self, given: Setting, places: Mapping[str, Place]) -> Run:
        """The run of one setting; a fault is told at its line, here or in the base's file."""
        file = self.root / parameter_file(self.root, self.notebook, given[BASE])
        try:
            values, lines = read_yaml(file)
        except FileNotFoundError as error:
            raise ValueError(f"{sheets.at(self.path, self.lines, places[BASE])}: {error}") from None
        changes = {**self.sheet.values, **{name: value for name, value in given.items() if name != BASE}}
        where = {name: f"{file}, line {line}" for name, line in lines.items()}
        where |= {name: sheets.at(self.path, self.lines, ("values", name)) for name in self.sheet.values}
        where |= {name: sheets.at(self.path, self.lines, place) for name, place in places.items()}
        run = Run(
            self.notebook, validate(self.notebook, {**values, **changes}, origin=str(file), places=where), self.root
        )
        try:
            assert run.id  # the runs it stands on have to be there as files
        except FileNotFoundError as error:
            raise ValueError(f"{sheets.at(self.path, self.lines, ())}: {error}") from None
        return run


def load(path: str | os.PathLike[str]) -> Sweep:
    """A sweep's file, checked whole: every run it asks for has valid parameters.

    Args:
        path: of the file; or the name of one in `parameters/sweeps`.

    Raises: FileNotFoundError; ValueError with one line a fault: file, line, parameter, value, limit and mend.
    """
    root = runs.root()
    file = Path(path)
    if not file.suffix and len(file.parts) == 1:
        file = root / "parameters" / "sweeps" / f"{file}.yaml"
    sheet, lines = sheets.read(file)
    try:
        notebook = notebook_named(sheet.notebook, MODELS)
    except ValueError as error:
        raise ValueError(f"{sheets.at(file, lines, ('notebook',))}: {error}") from None
    sweep = Sweep(file, notebook, sheet, lines, root)
    kind = "random" if sheet.tpe is None else "tpe"
    try:
        if sheet.tpe is not None:
            search.check(notebook)
        if len(sweep._settings) != 1 and sheet.tpe is not None:
            raise ValueError("a search has one base, one case and no grid: give what varies to ranges, as a list")
    except ValueError as error:
        raise ValueError(f"{sheets.at(file, lines, (kind,))}: {error}") from None
    assert sweep.trials
    return sweep


def _settings(sheet: sheets.Sheet) -> Iterator[tuple[Setting, dict[str, Place]]]:
    """Bases times cases times the grid times what is drawn."""
    drawn = search.drawn(sheet.random) if sheet.random is not None else [{}]
    cases: list[tuple[int, Setting]] = list(enumerate(sheet.cases)) or [(0, {})]
    for (number, base), (index, case) in itertools.product(enumerate(sheet.base or [""]), cases):
        if BASE in case and number:
            continue  # a case with a base of its own stands once, not once a base
        for values, draw in itertools.product(itertools.product(*sheet.grid.values()), drawn):
            places: dict[str, Place] = {BASE: (BASE, number)}
            places |= {name: ("random", "ranges", name) for name in draw}
            places |= {name: ("grid", name) for name in sheet.grid}
            places |= {name: ("cases", index, name) for name in case}
            yield {BASE: base, **case, **dict(zip(sheet.grid, values, strict=True)), **draw}, places
