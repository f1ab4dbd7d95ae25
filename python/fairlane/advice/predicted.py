"""The alternatives by a model: from one isolated simulation of the application, and one of its neighbours.

The model does not predict what neighbours lose: it is simulated for the advised alternative.
"""

from dataclasses import asdict, dataclass

import polars as pl

from fairlane.advice.model import RunTimeModel
from fairlane.advice.question import Point, Question
from fairlane.advice.simulated import condition, neighbours_of, reference_of, weights
from fairlane.errors import Problem, ScenarioError
from fairlane.power import Pace
from fairlane.tasks.executor import Executor

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
    """How many times as long the application computes under its cap; the mean over its ranks."""
    job, asked = point.decided.jobs[question.number], question.scenario.jobs[question.at]
    if job.power is None:
        return 1.0
    source = asked.workload or asked.trace
    factors = Pace(job.power.frequencies(), getattr(source, "memory_bound", 0.0)).factors()
    return sum(factors) / len(factors)
