"""The base of all fitted models: files with a schema and a checksum, cross-validation, intervals, error metrics, trees.

A saved model is data and never code: reading a file of unknown origin can run nothing. Predicting takes numpy only,
fitting takes scikit-learn.
"""

from fairlane.models.base import COUNTERS, Dims, FittedModel, Floats, Integers, Part, PerCounter
from fairlane.models.regressors import REGRESSORS, Linear, RegressorName, TreeSum, estimator, freeze, one_thread
from fairlane.models.tables import read_table
from fairlane.models.validation import (
    Bools,
    ErrorMetrics,
    assign_folds,
    check_coverage,
    conformal_quantile,
    cross_validate,
    grouped_quantile,
    lognormal_interval,
)

__all__ = [
    "COUNTERS",
    "REGRESSORS",
    "Bools",
    "Dims",
    "ErrorMetrics",
    "FittedModel",
    "Floats",
    "Integers",
    "Linear",
    "Part",
    "PerCounter",
    "RegressorName",
    "TreeSum",
    "assign_folds",
    "check_coverage",
    "conformal_quantile",
    "cross_validate",
    "estimator",
    "freeze",
    "grouped_quantile",
    "lognormal_interval",
    "one_thread",
    "read_table",
]
