"""Whether a run is like those that a model was fitted to, and how wide the interval around its predictions must be.

*Unlike*: the distance of a run is the root mean square of its timesteps' Mahalanobis distances from the training
timesteps, with the covariance of O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance
matrices", Journal of Multivariate Analysis 88, 2004 (scikit-learn). Every training run has one too, from all others. A
run that is farther away than any of R training runs was is unlike them; by chance alone that is one in R + 1.

*Interval*: the errors of cross-validation, every run with the same weight and one more run that may be off by anything,
as in Y. Lee, R. F. Barber, R. Willett, "Distribution-free inference with hierarchical data", 2023: a timestep of a new
run of the same kind is inside with the probability wanted. As the errors come from models without the run in question
and not from the one that is kept, that is close to true and no theorem.
"""

from functools import cached_property

import numpy
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.problems import Problems
from fairlane.predict.parts import Scale
from fairlane.trees import Part
from fairlane.wording import plural

__all__ = ["Familiarity", "check_coverage", "half_width"]

Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.int64]


class Familiarity(Part):
    """What the training runs were like."""

    scale: Scale
    """Of the counters."""
    precision: list[list[float]]
    """The inverse covariance of the scaled training timesteps."""
    distances: list[float] = Field(min_length=1)
    """Of each training run from all the others, in ascending order."""

    @model_validator(mode="after")
    def _sound(self) -> "Familiarity":
        if {len(row) for row in (self.scale.centre, *self.precision)} != {len(self.precision)}:
            raise Problems(Problem("precision", "not a square as wide as there are counters"))
        return self

    @classmethod
    def fit(cls, rows: Floats, run: Integers) -> "Familiarity":
        """To training runs; every one is left out once."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        off = []
        for number in range(int(run.max()) + 1):
            out = run == number
            centre = scaled[~out].mean(axis=0)
            off.append(_distance(scaled[out] - centre, _precision(scaled[~out])))
        return cls(scale=scale, precision=_precision(scaled).tolist(), distances=sorted(off))

    @cached_property
    def _precision(self) -> Floats:
        return numpy.array(self.precision)

    def distance(self, rows: Floats) -> float:
        """Of a run by its timesteps."""
        return _distance(self.scale.of(rows), self._precision)

    def is_unlike(self, rows: Floats) -> bool:
        """Whether it is farther away than any training run was."""
        return self.distance(rows) > self.distances[-1]

    def strangest(self, rows: Floats) -> int:
        """The counter whose mean over the run is farthest from that of the training runs, in their deviations."""
        return int(numpy.abs(self.scale.of(rows).mean(axis=0)).argmax())


def _precision(scaled: Floats) -> Floats:
    from sklearn.covariance import LedoitWolf

    found: Floats = LedoitWolf().fit(scaled).precision_
    return found


def _distance(centred: Floats, precision: Floats) -> float:
    squares = numpy.einsum("ij,jk,ik->i", centred, precision, centred)
    return float(numpy.sqrt(max(squares.mean(), 0.0)))


def check_coverage(runs: int, coverage: float) -> None:
    """Raises ``ScenarioError`` if so many runs are too few for an interval."""
    if not 0 < coverage <= runs / (runs + 1) * (1 + 1e-12):
        words = f"{plural(runs, 'run')} cannot give an interval for so many of the timesteps"
        raise ScenarioError(Problem("coverage", words, coverage, f"above 0, at most {runs / (runs + 1):.4g}"))


def half_width(off: Floats, run: Integers, coverage: float) -> float:
    """What errors without sign stay within, with this probability, at a timestep of a new run.

    Raises ``ScenarioError`` if the runs are too few to say so.
    """
    runs = int(run.max()) + 1
    check_coverage(runs, coverage)
    weight = 1 / (numpy.bincount(run)[run] * (runs + 1))
    order = numpy.argsort(off, kind="stable")
    reached = numpy.cumsum(weight[order])
    enough = int(numpy.searchsorted(reached, coverage * (1 - 1e-9)))
    return float(off[order][min(enough, len(off) - 1)])
