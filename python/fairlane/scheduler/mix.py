"""Communication patterns of the jobs of a log, which has none: drawn by share from tables ``[[pattern]]`` of a file."""

from typing import Literal

import numpy
from pydantic import Field

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.table import Table
from fairlane.placement import Communication
from fairlane.seeds import Purpose, stream
from fairlane.workload import WorkloadField
from fairlane.workload.base import Workload


class Share(Table):
    """A pattern and how many jobs have it."""

    kind: Literal["nearest neighbour", "many-to-many", "hybrid", "unclear"]
    unit: int | None = Field(default=None, ge=1)
    """Its local unit, in hosts."""
    share: float = Field(gt=0)
    """Its weight among the shares."""
    workload: WorkloadField | None = None
    """The workload of such jobs, for simulations: its name, or a table with the name and its parameters."""


class PatternMix(Table):
    """Patterns by share."""

    pattern: list[Share] = Field(min_length=1)
    """The patterns."""

    def number(self, job: int, seed: int) -> int:
        """The number of the pattern of a job: the same for every allocator."""
        bounds = numpy.cumsum([one.share for one in self.pattern])
        at = float(stream(seed, Purpose.PATTERN, job).random()) * bounds[-1]
        return int(numpy.searchsorted(bounds[:-1], at, side="right"))

    def of(self, job: int, seed: int) -> Communication:
        """The pattern of a job of the log, in the form that placement policies take."""
        return self.communication(self.number(job, seed))

    def communication(self, number: int) -> Communication:
        """A pattern in the form that placement policies take."""
        return Communication(self.pattern[number].kind, self.pattern[number].unit)

    def workload(self, number: int) -> Workload:
        """The workload of jobs of a pattern. Raises ``ScenarioError`` if it has none."""
        found = self.pattern[number].workload
        if found is None:
            words = "missing: slowdowns come from simulations of the workload"
            raise ScenarioError(Problem(f"pattern[{number}].workload", words, allowed="as all_to_all"))
        return found
