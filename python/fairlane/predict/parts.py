"""The input of a regressor: the counters, or one of the two parts of their robust PCA."""

from typing import Annotated, Literal, Self

import numpy
from pydantic import Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.models.base import COUNTERS, Dims, Floats, Part, PerCounter
from fairlane.predict.decomposition import pursue, split

PartsName = Literal["base", "low-rank", "sparse"]
PARTS: tuple[PartsName, ...] = ("base", "low-rank", "sparse")
"""The counters themselves, and the two that add up to them."""


class Scale(Part):
    """Counters less their mean, over their standard deviation: flits and stalls are of different size."""

    centre: PerCounter
    """Mean of each counter."""
    spread: Annotated[Floats, Dims((COUNTERS,), sign="positive")]
    """Its standard deviation; 1 for a constant."""

    @classmethod
    def fit(cls, rows: Floats) -> Self:
        """By these rows."""
        spread = rows.std(axis=0)
        # A constant's deviation is the rounding error of its mean.
        constant = spread <= 1e-12 * numpy.abs(rows).max(axis=0)
        return cls(centre=rows.mean(axis=0), spread=numpy.where(constant, 1.0, spread))

    def of(self, rows: Floats) -> Floats:
        """Scaled rows."""
        found: Floats = (rows - self.centre) / self.spread
        return found


class Subspace(Part):
    """The low-rank part of the training rows, by which later ones are decomposed: see ``decomposition``."""

    axes: Annotated[Floats, Dims(("rank", COUNTERS))]
    """Its right singular vectors."""
    strengths: Annotated[Floats, Dims(("rank",), sign="positive")]
    """Its singular values."""
    weight: float = Field(gt=0)
    """Of the sparse part."""
    penalty: float = Field(gt=0)
    """How fast the decomposition of a row converges."""

    def sparse(self, scaled: Floats) -> Floats:
        """The sparse part of rows."""
        return split(scaled, self.axes, self.strengths, self.weight, self.penalty) if self.axes.size else scaled


class Parts(Part):
    """From counters to the input of a regressor."""

    name: PartsName
    """Which part."""
    scale: Scale
    """First of all."""
    subspace: Subspace | None = None
    """None for the counters themselves."""

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.subspace is None) != (self.name == "base"):
            raise Problems(Problem("subspace", "missing, or there with the counters themselves"))
        return self

    @classmethod
    def fit(cls, rows: Floats) -> "dict[PartsName, tuple[Parts, Floats]]":
        """All three, each with its result for these rows."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        found = pursue(scaled)
        subspace = Subspace(axes=found.axes, strengths=found.strengths, weight=found.weight, penalty=found.penalty)
        return {
            "base": (cls(name="base", scale=scale), scaled),
            "low-rank": (cls(name="low-rank", scale=scale, subspace=subspace), found.low_rank),
            "sparse": (cls(name="sparse", scale=scale, subspace=subspace), found.sparse),
        }

    def of(self, rows: Floats) -> Floats:
        """The input of a regressor for these rows, each by itself."""
        scaled = self.scale.of(rows)
        if self.subspace is None:
            return scaled
        sparse = self.subspace.sparse(scaled)
        return sparse if self.name == "sparse" else scaled - sparse
