"""The alternatives as a model sees them: from one simulation of the application alone, and one of its neighbours.

What neighbours lose the model does not know: two simulations more tell it of the alternative that is advised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from fairlane.advice.sharing import adapters, cap_of, link_share, weights
from fairlane.advice.simulated import neighbours_of, reference_of
from fairlane.errors import Problem, ScenarioError
from fairlane.power.job import Pace

if TYPE_CHECKING:
    from fairlane.advice.model import RunTimeModel
    from fairlane.advice.question import Point, Question
    from fairlane.tasks.executor import Executor

__all__ = ["Predicted", "predict"]

SEED = 1
"""Of the simulations."""


@dataclass(frozen=True)
class Predicted:
    """Alternatives in order, and what they were put in order by."""

    table: pl.DataFrame
    """The alternatives, the best first."""
    runs: pl.DataFrame
    """The simulations of the application."""


def predict(question: Question, model: RunTimeModel, executor: Executor) -> Predicted:
    """The alternatives by the model's run times. Raises ``ScenarioError`` for what the model does not know."""
    first = question.point(question.reference, SEED)
    if weights(first.decided) is None:
        name = (first.decided.tables["qos"]["arbiter"] or {}).get("name", "the usual one")
        words = "the model knows only arbiters that have a weight for each lane"
        raise ScenarioError(Problem("qos.arbiter", words, name, "weighted_round_robin", file=str(question.file)))
    alone, use = reference_of(question, first, executor)
    points = [question.point(choice, SEED) for choice in question.choices]
    rows = [_condition(question, point, first, alone, use) for point in points]
    ends = model.predict(pl.DataFrame([alone, *rows], infer_schema_length=None))[1:]
    best = points[int(ends[:, 1].argmin())]
    cost = neighbours_of(question, best, executor)
    told = [
        {
            "rails": point.choice.rails,
            "service_level": point.choice.service_level,
            "placement": point.choice.placement,
            "iteration_ms": middle,
            "low_ms": low,
            "high_ms": high,
            "alone_ms": None,
            "neighbours": cost if point is best else None,
            "number": number,
        }
        for number, (point, (low, middle, high)) in enumerate(zip(points, ends.tolist(), strict=True))
    ]
    schema = dict.fromkeys(("alone_ms", "neighbours"), pl.Float64)
    table = pl.DataFrame(told, schema_overrides=schema).sort("iteration_ms", "number").drop("number")
    return Predicted(table, pl.DataFrame([alone], infer_schema_length=None))


def _condition(
    question: Question, point: Point, first: Point, alone: dict[str, Any], use: float | None
) -> dict[str, Any]:
    """An alternative in the columns of a run, without what was not simulated."""
    job = point.decided.jobs[question.number]
    own = adapters(job, question.rails)
    others = [one for at, one in enumerate(point.decided.jobs) if at != question.number]
    theirs = {rail for one in others for rail in adapters(one, question.rails)}
    longer = _stretch(question, point) / _stretch(question, first)
    return {
        **alone,
        "rails": point.choice.rails,
        "placement": point.choice.placement,
        "service_level": point.choice.service_level,
        "cap_w": cap_of(job),
        "adapters": len(own) / question.rails,
        "adapters_shared": len(own & theirs) / len(own),
        "interference_utilisation": use or 0.0,
        "link_share": link_share(point.decided, question.number) if others else None,
        "computing_ms": alone["computing_ms"] * longer,
    }


def _stretch(question: Question, point: Point) -> float:
    """How many times as long the application computes under its cap; the mean over its ranks."""
    job, asked = point.decided.jobs[question.number], question.scenario.jobs[question.at]
    if job.power is None:
        return 1.0
    source = asked.workload or asked.trace
    factors = Pace(job.power.frequencies(), getattr(source, "memory_bound", 0.0)).factors()
    return sum(factors) / len(factors)
