"""Predicts how much one job slows down another before they run, with the errors for held-out applications.

Every application is held out once: models are fitted to pairs without it, neither as the job nor as its neighbour, and
predict all pairs with it. Logarithms of slowdowns are fitted. The models are

- ``none``: no slowdown at all, and ``constant``: the same for all, the median;
- ``contention``: one coefficient for the contention with the other job;
- ``neighbours``: the scheduler's form, three coefficients that are not negative, one set for all applications;
- ``ridge`` and ``gbm``: a weighted sum, and boosted trees, of all features.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy
import polars as pl

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.extras import require
from fairlane.models.base import Floats
from fairlane.models.regressors import one_thread
from fairlane.models.tables import read_table
from fairlane.models.validation import ErrorMetrics, cross_validate
from fairlane.scheduler.slowdown.features import NEIGHBOURS
from fairlane.scheduler.slowdown.pairs import PAIR_FEATURES

_Model = Callable[[Floats, Floats, Floats], Floats]
_RENAMED = {"others_met": "contention", "shared_part": "shared_traffic", "busiest": "peak_utilisation"}
"""Former names of columns, some of them, for tables of earlier versions."""


def read_pairs(path: Path) -> pl.DataFrame:
    """A table of simulated pairs, CSV or Parquet; raises ``ScenarioError``."""
    numbers = ("pair", *PAIR_FEATURES, "slowdown")
    found = read_table(path, ("fabric", "application", "other", *numbers), renamed=_RENAMED)
    wrong = [name for name in numbers if not found[name].dtype.is_numeric() or not found[name].is_finite().all()]
    if wrong or found.height == 0 or found["slowdown"].min() <= 0:  # type: ignore[operator]
        words = "not finite numbers, with slowdowns above 0"
        raise ScenarioError(Problem((wrong or ["slowdown"])[0], words, file=str(path)))
    return found


def predict_held_out(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with a column for each model: its prediction from pairs without the application that is ``held_out``.

    A pair of two applications has two rows, one for each; ``role`` says whether the held-out one is the ``job`` that is
    slowed down, its ``neighbour``, or ``both``, and ``links`` whether the two have ``shared`` or ``disjoint`` ones.

    Raises ``ScenarioError`` if there are too few applications.
    """
    names = sorted(set(pairs["application"]) | set(pairs["other"]))
    if len(names) < 3:
        raise ScenarioError(Problem("application", "too few to leave one out", len(names), "3 or more"))
    found = []
    with one_thread():
        for name in names:
            job, neighbour = pl.col("application") == name, pl.col("other") == name
            known, held_out = pairs.filter(~job & ~neighbour), pairs.filter(job | neighbour)
            if not known.height or not held_out.height:
                raise ScenarioError(Problem("pairs", "too few: one application is in all of them, or in none", name))
            role = pl.when(job & neighbour).then(pl.lit("both")).when(job).then(pl.lit("job"))
            links = pl.when(pl.col("contention") > 0).then(pl.lit("shared")).otherwise(pl.lit("disjoint"))
            what = held_out.with_columns(
                role.otherwise(pl.lit("neighbour")).alias("role"), links.alias("links"), held_out=pl.lit(name)
            )
            found.append(_with_predictions(what, _predictions(known, held_out)))
    return pl.concat(found)


def predict_seen(pairs: pl.DataFrame, folds: int = 5) -> pl.DataFrame:
    """The same by models that have seen the applications, in other pairs: every fifth pair of a fabric is held out."""
    fold = pairs["pair"].to_numpy() % folds
    with one_thread():
        predicted = cross_validate(fold, lambda out: _predictions(pairs.filter(~out), pairs.filter(out)))
    return _with_predictions(pairs, predicted).sort(pl.col("pair") % folds, maintain_order=True)


def _predictions(known: pl.DataFrame, later: pl.DataFrame) -> Floats:
    """A column for each model."""
    target = numpy.log(known["slowdown"].to_numpy())
    rows, others = (table.select(PAIR_FEATURES).to_numpy().astype(float) for table in (known, later))
    return numpy.exp(numpy.column_stack([model(rows, target, others) for model in PAIR_MODELS.values()]))


def _with_predictions(pairs: pl.DataFrame, predicted: Floats) -> pl.DataFrame:
    return pairs.with_columns(pl.Series(name, predicted[:, at]) for at, name in enumerate(PAIR_MODELS))


def pair_errors(predicted: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """For each model, and each value of a column if there is one, its ``ErrorMetrics`` and Spearman's ``rank``.

    The baseline is no slowdown.
    """
    rows = []
    for group in [None] if by is None else predicted[by].unique().sort().to_list():
        part = predicted if by is None else predicted.filter(pl.col(by) == group)
        truth = part["slowdown"].to_numpy()
        for model in PAIR_MODELS:
            errors = ErrorMetrics.of(part[model].to_numpy() / truth, 1 / truth).model_dump()
            what = {"model": model} if by is None else {by: group, "model": model}
            rows.append({**what, **errors, "rank": _rank(part[model], part["slowdown"])})
    return pl.DataFrame(rows)


def _rank(one: pl.Series, other: pl.Series) -> float | None:
    if one.n_unique() < 2 or other.n_unique() < 2:
        return None
    return float(numpy.corrcoef(one.rank().to_numpy(), other.rank().to_numpy())[0, 1])


def _nonnegative(rows: Floats, target: Floats, later: Floats, *, first: int) -> Floats:
    """Of the ``first`` features, as in the scheduler's model: neighbours never help, and no more than was simulated."""
    from scipy.optimize import nnls

    weights, _ = nnls(rows[:, :first], target)
    found: Floats = numpy.minimum(later[:, :first] @ weights, target.max(initial=0.0))
    return found


def _ridge(rows: Floats, target: Floats, later: Floats) -> Floats:
    require("predict")
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = make_pipeline(StandardScaler(), RidgeCV(alphas=numpy.logspace(-1, 4, 11))).fit(rows, target)
    found: Floats = numpy.clip(made.predict(later), target.min(), target.max())
    return found


def _gbm(rows: Floats, target: Floats, later: Floats) -> Floats:
    require("predict")
    from sklearn.ensemble import GradientBoostingRegressor

    trees = {"n_estimators": 100, "max_depth": 3, "min_samples_leaf": 5}
    made = GradientBoostingRegressor(loss="huber", learning_rate=0.05, subsample=0.5, random_state=0, **trees)
    found: Floats = made.fit(rows, target).predict(later)
    return found


PAIR_MODELS: Mapping[str, _Model] = {
    "none": lambda _rows, _target, later: numpy.zeros(len(later)),
    "constant": lambda _rows, target, later: numpy.full(len(later), numpy.median(target)),
    "contention": partial(_nonnegative, first=1),
    "neighbours": partial(_nonnegative, first=len(NEIGHBOURS)),
    "ridge": _ridge,
    "gbm": _gbm,
}
"""By name: from known rows, the logarithms of their slowdowns, and later rows to predicted logarithms."""
