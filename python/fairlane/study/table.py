"""The tables of a study file: their keys, defaults, and what is allowed for each; and which scenario keys they set."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SerializeAsAny, field_validator, model_validator

from fairlane.core.errors import Problem
from fairlane.core.seeds import LARGEST_SEED
from fairlane.inputs.document import KeyPath, dotted
from fairlane.inputs.problems import Problems, validated
from fairlane.inputs.table import Table
from fairlane.model.scenario.models import Placement
from fairlane.study.conditions import collisions, queried
from fairlane.study.repetition import Placements, Repeat, Repeats, Repetition, Seeds, SeedsByPlacement
from fairlane.study.setting import Change, Setting, changes, misplaced, steps_of
from fairlane.study.tasks.cluster import Cluster
from fairlane.study.treatments import Treatment, read_treatment

RESERVED = ("default", "isolated")
"""Names of runs that every study has."""
COLUMNS: Mapping[KeyPath, str] = {
    ("placement",): "placements = [...]",
    ("name",): "the keys that differ; all points have the study's name",
}
"""Scenario keys that are columns of the tables already, and what to say instead of going through their values."""
RUN_TABLES = ("runs", "failures")
"""Tables of every study: a row for each run, or for each failed run."""


class Case(Table):
    """A named point of the study."""

    name: str = Field(min_length=1)
    """Its name in the tables."""
    set: Setting = Field(default_factory=dict)
    """Scenario keys that are different, by dotted path."""


class Rule(Table):
    """Changes for some combinations of levels, or their exclusion."""

    where: dict[str, str | int | list[str | int]] = Field(min_length=1)
    """Factors, ``case`` or ``seed``, each with the level or the levels that the rule is for; seeds may be others than
    the study's."""
    set: Setting = Field(default_factory=dict)
    """Scenario keys that are different, by dotted path."""
    skip: bool = False
    """Whether these combinations are excluded."""

    def holds(self, levels: Mapping[str, Any]) -> bool:
        """Whether the rule applies to these levels, by factor."""
        return all(levels[key] in (of if isinstance(of, list) else [of]) for key, of in self.where.items())


class Design(Table):
    """The study as a designed experiment: it also yields a data set and the effects of the factors."""

    runs: int | None = Field(default=None, ge=2)
    """Number of combinations that are run, spread evenly over all; by default every one is."""
    seed: int = Field(default=1, ge=0, le=LARGEST_SEED)
    """Seed of the sample."""


def _scenario(given: Any) -> Any:
    """A scenario's file, or its tables."""
    if not isinstance(given, str | dict):
        raise Problems(Problem("", "neither a file nor a table", given, 'a file, as "scenario.toml", or its tables'))
    return given


