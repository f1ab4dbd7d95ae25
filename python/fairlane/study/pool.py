"""Workers on this machine: one process each, which is replaced when it dies.

Every worker is a process pool of one, so that a death is known to be that of one task and breaks no other.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

from fairlane.study.task import Computable, perform

__all__ = ["LocalPool", "Pool", "cores"]

STARTED_S = 60.0
"""The longest that a new process may take to answer, s."""


class Pool(Protocol):
    """Where tasks are performed."""

    @property
    def ready(self) -> int:
        """How many workers are there: elsewhere they may have to wait for their turn."""

    @property
    def workers(self) -> int:
        """How many tasks are performed at the same time."""

    @property
    def room(self) -> int:
        """How many tasks it would take now."""

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        """Starts a task. The future raises when the worker has died."""

    def close(self) -> None:
        """Ends the workers, whatever they are at."""


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalPool:
    """Processes of this machine."""

    def __init__(self, workers: int) -> None:
        # Not by fork: it would copy the locks of the libraries' threads in whatever state they are.
        self._context = multiprocessing.get_context("spawn")
        self._free = [self._worker() for _ in range(workers)]
        self._busy: dict[Future[dict[str, Any]], _Worker] = {}
        self.ready = self.workers = workers

    @property
    def room(self) -> int:
        """How many workers have nothing to do."""
        for future in [future for future in self._busy if future.done()]:
            worker = self._busy.pop(future)
            if future.exception() is not None:  # a task's own errors are data: it is the worker that failed
                worker.end()
                worker = self._worker()
            self._free.append(worker)
        return len(self._free)

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        """Gives a task to a free worker."""
        worker = self._free.pop()
        future = worker.submit(task)
        self._busy[future] = worker
        return future

    def _worker(self) -> _Worker:
        return _Worker(ProcessPoolExecutor(1, self._context, _prepare))

    def close(self) -> None:
        """Ends all workers."""
        for worker in [*self._free, *self._busy.values()]:
            worker.end()
        self._free.clear()


class _Worker:
    """A process pool of one."""

    def __init__(self, executor: ProcessPoolExecutor) -> None:
        self._executor = executor
        self._process: Future[int] | None = None

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        if self._process is None:
            self._process = self._executor.submit(os.getpid)
        return self._executor.submit(perform, task)

    def end(self) -> None:
        """Ends the process, also in the middle of a task."""
        if self._process is not None:
            with suppress(ProcessLookupError, BrokenExecutor):
                os.kill(self._process.result(STARTED_S), signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


def _prepare() -> None:
    """Ctrl-C is for the parent to hear; a worker ends when its parent does, however that comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
