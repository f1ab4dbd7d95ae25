"""Parameters that a paper leaves open: the file ``robustness.toml`` with plausible ranges and the sources.

A parameter is a range of a number or a quantity, or a choice among named levels. What a value of it changes is written
like the changes for ``--quick``, and comes after them: keys of the study file, keys of the scenario, rules. In the text
of a key ``{value}`` stands for the value, and ``{value} * 16 KiB`` for a multiple of something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import exp, log
from typing import Any, Literal, Self

import polars as pl
from pydantic import Field, PrivateAttr, field_validator, model_validator

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import BANDWIDTH, DURATION, POWER, SIZE, Kind
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.papers.folder import Change, Folder

FILE = "robustness.toml"
"""Its name in the folder of a paper. A further space is in ``robustness-NAME.toml``."""
Value = float | str
"""The value of a parameter: a number, in base units of a quantity; or the name of a level."""
KINDS: Mapping[str, Kind] = {"B": SIZE, "ps": DURATION, "b/s": BANDWIDTH, "mW": POWER}
"""Kinds of quantities, by the unit in which values are written."""
_TEXT = re.compile(r"\{value\}(?:\s*\*\s*(?P<factor>\S.*))?")


class Keys(Table):
    """Keys that a value sets, in some studies."""

    set: dict[str, Any] = Field(default_factory=dict)
    """Keys of the study file by dotted path; of a function its arguments."""
    scenario: dict[str, Any] = Field(default_factory=dict)
    """Keys of the scenario by dotted path. In texts, ``{value}`` is the parameter's value, also in products:
    ``"{value} * 16 KiB"`` (whole bytes), ``"{value} * 8"``, ``"{value} * 8.0"``."""
    rules: list[dict[str, Any]] = Field(default_factory=list)
    """Rules in addition to those of the study file: scenario keys for some levels of its factors."""

    @field_validator("set", "scenario", "rules")
    @classmethod
    def _readable(cls, given: Any) -> Any:
        for text in _texts(given):
            match = _TEXT.fullmatch(text)
            factor = match["factor"] if match else None
            if match is None or (factor is not None and _number(factor) is None and _quantity(factor) is None):
                raise Problems(
                    Problem("", "is no text with a value", text, '"{value}", "{value} * 8", "{value} * 16 KiB"')
                )
        return given

    def with_value(self, value: Value, unit: str | None) -> Change:
        """The change for a value; ``unit`` is that of a quantity, in which values are counted."""
        filled = {name: _filled(getattr(self, name), value, unit) for name in ("set", "scenario", "rules")}
        return Change(**filled)


class Effect(Keys):
    """Keys that a value sets in all studies, and what is different in single ones."""

    of: dict[str, Keys] = Field(default_factory=dict)
    """Keys in a study, or in all studies with a study file, in addition to or in place of those of all."""

    def applied(self, value: Value, unit: str | None, names: tuple[str, ...]) -> Change:
        """The change in a study, whose file and name are ``names``."""
        change = self.with_value(value, unit)
        for name in names:
            if name in self.of:
                change = change.updated(self.of[name].with_value(value, unit))
        return change

    @property
    def empty(self) -> bool:
        """Whether nothing is set."""
        return not any((self.set, self.scenario, self.rules, self.of))


class Parameter(Effect):
    """A parameter that the paper does not state: a range or some levels, with the source of these."""

    name: str = Field(pattern=r"^[A-Za-z][\w-]*$")
    """Its name, the column of tables."""
    title: str = Field(min_length=1)
    """Its meaning, in a few words."""
    range: tuple[float | str, float | str] | None = None
    """Least and greatest value: numbers, or quantities with their unit."""
    scale: Literal["linear", "log"] = "linear"
    """Whether values or their logarithms are spread evenly over the range."""
    whole: bool = False
    """Whether values of a range of numbers are whole numbers."""
    levels: dict[str, Effect] = Field(default_factory=dict)
    """In place of ``range``: what each level sets, by its name."""
    default: float | str
    """The value that is used unless another one is given; of a paper, that of its folder or the nearest to it."""
    source: str = Field(min_length=1)
    """Why this range is plausible: a data sheet, the default of an implementation, another paper."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problems = [*(self._range_problems() if self.range else self._level_problems())]
        if (self.range is None) == (not self.levels):
            problems = [Problem("range", "needs one of both", allowed="range or levels")]
        if problems:
            raise Problems(*problems)
        return self

    def _range_problems(self) -> Iterator[Problem]:
        assert self.range is not None, "asked of ranges"
        units = {_unit(end) for end in (*self.range, self.default)}
        if len(units) > 1 or "" in units:
            message = "two numbers, or two quantities of one kind, and such a default"
            yield Problem("range", "cannot be read", list(self.range), message)
            return
        low, high, default = (_amount(end) for end in (*self.range, self.default))
        if not low < high:
            yield Problem("range", "is empty", list(self.range), "a least and a greater value")
        elif self.scale == "log" and low <= 0:
            yield Problem("range", "has no logarithm", list(self.range), 'values above 0, or scale = "linear"')
        elif not low <= default <= high:
            yield Problem("default", "is not in the range", self.default, f"{self.range[0]} to {self.range[1]}")
        every = [
            self.set,
            self.scenario,
            self.rules,
            *([level.set, level.scenario, level.rules] for level in self.of.values()),
        ]
        if not any(True for _ in _texts(every)):
            yield Problem(
                "scenario", "sets nothing to the value", allowed='a key with "{value}" in scenario, set or rules'
            )

    def _level_problems(self) -> Iterator[Problem]:
        if len(self.levels) == 1:
            yield Problem("levels", "is no choice", [*self.levels], "two or more levels")
        if self.default not in self.levels:
            yield Problem.unknown("default", "level", str(self.default), [*self.levels], self.default)
        if not self.empty:
            yield Problem("levels", "set keys, and so does the parameter", allowed="keys within levels")

    @property
    def unit(self) -> str | None:
        """The base unit of a range of quantities."""
        return _unit(self.range[0]) if self.range else None

    @property
    def ends(self) -> tuple[float, float]:
        """Least and greatest value of a range, in base units."""
        assert self.range is not None, "levels have no ends"
        return _amount(self.range[0]), _amount(self.range[1])

    @property
    def usual(self) -> Value:
        """The default, in base units."""
        return str(self.default) if self.levels else _amount(self.default)

    def at(self, place: float) -> Value:
        """The value at a place from 0 to below 1 in the range, or among the levels."""
        if self.levels:
            return [*self.levels][int(place * len(self.levels))]
        low, high = self.ends
        if self.whole:
            high += 1
        value = exp(log(low) + place * (log(high) - log(low))) if self.scale == "log" else low + place * (high - low)
        return float(int(value)) if self.whole else float(round(value)) if self.unit else value

    def change(self, value: Value, names: tuple[str, ...]) -> Change:
        """Return the changes by a value to a study, whose file and name are ``names``."""
        if self.levels:
            return self.levels[str(value)].applied(value, None, names)
        return self.applied(value, self.unit, names)

    def shown(self, value: Value) -> str:
        """A value as text, three digits of a number."""
        if isinstance(value, str) or self.unit is None:
            return value if isinstance(value, str) else f"{value:.3g}"
        steps = KINDS[self.unit].steps
        size, unit = next((step for step in steps if value >= step[0]), steps[-1])
        return f"{value / size:.3g} {unit}"


