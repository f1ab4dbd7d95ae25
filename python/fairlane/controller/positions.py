"""Progress of processes, with the position within an iteration: from counts of marks and times of the last ones.

A mark says that an iteration is complete. Between two marks the position is estimated: an iteration takes as long as
those between the last marks of two readings, and the position stays below the next mark until it comes. Differences of
positions have no noise of an integer count, and add up to the iterations completed.
"""

from dataclasses import dataclass
from typing import Self

import numpy
from numpy.typing import NDArray

Numbers = NDArray[numpy.float64]


@dataclass(frozen=True)
class Positions:
    """The positions of some processes when their counts were read."""

    marks: Numbers
    """Iterations completed."""
    marked: Numbers
    """Time of the last mark; before the first, when counting began."""
    pace: Numbers
    """Time per iteration between the last marks that were read; not a number until it is known."""
    at: Numbers
    """Iterations completed, with the estimated part of the current one."""

    @classmethod
    def begin(cls, marks: Numbers, since: Numbers) -> Self:
        """Positions of processes that have made their last mark, or begun, at ``since``."""
        return cls(numpy.floor(marks), since, numpy.full(len(marks), numpy.nan), marks)

    def then(self, marks: Numbers, marked: Numbers, now: Numbers) -> Self:
        """The positions at a later reading, ``now``.

        ``marks`` are iterations completed, with the part of the current one where a program reports it; ``marked``
        counts where another iteration is complete.
        """
        whole = numpy.floor(marks)
        more = whole > self.marks
        last = numpy.where(more, marked, self.marked)
        pace = self.pace.copy()
        pace[more] = (last - self.marked)[more] / (whole - self.marks)[more]
        part = numpy.zeros(len(marks))
        known = pace > 0
        part[known] = numpy.clip((now - last)[known] / pace[known], 0, 1)
        return type(self)(whole, last, pace, numpy.maximum.reduce([whole + part, marks, self.at]))
