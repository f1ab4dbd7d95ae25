"""Which communication patterns the jobs of a log have, as logs do not say: drawn by shares from a file.

For example::

    [[pattern]]
    kind = "many-to-many"
    share = 0.3
    [[pattern]]
    kind = "hybrid"
    unit = 8
    share = 0.7
"""

from typing import Literal

import numpy
from pydantic import Field

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.table import Table
from fairlane.placement import Communication
from fairlane.seeds import Purpose, stream
from fairlane.workload import WorkloadField
from fairlane.workload.base import Workload

__all__ = ["PatternMix", "Share"]


class Share(Table):
    """A pattern and how many jobs have it."""

    kind: Literal["nearest neighbour", "many-to-many", "hybrid", "unclear"]
    """What it is."""
    unit: int | None = Field(default=None, ge=1)
    """Its local unit, in hosts."""
    share: float = Field(gt=0)
    """How many of the jobs have it, compared with the other shares."""
    workload: WorkloadField | None = None
    """What such jobs do, for simulations: a workload's name, or a table with the name and its parameters."""


class PatternMix(Table):
    """Patterns by share."""

    pattern: list[Share] = Field(min_length=1)
    """The patterns."""

    def number(self, job: int, seed: int) -> int:
        """Which pattern a job of the log has: the same for every allocator."""
        bounds = numpy.cumsum([one.share for one in self.pattern])
        at = float(stream(seed, Purpose.PATTERN, job).random()) * bounds[-1]
        return int(numpy.searchsorted(bounds[:-1], at, side="right"))

    def of(self, job: int, seed: int) -> Communication:
        """The pattern of a job of the log, as strategies see it."""
        return self.communication(self.number(job, seed))

    def communication(self, number: int) -> Communication:
        """A pattern as strategies see it."""
        return Communication(self.pattern[number].kind, self.pattern[number].unit)

    def workload(self, number: int) -> Workload:
        """What jobs of a pattern do. Raises ``ScenarioError`` if the mix does not say."""
        found = self.pattern[number].workload
        if found is None:
            words = "missing: slowdowns come from simulations of what jobs do"
            raise ScenarioError(Problem(f"pattern[{number}].workload", words, allowed="as all_to_all"))
        return found
