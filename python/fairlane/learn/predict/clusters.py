"""Clusters of runs by the subspaces of their counters, the cluster of a new run, and models local to a cluster.

The distance is that of S. A. Smith et al., "Analyzing inter-job contention in dragonfly networks", 2018, section VII.C:
the mean over five dimensions of the principal angle between the subspaces times the symmetric Kullback-Leibler
divergence of normal distributions along them. Clusters are spectral (scikit-learn); a new run is placed among them by
the Nyström form of Y. Bengio et al., "Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps, and spectral
clustering", NIPS 2003.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Self

import numpy
import polars as pl
from pydantic import Field, model_validator

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.core.wording import plural
from fairlane.inputs.problems import Problems
from fairlane.learn.models import COUNTERS, Dims, Floats, Integers, Part, RegressorName, one_thread
from fairlane.learn.models.validation import Bools, cross_validate
from fairlane.learn.predict.hyperparameters import Hyperparameters, fitted
from fairlane.learn.predict.parts import Parts, PartsName, Scale
from fairlane.learn.predict.table import CounterTable
from fairlane.learn.predict.validation import FOLDS, Comparison, folds_of

DIMENSIONS = 5
"""Of a run's subspace, as in the paper."""
_MIN_VARIANCE = 1e-6
"""Smallest variance along an axis, counters scaled: a constant run is far from others, but not infinitely."""
_MIN_AFFINITY = 1e-9
"""So that the graph of runs is connected."""


class Shape(Part):
    """The shape of a run: principal axes of its scaled counters, and mean and variance of its timesteps along each."""

    axes: Annotated[Floats, Dims((DIMENSIONS, COUNTERS))]
    """Principal axes in the order of variance; signs are such that the mean along each is not below 0."""
    mean: Annotated[Floats, Dims((DIMENSIONS,))]
    variance: Annotated[Floats, Dims((DIMENSIONS,), sign="positive")]

    @classmethod
    def of(cls, scaled: Floats) -> Self:
        """Of the timesteps of one run."""
        axes = numpy.linalg.svd(scaled - scaled.mean(axis=0), full_matrices=False)[2][:DIMENSIONS]
        mean = scaled.mean(axis=0) @ axes.T
        sign = numpy.where(mean < 0, -1.0, 1.0)
        variance = numpy.maximum((scaled @ axes.T).var(axis=0), _MIN_VARIANCE)
        return cls(axes=axes * sign[:, None], mean=mean * sign, variance=variance)


def shapes(scaled: Floats, run: Integers, names: Sequence[str]) -> list[Shape]:
    """The shapes of all runs. Raises ``ScenarioError`` if one has too few timesteps, or there are too few counters."""
    if scaled.shape[1] < DIMENSIONS:
        message = f"clusters of runs take at least {DIMENSIONS} counters"
        raise ScenarioError(Problem("features", message, scaled.shape[1]))
    message = f"timesteps, too few for a subspace of {DIMENSIONS} dimensions"
    counts = zip(names, numpy.bincount(run, minlength=len(names)), strict=True)
    few = [(name, count) for name, count in counts if count <= DIMENSIONS]
    if few:
        allowed = f"{DIMENSIONS + 1} timesteps or more"
        raise ScenarioError(Problem("run", f"has {count} {message}", name, allowed) for name, count in few)
    return [Shape.of(scaled[run == number]) for number in range(len(names))]


def distances(these: Sequence[Shape], those: Sequence[Shape]) -> Floats:
    """The paper's, with the divergence in closed form; a row for each of the first.

    The smallest angle belongs to the first dimension. Angles come from their cosines, so they are known to 1e-8.
    """
    (axes, means, variances), (others_axes, others_means, others_variances) = (
        [numpy.array([getattr(shape, name) for shape in shapes]) for name in ("axes", "mean", "variance")]
        for shapes in (these, those)
    )
    cosines = numpy.linalg.svd(axes[:, None] @ others_axes.transpose(0, 2, 1)[None], compute_uv=False)
    angles = numpy.arccos(numpy.clip(cosines, 0.0, 1.0))
    apart = (means[:, None] - others_means[None]) ** 2
    ratio = variances[:, None] / others_variances[None]
    divergence = (ratio + 1 / ratio - 2 + apart / variances[:, None] + apart / others_variances[None]) / 2
    mean_angles: Floats = (angles * divergence).mean(axis=2)
    return mean_angles


