"""Job logs in the Standard Workload Format, version 2.2 (Chapin et al. 1999): a job a line, 18 numbers, -1 for unknown.

Of each job the number, submit time, run time, processors and requested time are read. Fields after the 18th, which
converters of other logs append, are not read and counted. A line that cannot be read is a problem with its number, and
the rest of the log is read.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy
from pydantic import Field

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.seeds import Purpose, stream
from fairlane.core.wording import plural
from fairlane.inputs.files import ExpansionError, gunzipped
from fairlane.inputs.table import Table
from fairlane.model.placement import Communication
from fairlane.model.workload import WorkloadField
from fairlane.model.workload.base import Workload

_FIELDS = 18
_CANCELLED = 5
_SHOWN = 40
"""Letters of a line that a message shows."""
_MAX_BYTES = 4 << 30
"""Of an expanded log; the largest of the Parallel Workloads Archive have half a gigabyte."""
_MAX_LINE = 1 << 16
"""Letters of a line."""
_MAX_LINES = 10_000_000
"""Of a log; the largest of the archive has five million jobs."""
MAX_PROBLEMS = 100_000
"""A file with so many lines that cannot be read is no job log."""
_LARGEST = 10**15
"""The largest number that a field can have."""


@dataclass(frozen=True)
class LoggedJob:
    """A job of the log, by its number there and its line in the file."""

    number: int
    submit: int
    """Time of submission, s from the beginning of the log."""
    run: int
    """Run time, s; less than one counts as one."""
    hosts: int
    """Number of processors; each is a host here."""
    estimate: int
    """Requested time, s; the run time where the log has none, and never less."""
    line: int


@dataclass(frozen=True)
class Log:
    """The jobs of a log in the order of submission, and the lines that were skipped, with why."""

    jobs: tuple[LoggedJob, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()
    """Notes on lines that were not read."""


def read_log(path: Path, *, hosts: int | None = None, strict: bool = False, max_jobs: int | None = None) -> Log:
    """Reads a log, plain or gzipped.

    Jobs that need more than ``hosts`` are left out as lines that cannot be read are; ``strict`` raises for both.
    ``max_jobs`` stops after this many jobs. Raises ``ScenarioError`` if the file cannot be read or holds no job.
    """
    jobs: list[LoggedJob] = []
    problems: list[Problem] = []
    longer = 0
    for number, line in _lines(path):
        fields = line.split()
        longer += len(fields) > _FIELDS
        try:
            job = _job(line, fields, number, hosts)
        except ScenarioError as error:
            problems.append(error.problems[0].at(str(path), number))
            if len(problems) >= MAX_PROBLEMS:
                message = f"{MAX_PROBLEMS} lines cannot be read: not a job log"
                raise ScenarioError([*problems[:_SHOWN], Problem("", message, file=str(path))]) from None
            continue
        if job is not None:
            jobs.append(job)
        if max_jobs is not None and len(jobs) >= max_jobs:
            break
    if strict and problems:
        raise ScenarioError(problems)
    if not jobs:
        raise ScenarioError([*problems, Problem("", "holds no job", file=str(path))])
    notes = (f"{plural(longer, 'line')} with more than {_FIELDS} fields: the others are not read",) if longer else ()
    return Log(tuple(sorted(jobs, key=lambda job: (job.submit, job.line))), tuple(problems), notes)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are no comments, with their numbers; the log is streamed and never whole in memory."""
    try:
        with gunzipped(path, _MAX_BYTES) as plain:
            text = io.TextIOWrapper(plain, "utf-8", errors="replace")
            for number, line in enumerate(iter(lambda: text.readline(_MAX_LINE), ""), start=1):
                if len(line) == _MAX_LINE:
                    reason = f"is longer than {_MAX_LINE} characters: not a job log"
                    raise ScenarioError(Problem("line", reason, file=str(path), line=number))
                if number > _MAX_LINES:
                    raise ExpansionError(f"has more than {_MAX_LINES} lines")
                if line.strip() and not line.lstrip().startswith(";"):
                    yield number, line
    except (OSError, ExpansionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioError(Problem("", f"cannot be read: {reason}", file=str(path))) from None


def _start_of(line: str) -> str:
    """A line as a message can hold it."""
    text = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line.strip())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _job(line: str, fields: list[str], number: int, hosts: int | None) -> LoggedJob | None:
    """The job of a line and its words; None if it was cancelled before it ran."""
    if len(fields) < _FIELDS:
        count = "1 field" if len(fields) == 1 else f"{len(fields)} fields"
        raise ScenarioError(Problem("line", f"has {count}", _start_of(line), f"{_FIELDS} numbers or more"))
    values = []
    for at, word in enumerate(fields[:_FIELDS], start=1):
        try:
            values.append(int(float(word)))
        except (ValueError, OverflowError):
            raise ScenarioError(Problem(f"field {at}", "not a number", _start_of(word))) from None
        if abs(values[-1]) > _LARGEST:
            raise ScenarioError(Problem(f"field {at}", "out of range", _start_of(word), f"up to {_LARGEST}"))
    name, submit, run = values[0], values[1], values[3]
    size = values[4] if values[4] > 0 else values[7]
    if name < 0:
        raise ScenarioError(Problem("job number", "is negative", name, "0 or more"))
    if submit < 0:
        raise ScenarioError(Problem("submit time", "not known", submit, "0 or more seconds"))
    if run <= 0 and values[10] == _CANCELLED:
        return None
    if run < 0 or size <= 0:
        key, value = ("run time", run) if run < 0 else ("processors", size)
        raise ScenarioError(Problem(key, "not known", value, "a number"))
    run = max(run, 1)
    if hosts is not None and size > hosts:
        raise ScenarioError(Problem("processors", f"job {name} is larger than the machine", size, f"1 to {hosts}"))
    return LoggedJob(name, submit, run, size, max(run, values[8]), number)


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
        bounds = numpy.cumsum([pattern.share for pattern in self.pattern])
        at = float(stream(seed, Purpose.PATTERN, job).random()) * bounds[-1]
        return int(numpy.searchsorted(bounds[:-1], at, side="right"))

    def of(self, job: int, seed: int) -> Communication:
        """The pattern of a job of the log, in the form that placement policies take."""
        return self.communication(self.number(job, seed))

    def communication(self, number: int) -> Communication:
        """A pattern in the form that placement policies take."""
        return Communication(self.pattern[number].kind, self.pattern[number].unit)

    @property
    def workloads(self) -> list[Workload]:
        """The workload of each pattern. Raises ``ScenarioError`` if one has none."""
        return [self.workload(number) for number in range(len(self.pattern))]

    def workload(self, number: int) -> Workload:
        """The workload of jobs of a pattern. Raises ``ScenarioError`` if it has none."""
        chosen = self.pattern[number].workload
        if chosen is None:
            message = "missing: slowdowns come from simulations of the workload"
            raise ScenarioError(Problem(f"pattern[{number}].workload", message, allowed="as all_to_all"))
        return chosen


