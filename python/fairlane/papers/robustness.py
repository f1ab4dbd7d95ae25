"""The robustness map of a paper: its claims at points that are spread over what the paper leaves open.

The points are conditions of a space-filling design (``study.design``) over the parameters of ``robustness.toml``, so
any first part of them is spread evenly, too. Every point has seeds of its own, as a replicate has: what is found over
points includes chance. How much of it is chance is seen at the defaults, which are run several times with other seeds.
In a space with ``shared_seeds`` points have the seeds of these repeats, so that simulations that do not depend on the
parameters are run only with these. A point is a plan as any other, on a smaller system; its answers are stored as those
of other plans are. A point that cannot be run is reported and left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import isclose
from pathlib import Path

import polars as pl

from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.papers.folder import Change, Claim, Folder
from fairlane.papers.judging import Judged
from fairlane.papers.planning import Options, Plan, check_outputs, plan_of
from fairlane.papers.replicating import judge
from fairlane.papers.running import Done, outcome_of, parts_of
from fairlane.papers.space import Space, Value, columns_of
from fairlane.papers.storing import read_table
from fairlane.papers.verdicts import once
from fairlane.results.schemas import MAP, types
from fairlane.study.design import space_filling
from fairlane.study.plan import Plan as Tasks
from fairlane.study.plan import compute
from fairlane.study.tasks.executor import Executor

POINTS = 128
"""Number of points by default."""
MOST_POINTS = 512
SEED = 1
"""Seed of the sequence of points."""
FIRST_REPEAT = 600
"""The replicate of the first repeat of the defaults: later than those of all points."""
TABLE = "robustness.csv"
"""The file with every number at every point."""
_COLUMNS = types(MAP["robustness"])
GROUP = 16
"""Number of points whose simulations are computed together."""


@dataclass(frozen=True)
class Point:
    """One combination of values, with seeds of its own."""

    number: int
    """Number from 1; repeats of the defaults are 0 and below."""
    values: Mapping[str, Value]

    def replicate(self, shared: int = 0) -> int:
        """The replicate whose seeds it has: never the first, whose seeds are the folder's.

        With ``shared`` points have the seeds of so many repeats of the defaults, as many successive points each: these
        are spread evenly over each parameter. If the repeats took turns from point to point, every part of the range of
        a parameter would have the seeds of one repeat.
        """
        if self.number > 0:
            return FIRST_REPEAT + (self.number - 1) // shared % shared if shared else self.number + 1
        return FIRST_REPEAT - self.number

    def __str__(self) -> str:
        return f"point {self.number}" if self.number > 0 else f"defaults, repeat {1 - self.number}"


@dataclass(frozen=True)
class PointRun:
    """Result of a point: rows of ``MAP["robustness"]``, the processor time, s; or the reason why there is none."""

    point: Point
    rows: Sequence[tuple[object, ...]] = ()
    done: Mapping[str, Done] = field(default_factory=dict)
    error: str = ""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Claims that could not be judged at this point, and what was missing."""
    derived_cpu_s: float = 0.0
    """Processor time of functions that derive tables, as those that fit models, s."""
    identities: Mapping[str, str] = field(default_factory=dict)
    """By claim: the same for points with the same results, bit for bit."""

    @property
    def cpu_s(self) -> float:
        """Processor time of its simulations and of what is derived from them, whenever they were computed."""
        return sum(task.cpu for task in self.done.values()) + self.derived_cpu_s


