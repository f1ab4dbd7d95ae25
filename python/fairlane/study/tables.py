"""From the answers of a study's tasks to its tables."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.statistics import Estimate, ratio_change
from fairlane.results.derive import change, interval
from fairlane.results.milestones import Common, common, enough
from fairlane.results.schemas import STUDY, types
from fairlane.study.cells import DEFAULT, ISOLATED, Cell, CellRun
from fairlane.study.replicates import key_of
from fairlane.study.setting import Point
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import Answer, Task, digest_of
from fairlane.study.treatments import Progress

Row = dict[str, Any]

_COMPUTED = ("w_iterations", "improvement_iterations")
"""Columns of ``work`` that are computed from its others."""
_SPANS = {"default_span_ps": pl.UInt64, "isolated_span_ps": pl.UInt64}
"""Columns that they are computed from, and that are then left out."""


def compared_tables(cells: Sequence[Cell], executor: Executor) -> dict[str, pl.DataFrame]:
    """The tables ``runs``, ``work``, ``periods`` and ``failures`` of a study that compares."""
    digests: dict[str, str | None] = {}
    first: dict[tuple[str, ...], int] = {}
    rows = {**run_rows(cells, executor, digests), "work": list[Row](), "periods": list[Row]()}
    for number, cell in enumerate(cells):
        point = {"point": number}
        same = _SameRuns(cell, number, digests, first)
        rows["work"] += [{**point, "same_as": same.as_point(row), **row} for row in _work(cell, executor)]
        rows["periods"] += [{**point, **row} for row in _periods(cell, executor)]
    points = points_table([cell.point for cell in cells])
    tables = {name: table_of(name, rows[name]) for name in ("runs", "work", "periods", "failures")}
    tables["work"] = _compared(tables["work"])
    return {name: with_points(table, points) for name, table in tables.items()}


def run_rows(cells: Sequence[Cell], executor: Executor, digests: dict[str, str | None]) -> dict[str, list[Row]]:
    """Rows of ``runs`` and ``failures`` with the numbers of their points; fills in digests of answers, by task."""
    rows: dict[str, list[Row]] = {"runs": [], "failures": []}
    simulations: dict[str, int] = {}
    for number, cell in enumerate(cells):
        point = {"point": number}
        for name, task in cell.calibrations.items():
            rows["failures"] += [{**point, **row} for row in _failures(executor, DEFAULT, name, task)]
        for run in cell.runs:
            answer = executor.answer(run.task) or {}
            digest = digests.setdefault(run.task.digest, digest_of_answer(answer))
            rows["runs"].append(
                {
                    **point,
                    "baseline": run.baseline,
                    "treatment": run.treatment,
                    "job": run.job,
                    "packet_hops": answer.get("packet_hops"),
                    "digest": digest,
                    "failed": run.task.digest in executor.failures,
                    "simulation": simulations.setdefault(run.task.digest, len(simulations)),
                }
            )
            rows["failures"] += [{**point, **row} for row in _failures(executor, run.treatment, run.job, run.task)]
    return rows


def digest_of_answer(answer: Answer) -> str | None:
    """The digest of a simulation's results, or of all that a task of many simulations returned; None if it failed."""
    return str(answer.get("digest") or digest_of(answer)) if answer else None


@dataclass(frozen=True)
class _SameRuns:
    """Points of a condition with the same results, bit for bit, which are one replicate."""

    cell: Cell
    number: int
    """Number of the cell's point."""
    digests: Mapping[str, str | None]
    """Digest of what each task returned."""
    first: dict[tuple[str, ...], int]
    """The first point with these runs, for all cells so far."""

    def as_point(self, row: Row) -> int:
        """The first point that has the same runs as a row of ``work``: those of its treatment and its baseline."""
        kinds = (row["treatment"], DEFAULT, ISOLATED)
        runs = [run for run in self.cell.runs if run.baseline == row["baseline"] and run.treatment in kinds]
        own = [run for run in runs if run.own in (None, row["treatment"])]
        results = [str(self.digests[run.task.digest]) for run in own]
        condition = key_of(self.cell.point.case, self.cell.point.parameters)
        key = (condition, row["baseline"], row["treatment"], *results)
        return self.first.setdefault(key, self.number)