class Space(Table):
    """The file ``robustness.toml``."""

    _file: str = PrivateAttr(default=FILE)
    title: str = ""
    """Subject of the parameters, in a few words; for a space in a file of its own."""
    shared_seeds: bool = False
    """Whether points have the seeds of the repeats of the defaults, and not each its own: with eight repeats, points 1
    to 8 those of the first, 9 to 16 those of the second. Then points share simulations that do not depend on the
    parameters."""
    system: str = Field(min_length=1)
    """The system on which points are run, and how it differs from the paper's, as a sentence."""
    studies: dict[str, Change] = Field(default_factory=dict)
    """Changes for this system in addition to those for ``--quick``, by study or study file."""
    left_out: dict[str, str] = Field(default_factory=dict)
    """Claims that are not judged on this system, and why."""
    titles: dict[str, list[str]] = Field(default_factory=dict)
    """Titles of the clauses of each claim; by default the measurement without the numbers."""
    without_tables: list[str] = Field(default_factory=list)
    """Tables of ``paper.toml`` that no claim needs here, and that are not made."""
    repeats: int = Field(default=8, ge=0, le=100)
    """Number of runs of the defaults with other seeds, for what chance alone changes."""
    parameter: list[Parameter] = Field(min_length=1)
    """The parameters that the paper leaves open."""

    @field_validator("parameter")
    @classmethod
    def _distinct(cls, given: list[Parameter]) -> list[Parameter]:
        names = [parameter.name for parameter in given]
        again = [at for at, name in enumerate(names) if name in names[:at]]
        if again:
            raise Problems(*(Problem(f"[{at}].name", "duplicate parameter name", names[at]) for at in again))
        return given

    @property
    def file(self) -> str:
        """The name of the file that it was read from."""
        return self._file

    @property
    def named(self) -> Iterator[tuple[str, str]]:
        """Every name of a study or a study file that is given, with its key."""
        yield from ((f"studies.{name}", name) for name in self.studies)
        for at, parameter in enumerate(self.parameter):
            for key, of in (
                ("", parameter.of),
                *((f".levels.{level}", setting.of) for level, setting in parameter.levels.items()),
            ):
                yield from ((f"parameter[{at}]{key}.of.{name}", name) for name in of)


