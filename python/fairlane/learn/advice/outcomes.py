"""Alternatives simulated or predicted: co-running with neighbours and isolated, and the neighbours on their own.

A row for each simulation of the application is the basis of the ranking, and of the training of a model. It has the
application's condition: its power cap, and what it shares with others, which is adapters and, by lane weights, links.

*The alternatives by a model: from one isolated simulation of the application, and one of its neighbours.* The model
does not predict what neighbours lose: it is simulated for the advised alternative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from fairlane.core.errors import Problem, RunError, ScenarioError
from fairlane.learn.advice.features import MEASURED, change, pace
from fairlane.learn.advice.model import RunTimeModel
from fairlane.learn.advice.question import Choice, Point, Question
from fairlane.model.power import Pace
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.resolved import ResolvedJob
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.task import Task

SIMULATE = "fairlane.learn.advice.features:simulate"
UNCAPPED_W = 115.0
"""Power in the table where nothing caps a job: the greatest of a socket of the Catalyst study, W."""
MS = 1e-9
"""Milliseconds in a picosecond."""


@dataclass(frozen=True)
class _Tasks:
    """The simulations of a point: co-run, application isolated, and the neighbours without it, if it has any."""

    co_run: Task
    isolated: Task
    without: Task | None


def runs_of(
    question: Question, choices: Sequence[Choice], seeds: Sequence[int], executor: Executor, duration: str | None = None
) -> pl.DataFrame:
    """Simulates alternatives: a row for each of them and each seed, and for each of the application isolated.

    ``neighbours`` is the mean change of the neighbours' rates by the application. Raises ``RunError`` if a simulation
    fails, or if none has two iterations of the application.
    """
    points = [question.point(choice, seed, duration) for choice in choices for seed in seeds]
    shared: dict[tuple[Any, ...], Task] = {}
    tasks = [_tasks(question, point, shared) for point in points]
    every = [task for one in tasks for task in (one.co_run, one.isolated, one.without) if task]
    answers = executor.run(every)
    marks = _marks(question, [answers[task.digest] for one in tasks for task in (one.co_run, one.isolated)])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for point, own in zip(points, tasks, strict=True):
        key = (point.choice.rails, point.choice.placement, point.seed)
        rows.setdefault(key, _isolated_row(question, point, answers[own.isolated.digest], marks))
        if own.without is not None:
            level = (*key, point.choice.service_level)
            found, without = answers[own.co_run.digest], answers[own.without.digest]
            rows.setdefault(level, _co_run_row(question, point, found, without, marks))
    if all(row["run_time_ms"] is None for row in rows.values()):
        raise _too_short(question.name)
    return pl.DataFrame(list(rows.values()), infer_schema_length=None)


def reference_of(question: Question, point: Point, executor: Executor) -> tuple[dict[str, Any], float | None]:
    """The row of the application isolated, and its neighbours' mean utilisation of links; None without neighbours."""
    tasks = _tasks(question, point, {})
    answers = executor.run([one for one in (tasks.isolated, tasks.without) if one])
    row = _isolated_row(question, point, answers[tasks.isolated.digest], None)
    if row["run_time_ms"] is None:
        raise _too_short(question.name)
    return row, None if tasks.without is None else answers[tasks.without.digest]["mean_switch_utilisation"]


def neighbours_of(question: Question, point: Point, executor: Executor) -> float | None:
    """The mean change of the neighbours' rates by the application at a point; None without neighbours."""
    tasks = _tasks(question, point, {})
    if tasks.without is None:
        return None
    answers = executor.run([tasks.co_run, tasks.without])
    return _mean_change(answers[tasks.co_run.digest], answers[tasks.without.digest])


def _too_short(name: str) -> RunError:
    words = "fewer than two iterations in the length of a simulation; make it longer"
    return RunError(f"{name}: {words}", slug="limit")


def _mean_change(found: Mapping[str, Any], without: Mapping[str, Any]) -> float | None:
    pairs = {row["job"]: row for row in found["jobs"]}
    changes = [one for row in without["jobs"] if (one := change(pairs[row["job"]], row)) is not None]
    return sum(changes) / len(changes) if changes else None


def _tasks(question: Question, point: Point, shared: dict[tuple[Any, ...], Task]) -> _Tasks:
    """Isolated, all service levels are the same; without the application so are its adapters."""
    choice, pinned, at = point.choice, point.pinned, question.number
    isolated = ("isolated", choice.rails, choice.placement, point.seed)
    if isolated not in shared:
        shared[isolated] = pinned.isolated(at).task(SIMULATE, "isolated")
    others = [job for job in range(len(pinned.names)) if job != at]
    without = ("without", choice.placement, point.seed)
    if others and without not in shared:
        shared[without] = pinned.only(others).task(SIMULATE, "without the application")
    return _Tasks(pinned.task(SIMULATE, "co-run"), shared[isolated], shared.get(without))


def _isolated_row(question: Question, point: Point, answer: Mapping[str, Any], marks: int | None) -> dict[str, Any]:
    nobody = {"neighbours": None, "neighbour_iterations": None}
    return {**condition(question, point, None), **_measured(question, answer, marks), **nobody}


def _co_run_row(
    question: Question, point: Point, found: Mapping[str, Any], without: Mapping[str, Any], marks: int | None
) -> dict[str, Any]:
    fewest = min(len(row["mean"]) for one in (found, without) for row in one["jobs"] if row["job"] != question.name)
    return {
        **condition(question, point, without["mean_switch_utilisation"]),
        **_measured(question, found, marks),
        "neighbours": _mean_change(found, without),
        "neighbour_iterations": fewest,
    }


