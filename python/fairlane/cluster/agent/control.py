"""A controller in the agent: it learns the progress of real processes, and its settings are carried out by rank.

In each period the progress of all processes is read, the controller (the same class that simulations have) is given
what they did, and what it decides is a change in the journal like any other. A restarted agent takes back what it finds
and begins anew, because a controller compares with a period without its settings.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from queue import SimpleQueue

import numpy
from typing_extensions import override

from fairlane.cluster.agent.absent import Absent
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.jobs import NEUTRAL, Event, Setting, Settings, levels_of, ordered
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.processes import Unit, no_answer, units_of
from fairlane.cluster.agent.progress import Progress, Snapshot, read
from fairlane.cluster.agent.system import AgentError, BackendError
from fairlane.cluster.agent.watch import Plan, Watch
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.tables import PS
from fairlane.sim.controller.base import JobWork, Positions, Steering, Work, problems_of
from fairlane.sim.controller.base import Settings as Chosen


@dataclass(frozen=True)
class Period:
    """A period of a controller on real jobs."""

    number: int
    state: str
    """State of the controller in it."""
    accepted: bool
    """Whether it adopted a configuration after it."""
    settings: Settings
    """Settings in force."""
    work: Work
    """Work of the jobs."""
    read_s: float
    """Time for reading the progress, s."""
    change_s: float
    """Time until the settings of the next period were in force and verified, s; 0 if they are the same."""


@dataclass(frozen=True)
class _Reading:
    """The progress of the units of all jobs at the end of a period."""

    units: Mapping[str, tuple[Unit, ...]]
    processes: Mapping[tuple[str, int], Progress]
    positions: Mapping[str, Positions]
    """By job, of its ranks in order."""


class Steered(Watch):
    """An agent whose controller decides; arguments as those of ``Watch``.

    Args:
        observe: Takes each period when it is over.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        events: "SimpleQueue[Event]",
        *,
        apply: bool = False,
        report: Callable[[str], object] = str,
        observe: Callable[[Period], object] = lambda _: None,
    ) -> None:
        super().__init__(config, journal, events, apply=apply, report=report)
        assert config.controller is not None, "the configuration has a controller"
        self._controller = config.controller.model_copy(deep=True)
        self._period_s = config.progress.period * PS
        self._steering: Steering | None = None
        self._before: _Reading | None = None
        self._observe, self._number, self._most = observe, 0, inf
        self._nodes = Absent(AgentError)
        self._said: Mapping[str, str] = {}
        self._warned = False  # of periods that are too short
        self._unsure = True  # whether what is in force may differ from the journal

    @override
    def start(self) -> None:
        backend, controller = self._backend, self._controller
        if controller.needs_weights and not backend.sets_weights:
            message = f"sets weights of levels, which the backend {backend.name} does not change"
            allowed = "none, or a backend that does; opensm with weights = true"
            raise ScenarioError(Problem("controller", message, controller.name, allowed))
        if controller.moves_levels and not backend.for_connected:
            message = f"changes levels of running processes, and with the backend {backend.name} they hold for new "
            message += "connections only"
            allowed = 'process_prioritization with levels = "static", fixed or isolate; or the backend linux'
            raise ScenarioError(Problem("controller", message, controller.name, allowed))
        super().start()
        if before := self._journal.in_force(backend.name):
            self._take_back(before)

    @override
    def run(self, *, once: bool = False, periods: int | None = None) -> None:
        """Goes on until ``stop`` or Ctrl-C, or for so many periods; a controller is never done ``once``."""
        if once:
            raise ScenarioError(Problem("--once", "a controller goes on for ever", allowed="an agent without one"))
        self._most = inf if periods is None else self._number + periods
        while not self._stopped and self._number < self._most:
            due = time.monotonic() + self._period_s
            try:
                self._hear()
                if self._answers:
                    self.period()
            except AgentError as error:
                self._changed()
                self._report(f"the period is not judged: {error}")
            except BackendError as error:
                self._stand_still(error)
            if self._number < self._most:
                self._listen(due)

    def _listen(self, until: float) -> None:
        """Takes in events until then, of ``time.monotonic``, or until ``stop``."""
        while not self._stopped and (left := until - time.monotonic()) > 0:
            self._hear(min(left, 0.5))
            self._poll_in_time()

    def period(self) -> None:
        """Ends a period and begins the next one, unless it was the last. Raises ``AgentError`` or ``BackendError``."""
        begin = time.monotonic()
        now = self._read()
        read_s, change_s = time.monotonic() - begin, 0.0
        before, state = self._before, self._controller.state
        settings = self._journal.in_force(self._backend.name)
        work = None if before is None or self._steering is None else self._work(before, now)
        accepted = bool(work and self._steering and self._steering.end(work))
        self._before = None  # nothing is judged by a period in which something fails
        number = self._number
        self._number += work is not None
        try:
            if self._number < self._most:
                change_s = self._begin_period(now)
            self._before = now
        finally:
            if now.units:  # without jobs there is hardly anything to read
                self._cost(read_s, change_s)
            if work is not None:
                self._observe(Period(number, state, accepted, settings, work, read_s, change_s))

    def _cost(self, read_s: float, change_s: float) -> None:
        """Keeps what the period has cost; reports once if periods are too short for it."""
        spent = self._journal.measured(self._backend.name, self._period_s, read_s, change_s)
        warning = spent.warning if spent else ""
        if warning and not self._warned:
            self._report(warning)
        self._warned = bool(warning)

    def _begin_period(self, now: _Reading) -> float:
        """Carries out what the controller chooses for the jobs that are there; returns how long that took, s."""
        present = {job: len(units) for job, units in now.units.items()}
        if self._steering is None:
            if not present:
                self._doing("waits for jobs that mark their progress")
                return 0.0
            self._steering = Steering(self._controller, present)
        chosen = self._steering.begin(present) if present else Chosen()
        problems = [
            problem.under("controller") for problem in problems_of(chosen, self._controller.service_levels, present)
        ]
        if problems:
            raise ScenarioError(problems)
        wanted = _settings(chosen, now.units)
        before = self._journal.in_force(self._backend.name)
        kind, reason = "change", f"{self._controller.name}, period {self._number}: {self._controller.state}"
        unsure, self._unsure = self._unsure, False
        if unsure and self._backend.in_force() != levels_of(before):
            kind, reason = "repair", "what is in force is not what the journal has: set again"
        elif wanted == before:
            return 0.0
        begin = time.monotonic()
        if not self._carry_out(Plan(kind, wanted, reason), list(present), before):
            raise AgentError("the change was undone")
        return time.monotonic() - begin

    def _take_back(self, before: Settings) -> None:
        plan = Plan("end", (), "a controller begins without settings")
        if not self._carry_out(plan, list(self._journal.jobs()), before):
            raise BackendError("what is in force cannot be taken back")

    def _read(self) -> _Reading:
        """The progress of all jobs that run, of those of which every rank is known."""
        table, jobs = self._config.progress, self._journal.jobs()
        nodes = sorted({node for job in jobs.values() for node in job.nodes})
        if not table.through:
            snapshots = [read(socket=table.socket, directories=table.directories or None)]
        else:
            snapshots = list(self._nodes.ask(lambda node: _of(node, self._config), nodes).values())
        silent = {
            job: no_answer(node, self._nodes.errors[node])
            for job, of in jobs.items()
            for node in of.nodes
            if node in self._nodes.errors
        }
        processes = {key: process for snapshot in snapshots for key, process in snapshot.by_rank.items()}
        running = {
            key: process
            for key, process in processes.items()
            if (job := key[0].partition(".")[0]) in jobs and job not in silent
        }
        units, left_out = units_of(running.values(), self._hosts, self._backend)
        left_out |= silent
        for job, reason in left_out.items():
            if self._said.get(job) != reason:
                self._report(f"job {job} is not controlled: {reason}")
        self._said = left_out
        positions = {job: self._positions(job, members, running) for job, members in units.items()}
        return _Reading(units, running, positions)

    def _positions(self, job: str, units: Sequence[Unit], processes: Mapping[tuple[str, int], Progress]) -> Positions:
        """The positions of a job's ranks, following those of the last reading if they are the same processes."""
        now = [processes[job, rank] for unit in units for rank in unit.ranks]
        marks = numpy.array([process.marks for process in now])
        at = numpy.array([process.at for process in now])
        marked = numpy.array([process.at if process.marked is None else process.marked for process in now])
        if self._before is None or not _same(job, units, self._before, processes):
            return Positions.begin(marks, marked, at)
        return self._before.positions[job].then(marks, marked, at)

    def _work(self, before: _Reading, now: _Reading) -> Work:
        """Return the work of the jobs that were there at both readings, per period of the configured length."""
        jobs, lengths = {}, []
        for job, units in now.units.items():
            if not _same(job, units, before, now.processes):
                continue
            ranks = [rank for unit in units for rank in unit.ranks]
            seconds = [now.processes[job, rank].at - before.processes[job, rank].at for rank in ranks]
            old, new = before.positions[job], now.positions[job]
            whole = dict(zip(ranks, new.marks - old.marks, strict=True))
            part = dict(zip(ranks, new.advance(old) * self._period_s / numpy.array(seconds), strict=True))
            iterations = tuple(int(min(whole[rank] for rank in unit.ranks)) for unit in units)
            advance = tuple(float(min(part[rank] for rank in unit.ranks)) for unit in units)
            unknown = (nan,) * len(units)
            progress = int(new.marks.min() - old.marks.min())
            jobs[job] = JobWork(iterations, unknown, unknown, progress, advance=advance)
            lengths += seconds
        return Work(max(lengths, default=self._period_s), jobs)

    @override
    def _changed(self) -> None:
        """A period in which this happened is not judged."""
        self._before, self._unsure = None, True


def _of(node: str, config: AgentConfig) -> Snapshot:
    table = config.progress
    directories, timeout_s = table.directories or None, table.timeout * PS
    return read(node, socket=table.socket, directories=directories, through=table.through, timeout_s=timeout_s)


def _same(job: str, units: Sequence[Unit], before: _Reading, now: Mapping[tuple[str, int], Progress]) -> bool:
    """Whether a job had the same processes at the last reading."""
    if before.units.get(job) != tuple(units):
        return False
    keys = [(job, rank) for unit in units for rank in unit.ranks]
    return all(
        (before.processes[key].pid, before.processes[key].started) == (now[key].pid, now[key].started) for key in keys
    )


def _settings(chosen: Chosen, units: Mapping[str, tuple[Unit, ...]]) -> Settings:
    """A controller's settings as those of endpoints, after the neutral one; level 0 is the default."""
    weights = chosen.weights or (1,)
    settings = [NEUTRAL]
    for job, levels in chosen.levels.items():
        for number, level in levels.items():
            if level and job in units and number < len(units[job]):
                unit = units[job][number]
                weight = weights[level] / weights[0] if level < len(weights) else None
                settings.append(Setting(job, level, (unit.endpoint,), unit.ranks[0], weight))
    return ordered(settings)
