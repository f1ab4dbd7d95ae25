"""Performing tasks: those with the same digest once, what is stored already not at all, what fails a second time.

A task that fails twice is a failure with a name, and the others go on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from fairlane.study.pool import Pool
from fairlane.study.store import Store
from fairlane.study.task import Computable, Recognised

__all__ = ["Executed", "Failure", "Watcher", "execute"]

ATTEMPTS = 2
"""How often a task is tried."""
WATCH_S = 0.2
"""How often progress is shown, s."""


@dataclass(frozen=True)
class Failure:
    """A task that has failed as often as it was tried."""

    task: Computable
    error: str
    scenario: str
    """Where its scenario is, seen from the study's folder."""


@dataclass
class Executed:
    """What came of the tasks, by digest."""

    answers: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    laps: dict[str, float] = field(default_factory=dict)
    """Where the workers' and this process's time went, s."""
    performed: int = 0
    """How many tasks were performed now, and not found."""

    def of(self, task: Computable) -> Mapping[str, Any] | None:
        """A task's answer; None if it failed."""
        return self.answers.get(task.digest)


UnderWay = tuple[Recognised, float | None]
"""A task that has been submitted, and the share of it that is done, if that is known."""


class Watcher(Protocol):
    """Somebody who is told how it goes."""

    def begin(self, tasks: Iterable[Computable], known: Iterable[Computable]) -> None:
        """These tasks are to be done; the known ones are."""

    def done(self, task: Computable) -> None:
        """A task is over, well or not."""

    def update(self, workers: int, under_way: Sequence[UnderWay] = ()) -> None:
        """Time has passed; so many workers are there, and these tasks are under way."""


def execute(tasks: Iterable[Computable], pool: Pool, store: Store, watcher: Watcher, executed: Executed) -> None:
    """Performs the tasks whose answers ``executed`` does not have yet, those that take long first."""
    distinct = {task.digest: task for task in tasks}
    todo = []
    for digest, task in distinct.items():
        if digest in executed.answers or digest in executed.failures:
            continue
        found = store.answer(task)
        if found is None:
            todo.append(task)
        else:
            executed.answers[digest] = found["answer"]
    watcher.begin(distinct.values(), [task for task in distinct.values() if task.digest in executed.answers])
    _Queue(todo, pool, store, watcher, executed).run()


class _Queue:
    def __init__(
        self, tasks: Iterable[Computable], pool: Pool, store: Store, watcher: Watcher, executed: Executed
    ) -> None:
        self._waiting = deque(sorted(tasks, key=lambda task: -task.cost))
        self._running: dict[Future[dict[str, Any]], Computable] = {}
        self._tried: dict[str, int] = {}
        self._pool, self._store, self._watcher, self._executed = pool, store, watcher, executed

    def run(self) -> None:
        while self._waiting or self._running:
            while self._waiting and self._pool.room > 0:
                task = self._waiting.popleft()
                self._tried[task.digest] = self._tried.get(task.digest, 0) + 1
                self._running[self._pool.submit(task)] = task
            done, _ = wait(self._running, timeout=WATCH_S, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(self._running.pop(future), future)
            under_way = [(task, self._pool.share(future)) for future, task in self._running.items()]
            self._watcher.update(self._pool.ready, under_way)

    def _settle(self, task: Computable, future: Future[dict[str, Any]]) -> None:
        """Keeps an answer, or tries again, or gives the task up."""
        try:
            error = future.exception()
        except CancelledError as cancelled:
            error = cancelled
        found: dict[str, Any] = {"error": f"its worker died ({str(error) or 'given up'})"} if error else future.result()
        for name, seconds in found.get("laps", {}).items():
            self._executed.laps[name] = self._executed.laps.get(name, 0.0) + seconds
        begun = time.perf_counter()
        if "answer" in found:
            self._executed.answers[task.digest] = found["answer"]
            self._executed.performed += 1
            self._store.keep(task, found)
        elif self._tried[task.digest] < ATTEMPTS:
            self._waiting.append(task)
            return
        else:
            self._executed.failures[task.digest] = Failure(task, found["error"], self._store.fail(task))
        self._executed.laps["writing"] = self._executed.laps.get("writing", 0.0) + time.perf_counter() - begun
        self._watcher.done(task)
