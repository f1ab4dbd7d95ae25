"""Section VII of Smith et al. 2018 on the runs' counters: Tables II and III, Figures 11 and 12."""

from dataclasses import dataclass

import polars as pl

from fairlane.predict import Comparison, CounterTable, compare, local
from fairlane.predict.validation import FOLDS
from fairlane.runner.counters import FEATURES

__all__ = ["Prediction"]

ITERATIONS = 2500
"""Iterations of a timestep of the paper."""


@dataclass(frozen=True)
class Prediction:
    """Cross-validation by run. Times are seconds of a timestep as long as the paper's, of so many such iterations."""

    parts: Comparison
    """Models on the counters, and on their low-rank and sparse parts."""
    local: Comparison
    """One, two and three models for clusters of runs, on sparse parts."""

    @classmethod
    def of(cls, timesteps: pl.DataFrame, iterations: int) -> "Prediction":
        """Of the table of timesteps, which have so many iterations; those to warm up are left out."""
        longer = pl.col("seconds") * (ITERATIONS / iterations)
        regular = timesteps.filter(~pl.col("warmup")).with_columns(seconds=longer)
        # Virtual channels that no packet takes say nothing.
        used = [name for name in FEATURES if regular[name].n_unique() > 1]
        table = CounterTable.of(regular.select("run", "timestep", "seconds", *used))
        folds = min(FOLDS, table.runs)
        return cls(compare(table, folds=folds), local(table, folds=folds))

    def error(self, model: str, parts: str, setting: str = "inductive") -> float:
        """The mean squared error of a model of Table II."""
        rows = self.parts.table.filter(model=model, parts=parts, setting=setting)
        return float(rows["mse"].item())

    def local_error(self, clusters: int, column: str) -> float:
        """An error of Table III: ``mse`` or ``max_abs_error``."""
        return float(self.local.table.filter(clusters=clusters)[column].item())
