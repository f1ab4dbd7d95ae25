"""Regressors, fitted by scikit-learn and kept as data."""

from contextlib import AbstractContextManager
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

from fairlane.errors import Problem, ScenarioError
from fairlane.trees import Part, TreeSum, boosting_of, forest_of, histogram_boosting_of

__all__ = ["REGRESSORS", "Linear", "Regressor", "RegressorName", "fitted", "kept", "one_thread"]

Floats = NDArray[numpy.float64]
RegressorName = Literal["gbm", "forest", "histogram", "ridge"]
REGRESSORS: dict[RegressorName, str] = {
    "gbm": "gradient boosting, Huber loss (Friedman 2001), each tree on half of the rows",
    "forest": "random forest (Breiman 2001)",
    "histogram": "histogram gradient boosting, squared loss",
    "ridge": "ridge regression: the floor",
}
"""What they are, by name."""

_MISSING = Problem("", 'fitting a model takes scikit-learn: pip install "fairlane[learn]"')
TREES = 100
"""Of all three that have trees; boosting counts each one a tenth."""


class Linear(Part):
    """A weighted sum."""

    start: float
    """What is predicted for a row of zeros."""
    weights: list[float]
    """Of each feature."""

    def predict(self, rows: Floats) -> Floats:
        """The sum for each row."""
        found: Floats = rows @ numpy.array(self.weights) + self.start
        return found

    @property
    def features(self) -> int:
        """How many features a row must have."""
        return len(self.weights)


Regressor = TreeSum | Linear


def one_thread() -> AbstractContextManager[Any]:
    """Linear algebra and trees on one thread: matrices are small, and results do not hang on how many there are.

    Raises ``ScenarioError`` if scikit-learn, which brings it, is not installed.
    """
    try:
        import sklearn.ensemble  # noqa: F401 - only libraries that are there already can be limited
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        raise ScenarioError(_MISSING) from None
    return threadpool_limits(1)  # type: ignore[no-any-return]


def fitted(name: RegressorName, rows: Floats, target: Floats, seed: int) -> Any:
    """scikit-learn's."""
    from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    match name:
        case "gbm":
            made: Any = GradientBoostingRegressor(
                loss="huber", n_estimators=TREES, subsample=0.5, max_features=1 / 3, random_state=seed
            )
        case "forest":
            made = RandomForestRegressor(TREES, max_features=1 / 3, min_samples_leaf=2, random_state=seed)
        case "histogram":
            made = HistGradientBoostingRegressor(max_iter=TREES, early_stopping=False, random_state=seed)
        case "ridge":
            made = RidgeCV(alphas=numpy.logspace(-2, 4, 13))
    return made.fit(rows, target)


def kept(name: RegressorName, made: Any) -> Regressor:
    """A fitted one as data."""
    match name:
        case "gbm":
            return boosting_of(made)
        case "forest":
            return forest_of(made)
        case "histogram":
            return histogram_boosting_of(made)
        case "ridge":
            return Linear(start=float(made.intercept_), weights=made.coef_.tolist())
