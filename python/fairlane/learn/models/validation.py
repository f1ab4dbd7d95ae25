"""Errors of models on held-out data: cross-validation by groups, intervals, error metrics."""

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any, Self

import numpy
from numpy.typing import NDArray

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural
from fairlane.learn.models import Floats, Integers, Part

Bools = NDArray[numpy.bool_]


def assign_folds(groups: Integers, folds: int, rng: numpy.random.Generator | None = None) -> Integers:
    """The cross-validation fold of every row: that of its group, which are numbered from 0.

    With ``rng`` groups are assigned uniformly at random, in folds of equal size; without it, round-robin.
    """
    count = int(groups.max()) + 1
    of_group = (numpy.arange(count) if rng is None else rng.permutation(count)) % folds
    return of_group[groups]


def cross_validate(fold: Integers, predict: Callable[[Bools], Floats]) -> Floats:
    """Predictions of every row by a model that has not seen its fold.

    ``predict`` gets the mask of the rows that are held out, fits to the others, and returns a number or a row for each
    held-out one.
    """
    predictions = numpy.zeros(0)
    for number in numpy.unique(fold):
        held_out = fold == number
        rows = predict(held_out)
        if not predictions.size:
            predictions = numpy.zeros((len(fold), *rows.shape[1:]))
        predictions[held_out] = rows
    return predictions


def corrected_interval(differences: Floats, coverage: float) -> tuple[float, float, float]:
    """The mean of a difference over cross-validation folds, and the ends of its confidence interval.

    Folds share training rows, so the variance of their mean is more than ``s^2 / k``: it is taken as
    ``(1 / k + test / training) s^2``, where a fold of k is tested on a share of ``1 / (k - 1)`` of its training rows,
    with Student's distribution (C. Nadeau, Y. Bengio, "Inference for the generalization error", Machine Learning 52,
    2003: the corrected resampled t-test).
    """
    from scipy import stats

    folds = len(differences)
    middle = float(differences.mean())
    deviation = float(differences.std(ddof=1)) * sqrt(1 / folds + 1 / (folds - 1))
    half = float(stats.t.ppf((1 + coverage) / 2, folds - 1)) * deviation
    return middle, middle - half, middle + half


def conformal_quantile(scores: Floats, coverage: float) -> float:
    """Return a bound of the score of one more row at this probability, if rows are exchangeable (Vovk 2015)."""
    last = min(len(scores), ceil(coverage * (len(scores) + 1)))
    return float(numpy.sort(scores)[last - 1])


def check_coverage(groups: int, coverage: float) -> None:
    """Raises ``ScenarioError`` if so many groups are too few for an interval."""
    if not 0 < coverage <= groups / (groups + 1) * (1 + 1e-12):
        message = f"{plural(groups, 'run')} cannot give an interval for so many of the timesteps"
        raise ScenarioError(Problem("coverage", message, coverage, f"above 0, at most {groups / (groups + 1):.4g}"))


def grouped_quantile(scores: Floats, groups: Integers, coverage: float) -> float:
    """Return a bound of the score of a row of one more group at this probability.

    Every group has the same weight, however many rows it has, and one more group may have any scores (Y. Lee, R. F.
    Barber, R. Willett, "Distribution-free inference with hierarchical data", 2023). Raises ``ScenarioError`` if there
    are too few groups.
    """
    count = int(groups.max()) + 1
    check_coverage(count, coverage)
    weight = 1 / (numpy.bincount(groups)[groups] * (count + 1))
    order = numpy.argsort(scores, kind="stable")
    reached = numpy.cumsum(weight[order])
    enough = int(numpy.searchsorted(reached, coverage * (1 - 1e-9)))
    return float(scores[order][min(enough, len(scores) - 1)])


class ErrorMetrics(Part):
    """Relative errors, predicted / simulated - 1, on what the model was not fitted to."""

    count: int
    """Number of compared predictions."""
    mean_error: float
    """Mean absolute relative error."""
    p90_error: float
    """90th percentile of the absolute relative error."""
    bias: float
    """Mean relative error: above 0 the model predicts too much."""
    baseline_error: float
    """Mean absolute relative error of the baseline, which knows nothing of the case."""

    @classmethod
    def of(cls, ratio: Floats, baseline_ratio: Floats, **more: Any) -> Self:
        """Compute them from predicted / simulated, of the model and the baseline; ``more`` are fields of subclasses."""
        size = numpy.abs(ratio - 1)
        return cls(
            count=len(ratio),
            mean_error=_rounded(size.mean()),
            p90_error=_rounded(numpy.quantile(size, 0.9)),
            bias=_rounded((ratio - 1).mean()),
            baseline_error=_rounded(numpy.abs(baseline_ratio - 1).mean()),
            **{name: _rounded(value) for name, value in more.items()},
        )


def _rounded(value: Any) -> float:
    """A figure of an error as it is kept: four digits after the point."""
    return round(float(value), 4)
