"""What a sweep's file says, checked: every fault is told with the file and the line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pcclab.complaints import near
from pcclab.values import Place, read_tree

Listed = BeforeValidator(lambda value: value if type(value) is list else [value])
Choices = Annotated[list[Any], Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Range(_Strict):
    """Numbers from `low` to `high`, both among them; whole ones where both ends are whole."""

    low: int | float
    high: int | float
    log: bool = False

    @model_validator(mode="after")
    def _rises(self) -> Self:
        if not self.low < self.high:
            raise ValueError(f"low = {self.low} is not below high = {self.high}: give the smaller first")
        if self.log and self.low <= 0:
            raise ValueError(f"low = {self.low} has no logarithm: give more than 0, or log: false")
        return self

    @property
    def whole(self) -> bool:
        """Whether only whole numbers are meant."""
        return isinstance(self.low, int) and isinstance(self.high, int)


class Drawing(_Strict):
    """`random`: so many settings drawn from ranges, and from lists of choices."""

    trials: int = Field(ge=1, le=10_000, description="how many settings")
    ranges: dict[str, Any] = Field(min_length=1, description="parameter -> {low, high, log} or a list of choices")
    seed: int = Field(default=0, ge=0, lt=2**32, description="of the drawing")

    def spaces(self) -> dict[str, Range | list[Any]]:
        """Each parameter's range or choices."""
        return {
            name: space if isinstance(space, list) else Range.model_validate(space)
            for name, space in self.ranges.items()
        }


class Search(Drawing):
    """`tpe`: settings that optuna's TPE proposes by the scores on clean dev, `width` of them at a time."""

    width: int = Field(default=4, ge=1, le=1000, description="settings proposed at once: more wait less, know less")


class Sheet(_Strict):
    """A sweep's file as a whole; see `pcclab.sweep`."""

    notebook: str = Field(description="name of a notebook, or its beginning, such as 03")
    base: Annotated[list[str], Listed] = Field(default_factory=list, description="a set's name or a parameter file")
    values: dict[str, Any] = Field(default_factory=dict, description="what all runs have instead of the base's")
    cases: list[dict[str, Any]] = Field(default_factory=list, description="settings one by one")
    grid: dict[str, Choices] = Field(default_factory=dict, description="parameter -> values, each with each")
    random: Drawing | None = Field(default=None, description="settings drawn at random")
    tpe: Search | None = Field(default=None, description="settings searched for on clean dev")
    seeds: list[int] = Field(default_factory=list, description="each setting once a seed; without: the base's own")

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.random is not None and self.tpe is not None:
            raise ValueError("random and tpe both choose the settings: keep one of them")
        if not self.base and not (self.cases and all("base" in case for case in self.cases)):
            raise ValueError("base is missing: add it (a set's name such as real, or a parameter file)")
        return self


def read(path: str | os.PathLike[str]) -> tuple[Sheet, dict[Place, int]]:
    """A sweep's file, checked as far as it can be without its notebook; and the line of everything in it.

    Raises: FileNotFoundError; ValueError with one line a fault: file, line, place, value, limit and mend.
    """
    values, lines = read_tree(path)
    try:
        sheet = Sheet.model_validate(values)
        for kind in ("random", "tpe"):
            if kind in values:
                _check_spaces(getattr(sheet, kind), (kind, "ranges"))
    except ValidationError as error:
        told = [_sentence(Path(path), fault, lines) for fault in error.errors(include_url=False)]
        raise ValueError("\n".join(told)) from None
    except _Fault as fault:
        raise ValueError(f"{at(path, lines, fault.place)}: {fault}") from None
    for place, name in named(sheet):
        if name == "seed" and sheet.seeds:
            raise ValueError(f"{at(path, lines, place)}: seed is given and seeds too: keep seeds")
    return sheet, lines


def named(sheet: Sheet) -> Iterator[tuple[Place, str]]:
    """Every parameter a sweep's file names, with the place where it does."""
    yield from ((("values", name), name) for name in sheet.values)
    yield from ((("cases", index, name), name) for index, case in enumerate(sheet.cases) for name in case)
    yield from ((("grid", name), name) for name in sheet.grid)
    for kind in ("random", "tpe"):
        if (drawing := getattr(sheet, kind)) is not None:
            yield from (((kind, "ranges", name), name) for name in drawing.ranges)


def at(path: str | os.PathLike[str], lines: Mapping[Place, int], place: Place) -> str:
    """`file, line 7`: the line of a place, or of what it stands in."""
    while place and place not in lines:
        place = place[:-1]
    return f"{path}, line {lines[place]}" if place else f"{path}"


class _Fault(ValueError):
    def __init__(self, place: Place, text: str) -> None:
        super().__init__(text)
        self.place = place


def _check_spaces(drawing: Drawing, place: Place) -> None:
    for name, space in drawing.ranges.items():
        if isinstance(space, list) and space:
            continue
        if not isinstance(space, dict):
            raise _Fault((*place, name), f"{name} = {space!r}: write {{low: 1, high: 8}} or a list of choices")
        try:
            Range.model_validate(space)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise _Fault((*place, name, *fault["loc"][:1]), f"{name}: {_told(fault, Range)}") from None


def _sentence(path: Path, fault: Any, lines: Mapping[Place, int]) -> str:
    kinds: dict[str, type[BaseModel]] = {"random": Drawing, "tpe": Search}
    place: Place = fault["loc"]
    model: type[BaseModel] = kinds.get(str(place[0]), Sheet) if len(place) > 1 else Sheet
    return f"{at(path, lines, place)}: {_told(fault, model)}"


def _told(fault: Any, model: type[BaseModel]) -> str:
    place, value = fault["loc"], fault["input"]
    name = ".".join(str(part) for part in place if not str(part).startswith("function-"))
    if fault["type"] == "extra_forbidden":
        return f"unknown entry {name}: {near(str(place[-1]), model.model_fields)}"
    if fault["type"] == "missing":
        described = model.model_fields[str(place[-1])].description
        return f"{name} is missing: add it ({described})" if described else f"{name} is missing: add it"
    message = str(fault["msg"]).removeprefix("Value error, ").replace("Input should be", "it must be")
    if place == ("notebook",) and isinstance(value, int):
        message += f"; YAML reads it as a number: write the whole name, or '{value:02}' in quotes"
    return f"{name} = {value!r}: {message}" if name and fault["type"] != "value_error" else message
