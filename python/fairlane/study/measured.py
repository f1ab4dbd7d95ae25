"""A study whose points are single runs: what each leaves is measured by SQL, or by a function, where it is simulated.

Nothing is compared here: no default runs, no isolated ones. What is measured are tables with a column for each
condition, for whoever asks about them.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from typing_extensions import override

from fairlane.core.drive import Engine
from fairlane.core.errors import Problem, RunError, ScenarioError
from fairlane.core.tables import job_finished
from fairlane.core.units import DURATION
from fairlane.model.scenario import Scenario
from fairlane.results.schemas import RUN
from fairlane.results.tables import Links, Measured
from fairlane.sim.runner.counters import IterationCounters, PortSampler
from fairlane.study.cells import DEFAULT, Cell, CellRun
from fairlane.study.pinned import pin
from fairlane.study.plan import Plan, decided_of, judged, plan
from fairlane.study.setting import MEASURE, Point
from fairlane.study.sql import Database, QueryError
from fairlane.study.study import Study
from fairlane.study.table import RUN_TABLES
from fairlane.study.tables import points_table, run_rows, table_of, with_points
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import Stopwatch, Task, digest_of

QUERIES = "fairlane.study.measured:measure"


class MeasuredPlan(Plan):
    """The runs of a study that measures: one for each point.

    A function that it names is in the study's folder, and needs permission unless that is in a folder that
    is ``trusted``. With ``judge`` every scenario is tried before anything runs, as far as it is simulated as it stands.
    Raises ``ScenarioError``.
    """

    def __init__(self, study: Study, trusted: Iterable[Path] = (), *, judge: bool = True) -> None:
        asked = study.table.measure
        assert asked is not None, "asked for of studies that measure only"
        self._judge = judge and asked.function is None
        self._arguments: dict[str, Any] = {"tables": asked.tables}
        if asked.function is not None:
            method = study.method(trusted)
            self.code = [method.file]
            self._arguments = {"file": str(method.file), "name": method.name, "arguments": asked.arguments}
        self.cells = judged(study, lambda point: self._cell(study, point))

    def _cell(self, study: Study, point: Point) -> Cell:
        scenario = study.scenario(point, background=False)  # drawn where it is simulated
        seconds, memory, worked_out = None, 0.0, ""
        if self._judge:
            whole = scenario.with_background()
            decided = decided_of(whole)
            if decided.estimate:
                seconds, memory = decided.estimate.simulation_s, decided.estimate.memory
            worked_out = digest_of(pin(whole, decided, study.folder, "").scenario)
        function, arguments = MEASURE, self._arguments
        if "tables" in arguments:
            function, arguments = QUERIES, {"until": _until(study, point, scenario), **arguments}
        cost = sum(job.count * (job.ranks or 32) for job in scenario.jobs if job.start < scenario.duration)
        label, data = f"{study.name}: {point}", study.written(point).data
        task = Task(function, data, study.folder, label, arguments, float(cost))
        runs = [CellRun("", DEFAULT, None, task)]
        return Cell(point, task, memory, seconds, scenario.memory or 0, runs=runs, worked_out=worked_out)

    @override
    def tables(self, executor: Executor) -> dict[str, pl.DataFrame]:
        return measured_tables(self.cells, executor)


def plan_of(study: Study, trusted: Iterable[Path] = (), *, judge: bool = True) -> Plan:
    """The plan of a study that compares (``plan``) or measures (``MeasuredPlan``)."""
    return plan(study) if study.table.measure is None else MeasuredPlan(study, trusted, judge=judge)


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


def measure(scenario: Scenario, arguments: Mapping[str, Any], watch: Stopwatch) -> dict[str, Any]:
    """The answers to the queries about one run, by column; it ends with the job number ``until``, if there is one."""
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
        made = Measured.of(
            engine,
            resolved,
            Links(resolved.fabric),
            samples=sampler.table() if sampler else None,
            counters=counted,
            counters_before=counters.windows() if counters else None,
        )
        name = None if until is None else resolved.jobs[until].name
        database = Database(_observed(made, engine, name, " ".join(arguments["tables"].values())))
        answers = {name: _asked(database, name, sql) for name, sql in arguments["tables"].items()}
        database.close()
    return {"tables": answers, "packet_hops": engine.packet_hops, "digest": engine.digest()}


def _asked(database: Database, name: str, sql: str) -> dict[str, list[Any]]:
    try:
        return columns_of(database.ask(sql))
    except QueryError as error:
        raise ScenarioError(Problem(f"measure.tables.{name}", str(error))) from None


def columns_of(table: pl.DataFrame) -> dict[str, list[Any]]:
    """A table by column, in plain values."""
    return table.with_columns(pl.selectors.enum().cast(pl.String)).to_dict(as_series=False)


def _observed(made: Measured, engine: Engine, until: str | None, asked: str) -> dict[str, pl.DataFrame]:
    """The tables of a run without isolated ones that a text of queries names, and the table ``run``."""
    tables = {name: made.table(name) for name in RUN if name in asked}
    run = {
        "scenario": [made.scenario.name],
        "seed": [made.scenario.seed],
        "until": [until],
        "simulated_ps": [made.together.now],
        "stopped_ps": [engine.now],
        "packet_hops": [engine.packet_hops],
        "digest": [engine.digest()],
    }
    return {"run": pl.DataFrame(run), **{name: table for name, table in tables.items() if table is not None}}


def measured_tables(cells: Sequence[Cell], executor: Executor) -> dict[str, pl.DataFrame]:
    """``runs`` and ``failures`` as of any study, and what runs have measured; all with the columns of their points.

    Raises ``ScenarioError`` if a table has a name or a column that every study has.
    """
    rows, measured = run_rows(cells, executor, {}), dict[str, list[pl.DataFrame]]()
    for number, cell in enumerate(cells):
        answer = executor.answer(cell.runs[0].task) or {}
        for name, columns in answer.get("tables", {}).items():
            table = pl.DataFrame(columns).select(pl.lit(number, pl.UInt32).alias("point"), pl.all())
            measured.setdefault(name, []).append(table)
    points = points_table([cell.point for cell in cells])
    tables = {name: table_of(name, rows[name]) for name in RUN_TABLES}
    for name, parts in measured.items():
        table = pl.concat(parts, how="diagonal_relaxed")
        again = [column for column in table.columns[1:] if column in points.columns]
        if again or name in RUN_TABLES:
            words = "is a column of every table" if again else "is a table of every study"
            raise ScenarioError(Problem(f"measure.tables.{name}", words, again[0] if again else None))
        tables[name] = table
    return {name: with_points(table, points) for name, table in tables.items()}
