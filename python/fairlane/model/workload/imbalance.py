"""Imbalance of compute time among the ranks of a job: each rank's share of Y, 0 to 1."""

from typing import Annotated

import numpy
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer
from typing_extensions import override

from fairlane.core.units import Written
from fairlane.inputs.registry import Named, Registry

Parts = NDArray[numpy.float64]


class Imbalance(Named):
    """A division of compute time."""

    def parts(self, ranks: int, rng: numpy.random.Generator) -> Parts:
        """Each rank's part of Y once the imbalance is as great as it gets."""
        raise NotImplementedError

    def stages(self, variant: int) -> list[float]:
        """The imbalance of each stage of a run, 0 (all ranks alike) to 1; the last one lasts for ever."""
        del variant
        return [1.0]


class Uniform(Imbalance):
    """Each rank computes a random time between ``low`` x Y and Y, the same for the whole run."""

    low: float = Field(default=0.0, ge=0, le=1, description="minimum share of Y; 1 means no imbalance")

    @override
    def parts(self, ranks: int, rng: numpy.random.Generator) -> Parts:
        return self.low + (1 - self.low) * rng.random(ranks)


class OneRank(Imbalance):
    """One random rank computes Y, the others not at all."""

    @override
    def parts(self, ranks: int, rng: numpy.random.Generator) -> Parts:
        parts = numpy.zeros(ranks)
        parts[int(rng.random() * ranks)] = 1.0
        return parts


class Growing(Uniform):
    """Growing imbalance: all compute times are equal at first, and in stages they diverge to ``low`` x Y to Y."""

    low: float = Field(default=0.0, ge=0, le=1, description="minimum share of Y at full imbalance")
    steps: int = Field(
        default=16,
        ge=1,
        le=10_000,
        description="stages from balanced to full imbalance; a stage has `distinct_iterations`",
    )
    per_variant: float = Field(
        default=0.0, ge=0, le=1, description="imbalance at the start, for each step of `variant`"
    )

    @override
    def stages(self, variant: int) -> list[float]:
        start = min(1.0, variant * self.per_variant)
        return [float(level) for level in numpy.linspace(start, 1.0, self.steps)] if start < 1 else [1.0]


IMBALANCES: Registry[type[Imbalance]] = Registry(
    "imbalance",
    "fairlane.imbalances",
    {"uniform": Uniform, "one_rank": OneRank, "growing": Growing},
    base=Imbalance,
    unread=Uniform,
    key="kind",
)
"""All kinds of imbalance by name."""

ImbalanceField = Annotated[Written[Imbalance], BeforeValidator(IMBALANCES.read), PlainSerializer(IMBALANCES.written)]
"""A model's field that takes a kind's name or a table with ``kind`` and its parameters."""
