"""Cross-validation by run: which counters and models predict the time of a timestep of a held-out run.

Runs are assigned to folds at random. Scaling, robust PCA, clusters and models are fitted to the other folds only
(*inductive*). For comparison there is the *transductive* setting, which decomposes the counters of training and test
runs together: its errors are not attainable for a later run. ``local`` has models for clusters of runs.

The choice for all runs has the least mean square error on held-out runs. To say how good a model is that is chosen so,
the choice is made again for every fold, by a cross-validation of its training runs alone: with any error on held-out
runs, or from models that were fitted to them, the least of many errors would be less than what a later run has (G. C.
Cawley, N. L. C. Talbot, "On over-fitting in model selection and subsequent selection bias in performance evaluation",
Journal of Machine Learning Research 11, 2010).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy
import polars as pl
from pydantic import Field

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import Purpose, stream
from fairlane.core.wording import plural
from fairlane.learn.models import REGRESSORS, Floats, Integers, Part, RegressorName, one_thread
from fairlane.learn.models.validation import Bools, assign_folds, corrected_interval, cross_validate
from fairlane.learn.predict.hyperparameters import INNER_FOLDS, TUNED, Hyperparameters, fitted
from fairlane.learn.predict.parts import PARTS, Parts, PartsName
from fairlane.learn.predict.table import CounterTable

FOLDS = 10
"""The paper's."""


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
class Difference:
    """Mean square error of one model less that of another, with an interval over folds."""

    mse: float
    low: float
    high: float


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

    def difference(
        self, first: Mapping[str, str | int], second: Mapping[str, str | int], coverage: float = 0.95
    ) -> Difference:
        """The mean square error of one model less that of another, paired by fold; each is named by its columns.

        The interval allows for folds that share most of their training runs: see ``corrected_interval``.
        """
        squares = [
            self.predictions.filter(**model)
            .group_by("fold")
            .agg(mse=((pl.col("predicted") - pl.col("seconds")) ** 2).mean())
            .sort("fold")["mse"]
            .to_numpy()
            for model in (first, second)
        ]
        return Difference(*corrected_interval(squares[0] - squares[1], coverage))


def compare(
    table: CounterTable,
    *,
    models: tuple[RegressorName, ...] = tuple(REGRESSORS),
    parts: tuple[PartsName, ...] = PARTS,
    hyperparameters: tuple[Hyperparameters, ...] = ("own",),
    transductive: bool = True,
    folds: int = FOLDS,
    seed: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> Comparison:
    """The paper's Table II: every model on the counters themselves, their low-rank part and their sparse part.

    Columns that identify a model are ``model``, ``hyperparameters``, ``parts`` and ``setting``: ``inductive`` or
    ``transductive``; the latter is there for boosting and the forest without tuning, and not for the counters
    themselves, of which it would be the same. ``progress`` is called after every fold.

    Raises ``ScenarioError`` if there are fewer runs than folds.
    """
    truth, fold = table.truth, folds_of(table, folds, seed)
    # Training and test rows together are the same rows in every fold.
    both: dict[PartsName, Floats] = {}
    kinds = _kinds(models, parts, hyperparameters, transductive=transductive)

    def held_out(out: Bools) -> Floats:
        made = Parts.fit(table.rows[~out], parts)
        if any(setting == "transductive" for *_, setting in kinds) and not both:
            both.update({name: seen for name, (_, seen) in Parts.fit(table.rows, parts).items()})
        predictions = []
        seen = {
            (name, "inductive"): (parts_of_rows, made[name][0].of(table.rows[out]))
            for name, (_, parts_of_rows) in made.items()
        }
        seen |= {(name, "transductive"): (rows[~out], rows[out]) for name, rows in both.items()}
        for model, chosen, part, setting in kinds:
            inside, outside = seen[part, setting]
            predictions.append(fitted(model, chosen, seed, inside, truth[~out], table.run[~out]).predict(outside))
        progress()
        return numpy.column_stack(predictions)

    with one_thread():
        predicted = cross_validate(fold, held_out)
    columns = ("model", "hyperparameters", "parts", "setting")
    names = [dict(zip(columns, map(str, kind), strict=True)) for kind in kinds]
    return Comparison.of(table, fold, names, predicted)


def _kinds(
    models: Sequence[RegressorName],
    parts: Sequence[PartsName],
    hyperparameters: Sequence[Hyperparameters],
    *,
    transductive: bool,
) -> list[tuple[RegressorName, Hyperparameters, PartsName, str]]:
    """Models to compare: regressor, hyperparameters, part, setting."""
    each = [(model, kind) for kind in hyperparameters for model in models if kind == "own" or model in TUNED]
    # What has one set of hyperparameters only is compared with any other of the rest.
    each += [(model, "own") for model in models if model not in TUNED and "own" not in hyperparameters]
    kinds = [(model, kind, part, "inductive") for part in parts for model, kind in each]
    if transductive:
        plain = [(model, kind) for model, kind in each if model in TUNED and kind != "tuned"]
        kinds += [(model, kind, part, "transductive") for part in parts if part != "base" for model, kind in plain]
    return kinds


def folds_of(table: CounterTable, folds: int, seed: int) -> Integers:
    """The fold of every row: that of its run. Raises ``ScenarioError`` if there are fewer runs than folds."""
    if not 2 <= folds <= table.runs:
        message = f"the table has {plural(table.runs, 'run')}, and each fold takes one at least"
        raise ScenarioError(Problem("folds", message, folds, f"2 to {table.runs}" if table.runs > 1 else "more runs"))
    return assign_folds(table.run, folds, stream(seed, Purpose.FOLD))


Kind = tuple[RegressorName, PartsName]
"""A regressor, and what it sees of the counters."""


class Candidate(Part):
    """A model that was compared, with its mean square error on held-out runs."""

    model: RegressorName
    parts: PartsName
    mse: float


@dataclass(frozen=True)
class Choice:
    """The best of several models."""

    best: Kind
    of_fold: dict[int, Kind]
    """For each fold, the best by a cross-validation of the runs of the other folds."""
    candidates: list[Candidate]
    """All of them, the best first; none if nothing was left to choose."""


def choose(
    table: CounterTable,
    model: RegressorName | None,
    parts: PartsName | None,
    *,
    folds: int,
    seed: int,
    progress: Callable[[], None] = lambda: None,
) -> Choice:
    """The best of all models with this regressor and these parts, or of any where they are None.

    Raises ``ScenarioError`` if there are fewer runs than folds.
    """
    models = tuple(REGRESSORS) if model is None else (model,)
    kinds = PARTS if parts is None else (parts,)
    if model is not None and parts is not None:
        return Choice((model, parts), dict.fromkeys(range(folds), (model, parts)), [])
    of_fold = folds_of(table, folds, seed)

    def ranked(runs: CounterTable, count: int) -> list[Candidate]:
        made = compare(runs, models=models, parts=kinds, transductive=False, folds=count, seed=seed, progress=progress)
        rows = made.table.select("model", "parts", "mse").sort("mse", "model", "parts")
        return [Candidate.model_validate(row) for row in rows.iter_rows(named=True)]

    def best_without(fold: int) -> Kind:
        training = table.filter(of_fold != fold)
        if training.runs < 2:
            message = "leaves one run to train with: none is left to choose a model by"
            raise ScenarioError(Problem("folds", message, folds, "more runs, or a model and its parts by name"))
        best = ranked(training, min(INNER_FOLDS, training.runs))[0]
        return best.model, best.parts

    candidates = ranked(table, folds)
    best = candidates[0]
    return Choice((best.model, best.parts), {fold: best_without(fold) for fold in range(folds)}, candidates)