class Measure(Table):
    """Tables that are measured in every run, by SQL or by a function."""

    until: str | None = None
    """The job with which a run ends, also as ``{factor}``; by default it lasts for the scenario's duration."""
    tables: dict[str, str] = Field(default_factory=dict)
    """Queries (SQL) over the tables of a run, by name of the resulting table. A further table ``run`` has one row with
    ``simulated_ps``, ``stopped_ps``, ``until``, ``packet_hops`` and ``digest``."""
    function: str | None = None
    """``file.py:name``, relative to the study's folder: a function that simulates, given the scenario, ``arguments``
    and a stopwatch, and returns ``{"tables": {name: {column: values}}}``."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments of the function."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if wrong := [name for name in self.tables if name in RUN_TABLES or not name.isidentifier()]:
            raise Problems(Problem("tables", "cannot be the name of a table", wrong[0], "another word"))
        if bool(self.tables) == (self.function is not None):
            raise Problems(Problem("tables", "needs queries, or a function instead", allowed="tables or a function"))
        if self.function is not None and self.until is not None:
            raise Problems(Problem("until", "is up to the function", self.until, "nothing"))
        return self


class StudyTable(Table):
    """A scenario, and the parameters, placements and seeds with which it is repeated."""

    name: str | None = Field(default=None, min_length=1, pattern=r"^[^/\\\x00-\x1f\x7f]+$")
    """Name of the study; by default that of its file."""
    scenario: Annotated[str | dict[str, Any], BeforeValidator(_scenario)]
    """The scenario: a file, or its tables."""
    set: Setting = Field(default_factory=dict)
    """Scenario keys that are different in all runs, by dotted path. A table that names an arbiter, a workload, a
    topology, a placement, a rail policy or a QoS strategy replaces the scenario's; any other only the keys it has."""
    seeds: Seeds | None = None
    """Seeds of the scenario, the same for all placements or different ones; by default its own."""
    placements: Placements = Field(default=None, min_length=1)
    """Placements, by name or as tables; or by the scenario's policy: their number, or ``{ count, first }``."""
    repeat: Repeats = None
    """Replicates of each condition, each with a placement and a seed of its own: their number, or a precision."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """Scenario keys by dotted path, each with the values that it takes: every combination is a point."""
    cases: list[Case] = Field(default_factory=list)
    """Points one by one; with ``parameters`` every case is combined with every combination of them."""
    factors: dict[str, dict[str, Setting]] = Field(default_factory=dict)
    """Factors by name, each with its named levels, which set scenario keys: every combination is a point."""
    rules: list[Rule] = Field(default_factory=list)
    """Changes for some combinations of levels, and combinations that are excluded."""
    measure: Measure | None = None
    """Tables measured at every point, in a study whose points are single runs without comparison."""
    treatments: Annotated[
        dict[str, SerializeAsAny[Annotated[Treatment, BeforeValidator(read_treatment)]]], Field(default_factory=dict)
    ]
    """Treatments of the default run, by name."""
    design: Design | None = None
    """The study as a designed experiment, full factorial or sampled."""
    cluster: Cluster | None = None
    """A Slurm cluster to run on."""

    @field_validator("seeds")
    @classmethod
    def _each_once(cls, given: list[int] | SeedsByPlacement | None) -> list[int] | SeedsByPlacement | None:
        _refuse(_listed_twice("", given) if isinstance(given, list) else ())
        return given

    @field_validator("placements")
    @classmethod
    def _placed(cls, given: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
        problems = list(_listed_twice("", given or ()))
        for at, table in enumerate(given or ()):
            try:
                validated(Placement, {"name": "random", **table})
            except Problems as found:
                problems += [problem.under(f"[{at}]") for problem in found.problems]
        _refuse(problems)
        return given

    @field_validator("parameters")
    @classmethod
    def _lists(cls, given: dict[str, Any]) -> dict[str, list[Any]]:
        # A table is no value here: lists of values stand at the ends of all paths.
        found = [(".".join(map(str, place)), values) for _, values, place in changes(given, whole=frozenset())]
        wrong = {problem.key: problem for problem in misplaced(found)}
        others = (problem for key, values in found if key not in wrong for problem in _no_parameter(key, values))
        _refuse([*wrong.values(), *others])
        return dict(found)

    @field_validator("cases")
    @classmethod
    def _distinct(cls, given: list[Case]) -> list[Case]:
        names = [case.name for case in given]
        again = [at for at, name in enumerate(names) if name in names[:at]]
        _refuse(Problem(f"[{at}].name", "duplicate case name", names[at]) for at in again)
        return given

    @field_validator("treatments")
    @classmethod
    def _free(cls, given: dict[str, Treatment]) -> dict[str, Treatment]:
        words = "is reserved: every study has runs of this name"
        _refuse(Problem(name, words, allowed="another name") for name in given if name in RESERVED)
        return given

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        _refuse(
            [
                *self._overridden(),
                *self._several_defaults(),
                *self._factored(),
                *self._replicated(),
                *self._too_many_seeds(),
            ]
        )
        return self

    def seeds_of(self, placement: int) -> list[int] | None:
        """The seeds of the scenario on a placement, by its number from 0; none if they are the scenario's own."""
        return self.seeds.of(placement) if isinstance(self.seeds, SeedsByPlacement) else self.seeds

    @property
    def grid(self) -> list[int]:
        """Numbers of placements and of seeds, which are combined; nothing where replicates have their own."""
        return [] if self.repeat is not None else [len(self.placements or (None,)), len(self.seeds_of(0) or (None,))]

    def repetitions(self, levels: Sequence[int], seed: int, count: int | None = None) -> Iterator[Repetition]:
        """The repetition at some ``levels`` of the grid, or ``count`` replicates, by default those always there.

        ``seed`` is that of the scenario.
        """
        if self.repeat is not None:
            always = self.repeat.at_least if isinstance(self.repeat, Repeat) else self.repeat
            for number in range(always if count is None else count):
                yield Repetition(number, {"seed": number + 1}, seed + number, "repeat")
            return
        number, at = levels
        placement, seeds = (self.placements or [{}])[number], self.seeds_of(number)
        yield Repetition(number, placement, seeds[at] if seeds else seed, "seeds" if seeds else "")

    def _overridden(self) -> Iterator[Problem]:
        """Keys that identify points but are overwritten by keys that the study sets later."""
        parameters = [(steps_of(key), values, ("parameters", key)) for key, values in self.parameters.items()]
        placements: list[Change] = [
            (path, None, ("placements", at))
            for at, table in enumerate(self.placements or ())
            for path in ([("placement",)] if "name" in table else [("placement", key) for key in table])
        ]
        for at, case in enumerate(self.cases):
            yield from _lost([*changes(case.set, ("cases", at, "set")), *parameters, *placements], "cases")
        yield from _lost([*parameters, *placements], "parameters")

    def _factored(self) -> Iterator[Problem]:
        """Errors in factors, rules and measurements."""
        yield from collisions(self.factors, self.parameters, measured=self.measure is not None)
        if self.measure is not None:
            yield from queried(self.measure.tables, [*self.parameters, *self.factors])
        for name, levels in self.factors.items():
            if not levels:
                yield Problem(f"factors.{name}", "has no levels", allowed="a table for each level")
        known: dict[str, list[Any]] = {name: [*levels] for name, levels in self.factors.items()}
        known |= {"case": [case.name for case in self.cases], "seed": []}
        for at, rule in enumerate(self.rules):
            for key, given in rule.where.items():
                place = f"rules[{at}].where.{key}"
                if key not in known:
                    yield Problem.unknown(place, "factor", key, [*known], key)
                    continue
                levels_of = given if isinstance(given, list) else [given]
                yield from (
                    Problem.unknown(place, f"level of {key}", str(one), [*map(str, known[key])], one)
                    for one in levels_of
                    if key != "seed" and one not in known[key]
                )
        if self.measure is not None and (self.treatments or self.design):
            yield Problem("measure", "is for a study that compares nothing", allowed="no treatments and no design")

    def _replicated(self) -> Iterator[Problem]:
        """Yield what cannot be together with ``repeat``."""
        if self.repeat is None:
            return
        for key in ("placements", "seeds", "design"):
            if getattr(self, key) is not None:
                message = "every replicate has a placement and a seed of its own"
                yield Problem(key, message, allowed=f"{key} or repeat")
        if isinstance(self.repeat, Repeat):
            if self.measure is not None:
                yield Problem("repeat", "an effect has a precision, and nothing is compared", allowed="a number")
            if self.repeat.of == "improvement" and not self.treatments:
                yield Problem("repeat.of", "there are no treatments", "improvement", '"w", or treatments')

    def _too_many_seeds(self) -> Iterator[Problem]:
        """Seeds of placements that are larger than a seed can be."""
        last = self.seeds_of(len(self.placements or (0,)) - 1)
        if isinstance(self.seeds, SeedsByPlacement) and last is not None and last[-1] > LARGEST_SEED:
            words = "the last placement would have larger seeds than there are"
            yield Problem(
                "seeds.first", words, self.seeds.first, f"at most {self.seeds.first + LARGEST_SEED - last[-1]}"
            )

    def _several_defaults(self) -> Iterator[Problem]:
        """The table of a design has one row per condition, so there is one default run."""
        baselines = list(dict.fromkeys(treatment.baseline or "whole" for treatment in self.treatments.values()))
        if self.design is not None and len(baselines) > 1:
            words = f"has treatments that are compared with different default runs: {'; '.join(baselines)}"
            yield Problem("design", words, allowed="treatments of the same kind, mode, periods and draws")


