"""The model of timesteps' times: fitted to a table of counters, validated by run, kept as data."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated, ClassVar, Self

import numpy
import polars as pl
from pydantic import Field, model_validator

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.core.seeds import Purpose, stream
from fairlane.core.wording import significant
from fairlane.inputs.problems import Problems
from fairlane.learn.models import (
    COUNTERS,
    Dims,
    FittedModel,
    Floats,
    Integers,
    Linear,
    Part,
    RegressorName,
    TreeSum,
    estimator,
    freeze,
    one_thread,
)
from fairlane.learn.models.validation import Bools, check_coverage, cross_validate, grouped_quantile
from fairlane.learn.predict.clusters import Clusters, distances, shapes
from fairlane.learn.predict.parts import Parts, PartsName, Scale
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import FOLDS, Candidate, FoldErrors, choose, folds_of


class Novelty(Part):
    """The distribution of the training runs, and whether another is out of it: farther away than any of these was.

    The distance of a run is the root mean square of its timesteps' Mahalanobis distances from the training timesteps,
    with the covariance of O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance
    matrices", Journal of Multivariate Analysis 88, 2004 (scikit-learn). Every training run has such a distance from all
    others. A run that is farther away than any of R training runs is out of distribution; by chance alone that is one
    in R + 1.
    """

    scale: Scale
    precision: Annotated[Floats, Dims((COUNTERS, COUNTERS))]
    """The inverse covariance of the scaled training timesteps."""
    distances: list[float] = Field(min_length=1)
    """Of each training run from all the others, in ascending order."""

    @classmethod
    def fit(cls, rows: Floats, run: Integers) -> Self:
        """To training runs; every one is left out once."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        distances = []
        for number in range(int(run.max()) + 1):
            out = run == number
            centred = scaled[out] - scaled[~out].mean(axis=0)
            distances.append(_distance(centred, _precision(scaled[~out])))
        return cls(scale=scale, precision=_precision(scaled), distances=sorted(distances))

    def distance(self, rows: Floats) -> float:
        """Of a run by its timesteps."""
        return _distance(self.scale.of(rows), self.precision)

    def is_out_of_distribution(self, rows: Floats) -> bool:
        """Whether a run is farther away than any training run was."""
        return self.distance(rows) > self.distances[-1]

    def most_anomalous(self, rows: Floats) -> int:
        """The counter whose mean over the run is farthest from that of the training runs, in standard deviations."""
        return int(numpy.abs(self.scale.of(rows).mean(axis=0)).argmax())


def _precision(scaled: Floats) -> Floats:
    require("predict")
    from sklearn.covariance import LedoitWolf

    precision: Floats = LedoitWolf().fit(scaled).precision_
    return precision


def _distance(centred: Floats, precision: Floats) -> float:
    squares = numpy.einsum("ij,jk,ik->i", centred, precision, centred)
    return float(numpy.sqrt(max(squares.mean(), 0.0)))


class Pipeline(Part):
    """Predict times from counters: the input of regressors, and a regressor for each cluster."""

    parts: Parts
    clusters: Clusters | None = None
    """None with one regressor for all runs."""
    regressors: list[TreeSum | Linear] = Field(min_length=1)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.regressors) != (len(self.clusters.centres) if self.clusters else 1):
            raise Problems(Problem("regressors", "not one for each cluster", len(self.regressors)))
        return self

    @classmethod
    def fit(cls, table: CounterTable, model: RegressorName, parts: PartsName, clusters: int, seed: int) -> Self:
        """Fitted to all rows of a table."""
        prepared, seen = Parts.fit(table.rows, (parts,))[parts]
        made, labels = None, numpy.zeros(table.runs, int)
        if clusters > 1:
            known = shapes(prepared.scale.of(table.rows), table.run, table.names)
            made, labels = Clusters.fit(prepared.scale, known, distances(known, known), clusters, seed)
        of_row = labels[table.run]
        regressors = []
        for number in range(clusters):
            of_cluster = of_row == number
            regressors.append(freeze(estimator(model, seed).fit(seen[of_cluster], table.truth[of_cluster])))
        return cls(parts=prepared, clusters=made, regressors=regressors)

    def cluster(self, table: CounterTable) -> Integers:
        """The cluster of every row."""
        if self.clusters is None:
            return numpy.zeros(len(table.rows), int)
        return self.clusters.of(table.rows, table.run, table.names)

    def predict(self, rows: Floats, cluster: Integers) -> Floats:
        """The time of each row that belongs to this cluster."""
        return self.regress(self.parts.of(rows), cluster)

    def regress(self, seen: Floats, cluster: Integers) -> Floats:
        """The same from the input of regressors."""
        predictions = numpy.zeros(len(seen))
        for number in numpy.unique(cluster):
            of_cluster = cluster == number
            predictions[of_cluster] = self.regressors[number].predict(seen[of_cluster])
        return predictions