def further(folder: Folder) -> list[str]:
    """Names of further spaces of a paper, in ``robustness-NAME.toml``."""
    return sorted(path.stem.removeprefix("robustness-") for path in folder.path.glob("robustness-*.toml"))


def space_of(folder: Folder, name: str | None = None) -> Space:
    """Read the parameters that a paper leaves open: ``robustness.toml``, or a further space by its name.

    Raises ``ScenarioError``.
    """
    if name is not None and name not in (names := further(folder)):
        if not names:
            raise ScenarioError(Problem("--space", f"{folder.name} has one space only", name, f"no --space: {FILE}"))
        raise ScenarioError(Problem.unknown("--space", "space", name, names, name))
    file = FILE if name is None else f"robustness-{name}.toml"
    if not (folder.path / file).is_file():
        raise ScenarioError(Problem("--robustness", f"{folder.name} has no {file}", allowed="a paper with that file"))
    space, entries, claims = folder.read(file, Space), folder.paper.study, [entry.id for entry in folder.claims]
    space._file = file
    names = list(dict.fromkeys([*(entry.name for entry in entries), *(entry.file for entry in entries if entry.file)]))
    wrong = [Problem.unknown(key, "study or study file", of, names, of) for key, of in space.named if of not in names]
    wrong += [Problem.unknown(f"left_out.{of}", "claim", of, claims, of) for of in space.left_out if of not in claims]
    clauses = {claim.id: len(claim.clause) for claim in folder.claims}
    for of, titles in space.titles.items():
        if of not in clauses:
            wrong.append(Problem.unknown(f"titles.{of}", "claim", of, claims, of))
        elif len(titles) != clauses[of]:
            allowed = f"{clauses[of]}, one for each clause of claims.toml"
            wrong.append(Problem(f"titles.{of}", f"has {plural(len(titles), 'text')}", titles, allowed))
    tables = [entry.name for entry in folder.paper.table]
    wrong += [
        Problem.unknown("without_tables", "table", of, tables, of) for of in space.without_tables if of not in tables
    ]
    if wrong:
        raise ScenarioError(problem.at(str(folder.path / file), None) for problem in wrong)
    return space


def columns_of(parameters: Iterable[Parameter]) -> dict[str, Any]:
    """The columns of a table with a row for each point: the values of the parameters."""
    return {parameter.name: pl.String if parameter.levels else pl.Float64 for parameter in parameters}


def _texts(given: Any) -> Iterator[str]:
    """Texts in which a value has to be filled in."""
    if isinstance(given, Mapping):
        for inner in given.values():
            yield from _texts(inner)
    elif isinstance(given, list):
        for inner in given:
            yield from _texts(inner)
    elif isinstance(given, str) and "{value" in given:
        yield given


def _filled(given: Any, value: Value, unit: str | None) -> Any:
    if isinstance(given, Mapping):
        return {key: _filled(inner, value, unit) for key, inner in given.items()}
    if isinstance(given, list):
        return [_filled(inner, value, unit) for inner in given]
    match = _TEXT.fullmatch(given) if isinstance(given, str) else None
    if match is None or isinstance(value, str):
        return given
    return _plain(value, unit) if match["factor"] is None else _multiple(value, match["factor"])


def _plain(value: float, unit: str | None) -> int | float | str:
    """The value as scenario files write it."""
    if unit:
        return f"{value:.0f} {unit}"
    return int(value) if value.is_integer() else value


def _multiple(value: float, factor: str) -> int | float | str:
    """So many times a factor: whole, and at least one, if the factor is whole or a quantity."""
    times = _number(factor)
    if times is None:
        amount, unit = _quantity(factor) or (0, "")
        return f"{max(1, round(value * amount))} {unit}"
    return max(1, round(value * times)) if isinstance(times, int) else value * times


def _number(text: str) -> int | float | None:
    """A number in a text: a whole one without a point."""
    try:
        return int(text) if text.strip().lstrip("+-").isdigit() else float(text)
    except ValueError:
        return None


def _quantity(text: str) -> tuple[int, str] | None:
    """A quantity in base units, and the base unit."""
    for unit, kind in KINDS.items():
        try:
            return kind.parse(text), unit
        except ValueError:
            continue
    return None


def _unit(end: float | str) -> str | None:
    """The base unit of an end of a range; None of a number, nothing of what cannot be read."""
    if not isinstance(end, str):
        return None
    quantity = _quantity(end)
    return quantity[1] if quantity else ""


def _amount(end: float | str) -> float:
    """An end of a range in base units."""
    if not isinstance(end, str):
        return float(end)
    quantity = _quantity(end)
    assert quantity is not None, "ranges are checked when they are read"
    return float(quantity[0])
