"""The agent: learns of jobs, keeps the twin, decides, and carries decisions out within limits.

One thread does all of this; the socket's only puts events into a queue. Whenever the jobs or the settings in force have
changed, candidates are predicted, and at most one job's level is changed; the next prediction begins from there, until
no candidate is allowed. Jobs that have ended lose their levels with the next change.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty, SimpleQueue

from fairlane.agent.backends import Backend, DryRun, Surroundings
from fairlane.agent.change import perform, recover
from fairlane.agent.config import AgentConfig
from fairlane.agent.decision import Candidate, Decision, Prediction, change_in_words, decide
from fairlane.agent.errors import AgentError, BackendError
from fairlane.agent.events import Event
from fairlane.agent.jobs import Setting, Settings, levels_of, ordered
from fairlane.agent.journal import Journal
from fairlane.agent.limit import WINDOW_S, wait_s
from fairlane.agent.squeue import running
from fairlane.agent.twin import Twin, TwinJob
from fairlane.engine.tables import PS
from fairlane.errors import FairlaneError, Problem, ScenarioError
from fairlane.slurm.jobs import SlurmJob
from fairlane.wording import plural

_TICK_S = 0.5  # the longest wait for an event, s


@dataclass(frozen=True)
class _Plan:
    """What is to be done, before it is written down."""

    kind: str
    settings: Settings
    reason: str
    chosen: Prediction | None = None


class Agent:
    """An agent with an open journal.

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
            words = "names nothing that a setting could be carried out by"
            raise ScenarioError(Problem("backend", words, "dry_run", "another one of fairlane list backends"))
        if isinstance(self._backend, DryRun):
            self._backend.keep_in(config.journal.with_name(f"{config.journal.name}.dry-run.json"))
        self._twin = Twin(config)
        self._considered: object = None
        self._waiting: tuple[object, _Plan] | None = None
        self._failed: set[object] = set()
        self._ahead: dict[float, float] = {}  # times of changes that seem to be in the future: when they were seen
        self._polled: float | None = None
        self._answers = False
        self._stopped = False
        self.failed = False
        """Whether a change had to be undone since the start."""
        self._words = ""

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
            self._report("no setting is in force")
            return
        plan = _Plan("end", (), "withdrawn by the operator")
        if not self._carry_out(plan, list(jobs), before):
            raise BackendError("the settings could not be taken back; they are as they were")

    def stop(self) -> None:
        """Has ``run`` return after what it is at; for handlers of signals."""
        self._stopped = True

    def _begin(self) -> None:
        """Checks the backend, and repairs what a killed agent has left."""
        levels = (self._config.qos.default, *self._config.policy.levels)
        lanes = {level: lane for level in levels if (lane := self._config.lane(level)) is not None}
        self._backend.check(Surroundings(self._twin.fabric.host_names, lanes, self._config.qos.default))
        self._journal.doing(self._backend.name, "starts", start=True)
        self._recover()

    def run(self, *, once: bool = False) -> None:
        """Goes on until ``stop`` or Ctrl-C; with ``once`` until nothing is to be done for the jobs that run.

        Raises ``BackendError`` with ``once`` where it otherwise tries again.
        """
        while not self._stopped:
            self._hear()
            if self._polled is None or time.monotonic() - self._polled > self._config.slurm.poll * PS:
                self._poll_again()
            wait = self.consider() if once else self._consider_again()
            if once and wait is None:
                return
            if wait != 0:
                self._hear(min(_TICK_S, wait or _TICK_S))

    def consider(self) -> float | None:
        """Decides about the jobs that run now, and carries it out.

        Returns after how many seconds there is more to do, 0 for at once; None if nothing is left to do for these jobs.
        Raises ``BackendError`` if a change failed and cannot be undone.
        """
        if not self._answers:
            return None
        jobs, before = self._journal.jobs(), self._journal.in_force(self._backend.name)
        situation = (tuple(jobs.values()), before)
        if situation == self._considered:
            return None
        if self._waiting is not None and self._waiting[0] == situation:
            plan = self._waiting[1]
        else:
            plan = self._plan(jobs, before)
            self._hear()
            if self._journal.jobs() != jobs:  # jobs have begun or ended meanwhile: the prediction is not of these
                return 0.0
        if plan.kind != "keep" and (wait := self._wait()):
            self._waiting = situation, plan
            return wait
        self._waiting = None
        is_known = (tuple(jobs), plan.settings) in self._failed
        if not is_known and self._carry_out(plan, list(jobs), before):
            return 0.0
        self._considered = situation
        return None

    def _wait(self) -> float:
        """How long a change has to wait, s."""
        limit, now, elapsed = self._config.policy.changes_per_minute, time.time(), time.monotonic()
        written = self._journal.changes_since(self._backend.name, now - WINDOW_S)
        # What seems to be in the future, after a clock was set back, was made when it was first seen.
        for at in written:
            if at > now:
                self._ahead.setdefault(at, elapsed)
        written = sorted(now - (elapsed - self._ahead[at]) if at in self._ahead else at for at in written)
        wait = wait_s(written, now, limit)
        if wait:
            self._doing(f"waits with a change: {len(written)} within the last minute, {limit} allowed")
        return wait

    def _plan(self, jobs: Mapping[str, SlurmJob], before: Settings) -> _Plan:
        """What to do: levels of jobs that have ended go first, without a prediction."""
        kept = self._still_valid(jobs, before)
        if kept != before:
            gone = [one.job for one in before if one not in kept]
            return _Plan("end", kept, f"{plural(len(gone), 'job')} ended: {', '.join(gone)}")
        if self._backend.in_force() != levels_of(before):
            return _Plan("repair", before, "what is in force is not what the journal has: set again")
        modelled, left_out = self._twin.model(jobs)
        shown = "; ".join(f"job {job} ({reason})" for job, reason in left_out.items())
        if left_out and self._config.policy.unmodelled == "hold":
            return _Plan("keep", before, f"cannot simulate {shown}, and policy.unmodelled is hold")
        decision = self._decided(modelled, before) if jobs else Decision(None, "no job runs")
        reason = decision.reason + (f"; not simulated, level unchanged: {shown}" if left_out else "")
        if decision.chosen is None:
            return _Plan("keep", before, reason)
        return _Plan("change", self._with(before, decision.chosen.candidate, jobs), reason, decision.chosen)

    def _decided(self, jobs: list[TwinJob], settings: Settings) -> Decision:
        """What the predictions for these jobs speak for."""
        if not jobs:
            return Decision(None, "no job runs that can be simulated")
        try:
            predictions, untried = self._predict(jobs, settings)
        except FairlaneError as error:
            return Decision(None, f"no prediction: {error}")
        return decide(predictions, self._config.policy, untried)

    def _still_valid(self, jobs: Mapping[str, SlurmJob], settings: Settings) -> Settings:
        """The settings of jobs that still run on the same hosts."""
        return ordered(one for one in settings if one.job in jobs and self._is_on(jobs[one.job], one))

    def _is_on(self, job: SlurmJob, setting: Setting) -> bool:
        """Whether a job still has the hosts that its setting names."""
        with suppress(ScenarioError):  # of a node that the fabric does not have
            return tuple(self._twin.host(node) for node in job.nodes) == setting.hosts
        return False

    def _predict(self, jobs: list[TwinJob], settings: Settings) -> tuple[list[Prediction], int]:
        """The predictions within the time limit, and how many candidates it left out."""
        self._doing(f"simulates {plural(len(jobs), 'job')}")
        deadline = time.monotonic() + self._config.twin.time_limit * PS
        self._twin.update(jobs, settings, deadline)
        candidates = self._twin.candidates()
        found = self._twin.predict(candidates, deadline)
        return found, len(candidates) - len(found) if time.monotonic() > deadline else 0

    def _with(self, kept: Settings, candidate: Candidate, jobs: Mapping[str, SlurmJob]) -> Settings:
        others = [one for one in kept if one.job != candidate.job]
        if candidate.level is None:
            return ordered(others)
        hosts = tuple(self._twin.host(node) for node in jobs[candidate.job].nodes)
        return ordered([*others, Setting(candidate.job, candidate.level, hosts)])

    def _carry_out(self, plan: _Plan, jobs: list[str], before: Settings) -> bool:
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
        would = "dry run, would set " if isinstance(self._backend, DryRun) else ""
        if plan.kind == "keep":
            self._doing("idle")
            self._report(f"decision {number}: no change. {plan.reason}")
            return False
        self._doing(f"carries out decision {number}")
        done = perform(self._journal, self._backend, number)
        shown = ", ".join(f"job {one.job} level {one.level}" for one in plan.settings) or "no job has a level"
        if done:
            self._report(f"decision {number}: {would}{shown}. {plan.reason}")
            for line in _effects(chosen):
                self._report(line)
        else:
            self.failed = True
            if plan.kind == "change":  # the others are tried again at each poll
                self._failed.add((tuple(jobs), plan.settings))
            self._report(f"decision {number}: failed and undone. {self._journal.entry(number).error}")
        self._doing("idle")
        return done

    def _recover(self) -> None:
        for entry in recover(self._journal, self._backend):
            note = f" ({entry.error})" if entry.error else ""
            self._report(f"decision {entry.id} was interrupted: {entry.state}{note}")

    def _poll(self) -> None:
        """Compares the known jobs with Slurm's. Raises ``AgentError`` if Slurm does not answer."""
        self._polled = time.monotonic()
        slurm = self._config.slurm
        found, known = running(slurm.squeue, slurm.timeout * PS), self._journal.jobs()
        self._answers = True
        for job in found.values():
            if job != known.get(job.id):
                self._journal.began(job)
        for number in known.keys() - found.keys():
            self._journal.ended(number)
        settings = self._journal.in_force(self._backend.name)
        if self._still_valid(found, settings) != settings or self._backend.in_force() != levels_of(settings):
            self._considered = None

    def _poll_again(self) -> None:
        """The same while it runs, and what could not be undone is tried again."""
        try:
            self._recover()
            self._poll()
        except (AgentError, BackendError) as error:
            self._stand_still(error)

    def _consider_again(self) -> float | None:
        """As ``consider``; after an error of the backend, nothing is decided until the next poll."""
        try:
            return self.consider()
        except BackendError as error:
            self._stand_still(error)
            return None

    def _stand_still(self, error: FairlaneError) -> None:
        """Until Slurm and the backend answer, nothing is decided, and all stays as it is."""
        self._answers, self._considered = False, None
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
