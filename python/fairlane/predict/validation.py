"""Cross-validation by run: which counters and models predict the time of a timestep of a held-out run.

Runs are assigned to folds at random. Scaling, robust PCA, clusters and models are fitted to the other folds only
(*inductive*). For comparison there is the *transductive* setting, which decomposes the counters of training and test
runs together: its errors are not attainable for a later run.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy
import polars as pl
from pydantic import Field

from fairlane.errors import Problem, ScenarioError
from fairlane.models.base import Floats, Integers, Part
from fairlane.models.regressors import REGRESSORS, RegressorName, estimator, one_thread
from fairlane.models.validation import Bools, assign_folds, cross_validate
from fairlane.predict.clusters import Clusters, distances, shapes
from fairlane.predict.parts import PARTS, Parts, PartsName
from fairlane.predict.table import CounterTable
from fairlane.seeds import Purpose, stream
from fairlane.wording import plural

FOLDS = 10
"""The paper's."""
LOCAL = (1, 2, 3)
"""Numbers of local models that the paper compares."""


class FoldErrors(Part):
    """Errors on held-out runs: means and standard deviations (``_sd``) over folds.

    They are of the mean square error of a fold, and of its maximum absolute error.
    """

    folds: int
    mse: float
    mse_sd: float
    max_abs_error: float
    max_abs_error_sd: float
    mse_over_variance: float = Field(allow_inf_nan=True)
    """The mean square error over that of a model which always predicts the mean."""

    @classmethod
    def of(cls, truth: Floats, predicted: Floats, fold: Integers) -> Self:
        """Of out-of-fold predictions."""
        error, variance = pl.col("error"), float(truth.var())
        each = pl.DataFrame({"fold": fold, "error": predicted - truth}).group_by("fold")
        by_fold = each.agg(mse=(error**2).mean(), largest=error.abs().max()).sort("fold")
        mse, largest = by_fold["mse"].to_numpy(), by_fold["largest"].to_numpy()
        return cls(
            folds=len(mse),
            mse=float(mse.mean()),
            mse_sd=float(mse.std(ddof=1)),
            max_abs_error=float(largest.mean()),
            max_abs_error_sd=float(largest.std(ddof=1)),
            mse_over_variance=float(mse.mean()) / variance if variance else float("nan"),
        )


@dataclass(frozen=True)
class Comparison:
    """The result of cross-validation."""

    table: pl.DataFrame
    """A row for each model: columns that identify it, then those of ``FoldErrors`` without ``folds``. The paper's
    tables have ``mse`` and ``max_abs_error``."""
    predictions: pl.DataFrame
    """A row for each model and timestep: ``run``, ``timestep``, ``seconds`` (the truth), ``fold``, the columns that
    identify the model, and its ``predicted``."""

    @classmethod
    def of(
        cls, table: CounterTable, fold: Integers, models: Sequence[Mapping[str, str | int]], predicted: Floats
    ) -> Self:
        """Of out-of-fold predictions with a column for each model."""
        rows, predictions = [], []
        for at, model in enumerate(models):
            errors = FoldErrors.of(table.truth, predicted[:, at], fold)
            rows.append({**model, **errors.model_dump(exclude={"folds"})})
            truth = (pl.Series("seconds", table.truth), pl.Series("fold", fold))
            names = (pl.lit(value).alias(name) for name, value in model.items())
            predictions.append(table.keys.with_columns(*truth, *names, pl.Series("predicted", predicted[:, at])))
        return cls(pl.DataFrame(rows), pl.concat(predictions))


def compare(
    table: CounterTable,
    *,
    models: tuple[RegressorName, ...] = tuple(REGRESSORS),
    transductive: bool = True,
    folds: int = FOLDS,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """The paper's Table II: every model on the counters themselves, their low-rank part and their sparse part.

    Columns that identify a model are ``model``, ``parts`` and ``setting``: ``inductive`` or ``transductive``; the
    latter is there for boosting only, as it is only a warning. ``progress`` is called after every fold.

    Raises ``ScenarioError`` if there are fewer runs than folds.
    """
    truth, fold = table.truth, folds_of(table, folds, seed)
    # Training and test rows together are the same rows in every fold.
    both: dict[PartsName, Floats] = {}
    kinds: list[tuple[RegressorName, PartsName, str]] = [(m, part, "inductive") for part in PARTS for m in models]
    if transductive and "gbm" in models:
        kinds += [("gbm", part, "transductive") for part in PARTS if part != "base"]

    def held_out(out: Bools) -> Floats:
        made = Parts.fit(table.rows[~out])
        if len(kinds) > len(PARTS) * len(models) and not both:
            both.update({name: seen for name, (_, seen) in Parts.fit(table.rows).items()})
        found = []
        seen = {(name, "inductive"): (own, made[name][0].of(table.rows[out])) for name, (_, own) in made.items()}
        seen |= {(name, "transductive"): (rows[~out], rows[out]) for name, rows in both.items()}
        for model, part, setting in kinds:
            inside, outside = seen[part, setting]
            found.append(estimator(model, seed).fit(inside, truth[~out]).predict(outside))
        progress()
        return numpy.column_stack(found)

    with one_thread():
        predicted = cross_validate(fold, held_out)
    names = [{"model": model, "parts": part, "setting": setting} for model, part, setting in kinds]
    return Comparison.of(table, fold, names, predicted)


def local(
    table: CounterTable,
    *,
    clusters: tuple[int, ...] = LOCAL,
    model: RegressorName = "gbm",
    parts: PartsName = "sparse",
    folds: int = FOLDS,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """The paper's Table III: one model for each cluster of runs, for several numbers of clusters.

    The column that identifies a model is ``clusters``. Raises ``ScenarioError`` if there are fewer runs than folds, or
    a run has too few timesteps for a subspace.
    """
    truth, fold = table.truth, folds_of(table, folds, seed)

    def held_out(out: Bools) -> Floats:
        prepared, inside = Parts.fit(table.rows[~out])[parts]
        outside = prepared.of(table.rows[out])
        every = shapes(prepared.scale.of(table.rows), table.run, table.names)
        known = numpy.unique(table.run[~out])
        between = distances(every, [every[number] for number in known])
        predicted = numpy.zeros((int(out.sum()), len(clusters)))
        for column, count in enumerate(clusters):
            made, labels = Clusters.fit(
                prepared.scale, [every[number] for number in known], between[known], count, seed
            )
            # Held-out runs are placed by their counters; their times are not used.
            of_run = made.nearest(between)
            of_run[known] = labels
            at = of_run[table.run]
            for one in numpy.unique(at[out]):
                theirs, own = at[out] == one, at[~out] == one
                fitted = estimator(model, seed).fit(inside[own], truth[~out][own])
                predicted[theirs, column] = fitted.predict(outside[theirs])
        progress()
        return predicted

    with one_thread():
        predicted = cross_validate(fold, held_out)
    return Comparison.of(table, fold, [{"clusters": count} for count in clusters], predicted)


def folds_of(table: CounterTable, folds: int, seed: int) -> Integers:
    """The fold of every row: that of its run. Raises ``ScenarioError`` if there are fewer runs than folds."""
    if not 2 <= folds <= table.runs:
        words = f"the table has {plural(table.runs, 'run')}, and each fold takes one at least"
        raise ScenarioError(Problem("folds", words, folds, f"2 to {table.runs}" if table.runs > 1 else "more runs"))
    return assign_folds(table.run, folds, stream(seed, Purpose.FOLD))
