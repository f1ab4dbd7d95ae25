"""Performing tasks: those with the same digest once, what is stored already not at all, what fails a second time.

A task that has failed as often as it may be tried is a failure, reported by its name; the others continue.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

from fairlane.core.errors import RunError, ScenarioError
from fairlane.core.wording import plural
from fairlane.study.tasks.pools import Pool, open_pool
from fairlane.study.tasks.progress import TaskProgress
from fairlane.study.tasks.store import Store
from fairlane.study.tasks.task import Answer, Computable, Outcome

ATTEMPTS = 2
"""Maximum number of attempts of a task."""
WATCH_S = 0.2
"""Interval of progress reports, s."""


@dataclass(frozen=True)
class Failure:
    """A task whose attempts have all failed."""

    task: Computable
    error: str
    description: str | None
    """File of its description, relative to the store's folder; None without a store."""


class Executor:
    """Perform tasks in a pool, store their answers, and report to a watcher. Leaving the context closes the pool.

    Without a store answers are kept in memory only. Ctrl-C leaves the store with all that was finished.
    """

    def __init__(
        self,
        pool: Pool | None = None,
        store: Store | None = None,
        watcher: TaskProgress | None = None,
        *,
        attempts: int = ATTEMPTS,
        first_failure_ends: bool = False,
        cpu_limit_s: float | None = None,
    ) -> None:
        """Makes an executor; nothing runs yet.

        Args:
            pool: Where tasks are performed; None for processes, one for each core.
            store: What was computed before, and where new answers go.
            watcher: Is notified of progress.
            attempts: How often a task is tried.
            first_failure_ends: Whether a failure raises, instead of being one of ``failures``.
            cpu_limit_s: Processor time after which no further task is begun, s; None for no limit.
        """
        self.pool, self.store = open_pool() if pool is None else pool, store
        self._watcher, self._attempts, self._ends = watcher, attempts, first_failure_ends
        self._cpu_limit_s = cpu_limit_s
        self._tried: dict[str, int] = {}
        self._waiting: deque[Computable] = deque()
        self._running: dict[Future[Outcome], Computable] = {}
        self.outcomes: dict[str, Outcome] = {}
        """Outcomes of the tasks that have an answer, by digest, whenever they were computed."""
        self.failures: dict[str, Failure] = {}
        """Tasks whose attempts have all failed, by digest."""
        self.laps: dict[str, float] = {}
        """Time of the workers and of this process by activity, s."""
        self.performed = 0
        """Number of tasks performed by this executor, without answers that the store had."""
        self.cpu_s = 0.0
        """Processor time of these, s."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.pool.close()

    def answer(self, task: Computable) -> Answer | None:
        """A task's answer; None if it failed, or was not performed."""
        outcome = self.outcomes.get(task.digest)
        return None if outcome is None else outcome.answer

    def run(self, tasks: Iterable[Computable]) -> Mapping[str, Answer]:
        """Performs the tasks whose answers are not known, those that take long first; returns all answers by digest.

        Raises ``RunError`` if the processor time is used up, ``ResultsError`` if an answer cannot be stored, and, where
        the first failure ends it, that error.
        """
        distinct = {task.digest: task for task in tasks}
        todo = [task for task in distinct.values() if task.digest not in self.failures and not self._known(task)]
        self._waiting = deque(sorted(todo, key=lambda task: -task.cost))
        if self._watcher:
            self._watcher.begin(
                distinct.values(), [task for digest, task in distinct.items() if digest in self.outcomes]
            )
        while self._running or (self._waiting and not self._used_up):
            try:
                self._submit()
                finished = wait(self._running, timeout=WATCH_S, return_when=FIRST_COMPLETED).done
            except KeyboardInterrupt:
                self._settle([future for future in self._running if future.done()])
                raise
            self._settle(finished)
            if self._watcher:
                under_way = [(task, self.pool.share(future)) for future, task in self._running.items()]
                self._watcher.update(self.pool.ready, under_way)
        if self._waiting:
            message = f"{self.cpu_s:.1f} s of processor time used, the limit is {self._cpu_limit_s:g} s"
            left = f"{plural(len(self._waiting), 'task')} left; finished tasks are stored, --resume continues"
            raise RunError(f"{message}; {left}", slug="limit")
        return {digest: outcome.answer for digest, outcome in self.outcomes.items() if outcome.answer is not None}

    def stage(self, what: str) -> None:
        """Name the next tasks to the watcher."""
        if self._watcher:
            self._watcher.stage(what)

    def forget(self) -> None:
        """Frees the memory of answers that the store has: they are read again when they are asked for."""
        if self.store is not None:
            self.outcomes.clear()

    def spent(self, lap: str, seconds: float) -> None:
        """Add time, s, to a lap."""
        self.laps[lap] = self.laps.get(lap, 0.0) + seconds

    @property
    def _used_up(self) -> bool:
        return self._cpu_limit_s is not None and self.cpu_s >= self._cpu_limit_s

    def _known(self, task: Computable) -> bool:
        if task.digest not in self.outcomes and self.store is not None:
            outcome = self.store.get(task)
            if outcome is not None:
                self.outcomes[task.digest] = outcome
        return task.digest in self.outcomes

    def _submit(self) -> None:
        while self._waiting and not self._used_up and self.pool.room > 0:
            task = self._waiting.popleft()
            self._tried[task.digest] = self._tried.get(task.digest, 0) + 1
            self._running[self.pool.submit(task)] = task

    def _settle(self, done: Iterable[Future[Outcome]]) -> None:
        """Store answers; retry failed tasks or record their failure."""
        for future in done:
            task, outcome = self._running.pop(future), _outcome(future)
            self.cpu_s += outcome.cpu
            for name, seconds in outcome.laps.items():
                self.spent(name, seconds)
            if outcome.answer is None and self._tried[task.digest] < self._attempts:
                self._waiting.append(task)
                continue
            begun = time.perf_counter()
            if outcome.answer is None:
                self._give_up(task, outcome)
            else:
                if self.store is not None:
                    self.store.keep(task, outcome)
                self.outcomes[task.digest] = outcome
                self.performed += 1
            self.spent("writing", time.perf_counter() - begun)
            if self._watcher:
                self._watcher.done(task)

    def _give_up(self, task: Computable, outcome: Outcome) -> None:
        kept = None if self.store is None else self.store.fail(task)
        if self._ends:
            if isinstance(outcome.raised, ScenarioError):
                raise outcome.raised
            raise RunError(f"{task.label}: {outcome.error}", slug=getattr(outcome.raised, "slug", "failed"))
        self.failures[task.digest] = Failure(task, outcome.error or "", kept)


@contextmanager
def simulating(pool: Pool, store: Store | None, *, progress: bool, **options: Any) -> Iterator[Executor]:
    """An executor of simulations, with ``options`` of ``Executor``; ``progress`` is shown on standard error."""
    with TaskProgress(wanted=progress) as shown, Executor(pool, store, shown, **options) as executor:
        shown.stage("simulating")
        yield executor


def _outcome(future: Future[Outcome]) -> Outcome:
    """Outcome of a future: that of the worker, or an error if the worker died."""
    try:
        error = future.exception()
    except CancelledError as cancelled:
        error = cancelled
    return Outcome(error=f"its worker died ({str(error) or 'given up'})") if error else future.result()
