"""What a regressor gets to see of the counters: themselves, or one of the two parts of their robust PCA."""

from functools import cached_property
from typing import Literal

import numpy
from numpy.typing import NDArray
from pydantic import model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.predict.decomposition import pursue, split
from fairlane.trees import Part

__all__ = ["PARTS", "Parts", "PartsName", "Scale", "Subspace"]

Floats = NDArray[numpy.float64]
PartsName = Literal["base", "low-rank", "sparse"]
PARTS: tuple[PartsName, ...] = ("base", "low-rank", "sparse")
"""The counters themselves, and the two that add up to them."""


class Scale(Part):
    """Counters less their mean, over their standard deviation: flits and stalls are of different size."""

    centre: list[float]
    """Mean of each counter."""
    spread: list[float]
    """Its standard deviation; 1 for one that never changed."""

    @model_validator(mode="after")
    def _sound(self) -> "Scale":
        if len(self.centre) != len(self.spread) or not all(one > 0 for one in self.spread):
            raise Problems(Problem("spread", "not a positive number for each counter"))
        return self

    @classmethod
    def fit(cls, rows: Floats) -> "Scale":
        """By these rows."""
        spread = rows.std(axis=0)
        # A constant's deviation is what rounding makes of its mean.
        still = spread <= 1e-12 * numpy.abs(rows).max(axis=0)
        return cls(centre=rows.mean(axis=0).tolist(), spread=numpy.where(still, 1.0, spread).tolist())

    def of(self, rows: Floats) -> Floats:
        """Scaled rows."""
        found: Floats = (rows - numpy.array(self.centre)) / numpy.array(self.spread)
        return found


class Subspace(Part):
    """What the low-rank part of the training rows says about later ones: see ``decomposition``."""

    axes: list[list[float]]
    """Its right singular vectors."""
    strengths: list[float]
    """Its singular values."""
    weight: float
    """Of the sparse part."""
    penalty: float
    """How fast a row is taken apart."""

    @model_validator(mode="after")
    def _sound(self) -> "Subspace":
        if len(self.axes) != len(self.strengths) or not all(one > 0 for one in self.strengths):
            raise Problems(Problem("strengths", "not a positive number for each axis"))
        if len({len(axis) for axis in self.axes}) > 1 or self.weight <= 0 or self.penalty <= 0:
            raise Problems(Problem("axes", "not of one length, or a weight or penalty that is not positive"))
        return self

    @cached_property
    def _arrays(self) -> tuple[Floats, Floats]:
        return numpy.array(self.axes), numpy.array(self.strengths)

    def sparse(self, scaled: Floats) -> Floats:
        """The sparse part of rows."""
        if not self.axes:
            return scaled
        return split(scaled, *self._arrays, self.weight, self.penalty)


class Parts(Part):
    """From counters to what a regressor sees."""

    name: PartsName
    """Which part."""
    scale: Scale
    """First of all."""
    subspace: Subspace | None = None
    """None for the counters themselves."""

    @model_validator(mode="after")
    def _whole(self) -> "Parts":
        if (self.subspace is None) != (self.name == "base"):
            raise Problems(Problem("subspace", "missing, or there with the counters themselves"))
        widths = {len(axis) for axis in self.subspace.axes} if self.subspace else set()
        if widths - {len(self.scale.centre)}:
            raise Problems(Problem("subspace.axes", "not as long as there are counters"))
        return self

    @classmethod
    def fit(cls, rows: Floats) -> "dict[PartsName, tuple[Parts, Floats]]":
        """All three, each with what it makes of these rows."""
        scale = Scale.fit(rows)
        scaled = scale.of(rows)
        found = pursue(scaled)
        subspace = Subspace(
            axes=found.axes.tolist(), strengths=found.strengths.tolist(), weight=found.weight, penalty=found.penalty
        )
        return {
            "base": (cls(name="base", scale=scale), scaled),
            "low-rank": (cls(name="low-rank", scale=scale, subspace=subspace), found.low_rank),
            "sparse": (cls(name="sparse", scale=scale, subspace=subspace), found.sparse),
        }

    def of(self, rows: Floats) -> Floats:
        """What a regressor sees of these rows, each by itself."""
        scaled = self.scale.of(rows)
        if self.subspace is None:
            return scaled
        sparse = self.subspace.sparse(scaled)
        return sparse if self.name == "sparse" else scaled - sparse
