"""Alternatives by a model: from one isolated simulation of the application, and one of its neighbours.

The model does not predict what neighbours lose: it is simulated for the advised alternative.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import polars as pl
from typing_extensions import override

from fairlane.core.errors import Problem, ScenarioError
from fairlane.learn.advice.model import RunTimeModel
from fairlane.learn.models import Floats
from fairlane.model.power import Pace
from fairlane.study.shipped.advice.question import Choice, Point, Question
from fairlane.study.shipped.advice.results import sorted_by_time
from fairlane.study.shipped.advice.study import Alternatives, condition, weights
from fairlane.study.shipped.base import Measurement, Row

SEED = 1
"""Of the simulations."""


class Predicted(Alternatives):
    """All alternatives of a question by a model. Raises ``ScenarioError`` for what the model does not cover."""

    by_model = True

    def __init__(
        self,
        question: Question,
        model: RunTimeModel,
        seeds: int = 3,
        check: str | None = None,
        workers: int | None = None,
    ) -> None:
        super().__init__(question, seeds, check, workers)
        self.model = model
        self.points = [question.point(choice, SEED) for choice in question.choices]
        self.first = next(point for point in self.points if point.choice == question.reference)
        if weights(self.first.decided) is None:
            name = (self.first.decided.tables["qos"]["arbiter"] or {}).get("name", "the usual one")
            words = "the model covers only arbiters that have a weight for each lane"
            raise ScenarioError(Problem("qos.arbiter", words, name, "weighted_round_robin", file=str(question.file)))

    @override
    def advised(self) -> Iterator[Measurement]:
        return self._of(self.first.choice, "isolated", "without")

    def _of(self, choice: Choice, *runs: str) -> Iterator[Measurement]:
        return (task for task in self.simulations([choice], [SEED]) if task.condition["run"] in runs)

    @override
    def further(self, rows: Sequence[Row]) -> Iterator[Measurement]:
        middle = self._ends([row for row in rows if "length" not in row])[:, 1]
        return self._of(self.points[int(middle.argmin())].choice, "co-run", "without")

    def _isolated(self, rows: Sequence[Row]) -> pl.DataFrame:
        return self.runs_of([row for row in rows if row["run"] == "isolated"])

    def _ends(self, rows: Sequence[Row]) -> Floats:
        """For each alternative the lower end, the middle and the upper end of its run time, ms."""
        isolated = self._isolated(rows).row(0, named=True)
        placed = (row for row in rows if (row["run"], row["placement"]) == ("without", self.first.choice.placement))
        utilisation = next((row["mean_switch_utilisation"] for row in placed), None)
        conditions = [
            isolated
            | condition(self.question, point, utilisation)
            | {"computing_ms": isolated["computing_ms"] * (self._stretch(point) / self._stretch(self.first))}
            for point in self.points
        ]
        return self.model.predict(pl.DataFrame([isolated, *conditions], infer_schema_length=None))[1:]

    @override
    def tables_of(self, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        checked, advised = ([row for row in rows if ("length" in row) == check] for check in (True, False))
        tables = super().tables_of(checked)
        if len(advised) < 1 + (len(self.first.pinned.names) > 1):  # interrupted
            return tables
        ends, co_run = self._ends(advised), next((row for row in advised if row["run"] == "co-run"), None)
        ranking = []
        for point, (low, middle, high) in zip(self.points, ends.tolist(), strict=True):
            times = {"iteration_ms": middle, "low_ms": low, "high_ms": high}
            ranking.append({**asdict(point.choice), **times, "neighbours": None})
        if co_run is not None:
            without = next(row for row in advised if (row["run"], row["placement"]) == ("without", co_run["placement"]))
            ranking[int(ends[:, 1].argmin())] |= self.of_neighbours(co_run, without)
        return {**tables, "runs": self._isolated(advised), "alternatives": sorted_by_time(ranking)}

    def _stretch(self, point: Point) -> float:
        """The factor by which the cap of an application stretches its computation; the mean over its ranks."""
        job, asked = point.decided.jobs[self.question.number], self.question.scenario.jobs[self.question.at]
        if job.power is None:
            return 1.0
        source = asked.workload or asked.trace
        factors = Pace(job.power.frequencies(), getattr(source, "memory_bound", 0.0)).factors()
        return sum(factors) / len(factors)