@dataclass(frozen=True)
class Mapped:
    """All points that were run."""

    folder: Folder
    space: Space
    runs: Sequence[PointRun]
    wanted: int
    """Number of points that were asked for."""

    @property
    def title(self) -> str:
        """Title of the paper, or in short of it and of a space in a file of its own."""
        title = self.folder.paper.title
        return f"{title.split(',')[0]}, {self.space.title}" if self.space.title else title

    @property
    def claims(self) -> Sequence[Claim]:
        """The claims that are asked."""
        return claims_of(self.folder, self.space)

    @property
    def cpu_s(self) -> float:
        """Processor time of all points, s; simulations that several points share count once."""
        simulated = {key: task for run in self.runs for key, task in run.done.items()}
        return sum(outcome.cpu for outcome in simulated.values()) + sum(run.derived_cpu_s for run in self.runs)

    @property
    def failed(self) -> list[str]:
        """Points that could not be run, and claims that could not be judged at a point, with the reason."""
        failures = [f"{run.point}: {run.error}" for run in self.runs if run.error]
        return failures + [f"{run.point}, {claim}: {why}" for run in self.runs for claim, why in run.missing.items()]

    def once(self, claim: str, *, defaults: bool) -> tuple[list[int], int]:
        """Points, or repeats of the defaults, whose results for a claim no earlier one has; and how many there are."""
        runs = [run for run in self.runs if claim in run.identities and (run.point.number < 1) == defaults]
        return once({run.point.number: run.identities[claim] for run in runs}), len(runs)

    @property
    def found(self) -> pl.DataFrame:
        """Every number of every clause at every point, with the columns of ``MAP["robustness"]``."""
        return pl.DataFrame([row for run in self.runs for row in run.rows], _COLUMNS, orient="row")

    @property
    def points(self) -> pl.DataFrame:
        """A row for each point that was run: its number, the values of the parameters, processor time, error."""
        rows = [
            {"point": run.point.number, **run.point.values, "cpu_s": run.cpu_s, "error": run.error or None}
            for run in self.runs
        ]
        return pl.DataFrame(
            rows, {"point": pl.Int64, **columns_of(self.space.parameter), "cpu_s": pl.Float64, "error": pl.String}
        )


def points_of(space: Space, count: int, seed: int = SEED) -> list[Point]:
    """The repeats of the defaults, then so many points: the same first ones for any ``count``."""
    usual = {parameter.name: parameter.usual for parameter in space.parameter}
    repeats = [Point(-number, usual) for number in range(space.repeats)]
    conditions = space_filling(space.parameter, count, seed)
    return repeats + [Point(number, values) for number, values in enumerate(conditions, 1)]


def claims_of(folder: Folder, space: Space) -> list[Claim]:
    """The claims that are judged on the small system."""
    return [claim for claim in folder.claims if claim.id not in space.left_out]


def planned(folder: Folder, space: Space, point: Point) -> Plan:
    """Plan the studies of a point. Raises ``ScenarioError`` if its values suit no study."""
    changes = {}
    for entry in folder.paper.study:
        names = tuple(name for name in (entry.file, entry.name) if name)
        change = Change()
        for name in names:
            change = change.updated(space.studies.get(name, Change()))
        for parameter in space.parameter:
            change = change.updated(parameter.change(point.values[parameter.name], names))
        changes[entry.name] = change
    replicate = point.replicate(max(space.repeats, 1) if space.shared_seeds else 0)
    options = Options(
        True, replicate=replicate, changes=changes, changes_file=space.file, without_tables=space.without_tables
    )
    return plan_of(folder, claims_of(folder, space), options)


def run_points(
    folder: Folder,
    space: Space,
    executor: Executor,
    count: int = POINTS,
    *,
    limit_s: float | None = None,
    earlier: Sequence[Path] = (),
) -> Mapped:
    """Runs the points, some together, and judges the claims at each.

    Args:
        folder: The paper's.
        space: What it leaves open.
        executor: Performs tasks; what its store has is not computed again.
        count: How many points.
        limit_s: Processor time, s, after which no point is begun, whenever it was spent; None for no limit.
        earlier: Tables of points of this space that are taken from there.

    Raises:
        ScenarioError: A level cannot be prepared, or not even the defaults, or the first point where these are not run;
            or an earlier table is of another space.
    """
    check_outputs(folder)
    check_levels(folder, space)
    runs: list[PointRun] = []
    mapped = Mapped(folder, space, runs, count)
    every = points_of(space, count)
    known = earlier_points(folder, space, every, earlier)
    while waiting := every[len(runs) :]:
        if limit_s is not None and mapped.cpu_s >= limit_s:
            break
        group = waiting[: GROUP if runs and limit_s is None else 1]
        executor.forget()
        executor.stage(f"{group[0]} of {count}" if len(group) == 1 else f"{group[0]} to {group[-1].number} of {count}")
        new = [known[point.number] if point.number in known else _planned(folder, space, point) for point in group]
        compute([part for run in new if isinstance(run, _Begun) for part in run.parts.values()], executor)
        runs += [_judged(run, executor) if isinstance(run, _Begun) else run for run in new]
        if runs[0].error:
            raise ScenarioError(Problem(str(every[0]), runs[0].error, file=str(folder.path)))
    return mapped


