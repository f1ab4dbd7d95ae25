"""Run times predicted from conditions: gradient-boosted trees for three quantiles, kept as readable JSON.

J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001; with the
quantile loss of R. Koenker and G. Bassett, Econometrica 46, 1978. What is predicted is a run time over that of the same
application alone without a cap, which one simulation tells. An application is known to the model by two numbers of that
simulation: its share of computing, and how long its packets wait for each other.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy
from numpy.typing import NDArray
from pydantic import ValidationError, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems, unfold
from fairlane.trees import Part, TreeSum

__all__ = ["FEATURES", "QUANTILES", "ModelError", "RunTimeModel", "load_model"]

Floats = NDArray[numpy.float64]

FEATURES = (
    "one_adapter",
    "adapters_shared",
    "interference",
    "link_share",
    "cap_w",
    "packed",
    "spread",
    "compute_share",
    "own_waiting",
)
"""Whether the application has one adapter only; which part of its adapters the interference uses; whether there is
interference; the application's share of a link that both want; its cap; whether it is packed or spread, else it is
random; and alone: its share of computing, and the waiting of a rank's packets for each other over the run time."""
QUANTILES = ("0.1", "0.5", "0.9")
"""The interval has four fifths of the run times in it, if the model is right."""


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
    inside: float
    """Which part of the run times is in the interval."""
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
    """By quantile: the logarithm of run time over that alone."""
    by_application: ModelError
    """On applications that it was not fitted to."""
    by_condition: ModelError
    """On conditions that it was not fitted to."""

    @model_validator(mode="after")
    def _whole(self) -> "RunTimeModel":
        if tuple(self.features) != FEATURES or tuple(self.quantiles) != QUANTILES:
            raise Problems(Problem("features", "not those that this version knows", allowed=", ".join(FEATURES)))
        if max(one.features for one in self.quantiles.values()) > len(FEATURES):
            raise Problems(Problem("quantiles", "a tree asks for a feature that there is not"))
        return self

    def predict(self, conditions: Sequence[Mapping[str, float]]) -> Floats:
        """For each of the conditions the lower end, the middle and the upper end of the run time, over that alone."""
        rows = numpy.array([[one[name] for name in FEATURES] for one in conditions], float)
        return numpy.sort(numpy.exp([self.quantiles[name].predict(rows) for name in QUANTILES]), axis=0).T

    def save(self, path: Path) -> None:
        """Writes the file; raises ``ScenarioError``."""
        try:
            path.write_text(self.model_dump_json() + "\n", encoding="utf-8")
        except OSError as error:
            raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from None


def load_model(path: Path) -> RunTimeModel:
    """Reads a model; raises ``ScenarioError``."""
    try:
        return RunTimeModel.model_validate_json(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(Problem("", f"cannot be read: {words}", file=str(path))) from None
    except ValidationError as error:
        raise ScenarioError(problem.at(str(path), None) for problem in unfold(error, RunTimeModel)) from None
