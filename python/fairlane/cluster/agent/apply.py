"""Levels of Slurm's jobs by their account, QOS or partition, carried to the network: ``fairlane qos apply``.

Slurm's prolog writes a record for each job that has a level, and its epilog removes it. This process, on the machine of
OpenSM and as its user, puts the levels of all records in force by a backend of the agent: an operator's own policy
stays, and what the network refuses is taken back. Changes that come within ``interval`` of the last one wait and are
made together. After each change the records that were considered are listed in a file, for which a prolog waits.
"""

import fcntl
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from pydantic import Field, PrivateAttr, model_validator

from fairlane.cluster.agent.backends import BackendField, Surroundings
from fairlane.cluster.agent.jobs import Setting, Settings, levels_of, ordered
from fairlane.cluster.agent.system import AgentError, BackendError, FilePath
from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.core.units import Duration
from fairlane.core.wording import plural
from fairlane.inputs.files import read_text, replacing
from fairlane.inputs.hosts import expand, members
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.model.scenario.levels import Level

FILE = "apply.toml"
"""The configuration, in the folder that ``qos export`` writes."""
ANSWERED = ".answered"
"""The records that were considered, a line each; its time says that the process lives."""
_LOCK = ".lock"
_RECORD = re.compile(r"(\d{1,18})\t(\d{1,2})\t(\S+)\n?")
_POLL_S = 0.5
_ALIVE_S = 10.0  # between two writings of the file of answers
_MOST_DOUBLINGS = 6  # of the interval, after failures


