"""The model of slowdowns, fitted to packet-level simulations, and the file that it is kept in.

For every pattern of the mix it has two sums. The logarithm of what a job's *own* hosts do to its period is a sum of the
own features, fitted by least squares (scattering may help or harm); the logarithm of what its *neighbours* do is a sum
of their features with coefficients that are not negative (Lawson and Hanson's NNLS): neighbours never help. Neither
leaves the range that was simulated. A job's slowdown is the product of both.

The file is TOML: fabric, mix, coefficients, and how far the model was off on moments that it was not fitted to.
"""

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy
import tomlkit
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.parse import parse_toml
from fairlane.inputs.problems import Problems
from fairlane.inputs.reading import MOST_STORED, read_text
from fairlane.inputs.sealed import CHECKSUM, checksum, read_sealed
from fairlane.inputs.table import Table
from fairlane.inputs.writing import replacing
from fairlane.scheduler.mix import PatternMix
from fairlane.scheduler.slowdown.features import NEIGHBOURS, OWN

if TYPE_CHECKING:
    from fairlane.fabric.table import FabricTable

__all__ = ["Coefficients", "ModelError", "SlowdownModel", "error_of", "load_model", "shipped_models"]

Floats = NDArray[numpy.float64]


class ModelError(Table):
    """How far predicted slowdowns are from simulated ones."""

    jobs: int
    """How many jobs were compared."""
    mean: float
    """Mean of the difference, without its sign, over the simulated slowdown."""
    worst_tenth: float
    """The tenth of the jobs with the largest such differences begins here."""
    bias: float
    """Mean of the difference with its sign: above 0 the model predicts too much."""
    without: float
    """What the mean would be if every slowdown were predicted as 1."""


class Coefficients(Table):
    """What the model knows about one pattern."""

    own: dict[str, float]
    """By own feature."""
    neighbours: dict[str, float]
    """By feature of the neighbours."""
    least_own: float
    """The least slowdown by its own hosts that was simulated, and predicted."""
    most_own: float
    """The greatest."""
    most_neighbours: float
    """The greatest slowdown by neighbours that was simulated, and predicted."""
    error: ModelError
    """Of the whole slowdown, on moments that it was not fitted to."""

    @model_validator(mode="after")
    def _all_features(self) -> "Coefficients":
        wanted = {"own": OWN, "neighbours": NEIGHBOURS}
        problems = [
            Problem(part, "does not have the features that this version knows", ", ".join(given), ", ".join(names))
            for part, names in wanted.items()
            if list(given := getattr(self, part)) != list(names)
        ]
        if problems:
            raise Problems(*problems)
        return self

    def own_slowdown(self, features: Floats) -> float:
        """Of a job's hosts alone, over its best."""
        found = float(numpy.exp(features @ numpy.array(list(self.own.values()))))
        return round(min(max(found, self.least_own), self.most_own), 6)

    def neighbours_slowdown(self, features: Floats) -> float:
        """Of the jobs beside it."""
        found = float(numpy.exp(features @ numpy.array(list(self.neighbours.values()))))
        return round(min(found, self.most_neighbours), 6)


class SlowdownModel(Table):
    """A fitted model with what it was fitted to."""

    version: str
    """The version of fairlane that simulated."""
    seed: int
    """Seed of the simulations."""
    moments: int
    """How many moments were simulated."""
    fabric: dict[str, Any]
    """The fabric, as in a scenario."""
    mix: PatternMix
    """The patterns."""
    coefficients: list[Coefficients] = Field(min_length=1)
    """Of each pattern, in the order of the mix."""

    @model_validator(mode="after")
    def _as_many(self) -> "SlowdownModel":
        if len(self.coefficients) != len(self.mix.pattern):
            words = f"there are {len(self.mix.pattern)} patterns in the mix"
            raise Problems(Problem("coefficients", words, len(self.coefficients), "one table for each"))
        return self

    @property
    def table(self) -> "FabricTable":
        """The fabric's table; raises ``ScenarioError``."""
        from fairlane.fabric.table import FabricTable

        return FabricTable.read(dict(self.fabric))

    def save(self, path: Path) -> None:
        """Writes the file; raises ``ScenarioError``."""
        document = tomlkit.document()
        document.add(tomlkit.comment("How hosts and neighbours slow jobs down, fitted to packet-level simulations."))
        data = self.model_dump(mode="json", exclude_none=True)
        document.update({CHECKSUM: checksum(parse_toml(tomlkit.dumps(data))), **data})
        try:
            with replacing(path) as scratch:
                scratch.write_text(tomlkit.dumps(document), encoding="utf-8")
        except OSError as error:
            raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(path))) from error


def shipped_models() -> list[str]:
    """The models that come with the package."""
    folder = files("fairlane.scheduler.slowdown") / "models"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load_model(name: str | Path) -> SlowdownModel:
    """A model by its file, or by name if it comes with the package; raises ``ScenarioError``."""
    if str(name) in shipped_models():
        return _read((files("fairlane.scheduler.slowdown") / "models" / f"{name}.toml").read_text(), str(name))
    path = Path(name)
    try:
        return _read(read_text(path, MOST_STORED), str(path))
    except FileNotFoundError:
        raise ScenarioError(Problem.unknown("model", "file or model", str(name), shipped_models(), str(name))) from None
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ScenarioError(Problem("", f"cannot be read: {words}", file=str(path))) from None


def _read(text: str, file: str) -> SlowdownModel:
    return read_sealed(SlowdownModel, text, file, parse_toml, "TOML")


def error_of(predicted: Sequence[float], simulated: Sequence[float]) -> ModelError:
    """How far the predictions are off."""
    found, truth = numpy.array(predicted), numpy.array(simulated)
    off = found / truth - 1
    return ModelError(
        jobs=len(truth),
        mean=_rounded(numpy.abs(off).mean()),
        worst_tenth=_rounded(numpy.quantile(numpy.abs(off), 0.9)),
        bias=_rounded(off.mean()),
        without=_rounded(numpy.abs(1 / truth - 1).mean()),
    )


def _rounded(value: Any) -> float:
    return round(float(value), 4)
