"""Alternatives simulated: beside the neighbours and alone, and the neighbours without the application.

A row for each simulation of the application is what advice is worked out from, and what a model can learn from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.advice.features import MEASURED
from fairlane.advice.progress import change, pace
from fairlane.advice.sharing import adapters, cap_of, link_share
from fairlane.errors import RunError

if TYPE_CHECKING:
    from fairlane.advice.question import Choice, Point, Question
    from fairlane.tasks.executor import Executor
    from fairlane.tasks.task import Task

__all__ = ["neighbours_of", "reference_of", "runs_of", "too_short"]

SIMULATE = "fairlane.advice.cells:simulate"
MS = 1e-9
"""Milliseconds in a picosecond."""


@dataclass(frozen=True)
class _Tasks:
    """What is simulated of a point."""

    together: Task
    alone: Task
    """The application alone."""
    without: Task | None
    """The neighbours without it; None if it has none."""


def runs_of(
    question: Question, choices: Sequence[Choice], seeds: Sequence[int], executor: Executor, duration: str | None = None
) -> pl.DataFrame:
    """Simulates alternatives: a row for each of them and each seed, and for each of the application alone.

    ``neighbours`` is the mean change of the neighbours' rates by the application. Raises ``RunError`` if a simulation
    fails, or if none has two iterations of the application.
    """
    points = [question.point(choice, seed, duration) for choice in choices for seed in seeds]
    shared: dict[tuple[Any, ...], Task] = {}
    tasks = [_tasks(question, point, shared) for point in points]
    every = [task for one in tasks for task in (one.together, one.alone, one.without) if task]
    answers = executor.run(every)
    marks = _marks(question, [answers[task.digest] for one in tasks for task in (one.together, one.alone)])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point, own in zip(points, tasks, strict=True):
        for key, row in _rows(question, point, own, answers, marks):
            rows.setdefault(key, row)
    if all(row["run_time_ms"] is None for row in rows.values()):
        raise too_short(question.name)
    return pl.DataFrame(list(rows.values()), infer_schema_length=None)


def reference_of(question: Question, point: Point, executor: Executor) -> tuple[dict[str, Any], float | None]:
    """The row of the application alone, and how busy its neighbours alone keep links; None without neighbours."""
    tasks = _tasks(question, point, {})
    answers = executor.run([one for one in (tasks.alone, tasks.without) if one])
    row = _alone_row(question, point, answers[tasks.alone.digest], None)
    if row["run_time_ms"] is None:
        raise too_short(question.name)
    return row, None if tasks.without is None else answers[tasks.without.digest]["mean_switch_utilisation"]


def too_short(name: str) -> RunError:
    """The error where nothing tells the time of an iteration."""
    words = "fewer than two iterations in the length of a simulation; make it longer"
    return RunError(f"{name}: {words}", slug="limit")


def neighbours_of(question: Question, point: Point, executor: Executor) -> float | None:
    """The mean change of the neighbours' rates by the application at a point; None without neighbours."""
    tasks = _tasks(question, point, {})
    if tasks.without is None:
        return None
    answers = executor.run([tasks.together, tasks.without])
    return _change(answers[tasks.together.digest], answers[tasks.without.digest])


def _change(found: Mapping[str, Any], without: Mapping[str, Any]) -> float | None:
    pairs = {row["job"]: row for row in found["jobs"]}
    told = [one for row in without["jobs"] if (one := change(pairs[row["job"]], row)) is not None]
    return sum(told) / len(told) if told else None


def _tasks(question: Question, point: Point, shared: dict[tuple[Any, ...], Task]) -> _Tasks:
    """Alone a service level makes no difference, and without the application neither it nor its adapters do."""
    choice, written, at = point.choice, point.written, question.number
    alone = ("alone", choice.rails, choice.placement, point.seed)
    if alone not in shared:
        shared[alone] = written.alone(at).task(SIMULATE, "alone")
    others = [job for job in range(len(written.names)) if job != at]
    without = ("without", choice.placement, point.seed)
    if others and without not in shared:
        shared[without] = written.only(others).task(SIMULATE, "without the application")
    return _Tasks(written.task(SIMULATE, "together"), shared[alone], shared.get(without))