def table_of(name: str, rows: list[Row]) -> pl.DataFrame:
    """A table of a study, but for the columns of its points. Rows of ``periods`` may say more than the schema."""
    of_points = ("case", "placement", "seed")
    schema = {column: kind for column, kind in types(STUDY[name]).items() if column not in of_points}
    if name == "work":
        schema = {column: kind for column, kind in schema.items() if column not in _COMPUTED} | _SPANS
    if name == "periods" and rows:
        return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
    return pl.DataFrame(rows, schema)


def with_points(table: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """The table with the columns of its rows' points in front."""
    again = [name for name in table.columns[1:] if name in points.columns]
    if again:  # of a controller's state, which is known only now
        words = "is a column of the table periods, too: the controller's state"
        raise ScenarioError(Problem(f"factors.{again[0]}", words, allowed="another name"))
    joined = table.join(points, on="point", how="left", maintain_order="left")
    return joined.select(*points.columns, *table.columns[1:])


def points_table(points: Sequence[Point]) -> pl.DataFrame:
    """The conditions of each point. Values of parameters that are neither all numbers nor all texts are JSON."""
    columns = {"point": pl.Series(range(len(points)), dtype=pl.UInt32)}
    columns["case"] = pl.Series([point.case for point in points], dtype=pl.String)
    for key in points[0].parameters if points else ():
        columns[key] = _values([point.parameters[key] for point in points])
    columns["placement"] = pl.Series([point.placement for point in points], dtype=pl.UInt32)
    columns["seed"] = pl.Series([point.seed for point in points], dtype=pl.UInt64)
    return pl.DataFrame(columns)


def _values(values: list[Any]) -> pl.Series:
    kinds = {type(value) for value in values}
    for allowed, kind in (({int}, pl.Int64), ({int, float}, pl.Float64), ({bool}, pl.Boolean)):
        if kinds <= allowed:
            return pl.Series(values, dtype=kind, strict=False)
    return pl.Series([value if isinstance(value, str) else json.dumps(value) for value in values], dtype=pl.String)


def _failures(executor: Executor, treatment: str, job: str | None, task: Task) -> Iterator[Row]:
    """A row if the task has failed."""
    failure = executor.failures.get(task.digest)
    if failure:
        yield {"treatment": treatment, "job": job, "error": failure.error, "scenario": failure.description}


@dataclass(frozen=True)
class Compared:
    """The progress of a job in a run, in the default run and isolated; None of what is not known or does not apply."""

    run: CellRun
    job: int
    """Number of the job."""
    done: Progress
    default: Progress | None
    isolated: Progress | None


def compared(cell: Cell, executor: Executor) -> Iterator[Compared]:
    """Yield the progress of each job in the default and the treated runs that did not fail."""
    for default in cell.of(DEFAULT):
        before = executor.answer(default.task)
        co_runs = [run for run in cell.runs if run.baseline == default.baseline and run.treatment != ISOLATED]
        for number, job in enumerate(cell.pinned.names):
            reference = default.kind.progress(before, job) if before else None
            for run in co_runs:
                answer = executor.answer(run.task)
                if answer is None:
                    continue
                done = run.kind.progress(answer, job)
                isolated = _isolated(cell, executor, default, run, job) if cell.jobs[number].iterates else None
                yield Compared(run, number, done, reference, isolated)


def _work(cell: Cell, executor: Executor) -> Iterator[Row]:
    """Yield the rows of ``work``: each job in the default and the treated runs that did not fail."""
    for of in compared(cell, executor):
        job, treated = cell.jobs[of.job], of.run.treatment != DEFAULT
        yield {
            "baseline": of.run.baseline,
            "treatment": of.run.treatment,
            "job": of.job,
            "name": cell.pinned.names[of.job],
            "workload": job.workload,
            "ranks": job.ranks,
            **_done("", of.done),
            **_done("default_", of.default),
            **_done("isolated_", of.isolated),
            **_against(of.done, of.default if treated else None, of.isolated, of.run.kind.steady),
        }


def _isolated(cell: Cell, executor: Executor, default: CellRun, run: CellRun, job: str) -> Progress | None:
    """The progress of a job isolated, with which a run is compared; None if that failed."""
    own = run.treatment if run.kind.own_isolation and run.treatment != DEFAULT else None
    runs = {one.job: one for one in cell.of(ISOLATED, default.baseline, own)}
    if job in runs:
        answer = executor.answer(runs[job].task)
        return default.kind.progress(answer, job) if answer else None
    answer = executor.answer(runs.get(None, default).task)
    return default.kind.isolated_progress(answer, job) if answer else None


def _done(prefix: str, done: Progress | None) -> Row:
    pace = done and done.pace
    return {
        f"{prefix}iterations": done and done.iterations,
        f"{prefix}span_ps": done and done.span,
        **interval(f"{prefix}seconds_per_iteration", pace or None),
    }


def _against(done: Progress, default: Progress | None, isolated: Progress | None, steady: bool) -> Row:
    """W and improvement over the iterations that both runs completed, or by what they completed in each period."""

    def at(reference: Progress | None) -> Common | None:
        of = reference and reference.milestones
        return common(done.milestones, of, warm_up=steady) if done.milestones and of else None

    def change(reference: Progress | None, shared: Common | None) -> Estimate | None:
        return shared.estimate if shared else by_period(done, reference) if reference else None

    against_isolated, against_default = at(isolated), at(default)
    return {
        **interval("seconds_per_iteration", done.pace),
        **interval("iterations_per_second", done.throughput),
        "compared_iterations": against_isolated and against_isolated.iterations,
        "compared_ps": against_isolated and against_isolated.at,
        "isolated_compared_ps": against_isolated and against_isolated.reference_at,
        "warm_up": against_isolated and against_isolated.warm_up,
        **interval("w", change(isolated, against_isolated)),
        **interval("improvement", change(default, against_default)),
        "stop_ps": done.milestones and done.milestones.stop,
        "ten_iterations_ps": enough(done.milestones, isolated.milestones if isolated else None)
        if done.milestones
        else None,
    }


def by_period(done: Progress, reference: Progress) -> Estimate | None:
    """The change of a job's rate of iterations against another run, where every period is a simulation of its own.

    Without an interval where the job was not there in the same periods. None of one simulation.
    """
    if done.milestones is not None or not (done.span and reference.span and reference.iterations):
        return None
    (own, spent), (others, others_spent) = (tuple(zip(*run.parts, strict=True)) for run in (done, reference))
    if spent != others_spent:
        return Estimate(sum(own) / sum(spent) / (sum(others) / sum(others_spent)) - 1)
    return ratio_change(own, others, skip=0)


def _compared(work: pl.DataFrame) -> pl.DataFrame:
    """Add W and improvement by iterations."""
    rate, default, isolated = (
        pl.col(f"{prefix}iterations") / pl.col(f"{prefix}span_ps") for prefix in ("", "default_", "isolated_")
    )
    treated = pl.col("treatment") != DEFAULT
    by_iterations = {"w": change(rate, isolated), "improvement": pl.when(treated).then(change(rate, default))}
    return work.with_columns(by.alias(f"{name}_iterations") for name, by in by_iterations.items()).drop(*_SPANS)


def _periods(cell: Cell, executor: Executor) -> Iterator[Row]:
    for run in cell.runs:
        if run.treatment in (DEFAULT, ISOLATED) or (answer := executor.answer(run.task)) is None:
            continue
        (default,) = cell.of(DEFAULT, run.baseline)
        alone = cell.of(ISOLATED, run.baseline, run.treatment)
        isolated = next((other for other in alone if other.job is None), default)
        for row in run.kind.periods_of(answer, executor.answer(default.task), executor.answer(isolated.task)):
            yield {"treatment": run.treatment, "name": row.pop("job"), **row}
