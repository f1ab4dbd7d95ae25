"""Decision trees and sums of them, kept as readable JSON; what scikit-learn has fitted is written down as such.

A saved model is data and never code: reading a file of unknown origin can run nothing. Predicting takes numpy only.
"""

from functools import cached_property
from typing import Any, Literal

import numpy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table

__all__ = ["Part", "Tree", "TreeSum", "boosting_of", "forest_of", "histogram_boosting_of"]

Floats = NDArray[numpy.float64]


class Part(Table):
    """Part of a saved model: nothing in it that is not known, and nothing changes."""


class Tree(Part):
    """A decision tree: rows go left where their feature is at most the threshold; -1 marks leaves."""

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[float]

    @model_validator(mode="after")
    def _sound(self) -> "Tree":
        nodes = len(self.feature)
        sizes = {len(part) for part in (self.threshold, self.left, self.right, self.value)}
        # Children stand behind their parents, so that every way ends.
        inner = [at for at, feature in enumerate(self.feature) if feature >= 0]
        if sizes != {nodes} or not nodes or not _forward(self.left, inner) or not _forward(self.right, inner):
            raise Problems(Problem("", "not a tree: columns, children or features do not fit each other"))
        return self

    @cached_property
    def _columns(self) -> tuple[NDArray[numpy.int64], Floats, NDArray[numpy.int64], NDArray[numpy.int64], Floats]:
        return (
            numpy.array(self.feature),
            numpy.array(self.threshold),
            numpy.array(self.left),
            numpy.array(self.right),
            numpy.array(self.value),
        )

    def predict(self, rows: NDArray[Any]) -> Floats:
        """The value of each row's leaf."""
        feature, threshold, left, right, value = self._columns
        at = numpy.zeros(len(rows), int)
        there = numpy.arange(len(rows))
        while (inner := feature[at] >= 0).any():
            smaller = rows[there, feature[at]] <= threshold[at]
            at = numpy.where(inner, numpy.where(smaller, left[at], right[at]), at)
        found: Floats = value[at]
        return found


def _forward(children: list[int], inner: list[int]) -> bool:
    return all(at < children[at] < len(children) for at in inner)


class TreeSum(Part):
    """A sum of trees: boosted, or the mean that a forest is."""

    start: float
    """What is predicted without any tree."""
    rate: float = Field(gt=0, le=1)
    """What each tree's value is multiplied by."""
    trees: list[Tree]
    precision: Literal["single", "double"] = "single"
    """Of the features, as the thresholds were chosen for it."""

    def predict(self, rows: Floats) -> Floats:
        """The sum for each row."""
        given = rows.astype(numpy.float32) if self.precision == "single" else rows
        found: Floats = self.start + self.rate * sum(
            (tree.predict(given) for tree in self.trees), numpy.zeros(len(rows))
        )
        return found

    @property
    def features(self) -> int:
        """How many features a row must have at least."""
        return 1 + max((feature for tree in self.trees for feature in tree.feature), default=-1)


def boosting_of(made: Any) -> TreeSum:
    """A fitted ``GradientBoostingRegressor``."""
    trees = [_tree(one.tree_) for one in made.estimators_[:, 0]]
    return TreeSum(start=float(made.init_.constant_.item()), rate=made.learning_rate, trees=trees)


def forest_of(made: Any) -> TreeSum:
    """A fitted ``RandomForestRegressor``."""
    trees = [_tree(one.tree_) for one in made.estimators_]
    return TreeSum(start=0.0, rate=1 / len(trees), trees=trees)


def histogram_boosting_of(made: Any) -> TreeSum:
    """A fitted ``HistGradientBoostingRegressor`` without missing values or categories."""
    # The library offers its fitted trees by this private name only; a test holds them against its predictions.
    nodes = [stage[0].nodes for stage in made._predictors]
    trees = [
        Tree(
            feature=numpy.where(one["is_leaf"], -1, one["feature_idx"]).tolist(),
            threshold=one["num_threshold"].tolist(),
            left=one["left"].tolist(),
            right=one["right"].tolist(),
            value=one["value"].tolist(),
        )
        for one in nodes
    ]
    return TreeSum(start=float(made._baseline_prediction.item()), rate=1.0, trees=trees, precision="double")


def _tree(made: Any) -> Tree:
    return Tree(
        feature=[max(-1, int(one)) for one in made.feature],
        threshold=made.threshold.tolist(),
        left=made.children_left.tolist(),
        right=made.children_right.tolist(),
        value=made.value[:, 0, 0].tolist(),
    )
