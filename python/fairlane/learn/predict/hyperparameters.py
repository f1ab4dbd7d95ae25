"""Hyperparameters of regressors: fairlane's own, those that scikit-learn had as defaults in 2018, and tuned ones.

Tuned ones are chosen by nested cross-validation (M. Stone, "Cross-validatory choice and assessment of statistical
predictions", Journal of the Royal Statistical Society B 36, 1974): inside the training runs of a fold, which are
divided again by run, so that nothing of the held-out runs decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy

from fairlane.core.errors import require
from fairlane.learn import models as base
from fairlane.learn.models import Floats, Integers, RegressorName, estimator

Named = Literal["own", "2018", "tuned"]
HYPERPARAMETERS: dict[Named, str] = {
    "own": "those of predict fit",
    "2018": "defaults of scikit-learn 0.19: 100 trees of depth 3 on all rows, rate 0.1; a forest of 10 full trees",
    "tuned": "chosen inside the training runs of each fold",
}
"""Descriptions, by name. Boosting has the Huber loss in all of them."""
TUNED: tuple[RegressorName, ...] = ("gbm", "forest")
"""Regressors that there are other hyperparameters for than fairlane's own."""
INNER_FOLDS = 3
"""Folds of the training runs by which hyperparameters, or models, are chosen."""


@dataclass(frozen=True)
class Given:
    """Hyperparameters of boosting and of the forest, by scikit-learn's names; for the others, the defaults of 2018."""

    gbm: Mapping[str, Any] = field(default_factory=dict)
    forest: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return "given"


Hyperparameters = Named | Given


def fitted(
    name: RegressorName, hyperparameters: Hyperparameters, seed: int, rows: Floats, truth: Floats, run: Integers
) -> Any:
    """An estimator of scikit-learn fitted to rows, whose runs are known. Other names than ``TUNED`` have their own."""
    if hyperparameters == "own" or name not in TUNED:
        return estimator(name, seed).fit(rows, truth)
    if isinstance(hyperparameters, Given):
        return _of_2018(name, seed).set_params(**getattr(hyperparameters, name)).fit(rows, truth)
    if hyperparameters == "2018":
        return _of_2018(name, seed).fit(rows, truth)
    return tuned(name, seed, rows, truth, run)


def _of_2018(name: RegressorName, seed: int) -> Any:
    """The defaults of version 0.19, October 2017, written out: some have changed since."""
    require("predict")
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

    if name == "gbm":
        return GradientBoostingRegressor(
            loss="huber",
            learning_rate=0.1,
            n_estimators=base.TREES,
            subsample=1.0,
            max_depth=3,
            max_features=None,
            alpha=0.9,
            random_state=seed,
        )
    return RandomForestRegressor(
        max(1, base.TREES // 10), max_features=1.0, max_depth=None, min_samples_leaf=1, random_state=seed
    )


def grid(name: RegressorName) -> list[dict[str, list[Any]]]:
    """Return the values that are tried: for boosting depths and rates; for a forest features and sizes of leaves."""
    if name == "gbm":
        return [
            {"learning_rate": [0.1], "n_estimators": [base.TREES], "max_depth": [2, 4]},
            {"learning_rate": [0.03], "n_estimators": [3 * base.TREES], "max_depth": [2]},
        ]
    return [{"max_features": [1 / 3, 1.0], "min_samples_leaf": [2, 10]}]


def tuned(name: RegressorName, seed: int, rows: Floats, truth: Floats, run: Integers) -> Any:
    """The estimator with the least mean square error on held-out runs of these, fitted to all of them."""
    require("predict")
    from sklearn.model_selection import GridSearchCV, GroupKFold

    folds = GroupKFold(min(INNER_FOLDS, len(numpy.unique(run))))
    search = GridSearchCV(estimator(name, seed), grid(name), scoring="neg_mean_squared_error", cv=folds)
    return search.fit(rows, truth, groups=run).best_estimator_