class Clusters(Part):
    """Spectral clusters of the training runs, with the data to place another one.

    That is the scale of the counters, the shapes of the training runs, and eigenvectors with their eigenvalues.
    """

    scale: Scale
    shapes: list[Shape] = Field(min_length=1)
    bandwidth: float = Field(gt=0)
    """The affinity of two runs is exp(-distance / bandwidth): it is the median distance of training runs."""
    vectors: Annotated[Floats, Dims(("runs", "clusters"))]
    """The place of each training run: eigenvectors of the random walk among them by their affinity."""
    values: Annotated[Floats, Dims(("clusters",), sign="nonzero")]
    centres: Annotated[Floats, Dims(("clusters", "clusters"))]
    """The mean place of the runs of each cluster."""

    @model_validator(mode="after")
    def _every_run_has_a_place(self) -> Self:
        if len(self.shapes) != len(self.vectors):
            raise Problems(Problem("vectors", f"{len(self.vectors)} runs, while shapes has {len(self.shapes)}"))
        return self

    @classmethod
    def fit(cls, scale: Scale, known: Sequence[Shape], between: Floats, count: int, seed: int) -> tuple[Self, Integers]:
        """``count`` clusters of runs with these distances, and the number of each one's cluster."""
        require("predict")
        from sklearn.cluster import SpectralClustering

        if count >= len(known):
            message = f"too many clusters for {plural(len(known), 'run')}"
            raise ScenarioError(Problem("clusters", message, count, f"at most {len(known) - 1}"))
        bandwidth = float(numpy.median(between[numpy.triu_indices(len(known), 1)])) or 1.0
        affinity = _affinity(between, bandwidth)
        affinity = (affinity + affinity.T) / 2  # angles between the same two runs differ by rounding
        labels_found = SpectralClustering(count, affinity="precomputed", random_state=seed).fit_predict(affinity)
        vectors, values = _walk(affinity, count)
        first = list(dict.fromkeys(labels_found.tolist()))  # clusters are numbered in the order of their first run
        labels = numpy.array([first.index(label) for label in labels_found.tolist()])
        centres = [vectors[labels == number].mean(axis=0) for number in range(int(labels.max()) + 1)]
        if len(centres) < count:
            raise ScenarioError(Problem("clusters", f"the runs form only {len(centres)} clusters", count))
        made = cls(
            scale=scale,
            shapes=list(known),
            bandwidth=bandwidth,
            vectors=vectors,
            values=values,
            centres=numpy.array(centres),
        )
        return made, labels

    def places(self, between: Floats) -> Floats:
        """The places of runs with these distances (columns) to the training runs."""
        affinity = _affinity(between, self.bandwidth)
        walk = affinity / affinity.sum(axis=1, keepdims=True)
        coordinates: Floats = walk @ self.vectors / self.values
        return coordinates

    def nearest(self, between: Floats) -> Integers:
        """The cluster of each."""
        off = self.places(between)[:, None, :] - self.centres[None]
        numbers: Integers = (off**2).sum(axis=2).argmin(axis=1)
        return numbers

    def of(self, rows: Floats, run: Integers, names: Sequence[str]) -> Integers:
        """The cluster of every row, by all rows of its run."""
        theirs = shapes(self.scale.of(rows), run, names)
        return self.nearest(distances(theirs, self.shapes))[run]


def _affinity(between: Floats, bandwidth: float) -> Floats:
    affinity: Floats = numpy.maximum(numpy.exp(-between / bandwidth), _MIN_AFFINITY)
    return affinity


def _walk(affinity: Floats, count: int) -> tuple[Floats, Floats]:
    """The first eigenvectors of the random walk, by those of its symmetric form, and their eigenvalues."""
    from scipy.linalg import eigh

    degree = affinity.sum(axis=1)
    root = numpy.sqrt(degree)
    size = len(affinity)
    values, vectors = eigh(affinity / root / root[:, None], subset_by_index=[size - count, size - 1])
    values, vectors = values[::-1], vectors[:, ::-1] / root[:, None]
    largest = vectors[numpy.abs(vectors).argmax(axis=0), numpy.arange(count)]
    return vectors * numpy.sign(largest), values


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
        columns = []
        for within, beyond, labels in seen:
            columns += [_predicted(table, out, within, beyond, labels, (model, hyperparameters, seed))]
            columns += [labels[table.run[out]].astype(float)]
        progress()
        return numpy.column_stack(columns)

    with one_thread():
        columns = cross_validate(fold, held_out)
    names: list[dict[str, str | int]] = [{"clusters": count, "setting": setting} for count, setting in models]
    made = Comparison.of(table, fold, names, columns[:, 0::2])
    assigned = columns[:, 1::2].T.ravel().astype(int)
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
    of_runs = []
    for count in clusters:
        made, labels = Clusters.fit(
            prepared.scale, [every[known_run] for known_run in known], between[known], count, seed
        )
        of_run = made.nearest(between)
        of_run[known] = labels
        of_runs.append(of_run)
    return inside, prepared.of(table.rows[out]), of_runs


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
    predictions = numpy.zeros(int(out.sum()))
    for cluster in numpy.unique(at[out]):
        theirs, of_cluster = at[out] == cluster, at[~out] == cluster
        of_cluster = of_cluster if of_cluster.any() else numpy.ones_like(of_cluster)
        made = fitted(model, hyperparameters, seed, inside[of_cluster], truth[of_cluster], run[of_cluster])
        predictions[theirs] = made.predict(outside[theirs])
    return predictions
