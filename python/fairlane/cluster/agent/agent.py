"""The agent: learns of jobs, keeps the twin, decides, and carries decisions out within limits.

Whenever the jobs or the settings in force have changed, candidates are predicted, and at most one job's level is
changed; the next prediction begins from there, until no candidate is allowed.
"""

import time
from collections.abc import Callable, Mapping
from queue import SimpleQueue

from typing_extensions import override

from fairlane.cluster.agent.config import AgentConfig
from fairlane.cluster.agent.decision import WINDOW_S, Candidate, Decision, Prediction, decide, wait_s
from fairlane.cluster.agent.jobs import Event, Setting, Settings, levels_of, ordered
from fairlane.cluster.agent.journal import Journal
from fairlane.cluster.agent.system import BackendError
from fairlane.cluster.agent.twin import Twin, TwinJob
from fairlane.cluster.agent.watch import Plan, Watch
from fairlane.core.errors import FairlaneError
from fairlane.core.tables import PS
from fairlane.core.wording import plural
from fairlane.inputs.hosts import SlurmJob

_TICK_S = 0.5  # the longest wait for an event, s


class Agent(Watch):
    """An agent that decides by predictions of its twin; arguments as those of ``Watch``."""

    def __init__(
        self,
        config: AgentConfig,
        journal: Journal,
        events: "SimpleQueue[Event]",
        *,
        apply: bool = False,
        report: Callable[[str], object] = str,
    ) -> None:
        super().__init__(config, journal, events, apply=apply, report=report)
        self._twin = Twin(config, hosts=self._hosts)
        self._considered: object = None
        self._waiting: tuple[object, Plan] | None = None
        self._failed: set[object] = set()
        self._ahead: dict[float, float] = {}  # times of changes that seem to be in the future: when they were seen

    @override
    def run(self, *, once: bool = False) -> None:
        while not self._stopped:
            self._hear()
            self._poll_in_time()
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
        tried = (tuple(jobs), plan.settings)
        if tried not in self._failed:
            if self._carry_out(plan, list(jobs), before):
                return 0.0
            if plan.kind == "change":  # the others are tried again at each poll
                self._failed.add(tried)
        self._considered = situation
        return None

    def _wait(self) -> float:
        """Return the time until the next change is allowed, s."""
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

    def _plan(self, jobs: Mapping[str, SlurmJob], before: Settings) -> Plan:
        """Plan the next settings: levels of jobs that have ended go first, without a prediction."""
        kept = self._still_valid(jobs, before)
        if kept != before:
            gone = [setting.job for setting in before if setting not in kept]
            what = "ended or cannot be reached" if self._backend.absent else "ended"
            return Plan("end", kept, f"{plural(len(gone), 'job')} {what}: {', '.join(gone)}")
        if self._backend.in_force() != levels_of(before):
            return Plan("repair", before, "what is in force is not what the journal has: set again")
        modelled, left_out = self._twin.model(jobs)
        shown = "; ".join(f"job {job} ({reason})" for job, reason in left_out.items())
        if left_out and self._config.policy.unmodelled == "hold":
            return Plan("keep", before, f"cannot simulate {shown}, and policy.unmodelled is hold")
        decision = self._decided(modelled, before) if jobs else Decision(None, "no job runs")
        reason = decision.reason + (f"; not simulated, level unchanged: {shown}" if left_out else "")
        if decision.chosen is None:
            return Plan("keep", before, reason)
        return Plan("change", self._with(before, decision.chosen.candidate, jobs), reason, decision.chosen)

    def _decided(self, jobs: list[TwinJob], settings: Settings) -> Decision:
        """Predict candidates for these jobs, and decide."""
        if not jobs:
            return Decision(None, "no job runs that can be simulated")
        try:
            predictions, untried = self._predict(jobs, settings)
        except FairlaneError as error:
            return Decision(None, f"no prediction: {error}")
        return decide(predictions, self._config.policy, untried)

    def _predict(self, jobs: list[TwinJob], settings: Settings) -> tuple[list[Prediction], int]:
        """The predictions within the time limit, and how many candidates it left out."""
        self._doing(f"simulates {plural(len(jobs), 'job')}")
        deadline = time.monotonic() + self._config.twin.time_limit * PS
        self._twin.update(jobs, settings, deadline)
        absent = self._backend.absent.keys()
        silent = {job.job.id for job in jobs if not absent.isdisjoint(job.hosts)}
        candidates = [candidate for candidate in self._twin.candidates() if candidate.job not in silent]
        predictions = self._twin.predict(candidates, deadline)
        return predictions, len(candidates) - len(predictions) if time.monotonic() > deadline else 0

    def _with(self, kept: Settings, candidate: Candidate, jobs: Mapping[str, SlurmJob]) -> Settings:
        others = [setting for setting in kept if setting.job != candidate.job]
        if candidate.level is None:
            return ordered(others)
        hosts = tuple(self._hosts.of(node) for node in jobs[candidate.job].nodes)
        return ordered([*others, Setting(candidate.job, candidate.level, hosts)])

    def _consider_again(self) -> float | None:
        """As ``consider``; after an error of the backend, nothing is decided until the next poll."""
        try:
            return self.consider()
        except BackendError as error:
            self._stand_still(error)
            return None

    @override
    def _changed(self) -> None:
        self._considered = None
