"""From the answers of a study's tasks to its tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from fairlane.results.derive import change
from fairlane.results.milestones import Common, common, enough
from fairlane.results.schemas import STUDY, types
from fairlane.study.plan import Baseline, Cell, Plan
from fairlane.study.treatments import Done, Treatment
from fairlane.study.treatments.overrides import Overrides
from fairlane.tasks.executor import Executor
from fairlane.tasks.task import Task

__all__ = ["DEFAULT", "ISOLATED", "tables"]

DEFAULT, ISOLATED = "default", "isolated"
Row = dict[str, Any]

_COMPUTED = ("w_iterations", "improvement_iterations", "iterations_per_second")
"""Columns of ``work`` that are computed from its others."""


def _columns(table: str) -> dict[str, Any]:
    """The columns of a table besides those of its points."""
    of_point = ("point", "case", "placement", "seed")
    return {name: kind for name, kind in types(STUDY[table]).items() if name not in of_point}


_WORK = {
    **{name: kind for name, kind in _columns("work").items() if name not in _COMPUTED},
    "default_span_ps": pl.UInt64,
    "isolated_span_ps": pl.UInt64,
    "timed": pl.Boolean,
}


def tables(plan: Plan, executor: Executor) -> dict[str, pl.DataFrame]:
    """The tables ``runs``, ``work``, ``periods`` and ``failures``."""
    points = _points(plan)
    kinds: Mapping[str, Treatment] = plan.study.treatments
    rows: dict[str, list[Row]] = {"runs": [], "work": [], "periods": [], "failures": []}
    simulations: dict[str, int] = {}
    for point, cell in zip(points, plan.cells, strict=True):
        for name, sought in zip(cell.written.names, cell.calibrations, strict=True):
            if sought and sought.digest in executor.failures:
                rows["failures"].append({**point, **_failure(executor, DEFAULT, name, sought)})
        for baseline, treatment, job, task in _tasks(cell, kinds):
            simulation = simulations.setdefault(task.digest, len(simulations))
            run = _run(executor, baseline, treatment, job, task)
            rows["runs"].append({**point, **run, "simulation": simulation})
            if task.digest in executor.failures:
                rows["failures"].append({**point, **_failure(executor, treatment, job, task)})
        rows["work"] += [{**point, **row} for row in _work(cell, kinds, executor)]
        rows["periods"] += [{**point, **row} for row in _periods(cell, kinds, executor)]
    schema = {
        "point": pl.UInt32,
        "case": pl.String,
        **_parameter_types(points),
        "placement": pl.UInt32,
        "seed": pl.UInt64,
    }
    return {
        "runs": pl.DataFrame(rows["runs"], {**schema, **_columns("runs")}),
        "work": _compared(pl.DataFrame(rows["work"], {**schema, **_WORK})),
        "periods": _any(rows["periods"], {**schema, **_columns("periods")}),
        "failures": pl.DataFrame(rows["failures"], {**schema, **_columns("failures")}),
    }


def _points(plan: Plan) -> list[Row]:
    """The columns that say which point it is. Values that are no numbers are written as in TOML's inline tables."""
    return [
        {
            "point": number,
            "case": cell.point.case,
            **{key: _plain(value) for key, value in cell.point.parameters.items()},
            "placement": cell.point.placement,
            "seed": cell.point.seed,
        }
        for number, cell in enumerate(plan.cells)
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else json.dumps(value)


def _parameter_types(points: Sequence[Row]) -> dict[str, Any]:
    """The type of each parameter's column: that of its values, or text."""
    found: dict[str, Any] = {}
    for key in points[0] if points else ():
        if key in ("point", "case", "placement", "seed"):
            continue
        values = [point[key] for point in points]
        kinds = {type(value) for value in values}
        if kinds <= {int, float}:
            found[key] = pl.Int64 if kinds == {int} else pl.Float64
        elif kinds == {bool}:
            found[key] = pl.Boolean
        else:
            found[key] = pl.String
            for point in points:
                point[key] = point[key] if isinstance(point[key], str) else json.dumps(point[key])
    return found


def _tasks(cell: Cell, kinds: Mapping[str, Treatment]) -> Iterator[tuple[str, str, str | None, Task]]:
    """Baseline, treatment, job and task of every run of a cell."""
    for name, baseline in cell.baselines.items():
        yield name, DEFAULT, None, baseline.default
        for job, task in zip(cell.written.names, baseline.alone, strict=True):
            if task is not None:
                yield name, ISOLATED, job, task
    for treatment, task in cell.runs.items():
        yield kinds[treatment].baseline, treatment, None, task


def _run(executor: Executor, baseline: str, treatment: str, job: str | None, task: Task) -> Row:
    answer = executor.answer(task) or {}
    return {
        "baseline": baseline,
        "treatment": treatment,
        "job": job,
        "packet_hops": answer.get("packet_hops"),
        "digest": answer.get("digest"),
        "failed": task.digest in executor.failures,
    }


def _failure(executor: Executor, treatment: str, job: str | None, task: Task) -> Row:
    failure = executor.failures[task.digest]
    return {"treatment": treatment, "job": job, "error": failure.error, "scenario": failure.description}


def _work(cell: Cell, kinds: Mapping[str, Treatment], executor: Executor) -> Iterator[Row]:
    """What each job did in the default and the treated runs that did not fail."""
    for name, baseline in cell.baselines.items():
        kind = next((kind for kind in kinds.values() if kind.baseline == name), Overrides())
        default = executor.answer(baseline.default)
        runs = {
            DEFAULT: default,
            **{it: executor.answer(cell.runs[it]) for it, of in kinds.items() if of.baseline == name},
        }
        for job, label in enumerate(cell.written.names):
            reference = kind.work(default, label) if default else None
            isolated = _isolated(kind, baseline, job, label, executor) if cell.iterates[job] else None
            for treatment, answer in runs.items():
                if answer is None:
                    continue
                done = kinds.get(treatment, kind).work(answer, label)
                yield {
                    "baseline": name,
                    "treatment": treatment,
                    "job": job,
                    "name": label,
                    "workload": cell.workloads[job],
                    "ranks": cell.ranks[job],
                    **_done("", done),
                    **_done("default_", reference),
                    **_done("isolated_", isolated),
                    **_against(done, reference if treatment != DEFAULT else None, isolated),
                }


def _isolated(kind: Treatment, baseline: Baseline, job: int, label: str, executor: Executor) -> Done | None:
    task = baseline.alone[job]
    answer = executor.answer(task or baseline.default)
    if answer is None:
        return None
    return kind.work(answer, label) if task else kind.work_alone(answer, label)


def _done(prefix: str, done: Done | None) -> Row:
    return {
        f"{prefix}iterations": done and done.iterations,
        f"{prefix}span_ps": done and done.span,
        f"{prefix}seconds_per_iteration": done and done.seconds_per_iteration,
    }


def _against(done: Done, default: Done | None, isolated: Done | None) -> Row:
    """W and improvement at the last iteration that both runs completed, where that is known of both."""

    def at(reference: Done | None) -> Common | None:
        of = reference and reference.milestones
        return common(done.milestones, of) if done.milestones and of else None

    alone, before = at(isolated), at(default)
    return {
        "compared_iterations": alone and alone.iterations,
        "compared_ps": alone and alone.at,
        "isolated_compared_ps": alone and alone.reference_at,
        "w": alone and alone.change,
        "improvement": before and before.change,
        "timed": done.milestones is not None,
        "stop_ps": done.milestones and done.milestones.stop,
        "ten_iterations_ps": enough(done.milestones, isolated.milestones if isolated else None)
        if done.milestones
        else None,
    }


def _compared(work: pl.DataFrame) -> pl.DataFrame:
    """With W and improvement by iterations, which also are those of episodes: many simulations have no common mark."""
    rate, default, isolated = (
        pl.col(f"{prefix}iterations") / pl.col(f"{prefix}span_ps") for prefix in ("", "default_", "isolated_")
    )
    treated = pl.col("treatment") != DEFAULT
    by_iterations = {"w": change(rate, isolated), "improvement": pl.when(treated).then(change(rate, default))}
    timed = pl.col("timed")
    return work.with_columns(
        [pl.when(timed).then(pl.col(name)).otherwise(found).alias(name) for name, found in by_iterations.items()]
        + [found.alias(f"{name}_iterations") for name, found in by_iterations.items()]
        + [(1 / pl.col("seconds_per_iteration")).alias("iterations_per_second")]
    ).drop("default_span_ps", "isolated_span_ps", "timed")


def _periods(cell: Cell, kinds: Mapping[str, Treatment], executor: Executor) -> Iterator[Row]:
    for treatment, task in cell.runs.items():
        answer, kind = executor.answer(task), kinds[treatment]
        default = executor.answer(cell.baselines[kind.baseline].default)
        for row in kind.periods_of(answer, default) if answer else ():
            yield {"treatment": treatment, "name": row["job"], **{key: it for key, it in row.items() if key != "job"}}


def _any(rows: list[Row], schema: dict[str, Any]) -> pl.DataFrame:
    """A table whose rows may say more than the schema."""
    if not rows:
        return pl.DataFrame(schema=schema)
    return pl.DataFrame(rows, schema_overrides=schema, infer_schema_length=None)
