"""Run times predicted from conditions: gradient-boosted trees for three quantiles, kept as readable JSON.

J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001; with the
quantile loss of R. Koenker and G. Bassett, Econometrica 46, 1978. They correct the first guess of ``features``: what
they are fitted to is the logarithm of the run time over that of the same application alone, less that of the guess. The
interval between the outer quantiles is widened, or narrowed, by a margin that has been found on runs which the trees
had not seen (Y. Romano, E. Patterson, E. Candes, "Conformalized quantile regression", NeurIPS 2019).
"""

from collections.abc import Mapping
from pathlib import Path

import numpy
import polars as pl
from numpy.typing import NDArray
from pydantic import model_validator

from fairlane.advice.features import FEATURES, described
from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.sealed import load_sealed, save_sealed
from fairlane.trees import Part, TreeSum

__all__ = ["QUANTILES", "ModelError", "RunTimeModel", "interval", "load_model"]

Floats = NDArray[numpy.float64]

QUANTILES = ("0.1", "0.5", "0.9")
"""The interval is to have four fifths of the run times in it."""

MARGINS = {"application", "condition"}


def interval(quantiles: Mapping[str, TreeSum], rows: Floats, margin: float) -> tuple[Floats, Floats, Floats]:
    """Lower end, middle and upper end, in order even where trees of different quantiles cross."""
    low, middle, high = numpy.sort([quantiles[name].predict(rows) for name in QUANTILES], axis=0)
    return numpy.minimum(low - margin, middle), middle, numpy.maximum(high + margin, middle)


class ModelError(Part):
    """How far predictions are off for what the model was not fitted to."""

    runs: int
    """How many runs were predicted."""
    mean: float
    """Mean of the difference, without its sign, over the simulated run time."""
    worst_tenth: float
    """The tenth of the runs with the largest such differences begins here."""
    without: float
    """What the mean is if the median of the others is predicted for all."""
    guess: float
    """What the mean is with the first guess alone, which is fitted to nothing."""
    inside: float
    """Which part of the run times is in the interval."""
    inside_before: float
    """The same without the margin."""
    width: float
    """The upper end over the lower one; the median."""
    regret: float
    """How much longer the run takes that the model holds for the shortest, over the shortest of the same application,
    interference and cap; the mean."""
    regret_of_any: float
    """The same for an alternative that is chosen by lot."""


class RunTimeModel(Part):
    """A fitted model."""

    version: str
    """The version of fairlane that fitted it."""
    data: str
    """Digest of the table that it was fitted to."""
    runs: int
    """How many runs that had."""
    features: list[str]
    """Names of the features, in order."""
    quantiles: dict[str, TreeSum]
    """By quantile: the logarithm of run time over that alone, less that of the first guess."""
    margins: dict[str, float]
    """What both ends of the interval are moved apart by, in logarithms: for an ``application`` that the model has not
    seen, and for a ``condition`` of one that it has."""
    by_application: ModelError
    """On applications that it was not fitted to."""
    by_condition: ModelError
    """On conditions that it was not fitted to."""

    @model_validator(mode="after")
    def _whole(self) -> "RunTimeModel":
        if tuple(self.features) != FEATURES or tuple(self.quantiles) != QUANTILES or set(self.margins) != MARGINS:
            raise Problems(Problem("features", "not those that this version knows", allowed=", ".join(FEATURES)))
        if max(one.features for one in self.quantiles.values()) > len(FEATURES):
            raise Problems(Problem("quantiles", "a tree asks for a feature that there is not"))
        return self

    def predict(self, runs: pl.DataFrame, *, seen: bool = False) -> Floats:
        """For each run the lower end, the middle and the upper end of its time, ms.

        ``runs`` has the columns that ``learn`` takes, and a run alone of each application; other run times are not
        looked at. ``seen`` says that the model was fitted to these applications.
        """
        table = described(runs)
        rows = table.select(FEATURES).to_numpy().astype(float)
        low, middle, high = interval(self.quantiles, rows, self.margins["condition" if seen else "application"])
        scale = (table["guess"].exp() * table["reference_ms"]).to_numpy()[:, None]
        found: Floats = numpy.exp(numpy.stack([low, middle, high], axis=1)) * scale
        return found

    def save(self, path: Path) -> None:
        """Writes the file; raises ``ScenarioError``."""
        save_sealed(self, path)


def load_model(path: Path) -> RunTimeModel:
    """Reads a model; raises ``ScenarioError``."""
    return load_sealed(RunTimeModel, path)
