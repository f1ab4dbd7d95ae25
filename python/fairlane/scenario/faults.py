"""Faults: what happens to a fabric while it runs, as pydantic models."""

from typing import Any, Self

from pydantic import Field, model_validator

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Parameterised
from fairlane.units import DURATION, Duration


class Fault(Parameterised):
    """Something that goes wrong with the fabric for a time: a kind with parameters (see ``fairlane list faults``)."""

    of_table = "fault"
    name_key = "kind"
    kind: str
    """Name of the fault."""
    at: Duration = Field(default=0, ge=0)
    """When it begins."""
    until: Duration | None = Field(default=None, gt=0)
    """When it ends; by default it lasts to the end of the run."""

    @property
    def spec(self) -> dict[str, Any]:
        """The fault as the simulator takes it."""
        return {"fault": {"name": self.kind, "params": self.parameters}, "at": self.at, "until": self.until}

    @model_validator(mode="after")
    def _ends_later(self) -> Self:
        if self.until is not None and self.until <= self.at:
            raise Problems(
                Problem("until", "is not after at", DURATION.format(self.until), f"after {DURATION.format(self.at)}")
            )
        return self