@dataclass(frozen=True)
class Placed:
    """A job that ran: its line of the log, and its start and end, s."""

    job: LoggedJob
    start: float
    end: float
    hosts: tuple[int, ...]
    """Its hosts; rank n of the job is on host n of these."""
    own: float = 1.0
    """Slowdown by its hosts, relative to its best ones."""

    @property
    def wait(self) -> float:
        """Waiting time, s."""
        return self.start - self.job.submit

    @property
    def ran(self) -> float:
        """Run time, s."""
        return self.end - self.start

    @property
    def slowdown(self) -> float:
        """Run time over that of the log."""
        return self.ran / self.job.run

    @property
    def lost(self) -> float:
        """Run time lost to neighbours, s."""
        return max(0.0, round(self.ran - self.own * self.job.run, 6))


@dataclass(frozen=True)
class Schedule:
    """The schedule of a log."""

    jobs: tuple[Placed, ...]
    """The jobs in the order in which they started."""
    refused: tuple[LoggedJob, ...]
    """Jobs that the allocator refuses even on the empty machine."""
    fragmented: float
    """Host-seconds in which enough hosts for the head of the queue were free, but not in the shape that it requires."""

    def at(self, instant: float) -> list[Placed]:
        """The jobs running at a time."""
        return [job for job in self.jobs if job.start <= instant < job.end]
