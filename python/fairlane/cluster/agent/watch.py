"""What every agent does, however it decides: it watches jobs, the backend and recovery, and carries plans out.

One thread does all of this; the socket's only puts events into a queue. Jobs that have ended lose their levels with the
next change. Before each step of a change the journal says that it begins, so a restart after a kill knows what may have
happened: nothing (``planned``), all or part of the writing (``writing``), all of it (``applied``),
part of the undoing (``undoing``). A change that is in force as it was meant is completed; any other is undone with what
the backend saved before. Every step can be repeated, so a restart that is killed as well does no harm.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from fairlane.cluster.agent.backends import Backend, DryRun, Surroundings
from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.decision import Prediction, change_in_words
from fairlane.cluster.agent.jobs import NEUTRAL, Event, Setting, Settings, levels_of, ordered, running
from fairlane.cluster.agent.journal import Entry, Journal
from fairlane.cluster.agent.processes import Hosts, no_answer
from fairlane.cluster.agent.system import AgentError, BackendError
from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.tables import PS
from fairlane.inputs.hosts import SlurmJob


def perform(journal: Journal, backend: Backend, decision: int) -> bool:
    """Carries out a planned change. Whether it is verified; if not, the state before is in force again.

    Raises ``BackendError`` if a change that failed cannot be undone; it stays ``undoing``, and ``recover`` tries again.
    """
    entry = journal.entry(decision)
    try:
        old = backend.save()
    except BackendError as error:
        journal.moved(decision, "undone", f"nothing was written: {error}")
        return False
    journal.moved(decision, "writing", old=old)
    try:
        backend.write(entry.settings)
        journal.moved(decision, "applied")
        backend.verify(entry.settings)
    except BackendError as error:
        _undo(journal, backend, decision, old, str(error))
        return False
    journal.moved(decision, "verified")
    return True


def recover(journal: Journal, backend: Backend) -> Sequence[Entry]:
    """Repairs what a killed process has left of changes with this backend; returns these with their new states.

    Raises ``BackendError`` if something cannot be undone.
    """
    entries = journal.unfinished(backend.name)
    for entry in entries:
        if entry.state == "planned":
            journal.moved(entry.id, "undone", "interrupted before anything was written")
        elif entry.state == "undoing":
            _undo(journal, backend, entry.id, entry.old or "", entry.error or "interrupted while it was undone")
        else:
            _complete(journal, backend, entry)
    return [journal.entry(entry.id) for entry in entries]


def _complete(journal: Journal, backend: Backend, entry: Entry) -> None:
    """A change that was interrupted while or after it was written."""
    try:
        # What is in force as it was meant has been written wholly; it is not written a second time.
        if backend.in_force() != levels_of(entry.settings):
            raise BackendError("interrupted while it was written")
        if entry.state == "writing":
            backend.refresh()
            journal.moved(entry.id, "applied", "interrupted, and found in force after the restart")
        backend.verify(entry.settings)
    except BackendError as error:
        _undo(journal, backend, entry.id, entry.old or "", str(error))
    else:
        journal.moved(entry.id, "verified", "after a restart")


def _undo(journal: Journal, backend: Backend, decision: int, old: str, reason: str) -> None:
    if journal.entry(decision).state != "undoing":
        journal.moved(decision, "undoing", reason)
    try:
        backend.restore(old)
    except BackendError as error:
        journal.noted(decision, f"cannot be undone yet: {error}")
        raise BackendError(f"decision {decision} failed ({reason}) and cannot be undone yet: {error}") from None
    journal.moved(decision, "undone", reason)


@dataclass(frozen=True)
class Plan:
    """A change that is to be carried out, before it is written down."""

    kind: str
    settings: Settings
    reason: str
    chosen: Prediction | None = None


class Watch(ABC):
    """An agent with an open journal, however it decides.

    Args:
        config: Its configuration.
        journal: Its journal, open.
        events: Where events of jobs arrive, as those of a ``Listener``.
        apply: Whether the backend of the configuration is used; otherwise everything is a dry run.
        report: Takes a line for the operator.
    """

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        events: "SimpleQueue[Event]",
        *,
        apply: bool = False,
        report: Callable[[str], object] = str,
    ) -> None:
        self._config, self._journal, self._events, self._report = config, journal, events, report
        self._backend: Backend = config.backend if apply else DryRun()
        if apply and isinstance(config.backend, DryRun):
            message = "names nothing that a setting could be carried out by"
            raise ScenarioError(Problem("backend", message, "dry_run", "another one of fairlane list backends"))
        if isinstance(self._backend, DryRun):
            self._backend.keep_in(config.journal.with_name(f"{config.journal.name}.dry-run.json"))
        self._hosts = Hosts(config)
        self._polled: float | None = None
        self._answers = False
        self._stopped = False
        self.failed = False
        """Whether a change had to be undone since the start."""
        self._words = ""
        self._absent: frozenset[str] = frozenset()  # hosts that have been reported

    def start(self) -> None:
        """Checks the backend, repairs what a killed agent has left, and learns which jobs run.

        Raises ``AgentError`` if Slurm does not answer, ``BackendError`` or ``ScenarioError`` if the backend does not
        fit or a change cannot be undone. Nothing is changed then but by the repair.
        """
        self._begin()
        self._poll()

    def withdraw(self) -> None:
        """Takes all settings back and ends, whatever jobs run; called in place of ``start``. Raises as ``start``."""
        self._begin()
        jobs, before = self._journal.jobs(), self._journal.in_force(self._backend.name)
        if not before and not self._backend.in_force():
            self._refuse_absent()
            self._report("no setting is in force")
            return
        plan = Plan("end", (), "withdrawn by the operator")
        if not self._carry_out(plan, list(jobs), before):
            raise BackendError("the settings could not be taken back; they are as they were")
        self._refuse_absent()

    def _refuse_absent(self) -> None:
        """Raises ``BackendError`` if something may be set on a host that does not answer."""
        if absent := sorted(self._backend.absent):
            message = f"{', '.join(absent)}: no answer; what is set there stays: undo again when it answers"
            raise BackendError(message)

    def stop(self) -> None:
        """Has ``run`` return after what it is at; for handlers of signals."""
        self._stopped = True

    def _begin(self) -> None:
        """Checks the backend, and repairs what a killed agent has left."""
        levels = (self._config.qos.default, *self._config.levels)
        lanes = {level: lane for level in levels if (lane := self._config.lane(level)) is not None}
        self._backend.check(Surroundings(self._hosts.fabric.host_names, lanes, self._config.qos.default))
        self._journal.doing(self._backend.name, "starts", start=True)
        self._recover()
        self._say_absent()

    @abstractmethod
    def run(self, *, once: bool = False) -> None:
        """Goes on until ``stop`` or Ctrl-C; with ``once`` until nothing is to be done for the jobs that run.

        Raises ``BackendError`` with ``once`` where it otherwise tries again.
        """

    @abstractmethod
    def _changed(self) -> None:
        """The jobs, or what is in force, are not what the last decision was made for."""

    def _poll_in_time(self) -> None:
        """Compares the known jobs with Slurm's if the last time is long enough ago."""
        if self._polled is None or time.monotonic() - self._polled > self._config.slurm.poll * PS:
            self._poll_again()

    def _still_valid(self, jobs: Mapping[str, SlurmJob], settings: Settings) -> Settings:
        """The settings of jobs that still run on the same hosts, of which all answer the backend."""
        return ordered(
            setting
            for setting in settings
            if setting == NEUTRAL or (setting.job in jobs and self._is_on(jobs[setting.job], setting))
        )

    def _is_on(self, job: SlurmJob, setting: Setting) -> bool:
        """Whether a job still has the hosts that its setting names, and they answer."""
        if any(host.partition("/")[0] in self._backend.absent for host in setting.hosts):
            return False
        with suppress(ScenarioError):  # of a node that the fabric does not have
            hosts = tuple(self._hosts.of(node) for node in job.nodes)
            return setting.hosts == hosts if setting.rank is None else setting.hosts[0].partition("/")[0] in hosts
        return False

    def _carry_out(self, plan: Plan, jobs: list[str], before: Settings) -> bool:
        """Whether the settings in force have changed."""
        chosen = plan.chosen
        number = self._journal.decided(
            self._backend.name,
            plan.kind,
            jobs,
            plan.settings,
            before,
            plan.reason,
            chosen.gain if chosen else None,
            chosen.effects if chosen else None,
        )
        if plan.kind == "keep":
            self._doing("idle")
            self._report(f"decision {number}: no change. {plan.reason}")
            return False
        self._doing(f"carries out decision {number}")
        done = perform(self._journal, self._backend, number)
        if done:
            self._report(f"decision {number}: {self._shown(plan.settings)}. {plan.reason}")
            for line in _effects(chosen):
                self._report(line)
        else:
            self.failed = True
            self._report(f"decision {number}: failed and undone. {self._journal.entry(number).error}")
        self._doing("idle")
        return done

    def _shown(self, settings: Settings) -> str:
        shown = ", ".join(setting.shown for setting in settings if setting.hosts)
        if not isinstance(self._backend, DryRun):
            return shown or "no job has a level"
        return f"dry run, would set {shown}" if shown else "dry run, no job would have a level"

    def _recover(self) -> None:
        for entry in recover(self._journal, self._backend):
            note = f" ({entry.error})" if entry.error else ""
            self._report(f"decision {entry.id} was interrupted: {entry.state}{note}")

    def _poll(self) -> None:
        """Compares the known jobs with Slurm's. Raises ``AgentError`` if Slurm does not answer."""
        self._polled = time.monotonic()
        slurm = self._config.slurm
        queue, known = running(slurm.squeue, slurm.timeout * PS), self._journal.jobs()
        self._answers = True
        for job in queue.values():
            if job != known.get(job.id):
                self._journal.began(job)
        for number in known.keys() - queue.keys():
            self._journal.ended(number)
        settings = self._journal.in_force(self._backend.name)
        if self._still_valid(queue, settings) != settings or self._backend.in_force() != levels_of(settings):
            self._changed()
        self._say_absent()

    def _say_absent(self) -> None:
        """Reports each host that has ceased to answer the backend, or does again."""
        absent = dict(self._backend.absent)
        for host in sorted(absent.keys() - self._absent):
            self._report(f"{no_answer(host, absent[host])}; its jobs get no level, and what is set there stays")
        for host in sorted(self._absent - absent.keys()):
            self._report(f"{host} answers again")
        if absent.keys() != self._absent:
            self._absent = frozenset(absent)
            self._changed()

    def _poll_again(self) -> None:
        """The same while it runs, and what could not be undone is tried again."""
        try:
            self._recover()
            self._poll()
        except (AgentError, BackendError) as error:
            self._stand_still(error)

    def _stand_still(self, error: FairlaneError) -> None:
        """Until Slurm and the backend answer, nothing is decided, and all stays as it is."""
        self._answers = False
        self._changed()
        self._doing(f"decides nothing: {error}")
        self._report(f"decides nothing: {error}")

    def _hear(self, timeout_s: float | None = None) -> None:
        """Takes in all events that have arrived; with a timeout it waits for the first one."""
        try:
            event = self._events.get(block=timeout_s is not None, timeout=timeout_s)
            while True:
                self._take(event)
                event = self._events.get(block=False)
        except Empty:
            return

    def _take(self, event: Event) -> None:
        known = self._journal.jobs()
        if event.what == "end":
            self._journal.ended(event.job.id)
        else:
            old = known.get(event.job.id)
            # An event may lack what squeue has said already.
            texts = {
                key: getattr(event.job, key) or getattr(old, key, "")
                for key in ("name", "account", "partition", "user")
            }
            self._journal.began(replace(event.job, **texts))

    def _doing(self, words: str) -> None:
        if words != self._words:
            self._words = words
            self._journal.doing(self._backend.name, words)


def _effects(chosen: Prediction | None) -> list[str]:
    """A line for each job of a prediction."""
    return [
        f"  job {job}: predicted {change_in_words(effect)}"
        for job, effect in (chosen.effects if chosen else {}).items()
    ]
