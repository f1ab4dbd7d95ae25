"""Cross-validation by run: which counters and models tell the time of a timestep of a run that was never seen.

Runs are dealt to folds at random. Scaling, robust PCA, clusters and models are fitted to the other folds only. Beside
that stands the *transductive* way, which takes the counters of training and test runs apart together: its figures
cannot be had for a run that comes later.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.errors import Problem, ScenarioError
from fairlane.predict.clusters import Clusters, distances, shapes
from fairlane.predict.parts import PARTS, Parts, PartsName
from fairlane.predict.regressors import REGRESSORS, RegressorName, fitted, one_thread
from fairlane.predict.table import CounterTable
from fairlane.seeds import Purpose, stream
from fairlane.wording import plural

__all__ = ["FOLDS", "Comparison", "compare", "dealt", "errors_by_fold", "local", "spread_over_folds"]

Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.int64]
Bools = NDArray[numpy.bool_]

FOLDS = 10
"""The paper's."""
LOCAL = (1, 2, 3)
"""Numbers of local models that the paper compares."""


@dataclass(frozen=True)
class Comparison:
    """What cross-validation says."""

    table: pl.DataFrame
    """A row for each model: what it is, then ``mse``, ``mse_sd``, ``mae``, ``mae_sd``, ``mse_over_variance``. All are
    means and standard deviations over folds; ``mae`` is the paper's, the maximum absolute error in the fold."""
    predictions: pl.DataFrame
    """A row for each model and timestep: ``run``, ``timestep``, ``seconds`` (the truth), ``fold``, what the model is,
    and its ``predicted``."""


@dataclass(frozen=True)
class _Prediction:
    what: dict[str, str | int]
    fold: int
    out: Bools
    predicted: Floats


def compare(
    table: CounterTable,
    *,
    models: tuple[RegressorName, ...] = tuple(REGRESSORS),
    transductive: bool = True,
    folds: int = FOLDS,
    seed: int = 1,
    told: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """The paper's Table II: every model on the counters themselves, their low-rank part and their sparse part.

    Columns that say which model it is are ``model``, ``parts`` and ``way``: ``honest`` or ``transductive``; the
    latter is there for boosting only, as it is only a warning. ``told`` hears of every fold that is done.

    Raises ``ScenarioError`` if there are fewer runs than folds.
    """
    truth = table.truth
    found = []
    both: dict[PartsName, tuple[Parts, Floats]] = {}
    for fold, out in _folds(table, folds, seed):
        made = Parts.fit(table.rows[~out])
        seen: dict[tuple[PartsName, str], tuple[Floats, Floats]] = {
            (name, "honest"): (own, made[name][0].of(table.rows[out])) for name, (_, own) in made.items()
        }
        if transductive:
            # Training and test rows together are the same rows in every fold.
            both = both or Parts.fit(table.rows)
            seen |= {
                (name, "transductive"): (both[name][1][~out], both[name][1][out]) for name in PARTS if name != "base"
            }
        for (name, way), (inside, outside) in seen.items():
            for model in models if way == "honest" else ("gbm",) if "gbm" in models else ():
                predicted = fitted(model, inside, truth[~out], seed).predict(outside)
                found.append(_Prediction({"model": model, "parts": name, "way": way}, fold, out, predicted))
        told(fold + 1)
    return _comparison(table, found)


def local(
    table: CounterTable,
    *,
    clusters: tuple[int, ...] = LOCAL,
    model: RegressorName = "gbm",
    parts: PartsName = "sparse",
    folds: int = FOLDS,
    seed: int = 1,
    told: Callable[[int], None] = lambda _: None,
) -> Comparison:
    """The paper's Table III: one model for each cluster of runs, for several numbers of clusters.

    The column that says which model it is is ``clusters``. Raises ``ScenarioError`` if there are fewer runs than folds,
    or a run has too few timesteps for a subspace.
    """
    truth, found = table.truth, []
    for fold, out in _folds(table, folds, seed):
        prepared, inside = Parts.fit(table.rows[~out])[parts]
        outside = prepared.of(table.rows[out])
        every = shapes(prepared.scale.of(table.rows), table.run, table.names)
        known = numpy.unique(table.run[~out])
        between = distances(every, [every[number] for number in known])
        for count in clusters:
            made, labels = Clusters.fit(
                prepared.scale, [every[number] for number in known], between[known], count, seed
            )
            # The fold's own runs are placed by what they look like; what they took is not looked at.
            of_run = made.nearest(between)
            of_run[known] = labels
            at, predicted = of_run[table.run], numpy.zeros(int(out.sum()))
            for one in range(count):
                theirs = at[out] == one
                if theirs.any():
                    own = at[~out] == one
                    predicted[theirs] = fitted(model, inside[own], truth[~out][own], seed).predict(outside[theirs])
            found.append(_Prediction({"clusters": count}, fold, out, predicted))
        told(fold + 1)
    return _comparison(table, found)


def dealt(table: CounterTable, folds: int, seed: int) -> Integers:
    """The fold of every row: that of its run. Raises ``ScenarioError`` if there are fewer runs than folds."""
    if not 2 <= folds <= table.runs:
        words = f"the table has {plural(table.runs, 'run')}, and each fold takes one at least"
        raise ScenarioError(Problem("folds", words, folds, f"2 to {table.runs}" if table.runs > 1 else "more runs"))
    of_run = stream(seed, Purpose.FOLD).permutation(table.runs) % folds
    found: Integers = of_run[table.run]
    return found


def _folds(table: CounterTable, folds: int, seed: int) -> Iterator[tuple[int, Bools]]:
    fold = dealt(table, folds, seed)
    with one_thread():
        for one in range(folds):
            yield one, fold == one


def errors_by_fold(truth: Floats, predicted: Floats, fold: Integers) -> pl.DataFrame:
    """For each fold ``mse`` and ``mae``, the greatest error."""
    table = pl.DataFrame({"fold": fold, "off": predicted - truth})
    return table.group_by("fold").agg(mse=(pl.col("off") ** 2).mean(), mae=pl.col("off").abs().max()).sort("fold")


def spread_over_folds(errors: pl.DataFrame, variance: float) -> dict[str, float]:
    """Mean and standard deviation over folds, and the mean over what a constant would be off."""
    mse, mae = errors["mse"].to_numpy(), errors["mae"].to_numpy()
    return {
        "mse": float(mse.mean()),
        "mse_sd": float(mse.std(ddof=1)),
        "mae": float(mae.mean()),
        "mae_sd": float(mae.std(ddof=1)),
        "mse_over_variance": float(mse.mean()) / variance if variance else float("nan"),
    }


def _comparison(table: CounterTable, found: list[_Prediction]) -> Comparison:
    truth = table.truth
    variance = float(truth.var())
    kinds = list(dict.fromkeys(tuple(one.what.items()) for one in found))
    rows, predictions = [], []
    for kind in kinds:
        predicted, fold = numpy.zeros(len(truth)), numpy.zeros(len(truth), int)
        for one in found:
            if tuple(one.what.items()) == kind:
                predicted[one.out], fold[one.out] = one.predicted, one.fold
        rows.append(dict(kind) | spread_over_folds(errors_by_fold(truth, predicted, fold), variance))
        columns = [pl.lit(value).alias(name) for name, value in kind]
        predictions.append(
            table.keys.with_columns(pl.Series("seconds", truth), pl.Series("fold", fold), *columns).with_columns(
                pl.Series("predicted", predicted)
            )
        )
    return Comparison(pl.DataFrame(rows), pl.concat(predictions))
