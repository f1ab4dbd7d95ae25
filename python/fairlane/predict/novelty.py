"""Whether a run is out of distribution: farther from the runs that a model was fitted to than any of these was.

The distance of a run is the root mean square of its timesteps' Mahalanobis distances from the training timesteps, with
the covariance of O. Ledoit and M. Wolf, "A well-conditioned estimator for large-dimensional covariance matrices",
Journal of Multivariate Analysis 88, 2004 (scikit-learn). Every training run has such a distance from all others. A run
that is farther away than any of R training runs is out of distribution; by chance alone that is one in R + 1.
"""

from typing import Annotated, Self

import numpy
from pydantic import Field

from fairlane.inputs.extras import require
from fairlane.models.base import COUNTERS, Dims, Floats, Integers, Part
from fairlane.predict.parts import Scale


class Novelty(Part):
    """The distribution of the training runs."""

    scale: Scale
    """Of the counters."""
    precision: Annotated[Floats, Dims((COUNTERS, COUNTERS))]
    """The inverse covariance of the scaled training timesteps."""
    distances: list[float] = Field(min_length=1)
    """Of each training run from all the others, in ascending order."""

    @classmethod
    def fit(cls, rows: Floats, run: Integers) -> Self:
        """To training runs; every one is left out once."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        distances = []
        for number in range(int(run.max()) + 1):
            out = run == number
            centred = scaled[out] - scaled[~out].mean(axis=0)
            distances.append(_distance(centred, _precision(scaled[~out])))
        return cls(scale=scale, precision=_precision(scaled), distances=sorted(distances))

    def distance(self, rows: Floats) -> float:
        """Of a run by its timesteps."""
        return _distance(self.scale.of(rows), self.precision)

    def is_out_of_distribution(self, rows: Floats) -> bool:
        """Whether a run is farther away than any training run was."""
        return self.distance(rows) > self.distances[-1]

    def most_anomalous(self, rows: Floats) -> int:
        """The counter whose mean over the run is farthest from that of the training runs, in standard deviations."""
        return int(numpy.abs(self.scale.of(rows).mean(axis=0)).argmax())


def _precision(scaled: Floats) -> Floats:
    require("predict")
    from sklearn.covariance import LedoitWolf

    found: Floats = LedoitWolf().fit(scaled).precision_
    return found


def _distance(centred: Floats, precision: Floats) -> float:
    squares = numpy.einsum("ij,jk,ik->i", centred, precision, centred)
    return float(numpy.sqrt(max(squares.mean(), 0.0)))
