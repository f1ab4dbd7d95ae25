"""Local models: one for each cluster of runs, for several numbers of clusters, cross-validated by run."""

from collections.abc import Callable, Sequence

import numpy
import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.models.base import Floats, Integers
from fairlane.models.regressors import RegressorName, one_thread
from fairlane.models.validation import Bools, cross_validate
from fairlane.predict.clusters import Clusters, distances, shapes
from fairlane.predict.hyperparameters import Hyperparameters, fitted
from fairlane.predict.parts import Parts, PartsName
from fairlane.predict.table import CounterTable
from fairlane.predict.validation import FOLDS, Comparison, folds_of

LOCAL = (1, 2, 3)
"""Numbers of local models that the paper compares."""
KNOWN = "known kinds"
"""The setting in which runs are not clustered, as their kinds are known."""


def local(
    table: CounterTable,
    *,
    clusters: tuple[int, ...] = LOCAL,
    kinds: Sequence[str] | None = None,
    model: RegressorName = "gbm",
    hyperparameters: Hyperparameters = "own",
    parts: PartsName = "sparse",
    transductive: bool = True,
    folds: int = FOLDS,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """The paper's Table III: one model for each cluster of runs, for several numbers of clusters.

    Columns that identify a model are ``clusters`` and ``setting``. In the ``inductive`` one held-out runs are assigned
    to clusters of the others, in the ``transductive`` one the parts of counters and the clusters come from all runs,
    and only the regressors do not see the held-out ones. ``kinds`` has the kind of each run, in the order of
    ``table.names``, where it is known: then a model for each kind is compared, too. Predictions have the ``cluster`` of
    each timestep.

    Raises ``ScenarioError`` if there are fewer runs than folds, a run has too few timesteps for a subspace, or there
    are not as many kinds as runs.
    """
    fold = folds_of(table, folds, seed)
    settings = ["inductive", *(["transductive"] if transductive else [])]
    models = [(count, setting) for setting in settings for count in clusters]
    given = None if kinds is None else _numbered(kinds, table)
    if given is not None:
        models.append((int(given.max()) + 1, KNOWN))
    together = _together(table, parts, clusters, seed) if transductive else None

    def held_out(out: Bools) -> Floats:
        inside, outside, of_runs = _apart(table, out, parts, clusters, seed)
        seen = [(inside, outside, labels) for labels in of_runs]
        if together is not None:
            rows, labels_of = together
            seen += [(rows[~out], rows[out], labels) for labels in labels_of]
        if given is not None:
            seen.append((inside, outside, given))
        found = []
        for within, beyond, labels in seen:
            found += [_predicted(table, out, within, beyond, labels, (model, hyperparameters, seed))]
            found += [labels[table.run[out]].astype(float)]
        progress()
        return numpy.column_stack(found)

    with one_thread():
        found = cross_validate(fold, held_out)
    names: list[dict[str, str | int]] = [{"clusters": count, "setting": setting} for count, setting in models]
    made = Comparison.of(table, fold, names, found[:, 0::2])
    assigned = found[:, 1::2].T.ravel().astype(int)
    return Comparison(made.table, made.predictions.with_columns(pl.Series("cluster", assigned)))


def _numbered(kinds: Sequence[str], table: CounterTable) -> Integers:
    """The number of each run's kind."""
    if len(kinds) != table.runs:
        raise ScenarioError(Problem("kinds", "not one for each run", len(kinds), str(table.runs)))
    return numpy.unique(numpy.array(kinds), return_inverse=True)[1]


def _apart(
    table: CounterTable, out: Bools, parts: PartsName, clusters: Sequence[int], seed: int
) -> tuple[Floats, Floats, list[Integers]]:
    """Input of regressors inside and outside, and the cluster of each run for each number of them.

    Held-out runs are placed by their counters; their times are not used.
    """
    prepared, inside = Parts.fit(table.rows[~out])[parts]
    every = shapes(prepared.scale.of(table.rows), table.run, table.names)
    known = numpy.unique(table.run[~out])
    between = distances(every, [every[number] for number in known])
    found = []
    for count in clusters:
        made, labels = Clusters.fit(prepared.scale, [every[it] for it in known], between[known], count, seed)
        of_run = made.nearest(between)
        of_run[known] = labels
        found.append(of_run)
    return inside, prepared.of(table.rows[out]), found


def _together(
    table: CounterTable, parts: PartsName, clusters: Sequence[int], seed: int
) -> tuple[Floats, list[Integers]]:
    """Input of regressors for all rows and the cluster of each run, from all runs together."""
    prepared, rows = Parts.fit(table.rows)[parts]
    every = shapes(prepared.scale.of(table.rows), table.run, table.names)
    between = distances(every, every)
    return rows, [Clusters.fit(prepared.scale, every, between, count, seed)[1] for count in clusters]


def _predicted(
    table: CounterTable,
    out: Bools,
    inside: Floats,
    outside: Floats,
    labels: Integers,
    how: tuple[RegressorName, Hyperparameters, int],
) -> Floats:
    """Times of held-out rows, each by the model of its run's cluster, or of all runs if no other run is in it."""
    at, (model, hyperparameters, seed) = labels[table.run], how
    truth, run = table.truth[~out], table.run[~out]
    found = numpy.zeros(int(out.sum()))
    for one in numpy.unique(at[out]):
        theirs, own = at[out] == one, at[~out] == one
        own = own if own.any() else numpy.ones_like(own)
        made = fitted(model, hyperparameters, seed, inside[own], truth[own], run[own])
        found[theirs] = made.predict(outside[theirs])
    return found
