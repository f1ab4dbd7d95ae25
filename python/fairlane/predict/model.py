"""A fitted model of run times, kept as JSON: nothing in the file can run, and a file that is none is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.inputs.sealed import load_sealed, save_sealed
from fairlane.predict.clusters import Clusters
from fairlane.predict.familiarity import Familiarity
from fairlane.predict.parts import Parts
from fairlane.predict.regressors import Linear, RegressorName
from fairlane.predict.table import RUN, CounterTable
from fairlane.trees import Part, TreeSum
from fairlane.wording import significant

__all__ = ["FORMAT", "Pipeline", "Predictor", "Validated", "load_predictor"]

Floats = NDArray[numpy.float64]
FORMAT = "fairlane counters 1"
"""What the file says that it is."""


class Validated(Part):
    """How far predictions were off on runs that the model had not seen: means and deviations over folds."""

    folds: int
    """How many."""
    mse: float
    """Mean square of the error."""
    mse_sd: float
    """Its standard deviation."""
    mae: float
    """Maximum absolute error of a fold."""
    mae_sd: float
    """Its standard deviation."""
    mse_over_variance: float
    """The mean square over that of a model which always says the mean."""


class Pipeline(Part):
    """From counters to times."""

    parts: Parts
    """What regressors see."""
    clusters: Clusters | None = None
    """None with one regressor for all runs."""
    regressors: list[TreeSum | Linear] = Field(min_length=1)
    """One for each cluster."""

    @model_validator(mode="after")
    def _fits(self) -> "Pipeline":
        wide = len(self.parts.scale.centre)
        if len(self.regressors) != (len(self.clusters.centres) if self.clusters else 1):
            raise Problems(Problem("regressors", "not one for each cluster", len(self.regressors)))
        wrong = [
            one for one in self.regressors if one.features > wide or (isinstance(one, Linear) and one.features < wide)
        ]
        if wrong or (self.clusters and len(self.clusters.scale.centre) != wide):
            raise Problems(Problem("regressors", "not made for as many counters as there are"))
        return self

    def cluster(self, table: CounterTable) -> NDArray[numpy.int64]:
        """The cluster of every row."""
        if self.clusters is None:
            return numpy.zeros(len(table.rows), int)
        return self.clusters.of(table.rows, table.run, table.names)

    def predict(self, rows: Floats, cluster: NDArray[numpy.int64]) -> Floats:
        """The time of each row that belongs to this cluster."""
        return self.regress(self.parts.of(rows), cluster)

    def regress(self, seen: Floats, cluster: NDArray[numpy.int64]) -> Floats:
        """The same from what the regressors see."""
        found = numpy.zeros(len(seen))
        for number in numpy.unique(cluster):
            own = cluster == number
            found[own] = self.regressors[number].predict(seen[own])
        return found


class Predictor(Part):
    """A fitted model with what is known of it."""

    format: Literal["fairlane counters 1"]
    """What the file is."""
    version: str
    """The version of fairlane that fitted it."""
    data: str
    """Digest of the table that it was fitted to."""
    seed: int
    """Of random choices."""
    runs: int
    """How many runs the table had."""
    target: str
    """Name of the column that is predicted."""
    features: list[str]
    """Names of the counters, in order."""
    model: RegressorName
    """Which regressor."""
    validated: Validated
    """On runs that were not seen."""
    coverage: float = Field(gt=0, lt=1)
    """The part of timesteps that the interval is to hold."""
    half_width: float = Field(ge=0)
    """The interval is the prediction less and plus this."""
    importance: dict[str, float]
    """For each counter how much greater the mean square error over the variance is when it is shuffled."""
    familiarity: Familiarity
    """What the runs were like."""
    pipeline: Pipeline
    """From counters to times."""

    @model_validator(mode="after")
    def _fits(self) -> "Predictor":
        wide = len(self.pipeline.parts.scale.centre)
        if len(self.features) != wide or sorted(self.features) != sorted(self.importance):
            raise Problems(Problem("features", "not as many as the model has, or not those with an importance"))
        if len(self.familiarity.precision) != wide:
            raise Problems(Problem("familiarity", "not made for as many counters as there are"))
        return self

    def predict(self, table: CounterTable) -> pl.DataFrame:
        """For each row ``run``, ``timestep``, ``predicted``, ``low``, ``high``, ``cluster`` and ``unlike``.

        The last says whether the run is unlike all that the model was fitted to. Raises ``ScenarioError`` if the
        table has other features.
        """
        ordered = self._ordered(table)
        cluster = self.pipeline.cluster(ordered)
        with numpy.errstate(over="ignore", invalid="ignore"):
            predicted = self.pipeline.predict(ordered.rows, cluster)
            unlike = numpy.array([self.familiarity.is_unlike(rows) for rows in by_run(ordered)])
        beyond = numpy.flatnonzero(~numpy.isfinite(predicted))
        if len(beyond):
            run = ordered.names[ordered.run[beyond[0]]]
            raise ScenarioError(
                Problem("", f"no finite time comes of it for run {run}: counters or model are too large")
            )
        return ordered.keys.with_columns(
            pl.Series("predicted", predicted),
            pl.Series("low", predicted - self.half_width),
            pl.Series("high", predicted + self.half_width),
            pl.Series("cluster", cluster),
            pl.Series("unlike", unlike[ordered.run]),
        )

    def warnings(self, table: CounterTable) -> list[str]:
        """A sentence for each run that is unlike all that the model was fitted to."""
        ordered, most = self._ordered(table), self.familiarity.distances[-1]
        return [
            f"run {name} is unlike all that the model was fitted to: "
            f"distance {significant(self.familiarity.distance(rows))}, "
            f"theirs at most {significant(most)}; most unusual is {self.features[self.familiarity.strangest(rows)]}"
            for name, rows in zip(ordered.names, by_run(ordered), strict=True)
            if self.familiarity.is_unlike(rows)
        ]

    def _ordered(self, table: CounterTable) -> CounterTable:
        """The table with the model's features only, in the model's order."""
        there = {name: at for at, name in enumerate(table.features)}
        missing = [name for name in self.features if name not in there]
        if missing:
            raise ScenarioError(
                Problem.unknown(
                    name, "feature: the model asks for it, and the table does not have it:", name, table.features
                )
                for name in missing
            )
        return CounterTable(
            table.keys,
            tuple(self.features),
            numpy.ascontiguousarray(table.rows[:, [there[name] for name in self.features]]),
            table.target,
            table.target_name,
        )

    def save(self, path: Path) -> None:
        """Writes the file; raises ``ScenarioError``."""
        save_sealed(self, path)


def by_run(table: CounterTable) -> Sequence[Floats]:
    """The rows of each run."""
    return [table.rows[(table.keys[RUN] == name).to_numpy()] for name in table.keys[RUN].unique(maintain_order=True)]


def load_predictor(path: Path) -> Predictor:
    """Reads a model; raises ``ScenarioError``."""
    return load_sealed(Predictor, path)