class ApplyConfig(Table):
    """The configuration of ``fairlane qos apply``."""

    running: FilePath
    """Folder of the records, which prolog and epilog write; a shared one if Slurm's controller is another machine."""
    interval: Duration = Field(default=10 * 10**12, gt=0)
    """Shortest time between two changes."""
    default: Level = 0
    """Service level of all other traffic."""
    lanes: dict[Level, int]
    """Virtual lane of each service level that jobs may have, and of ``default``."""
    hosts: str
    """Slurm's node names of all hosts of the fabric, as a list."""
    backend: BackendField
    """Backend that carries levels to the network (see ``fairlane list backends``)."""
    _names: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _listed(self) -> Self:
        try:
            self._names = tuple(members(self.hosts))
        except ValueError as error:
            raise Problems(Problem("hosts", str(error), self.hosts, "as rack[01-03,7],login")) from None
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts, one by one."""
        return self._names


class Applier:
    """Keeps the levels of the records in force. ``start`` comes first."""

    def __init__(
        self,
        config: ApplyConfig,
        *,
        report: Callable[[str], object] = str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config, self._report, self._clock = config, report, clock
        self._backend = config.backend
        self._hosts = frozenset(config.names)
        self._applied: Settings | None = None
        self._refused: dict[str, str] = {}
        self._answered: tuple[str, ...] | None = None
        self._answered_at = self._changed_at = -float("inf")
        self._failures = 0
        self._stopped = False

    def start(self) -> None:
        """Raises ``BackendError`` or ``ScenarioError`` if the backend does not fit, or not this machine or user."""
        if not self._config.running.is_dir():
            raise AgentError(f"{self._config.running}: no such folder: make it, writable by SlurmUser only")
        self._backend.check(Surroundings(self._config.names, self._config.lanes, self._config.default))

    def stop(self) -> None:
        """Has ``run`` return; for handlers of signals."""
        self._stopped = True

    def run(self, sleep: Callable[[float], object] = time.sleep) -> None:
        """Goes on until ``stop``."""
        said = ""
        while not self._stopped:
            try:
                self.look()
                said = ""
            except BackendError as error:  # whoever edits the policy may be about to put it back
                if str(error) != said:
                    said = str(error)
                    self._report(said)
            sleep(_POLL_S)

    def look(self) -> float:
        """Puts the present records in force if the last change is long enough ago; returns how long to wait, s."""
        records = dict(_records(self._config.running))
        settings, refused = self._settings(records)
        for line in refused.values():
            if line not in self._refused.values():
                self._report(line)
        self._refused = refused
        wait, before = 0.0, () if self._applied is None and not settings else self._applied
        if settings != before or self._backend.in_force() != levels_of(settings):
            wait = self._wait()
            if wait == 0 and not self._change(settings):
                wait = self._wait()
        if wait == 0:
            self._answer(tuple(records.values()))
        else:
            self._answer(self._answered or ())
        return wait

    def withdraw(self) -> None:
        """Takes all levels back. Raises ``BackendError`` if the network refuses."""
        self._backend.write(())
        self._backend.verify(())

    def _wait(self) -> float:
        factor = 1 << min(self._failures, _MOST_DOUBLINGS)
        return max(0.0, self._changed_at + self._config.interval * 1e-12 * factor - self._clock())

    def _settings(self, records: Mapping[str, str]) -> tuple[Settings, dict[str, str]]:
        """The settings of the records, and why a job has none."""
        settings: dict[str, Setting] = {}
        refused: dict[str, str] = {}
        for job, line in records.items():
            try:
                settings[job] = self._setting(job, line)
            except ScenarioError as error:
                refused[job] = f"job {job} gets no level: {str(error).splitlines()[0]}"
        owners: dict[str, list[str]] = {}
        for job, setting in settings.items():
            for host in setting.hosts:
                owners.setdefault(host, []).append(job)
        for host, jobs in owners.items():
            for job in jobs if len(jobs) > 1 else ():
                message = f"{plural(len(jobs), 'job')} share host {host}, and a level applies to a whole host"
                refused.setdefault(job, f"job {job} gets no level: {message}: {', '.join(jobs)}")
        return ordered(setting for job, setting in settings.items() if job not in refused), refused

    def _setting(self, job: str, line: str) -> Setting:
        record = _RECORD.fullmatch(line)
        if record is None or record[1] != job:
            allowed = "number of the job, level and node list, as prolog.sh writes them"
            raise ScenarioError(Problem("record", "cannot be read", line[:80], allowed))
        level, nodes = int(record[2]), expand(record[3])
        if level not in self._config.lanes:
            allowed = ", ".join(map(str, self._config.lanes))
            raise ScenarioError(Problem("level", "has no lane", level, allowed))
        for node in nodes:
            if node not in self._hosts:
                near = nearest(node, self._config.names)
                raise ScenarioError(Problem("node", "no host of the fabric", node, f"the hosts of {FILE}", near))
        return Setting(job, level, tuple(nodes))

    def _change(self, settings: Settings) -> bool:
        """Whether the settings are in force now; what was in force before stays otherwise."""
        self._changed_at = self._clock()
        saved = self._backend.save()
        shown = ", ".join(f"job {setting.job} level {setting.level}" for setting in settings) or "no job has a level"
        try:
            self._backend.write(settings)
            self._backend.verify(settings)
        except BackendError as error:
            self._failures += 1
            with suppress(BackendError):  # the first reason counts
                self._backend.restore(saved)
            self._report(f"not in force: {shown}: {error}; tried again in {self._wait():.0f} s")
            return False
        self._applied, self._failures = settings, 0
        self._report(f"in force: {shown}")
        return True

    def _answer(self, lines: tuple[str, ...]) -> None:
        if lines == self._answered and self._clock() - self._answered_at < _ALIVE_S:
            return
        with replacing(self._config.running / ANSWERED) as scratch:
            scratch.write_text("".join(f"{line.rstrip()}\n" for line in lines), encoding="utf-8")
            scratch.chmod(0o644)
        self._answered, self._answered_at = lines, self._clock()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Within, no other process applies the records of a folder. Raises ``AgentError`` if one does."""
    try:
        with (folder / _LOCK).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
    except BlockingIOError:
        raise AgentError(f"{folder}: another fairlane qos apply is running") from None
    except OSError as error:
        raise AgentError(f"{folder}: cannot be used: {error.strerror}") from None


def _records(folder: Path) -> Iterator[tuple[str, str]]:
    """Each job with its record, in the order of the jobs' numbers."""
    for file in sorted(folder.iterdir(), key=lambda file: (len(file.name), file.name)):
        if file.name.isdecimal():
            with suppress(OSError, UnicodeDecodeError):  # of a job that has just ended
                yield file.name, read_text(file, 1 << 20)
