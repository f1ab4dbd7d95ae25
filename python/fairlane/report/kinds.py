"""The kinds of results that have a page. A new kind is a package in this folder, one in ``browser``, and a line."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlane.report import reproduction, robustness, schedule
from fairlane.results.base import Results
from fairlane.results.reproduction import ReproductionResults, RobustnessResults
from fairlane.results.schedule import ScheduleResults

Data = Callable[[Any, Any, str], dict[str, Any]]
"""What a page contains, of results, others to compare them with (or None), and what these are called."""


@dataclass(frozen=True)
class Kind:
    """A kind of results."""

    name: str
    """Folder of its modules in ``browser``."""
    words: str
    """What it is, for errors."""
    data_of: Data
    others: Sequence[str] = ()
    """Folders of other kinds whose modules it imports."""


KINDS: Mapping[type[Results], Kind] = {
    ReproductionResults: Kind("reproduction", "a reproduction", reproduction.data_of, ("robustness",)),
    RobustnessResults: Kind("robustness", "a robustness map", robustness.data_of),
    ScheduleResults: Kind("schedule", "the schedules of a job log", schedule.data_of),
}
