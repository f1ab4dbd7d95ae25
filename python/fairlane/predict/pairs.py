"""How much one job slows down another, told before they run, and how far off that is for applications never seen.

Every application is left out once: models are fitted to pairs without it, neither as the job nor as its neighbour, and
predict all pairs with it. Logarithms of slowdowns are fitted. The models are

- ``none``: no slowdown at all, and ``constant``: the same for all, the median;
- ``met``: one coefficient for what a byte meets of the other job, the guess from physics;
- ``neighbours``: the scheduler's form, three coefficients that are not negative, one set for all applications;
- ``ridge`` and ``gbm``: a weighted sum, and boosted trees, of all features.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy
import polars as pl
from numpy.typing import NDArray

from fairlane.errors import Problem, ScenarioError
from fairlane.predict.regressors import one_thread
from fairlane.results.errors import ResultsError
from fairlane.results.manifest import check_listed
from fairlane.results.parquet import read_parquet
from fairlane.scheduler.slowdown.features import NEIGHBOURS
from fairlane.scheduler.slowdown.model import error_of
from fairlane.scheduler.slowdown.pairs import PAIR_FEATURES

__all__ = ["PAIR_MODELS", "pair_errors", "predict_seen", "predict_unseen", "read_pairs"]

Floats = NDArray[numpy.float64]
_Model = Callable[[Floats, Floats, Floats], Floats]


def read_pairs(path: Path) -> pl.DataFrame:
    """A table of simulated pairs, CSV or Parquet; raises ``ScenarioError``."""
    try:
        check_listed(path)
        found = read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=None)
    except ResultsError as error:
        raise ScenarioError(Problem("", str(error))) from error
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ScenarioError(Problem("", f"cannot be read: {error}", file=str(path))) from None
    numbers = ("pair", *PAIR_FEATURES, "slowdown")
    missing = [name for name in ("fabric", "application", "other", *numbers) if name not in found.columns]
    if missing:
        raise ScenarioError(Problem(name, "there is no such column", file=str(path)) for name in missing)
    wrong = [name for name in numbers if not found[name].dtype.is_numeric() or not found[name].is_finite().all()]
    if wrong or found.height == 0 or found["slowdown"].min() <= 0:  # type: ignore[operator]
        words = "not finite numbers, with slowdowns above 0"
        raise ScenarioError(Problem((wrong or ["slowdown"])[0], words, file=str(path)))
    return found


def predict_unseen(pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with a column for each model: what it predicts from pairs without the application that is ``unseen``.

    A pair of two applications stands there twice, once for each; ``role`` says whether the unseen one is the ``job``
    that is slowed down, its ``neighbour``, or ``both``, and ``links`` whether the two have ``shared`` ones.

    Raises ``ScenarioError`` if there are too few applications.
    """
    names = sorted(set(pairs["application"]) | set(pairs["other"]))
    if len(names) < 3:
        raise ScenarioError(Problem("application", "too few to leave one out", len(names), "3 or more"))
    found = []
    with one_thread():
        for name in names:
            job, neighbour = pl.col("application") == name, pl.col("other") == name
            known, unseen = pairs.filter(~job & ~neighbour), pairs.filter(job | neighbour)
            if not known.height or not unseen.height:
                raise ScenarioError(Problem("pairs", "too few: one application is in all of them, or in none", name))
            role = pl.when(job & neighbour).then(pl.lit("both")).when(job).then(pl.lit("job"))
            links = pl.when(pl.col("others_met") > 0).then(pl.lit("shared")).otherwise(pl.lit("own"))
            what = (
                role.otherwise(pl.lit("neighbour")).alias("role"),
                links.alias("links"),
                pl.lit(name).alias("unseen"),
            )
            found.append(_predicted(known, unseen.with_columns(*what)))
    return pl.concat(found)