def _refuse(problems: Iterable[Problem]) -> None:
    """Raises ``Problems`` if there are any."""
    wrong = list(problems)
    if wrong:
        raise Problems(*wrong)


def _no_parameter(key: str, values: Any) -> Iterator[Problem]:
    """Errors in the values of a parameter that are found without the scenario."""
    if steps_of(key) in COLUMNS:
        yield Problem(key, "has a column of its own in the tables", values, COLUMNS[steps_of(key)])
    elif not isinstance(values, list) or not values:
        yield Problem(key, "needs a list of values", values if isinstance(values, str | int | float) else None)
    else:
        yield from _listed_twice(key, values)


def _listed_twice(key: str, values: Sequence[Any]) -> Iterator[Problem]:
    """Duplicate values: their runs would count twice."""
    seen: set[str] = set()
    for at, value in enumerate(values):
        written = json.dumps(value, sort_keys=True, default=str)
        if written in seen:
            yield Problem(f"{key}[{at}]", "is listed twice", value, "every value once")
        seen.add(written)


def _lost(given: Sequence[Change], varied: str) -> Iterator[Problem]:
    """The changes in the table ``varied`` that later changes overwrite."""
    for at, (path, value, place) in enumerate(given):
        later = next((by for other, _, by in given[at + 1 :] if path[: len(other)] == other), None)
        if place[0] == varied and later:
            yield Problem(dotted(place), f"is lost: {dotted(later)} is set after it", value, "one of the two")