def _marks(question: Question, answers: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the number of marks that all simulations of a trace with two or more have; None for a workload."""
    if question.scenario.jobs[question.at].trace is None:
        return None
    counts = [len(row["last"]) for one in answers for row in one["jobs"] if row["job"] == question.name]
    return min((count for count in counts if count > 1), default=None)


def _measured(question: Question, answer: Mapping[str, Any], marks: int | None) -> dict[str, Any]:
    """The application's features for one of its iterations; None where it has not done two."""
    own = next(row for row in answer["jobs"] if row["job"] == question.name)
    time = pace(own, marks)
    if time is None:
        return {**dict.fromkeys(MEASURED), "iterations": len(own["last"]), "digest": answer["digest"]}
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
        "digest": answer["digest"],
    }


def condition(question: Question, point: Point, utilisation: float | None) -> dict[str, Any]:
    """The columns of an alternative in a table of runs.

    ``utilisation`` is the neighbours' mean utilisation of links; None for the application isolated.
    """
    job = point.decided.jobs[question.number]
    own = _adapters(job, question.rails)
    co_run = utilisation is not None
    others = [one for at, one in enumerate(point.decided.jobs) if at != question.number] if co_run else []
    theirs = {rail for one in others for rail in _adapters(one, question.rails)}
    return {
        "case": question.scenario.name,
        "application": job.workload,
        "rails": point.choice.rails,
        "placement": point.choice.placement,
        "seed": point.seed,
        "cap_w": UNCAPPED_W if job.power is None or job.power.cap is None else job.power.cap,
        "adapters": len(own) / question.rails,
        "co_scheduled": question.scenario.name if co_run else None,
        "service_level": point.choice.service_level if co_run else None,
        "link_share": link_share(point.decided, question.number) if co_run else None,
        "adapters_shared": len(own & theirs) / len(own),
        "interference_utilisation": utilisation or 0.0,
    }


def _adapters(job: ResolvedJob, rails: int) -> set[int]:
    """The adapters that a job sends through."""
    policy = job.rails or {}
    if policy.get("only") is not None:
        return {int(policy["only"])}
    return set(policy.get("ranks") or range(rails))


def weights(resolved: Resolved) -> list[float] | None:
    """The weights of the lanes; None for an arbiter that has no weights."""
    lanes = max(resolved.tables["qos"]["sl2vl"]) + 1
    arbiter = resolved.tables["qos"].get("arbiter") or {}
    given = arbiter.get("params", {}).get("weights")
    if given is not None:
        return [float(one) for one in given]
    return [1.0] if lanes == 1 else None


def link_share(resolved: Resolved, number: int) -> float:
    """A job's share of a link that all jobs want: its lane's by weight, divided by the number of jobs in the lane.

    Arbiters without weights share equally here, which is right for one lane only.
    """
    levels = resolved.tables["qos"]["sl2vl"]
    lanes = [levels[job.service_level or 0] for job in resolved.jobs]
    heavy = weights(resolved) or [1.0] * (max(levels) + 1)
    whole = sum(heavy[lane] for lane in set(lanes))
    own: int = lanes[number]
    return float(heavy[own] / whole / lanes.count(own))


SEED = 1
"""Of the simulations."""


@dataclass(frozen=True)
class Ranking:
    """The alternatives, the best first, and the simulations of the application that they were ranked by."""

    table: pl.DataFrame
    runs: pl.DataFrame


def predict(question: Question, model: RunTimeModel, executor: Executor) -> Ranking:
    """The alternatives by the model's run times. Raises ``ScenarioError`` for what the model does not cover."""
    first = question.point(question.reference, SEED)
    if weights(first.decided) is None:
        name = (first.decided.tables["qos"]["arbiter"] or {}).get("name", "the usual one")
        words = "the model covers only arbiters that have a weight for each lane"
        raise ScenarioError(Problem("qos.arbiter", words, name, "weighted_round_robin", file=str(question.file)))
    isolated, utilisation = reference_of(question, first, executor)
    points = [question.point(choice, SEED) for choice in question.choices]
    rows = [
        isolated
        | condition(question, point, utilisation)
        | {"computing_ms": isolated["computing_ms"] * (_stretch(question, point) / _stretch(question, first))}
        for point in points
    ]
    ends = model.predict(pl.DataFrame([isolated, *rows], infer_schema_length=None))[1:]
    best = points[int(ends[:, 1].argmin())]
    cost = neighbours_of(question, best, executor)
    ranked = [
        {
            **asdict(point.choice),
            "iteration_ms": middle,
            "low_ms": low,
            "high_ms": high,
            "isolated_ms": None,
            "neighbours": cost if point is best else None,
            "number": number,
        }
        for number, (point, (low, middle, high)) in enumerate(zip(points, ends.tolist(), strict=True))
    ]
    schema = dict.fromkeys(("isolated_ms", "neighbours"), pl.Float64)
    table = pl.DataFrame(ranked, schema_overrides=schema).sort("iteration_ms", "number").drop("number")
    return Ranking(table, pl.DataFrame([isolated], infer_schema_length=None))


def _stretch(question: Question, point: Point) -> float:
    """Return the factor by which the cap of an application stretches its computation; the mean over its ranks."""
    job, asked = point.decided.jobs[question.number], question.scenario.jobs[question.at]
    if job.power is None:
        return 1.0
    source = asked.workload or asked.trace
    factors = Pace(job.power.frequencies(), getattr(source, "memory_bound", 0.0)).factors()
    return sum(factors) / len(factors)