def earlier_points(folder: Folder, space: Space, points: Sequence[Point], files: Sequence[Path]) -> dict[int, PointRun]:
    """Those of the points that tables of maps have, by number; points that failed are not among them.

    A table is a ``robustness.csv``, or a folder with one. Raises ``ScenarioError`` if it cannot be read, or if its
    points have other values than the space's.
    """
    runs: dict[int, PointRun] = {}
    names = [parameter.name for parameter in space.parameter]
    columns = {**columns_of(space.parameter), "error": pl.String, "cpu_s": pl.Float64, **_COLUMNS}
    claims = [claim.id for claim in claims_of(folder, space)]
    of = {point.number: point for point in points}
    for path in files:
        file, table = read_table(path, TABLE, columns)
        if unknown := next((name for name in table["claim"].drop_nulls() if name not in claims), None):
            problem = Problem.unknown("claim", f"claim of {folder.name}'s map", unknown, claims, unknown)
            raise ScenarioError(replace(problem, file=str(file)))
        for (number,), rows in table.filter(pl.col("error").is_null()).group_by("point", maintain_order=True):
            point = of.get(int(str(number)))
            if point is None or point.number in runs:
                continue
            stored = rows.row(0, named=True)
            for name in names:
                if not _alike(stored[name], point.values[name]):
                    message = f"{point} has another value: the map is of another space"
                    raise ScenarioError(Problem(name, message, stored[name], str(point.values[name]), file=str(file)))
            judged = rows.filter(pl.col("claim").is_not_null()).select(*_COLUMNS)
            missing = dict.fromkeys({*claims} - {*judged["claim"]}, f"missing in {file}")
            runs[point.number] = PointRun(point, judged.rows(), {}, "", missing, stored["cpu_s"])
    return runs


def _alike(stored: object, value: Value) -> bool:
    """Whether a value is what a table has of it, with the digits that are stored."""
    return stored == value if isinstance(value, str) else isclose(float(str(stored)), value, rel_tol=1e-5)


def check_levels(folder: Folder, space: Space) -> None:
    """Prepares the defaults, and these with every other level in its turn: what is wrong is known before anything runs.

    Raises ``ScenarioError``.
    """
    usual = {parameter.name: parameter.usual for parameter in space.parameter}
    others = [
        {**usual, parameter.name: level}
        for parameter in space.parameter
        for level in parameter.levels
        if level != parameter.default
    ]
    for values in (usual, *others):
        studies = [prepared.study for prepared in planned(folder, space, Point(0, values)).studies.values()]
        for study in filter(None, studies):
            for point in islice(study.points(), 1):
                study.scenario(point, background=False)


@dataclass(frozen=True)
class _Begun:
    """A point whose simulations are planned."""

    point: Point
    plan: Plan
    parts: Mapping[str, Tasks]


def _planned(folder: Folder, space: Space, point: Point) -> _Begun | PointRun:
    try:
        plan = planned(folder, space, point)
        return _Begun(point, plan, parts_of(plan))
    except FairlaneError as error:
        return PointRun(point, error=str(error))


def _judged(begun: _Begun, executor: Executor) -> PointRun:
    """The result of a point whose simulations are computed."""
    point = begun.point
    try:
        outcome = outcome_of(begun.plan, begun.parts, executor)
        judgements = judge(begun.plan, outcome)
    except FairlaneError as error:
        return PointRun(point, error=str(error))
    missing = {judgement.claim.id: "; ".join(judgement.missing) for judgement in judgements if judgement.missing}
    rows = [row for judgement in judgements if not judgement.missing for row in _rows(point, judgement)]
    outcome.tables.close()
    identities = {judgement.claim.id: judgement.identity for judgement in judgements if not judgement.missing}
    return PointRun(point, rows, outcome.done, "", missing, outcome.derived_cpu_s, identities)


def _rows(point: Point, judgement: Judged) -> Iterator[tuple[object, ...]]:
    for finding in judgement.findings:
        numbers = (finding.value, finding.low, finding.high, finding.margin)
        yield (point.number, judgement.claim.id, finding.clause + 1, finding.label, *numbers, finding.holds)
