"""Workers on this machine: one process each, which is replaced when it dies.

Every worker is a process pool of one, so that a death is known to be that of one task and breaks no other.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import struct
import tempfile
import threading
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from contextlib import suppress
from typing import Any, Protocol

from fairlane.study.task import Computable, perform

__all__ = ["LocalPool", "Pool", "cores"]

_SHARE = struct.Struct("=d")
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

    def share(self, future: Future[dict[str, Any]]) -> float | None:
        """How much of a task is done that was submitted, from 0 to 1; None if that is not known."""

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
        self._shares = _Shares(workers)
        self._free = [self._worker(slot) for slot in range(workers)]
        self._busy: dict[Future[dict[str, Any]], _Worker] = {}
        self.ready = self.workers = workers

    @property
    def room(self) -> int:
        """How many workers have nothing to do."""
        for future in [future for future in self._busy if future.done()]:
            worker = self._busy.pop(future)
            if future.exception() is not None:  # a task's own errors are data: it is the worker that failed
                worker.end()
                worker = self._worker(worker.slot)
            self._free.append(worker)
        return len(self._free)

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        """Gives a task to a free worker."""
        worker = self._free.pop()
        future = worker.submit(task)
        self._busy[future] = worker
        return future

    def share(self, future: Future[dict[str, Any]]) -> float | None:
        """How much of a task is done that was submitted."""
        worker = self._busy.get(future)
        return None if worker is None else self._shares.read(worker.slot)

    def _worker(self, slot: int) -> _Worker:
        return _Worker(ProcessPoolExecutor(1, self._context, _prepare), self._shares.path, slot)

    def close(self) -> None:
        """Ends all workers."""
        for worker in [*self._free, *self._busy.values()]:
            worker.end()
        self._free.clear()
        self._shares.close()


class _Shares:
    """How far each worker is with its task: a number for each in a file, which outlives a worker that dies."""

    def __init__(self, workers: int) -> None:
        self._file = tempfile.NamedTemporaryFile(prefix="fairlane-progress-")  # noqa: SIM115 - it lives as the pool does
        self._file.truncate(workers * _SHARE.size)
        self.path = self._file.name
        """The file, to which workers write."""

    def read(self, slot: int) -> float:
        """What the worker with this slot has reported last."""
        (share,) = _SHARE.unpack(os.pread(self._file.fileno(), _SHARE.size, slot * _SHARE.size))
        return float(share)

    def close(self) -> None:
        """Removes the file."""
        self._file.close()


class _Worker:
    """A process pool of one."""

    def __init__(self, executor: ProcessPoolExecutor, shares: str, slot: int) -> None:
        self._executor, self._shares = executor, shares
        self.slot = slot
        """Where it reports how far it is."""
        self._process: Future[int] | None = None

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        if self._process is None:
            self._process = self._executor.submit(os.getpid)
        return self._executor.submit(_reporting, task, self._shares, self.slot)

    def end(self) -> None:
        """Ends the process, also in the middle of a task."""
        if self._process is not None:
            with suppress(ProcessLookupError, BrokenExecutor):
                os.kill(self._process.result(STARTED_S), signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


def _reporting(task: Computable, shares: str, slot: int) -> dict[str, Any]:
    """Performs a task, and writes into the file ``shares`` how much of it is done."""
    try:
        file = os.open(shares, os.O_WRONLY)
    except OSError:  # somebody tidied up: the task matters more
        return perform(task)

    def told(share: float) -> None:
        os.pwrite(file, _SHARE.pack(share), slot * _SHARE.size)

    try:
        told(0.0)
        return perform(task, told)
    finally:
        os.close(file)


def _prepare() -> None:
    """Ctrl-C is for the parent to hear; a worker ends when its parent does, however that comes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
