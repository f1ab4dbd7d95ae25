"""A study whose points are single runs: what each leaves is measured by SQL, or by a function, where it is simulated.

Nothing is compared here: no default runs, no isolated ones. What is measured are tables with a column for each
condition, for whoever asks about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import polars as pl
from pydantic import Field, model_validator

from fairlane.errors import Problem, RunError, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.study.sql import Database, QueryError
from fairlane.tasks.task import Task
from fairlane.units import DURATION

if TYPE_CHECKING:
    from fairlane.engine import Engine
    from fairlane.results.tables import Tables
    from fairlane.scenario import Scenario
    from fairlane.study.study import Point, Study
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.task import Stopwatch

__all__ = ["Measure", "MeasuredRun", "measure", "measured_runs", "measured_tables"]

FUNCTION = "fairlane.study.measured:measure"


class Measure(Table):
    """What is measured of every run: tables, each asked for in SQL, or what a function returns."""

    until: str | None = None
    """The job with which a run ends, also as ``{factor}``; by default it lasts for the scenario's duration."""
    tables: dict[str, str] = Field(default_factory=dict)
    """SQL over the tables of a run, and a table ``run`` with one row, by the name of what it makes."""
    function: str | None = None
    """``file.py:name`` of a function that simulates in its own way and returns tables by column, by name."""
    arguments: dict[str, Any] = Field(default_factory=dict)
    """The arguments of the function."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if bool(self.tables) == (self.function is not None):
            raise Problems(Problem("tables", "says nothing, or beside a function", allowed="tables or a function"))
        if self.function is not None and self.until is not None:
            raise Problems(Problem("until", "is up to the function", self.until, "nothing"))
        return self


@dataclass(frozen=True)
class MeasuredRun:
    """A point and what simulates it."""

    point: Point
    task: Task


def measured_runs(
    study: Study, function: str = FUNCTION, arguments: Mapping[str, Any] | None = None
) -> Iterator[MeasuredRun]:
    """The runs of a study that measures. Raises ``ScenarioError``.

    A study that names a function of its own is run by ``function``, as ``module:name``, with these arguments.
    """
    asked = study.table.measure
    assert asked is not None, "asked for of studies that measure only"
    for point in study.points():
        scenario = study.scenario(point, background=False)  # drawn where it is simulated
        given = arguments or {"until": _until(study, point, scenario), "tables": asked.tables}
        label, data = f"{study.name}: {point}", study.written(point).data
        yield MeasuredRun(point, Task(function, data, study.folder, label, given, _cost(scenario)))


def _until(study: Study, point: Point, scenario: Scenario) -> int | None:
    """The number of the job with which a run ends; None if it lasts for its duration. Raises ``ScenarioError``."""
    asked = study.table.measure
    if asked is None or asked.until is None:
        return None
    name, names = asked.until, [name for job in scenario.jobs for name in job.names()]
    for factor, level in point.parameters.items():
        name = name.replace(f"{{{factor}}}", str(level))
    if name not in names:
        raise ScenarioError(study.error(Problem.unknown("measure.until", "job", name, names, name)))
    return names.index(name)


def _cost(scenario: Scenario) -> float:
    return float(sum(job.count * (job.ranks or 32) for job in scenario.jobs if job.start < scenario.duration))


def measure(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """The answers to the queries about one run, by column; it ends with the job number ``until``, if there is one."""
    from fairlane.engine.iterations import job_finished
    from fairlane.results.tables import Links, Observed, Tables
    from fairlane.runner.counters import IterationCounters, PortSampler

    until = arguments["until"]
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        counters = IterationCounters(resolved, resolved.switch_counters) if resolved.switch_counters else None
        sampler = PortSampler(resolved.sample_interval) if resolved.sample_interval else None
        ended = None if until is None else job_finished(until)
    with watch.lap("simulating"):
        engine = watch.drive(resolved, ended, [watcher for watcher in (counters, sampler) if watcher])
    if ended is not None and not ended(engine):
        words = f"job {resolved.jobs[until].name} is not done after {DURATION.format(resolved.duration)}"
        raise RunError(f"{scenario.name}: {words}", slug="limit")
    with watch.lap("tables"):
        counted = counters.table(engine) if counters else None
        made = Tables(
            resolved,
            Observed.of(engine, resolved),
            Links(resolved),
            samples=sampler.table() if sampler else None,
            counters=counted,
        )
        name = None if until is None else resolved.jobs[until].name
        database = Database(_observed(made, engine, name, " ".join(arguments["tables"].values())))
        found = {name: _asked(database, name, sql) for name, sql in arguments["tables"].items()}
        database.close()
    return {"tables": found, "packet_hops": engine.packet_hops, "digest": engine.digest()}


def _asked(database: Database, name: str, sql: str) -> dict[str, list[Any]]:
    try:
        return columns_of(database.ask(sql))
    except QueryError as error:
        raise ScenarioError(Problem(f"measure.tables.{name}", str(error))) from None


def columns_of(table: pl.DataFrame) -> dict[str, list[Any]]:
    """A table by column, in plain values."""
    return table.with_columns(pl.selectors.enum().cast(pl.String)).to_dict(as_series=False)


def _observed(made: Tables, engine: Engine, until: str | None, asked: str) -> dict[str, pl.DataFrame]:
    """The tables of a run without isolated ones that a text of queries names, and the table ``run``."""
    from fairlane.results.schemas import RUN

    tables = {name: made.table(name) for name in RUN if name in asked}
    run = {
        "scenario": [made.scenario.name],
        "seed": [made.scenario.seed],
        "until": [until],
        "simulated_ps": [made.observed.measured.now],
        "stopped_ps": [engine.now],
        "packet_hops": [engine.packet_hops],
        "digest": [engine.digest()],
    }
    return {"run": pl.DataFrame(run), **{name: table for name, table in tables.items() if table is not None}}


def measured_tables(runs: Sequence[MeasuredRun], executor: Executor) -> dict[str, pl.DataFrame]:
    """What runs have measured, with the columns of their points; ``runs`` and ``failures`` with a row for each run.

    Raises ``ScenarioError`` if a table has a column that says of every row which point it is of.
    """
    from fairlane.study.tables import points_table

    points = points_table([run.point for run in runs])
    rows: dict[str, list[pl.DataFrame]] = {}
    for number, run in enumerate(runs):
        answer, failure = executor.answer(run.task), executor.failures.get(run.task.digest)
        if answer is None:
            failed = {"error": failure and failure.error, "scenario": failure and failure.description}
            rows.setdefault("failures", []).append(_rows(number, pl.DataFrame([failed])))
            continue
        made = {"packet_hops": answer.get("packet_hops"), "digest": answer.get("digest")}
        for name, columns in {"runs": {key: [value] for key, value in made.items()}, **answer["tables"]}.items():
            rows.setdefault(name, []).append(_rows(number, pl.DataFrame(columns)))
    found = {}
    for name, parts in rows.items():
        table = pl.concat(parts, how="diagonal_relaxed")
        again = [column for column in table.columns[1:] if column in points.columns]
        if again:
            raise ScenarioError(Problem(f"measure.tables.{name}", "is a column of every table", again[0]))
        joined = points.join(table, on="point", how="right", maintain_order="right")
        found[name] = joined.select(*points.columns, *table.columns[1:])
    return found


def _rows(point: int, table: pl.DataFrame) -> pl.DataFrame:
    """Rows of a point."""
    return table.select(pl.lit(point, pl.UInt32).alias("point"), pl.all())
