"""When a job has its hosts."""

from typing import NamedTuple


class Stay(NamedTuple):
    """A stretch of time, ps: with its start, without its end."""

    start: float
    end: float

    def meets(self, other: "Stay") -> bool:
        """Whether there is a time that lies in both."""
        return self.start < other.end and other.start < self.end
