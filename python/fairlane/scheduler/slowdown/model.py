"""The model of slowdowns, fitted to packet-level simulations, and its file.

For every pattern of the mix it has two sums. The logarithm of a job's slowdown by its *own* hosts is a sum of the own
features, fitted by least squares (scattering may help or harm); the logarithm of its slowdown by its *neighbours* is a
sum of their features with coefficients that are not negative (Lawson and Hanson's NNLS): neighbours never help. Both
are clipped to the range that was simulated. A job's slowdown is the product of both.

The file has fabric, mix, coefficients, and the errors on held-out snapshots.
"""

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy
from pydantic import Field, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.models import ErrorMetrics, FittedModel, Floats, Part
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.features import NEIGHBOURS, OWN

if TYPE_CHECKING:
    from fairlane.fabric.table import FabricTable

__all__ = ["Coefficients", "SlowdownModel", "load_model", "shipped_models"]

_SHIPPED = files("fairlane.scheduler.slowdown") / "models"


class Coefficients(Part):
    """The coefficients of one pattern."""

    own: dict[str, float]
    """By own feature."""
    neighbours: dict[str, float]
    """By feature of the neighbours."""
    min_own: float
    """The smallest slowdown by its own hosts that was simulated; no smaller one is predicted."""
    max_own: float
    """The largest."""
    max_neighbours: float
    """The largest slowdown by neighbours that was simulated; no larger one is predicted."""
    error: ErrorMetrics
    """Of the whole slowdown, on held-out snapshots; the baseline is no slowdown."""

    @model_validator(mode="after")
    def _all_features(self) -> Self:
        problems = [
            Problem(part, "does not have the features of this version", ", ".join(given), ", ".join(names))
            for part, given, names in (("own", self.own, OWN), ("neighbours", self.neighbours, NEIGHBOURS))
            if tuple(given) != names
        ]
        if problems:
            raise Problems(*problems)
        return self

    def own_slowdown(self, features: Floats) -> float:
        """By a job's own hosts, relative to its best."""
        found = float(numpy.exp(features @ numpy.array(list(self.own.values()))))
        return round(min(max(found, self.min_own), self.max_own), 6)

    def neighbours_slowdown(self, features: Floats) -> float:
        """By the co-running jobs."""
        found = float(numpy.exp(features @ numpy.array(list(self.neighbours.values()))))
        return round(min(found, self.max_neighbours), 6)


class SlowdownModel(FittedModel):
    """A fitted model with fabric and mix."""

    FORMAT: ClassVar[str] = "fairlane slowdown 2"

    seed: int
    """Seed of the simulations."""
    snapshots: int
    """How many snapshots were simulated."""
    fabric: dict[str, Any]
    """The fabric, as in a scenario."""
    mix: PatternMix
    """The patterns."""
    coefficients: list[Coefficients] = Field(min_length=1)
    """Of each pattern, in the order of the mix."""

    @model_validator(mode="after")
    def _as_many(self) -> Self:
        if len(self.coefficients) != len(self.mix.pattern):
            words = f"there are {len(self.mix.pattern)} patterns in the mix"
            raise Problems(Problem("coefficients", words, len(self.coefficients), "one table for each"))
        return self

    @property
    def table(self) -> "FabricTable":
        """The fabric's table; raises ``ScenarioError``."""
        from fairlane.fabric.table import FabricTable

        return FabricTable.read(dict(self.fabric))


def shipped_models() -> list[str]:
    """The models that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))


def load_model(name: str | Path) -> SlowdownModel:
    """A model by its file, or by name if it comes with the package; raises ``ScenarioError``."""
    if str(name) in shipped_models():
        with as_file(_SHIPPED / f"{name}.toml") as path:
            return SlowdownModel.load(path)
    if not Path(name).exists():
        raise ScenarioError(Problem.unknown("model", "file or model", str(name), shipped_models(), str(name)))
    return SlowdownModel.load(Path(name))