class Predictor(FittedModel):
    """A fitted model with its errors on held-out runs.

    It has the seed of random choices, the number of runs and the names of the counters of its table, the regressor, the
    errors, the distribution of the runs, and what leads from counters to times.
    """

    FORMAT: ClassVar[str] = "fairlane counters 2"

    data: str
    """Digest of the table that it was fitted to."""
    seed: int
    runs: int
    target: str
    """Name of the column that is predicted."""
    features: list[str]
    model: RegressorName
    compared: list[Candidate] = Field(default_factory=list)
    """The models that it was chosen from, the best first; empty if it was asked for."""
    validated: FoldErrors
    coverage: float = Field(gt=0, lt=1)
    """The share of timesteps that the interval is to hold."""
    half_width: float = Field(ge=0)
    """The interval is the prediction less and plus this."""
    importance: dict[str, float]
    """Permutation importance of each counter: the increase of the mean square error, over the variance."""
    novelty: Novelty
    pipeline: Pipeline

    @model_validator(mode="after")
    def _fits(self) -> Self:
        wide = len(self.pipeline.parts.scale.centre)
        if len(self.features) != wide or sorted(self.features) != sorted(self.importance):
            raise Problems(Problem("features", "not as many as the model has, or not those with an importance"))
        return self

    def predict(self, table: CounterTable) -> pl.DataFrame:
        """For each row ``run``, ``timestep``, ``predicted``, ``low``, ``high``, ``cluster``, ``out_of_distribution``.

        The last is of the run. Raises ``ScenarioError`` if the table does not have the model's features.
        """
        ordered = table.select(self.features)
        cluster = self.pipeline.cluster(ordered)
        with numpy.errstate(over="ignore", invalid="ignore"):
            predicted = self.pipeline.predict(ordered.rows, cluster)
            novel = numpy.array([self.novelty.is_out_of_distribution(rows) for rows in ordered.by_run()])
        beyond = numpy.flatnonzero(~numpy.isfinite(predicted))
        if len(beyond):
            run = ordered.names[ordered.run[beyond[0]]]
            message = f"the predicted time of run {run} is not finite: counters or model are too large"
            raise ScenarioError(Problem("", message))
        return ordered.keys.with_columns(
            pl.Series("predicted", predicted),
            pl.Series("low", predicted - self.half_width),
            pl.Series("high", predicted + self.half_width),
            pl.Series("cluster", cluster),
            pl.Series("out_of_distribution", novel[ordered.run]),
        )

    def warnings(self, table: CounterTable) -> list[str]:
        """A sentence for each run that is out of distribution."""
        ordered, largest = table.select(self.features), self.novelty.distances[-1]
        return [
            f"run {name} is out of distribution: distance {significant(self.novelty.distance(rows))}, of training runs "
            f"at most {significant(largest)}; most anomalous is {self.features[self.novelty.most_anomalous(rows)]}"
            for name, rows in zip(ordered.names, ordered.by_run(), strict=True)
            if self.novelty.is_out_of_distribution(rows)
        ]


def fit(
    table: CounterTable,
    *,
    model: RegressorName | None = None,
    parts: PartsName | None = None,
    clusters: int = 1,
    folds: int = FOLDS,
    coverage: float = 0.9,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Predictor:
    """Fits a model to all runs; cross-validation by run, in ``folds``, gives its errors, interval and importance.

    Args:
        table: Runs with times.
        model: Which regressor: a key of ``REGRESSORS``; by default the one with the least error on held-out runs.
        parts: Its input: the counters (``base``), or their ``low-rank`` or ``sparse`` part; by default chosen as well.
        clusters: How many groups of runs have a model of their own.
        folds: Of the cross-validation, by run.
        coverage: The share of timesteps of new runs that the interval is to hold.
        seed: Of random choices.
        progress: Called after every fold, also of the cross-validations that choose.

    Raises ``ScenarioError`` if there are too few runs or timesteps for what is asked for.
    """
    truth, fold = table.truth, folds_of(table, folds, seed)
    check_coverage(table.runs, coverage)
    variance = float(truth.var())
    if not variance:
        raise ScenarioError(Problem(table.target_name, "all times are the same: there is nothing to predict"))
    importance = numpy.zeros(len(table.features))
    choice = choose(table, model, parts, folds=folds, seed=seed, progress=progress)

    def held_out(out: Bools) -> Floats:
        model_and_parts = choice.of_fold[int(fold[out][0])]
        outside, part = table.filter(out), Pipeline.fit(table.filter(~out), *model_and_parts, clusters, seed)
        cluster = part.cluster(outside)
        rng = stream(seed, Purpose.FOLD, int(fold[out][0]) + 1)
        importance[:] += _permutation_importance(part, outside, cluster, rng) * (out.sum() / len(truth))
        progress()
        return part.predict(outside.rows, cluster)

    with one_thread():
        predicted = cross_validate(fold, held_out)
        whole = Pipeline.fit(table, *choice.best, clusters, seed)
        novelty = Novelty.fit(table.rows, table.run)
    return Predictor(
        format=Predictor.FORMAT,
        version=version("fairlane"),
        data=table.digest,
        seed=seed,
        runs=table.runs,
        target=table.target_name,
        features=list(table.features),
        model=choice.best[0],
        compared=choice.candidates,
        validated=FoldErrors.of(truth, predicted, fold),
        coverage=coverage,
        half_width=grouped_quantile(numpy.abs(predicted - truth), table.run, coverage),
        importance=dict(zip(table.features, (importance / variance).tolist(), strict=True)),
        novelty=novelty,
        pipeline=whole,
    )


def _permutation_importance(
    part: Pipeline, outside: CounterTable, cluster: Integers, rng: numpy.random.Generator
) -> Floats:
    """Return the growth of the mean square error when each feature is shuffled among held-out timesteps.

    L. Breiman, "Random forests", Machine Learning 45, 2001, on the regressor's input: with the sparse part, every
    counter's sparse part. A run stays in its cluster.
    """
    seen, truth, count = part.parts.of(outside.rows), outside.truth, len(outside.features)
    shuffled = numpy.tile(seen, (count, 1, 1))
    for at in range(count):
        shuffled[at, :, at] = seen[rng.permutation(len(seen)), at]
    predictions = part.regress(shuffled.reshape(-1, count), numpy.tile(cluster, count)).reshape(count, -1)
    increase: Floats = ((predictions - truth) ** 2).mean(axis=1) - ((part.regress(seen, cluster) - truth) ** 2).mean()
    return increase