def _rows(
    question: Question, point: Point, tasks: _Tasks, answers: Mapping[str, Mapping[str, Any]], marks: int | None
) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The rows of a point, with what tells them apart."""
    choice, job = point.choice, point.decided.jobs[question.number]
    key = (choice.rails, choice.placement, point.seed)
    yield key, _alone_row(question, point, answers[tasks.alone.digest], marks)
    if tasks.without is None:
        return
    found, without = answers[tasks.together.digest], answers[tasks.without.digest]
    others = [one for one in point.decided.jobs if one.name != job.name]
    own, theirs = adapters(job, question.rails), {rail for one in others for rail in adapters(one, question.rails)}
    beside = {
        "co_scheduled": question.scenario.name,
        "service_level": choice.service_level,
        "link_share": link_share(point.decided, question.number),
        "adapters_shared": len(own & theirs) / len(own),
        "interference_utilisation": without["mean_switch_utilisation"],
    }
    fewest = min(len(row["mean"]) for one in (found, without) for row in one["jobs"] if row["job"] != job.name)
    costs = {"neighbours": _change(found, without), "neighbour_iterations": fewest}
    yield (
        (*key, choice.service_level),
        {**_plain(question, point), **beside, **_measured(found, job.name, marks), **costs},
    )


def _alone_row(question: Question, point: Point, answer: Mapping[str, Any], marks: int | None) -> dict[str, Any]:
    alone = {
        "co_scheduled": None,
        "service_level": None,
        "link_share": None,
        "adapters_shared": 0.0,
        "interference_utilisation": 0.0,
    }
    name = point.decided.jobs[question.number].name
    return {
        **_plain(question, point),
        **alone,
        **_measured(answer, name, marks),
        "neighbours": None,
        "neighbour_iterations": None,
    }


def _plain(question: Question, point: Point) -> dict[str, Any]:
    """What a point is called, and what of it is the same alone and beside neighbours."""
    job = point.decided.jobs[question.number]
    return {
        "case": question.scenario.name,
        "application": job.workload,
        "rails": point.choice.rails,
        "placement": point.choice.placement,
        "seed": point.seed,
        "cap_w": cap_of(job),
        "adapters": len(adapters(job, question.rails)) / question.rails,
    }


def _marks(question: Question, answers: Sequence[Mapping[str, Any]]) -> int | None:
    """How many marks all simulations of a trace have that tell anything; iterations of a workload are alike."""
    if question.scenario.jobs[question.at].trace is None:
        return None
    counts = [len(row["last"]) for one in answers for row in one["jobs"] if row["job"] == question.name]
    return min((count for count in counts if count > 1), default=None)


def _measured(answer: Mapping[str, Any], name: str, marks: int | None) -> dict[str, Any]:
    """What was measured of the application, for one of its iterations; None where it has not done two."""
    own = next(row for row in answer["jobs"] if row["job"] == name)
    time = pace(own, marks)
    if time is None:
        return {**dict.fromkeys(MEASURED), "iterations": len(own["last"])}
    part = time / own["span"]
    return {
        "run_time_ms": time * MS,
        "computing_ms": own["computing"] * part * MS,
        "network_ms": own["network"] * part * MS,
        "late_partner_ms": own["late_partner"] * part * MS,
        "self_queueing_ms": own["own"] * part * MS,
        "messages": own["messages"] * part,
        "kilobytes": own["bytes"] * part * 1e-3,
        "collective_share": own["collective_share"],
        "host_utilisation": answer["host_utilisation"],
        "switch_utilisation": answer["switch_utilisation"],
        "iterations": len(own["last"]),
    }
