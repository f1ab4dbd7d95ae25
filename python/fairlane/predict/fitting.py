"""Fits a model of run times to a table of counters, with its errors, interval and importance by cross-validation."""

from importlib.metadata import version

import numpy
from numpy.typing import NDArray

from fairlane.errors import Problem, ScenarioError
from fairlane.predict.clusters import Clusters, distances, shapes
from fairlane.predict.familiarity import Familiarity, check_coverage, half_width
from fairlane.predict.model import FORMAT, Pipeline, Predictor, Validated
from fairlane.predict.parts import Parts, PartsName
from fairlane.predict.regressors import RegressorName, fitted, kept, one_thread
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import FOLDS, dealt, errors_by_fold, spread_over_folds
from fairlane.seeds import Purpose, stream

__all__ = ["fit"]

Floats = NDArray[numpy.float64]
Bools = NDArray[numpy.bool_]


def fit(
    table: CounterTable,
    *,
    model: RegressorName = "gbm",
    parts: PartsName = "sparse",
    clusters: int = 1,
    folds: int = FOLDS,
    coverage: float = 0.9,
    seed: int = 1,
) -> Predictor:
    """Fits a model to all runs, and finds out by models fitted to part of them how far it is off.

    Args:
        table: Runs with times.
        model: Which regressor: a key of ``REGRESSORS``.
        parts: What it sees: the counters (``base``), or their ``low-rank`` or ``sparse`` part.
        clusters: How many groups of runs have a model of their own.
        folds: Of the cross-validation, by run.
        coverage: The part of timesteps of new runs that the interval is to hold.
        seed: Of random choices.

    Raises:
        ScenarioError: There are too few runs or timesteps for what is asked for.
    """
    truth, fold = table.truth, dealt(table, folds, seed)
    check_coverage(table.runs, coverage)
    variance = float(truth.var())
    if not variance:
        raise ScenarioError(Problem(table.target_name, "all times are the same: there is nothing to tell"))
    predicted, harm = numpy.zeros(len(truth)), numpy.zeros(len(table.features))
    with one_thread():
        for one in range(folds):
            out = fold == one
            part = _pipeline(table, ~out, model, parts, clusters, seed)
            outside = _part(table, out)
            cluster = part.cluster(outside)
            predicted[out] = part.predict(outside.rows, cluster)
            harm += _harm(part, outside, cluster, seed, one) * (out.sum() / len(truth))
        whole = _pipeline(table, numpy.ones(len(truth), bool), model, parts, clusters, seed)
        familiarity = Familiarity.fit(table.rows, table.run)
    errors = spread_over_folds(errors_by_fold(truth, predicted, fold), variance)
    return Predictor(
        format=FORMAT,
        version=version("fairlane"),
        data=table.digest,
        seed=seed,
        runs=table.runs,
        target=table.target_name,
        features=list(table.features),
        model=model,
        validated=Validated(folds=folds, **errors),
        coverage=coverage,
        half_width=half_width(numpy.abs(predicted - truth), table.run, coverage),
        importance=dict(zip(table.features, (harm / variance).tolist(), strict=True)),
        familiarity=familiarity,
        pipeline=whole,
    )


def _part(table: CounterTable, which: Bools) -> CounterTable:
    return CounterTable(
        table.keys.filter(which), table.features, table.rows[which], table.truth[which], table.target_name
    )


def _pipeline(
    table: CounterTable, which: Bools, model: RegressorName, parts: PartsName, clusters: int, seed: int
) -> Pipeline:
    """Fitted to some runs."""
    own = _part(table, which)
    prepared, seen = Parts.fit(own.rows)[parts]
    made, labels = None, numpy.zeros(own.runs, int)
    if clusters > 1:
        known = shapes(prepared.scale.of(own.rows), own.run, own.names)
        made, labels = Clusters.fit(prepared.scale, known, distances(known, known), clusters, seed)
    of_row = labels[own.run]
    regressors = [
        kept(model, fitted(model, seen[of_row == number], own.truth[of_row == number], seed))
        for number in range(clusters)
    ]
    return Pipeline(parts=prepared, clusters=made, regressors=regressors)


def _harm(part: Pipeline, outside: CounterTable, cluster: NDArray[numpy.int64], seed: int, fold: int) -> Floats:
    """How much the mean square error grows when each feature is shuffled among timesteps that the model has not seen.

    Permutation importance of L. Breiman, "Random forests", Machine Learning 45, 2001, of what the regressor sees: with
    the sparse part, of every counter's sparse part. A run stays in its cluster.
    """
    rng = stream(seed, Purpose.FOLD, fold + 1)
    seen, truth, count = part.parts.of(outside.rows), outside.truth, len(outside.features)
    shuffled = numpy.tile(seen, (count, 1, 1))
    for at in range(count):
        shuffled[at, :, at] = seen[rng.permutation(len(seen)), at]
    found = part.regress(shuffled.reshape(-1, count), numpy.tile(cluster, count)).reshape(count, -1)
    harm: Floats = ((found - truth) ** 2).mean(axis=1) - ((part.regress(seen, cluster) - truth) ** 2).mean()
    return harm