def predict_seen(pairs: pl.DataFrame, folds: int = 5) -> pl.DataFrame:
    """The same by models that have seen the applications, in other pairs: every fifth pair of a fabric is left out."""
    with one_thread():
        parts = [pairs.filter(pl.col("pair") % folds == fold) for fold in range(folds)]
        others = [pairs.filter(pl.col("pair") % folds != fold) for fold in range(folds)]
        return pl.concat([_predicted(known, part) for known, part in zip(others, parts, strict=True) if part.height])


def _predicted(known: pl.DataFrame, later: pl.DataFrame) -> pl.DataFrame:
    target = numpy.log(known["slowdown"].to_numpy())
    return later.with_columns(
        pl.Series(name, numpy.exp(fit(_rows(known), target, _rows(later)))) for name, fit in PAIR_MODELS.items()
    )


def pair_errors(predicted: pl.DataFrame, by: str | None = None) -> pl.DataFrame:
    """For each model, and each value of a column if there is one, how far it is off.

    ``mean`` is that of the difference without its sign over the simulated slowdown, ``worst_tenth`` where the tenth
    with the largest begins, ``bias`` the mean with its sign, ``rank`` Spearman's correlation.
    """
    rows = []
    for group in [None] if by is None else predicted[by].unique().sort().to_list():
        part = predicted if by is None else predicted.filter(pl.col(by) == group)
        for model in PAIR_MODELS:
            off = error_of(part[model].to_list(), part["slowdown"].to_list())
            rows.append(
                ({} if by is None else {by: group})
                | {
                    "model": model,
                    "jobs": off.jobs,
                    "mean": off.mean,
                    "worst_tenth": off.worst_tenth,
                    "bias": off.bias,
                    "rank": _rank(part[model], part["slowdown"]),
                }
            )
    return pl.DataFrame(rows)


def _rank(one: pl.Series, other: pl.Series) -> float | None:
    if one.n_unique() < 2 or other.n_unique() < 2:
        return None
    return float(numpy.corrcoef(one.rank().to_numpy(), other.rank().to_numpy())[0, 1])


def _rows(pairs: pl.DataFrame) -> Floats:
    return pairs.select(PAIR_FEATURES).to_numpy().astype(float)


def _none(_rows: Floats, _target: Floats, later: Floats) -> Floats:
    return numpy.zeros(len(later))


def _constant(_rows: Floats, target: Floats, later: Floats) -> Floats:
    return numpy.full(len(later), numpy.median(target))


def _met(rows: Floats, target: Floats, later: Floats) -> Floats:
    return _nonnegative(rows[:, :1], target, later[:, :1])


def _neighbours(rows: Floats, target: Floats, later: Floats) -> Floats:
    return _nonnegative(rows[:, : len(NEIGHBOURS)], target, later[:, : len(NEIGHBOURS)])


def _nonnegative(rows: Floats, target: Floats, later: Floats) -> Floats:
    """As in the scheduler's model: neighbours never help, and no more than was simulated is predicted."""
    from scipy.optimize import nnls

    found: Floats = numpy.minimum(later @ nnls(rows, target)[0], target.max(initial=0.0))
    return found


def _ridge(rows: Floats, target: Floats, later: Floats) -> Floats:
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    made = make_pipeline(StandardScaler(), RidgeCV(alphas=numpy.logspace(-1, 4, 11))).fit(rows, target)
    found: Floats = numpy.clip(made.predict(later), target.min(), target.max())
    return found


def _gbm(rows: Floats, target: Floats, later: Floats) -> Floats:
    from sklearn.ensemble import GradientBoostingRegressor

    made = GradientBoostingRegressor(
        loss="huber",
        n_estimators=100,
        max_depth=3,
        learning_rate=0.05,
        subsample=0.5,
        min_samples_leaf=5,
        random_state=0,
    )
    found: Floats = made.fit(rows, target).predict(later)
    return found


PAIR_MODELS: Mapping[str, _Model] = {
    "none": _none,
    "constant": _constant,
    "met": _met,
    "neighbours": _neighbours,
    "ridge": _ridge,
    "gbm": _gbm,
}
"""By name: from known rows, the logarithms of their slowdowns, and later rows to what these are."""
