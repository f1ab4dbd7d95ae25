"""Workers on this machine: threads of this process, or processes of their own that are replaced when they die.

Every process is a pool of one, so that a death is known to be that of one task and breaks no other. Threads begin at
once and take what cannot be sent to another process; they suffice for tasks that spend their time in the simulator,
which lets go of the interpreter.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import struct
import tempfile
import threading
import time
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import bytes_text
from fairlane.model.scenario import estimate
from fairlane.study.tasks.task import Computable, Outcome, Stopwatch, perform

_SHARE = struct.Struct("=d")


class Pool(Protocol):
    """Workers that perform tasks."""

    @property
    def ready(self) -> int:
        """Number of workers that have started: those of a batch system may be queued."""

    @property
    def workers(self) -> int:
        """Number of tasks performed at the same time."""

    @property
    def room(self) -> int:
        """Number of tasks that can be submitted now."""

    def submit(self, task: Computable) -> Future[Outcome]:
        """Start a task. The future raises if the worker dies."""

    def share(self, future: Future[Outcome]) -> float | None:
        """Share of a submitted task that is done, from 0 to 1; None if unknown."""

    def close(self) -> None:
        """Ends the workers, also in the middle of a task."""


def open_pool(workers: int | None = None, dask: str | None = None) -> Pool:
    """Processes of this machine, by default one for each core, or the workers of the Dask scheduler at an address.

    Raises ``ScenarioError`` if no scheduler answers.
    """
    if dask is None:
        return Processes(estimate.machine_cores() if workers is None else workers)
    from fairlane.study.tasks.cluster import connect

    return connect(dask)


def affordable(memory: float, allowed: int | None = None, workers: int | None = None) -> int:
    """Number of workers for which this machine has memory, at most its cores; or ``workers``.

    A task takes about ``memory`` bytes; ``allowed`` is the limit of its scenario, bytes. Raises ``ScenarioError`` if
    memory does not suffice for ``workers``.
    """
    available = max(estimate.machine_memory(), allowed or 0)
    room = max(1, int(available // max(memory, 1.0)))
    if workers is None:
        return min(estimate.machine_cores(), room)
    if workers > room:
        message = f"each takes about {bytes_text(memory)} of memory"
        raise ScenarioError(Problem("--workers", message, workers, f"at most {room}, for {bytes_text(available)}"))
    return workers


class Threads:
    """Threads of this process."""

    def __init__(self, workers: int) -> None:
        self._executor = ThreadPoolExecutor(workers)
        self._stop = threading.Event()
        self._watches: dict[Future[Outcome], Stopwatch] = {}
        self.ready = self.workers = workers

    @property
    def room(self) -> int:
        """Number of idle threads."""
        self._watches = {future: watch for future, watch in self._watches.items() if not future.done()}
        return self.workers - len(self._watches)

    def submit(self, task: Computable) -> Future[Outcome]:
        """Gives a task to a thread."""
        watch = Stopwatch(stop=self._stop)
        future = self._executor.submit(perform, task, watch, time.thread_time)
        self._watches[future] = watch
        return future

    def share(self, future: Future[Outcome]) -> float | None:
        """Share of a submitted task that is done; None if unknown."""
        watch = self._watches.get(future)
        return None if watch is None else watch.share

    def close(self) -> None:
        """Ends all threads once their simulations have come to the end of a slice."""
        self._stop.set()
        self._executor.shutdown(wait=True, cancel_futures=True)


class Processes:
    """Processes of this machine."""

    def __init__(self, workers: int) -> None:
        # Not by fork: it would copy the locks of the libraries' threads in whatever state they are.
        self._context = multiprocessing.get_context("spawn")
        # The share of its task that each worker has done: a file outlives a worker that dies.
        self._shares = tempfile.NamedTemporaryFile(prefix="fairlane-progress-")  # noqa: SIM115 - it lives as the pool does
        self._shares.truncate(workers * _SHARE.size)
        self._free = [self._worker(slot) for slot in range(workers)]
        self._busy: dict[Future[Outcome], _Worker] = {}
        self.ready = self.workers = workers

    @property
    def room(self) -> int:
        """Number of idle workers; replaces those that have died."""
        for future in [future for future in self._busy if future.done()]:
            worker = self._busy.pop(future)
            if future.exception() is not None:  # a task's own errors are data: it is the worker that failed
                worker.end()
                worker = self._worker(worker.slot)
            self._free.append(worker)
        return len(self._free)

    def submit(self, task: Computable) -> Future[Outcome]:
        """Gives a task to a free worker."""
        worker = self._free.pop()
        future = worker.submit(task)
        self._busy[future] = worker
        return future

    def share(self, future: Future[Outcome]) -> float | None:
        """Share of a submitted task that is done; None if unknown."""
        worker = self._busy.get(future)
        if worker is None:
            return None
        (share,) = _SHARE.unpack(os.pread(self._shares.fileno(), _SHARE.size, worker.slot * _SHARE.size))
        return float(share)

    def _worker(self, slot: int) -> _Worker:
        return _Worker(ProcessPoolExecutor(1, self._context, _prepare), self._shares.name, slot)

    def close(self) -> None:
        """Ends all workers."""
        for worker in [*self._free, *self._busy.values()]:
            worker.end()
        self._free.clear()
        self._shares.close()


class _Worker:
    """A process pool of one, which reports its progress at a slot of the file ``shares``."""

    def __init__(self, executor: ProcessPoolExecutor, shares: str, slot: int) -> None:
        self._executor, self._shares, self.slot = executor, shares, slot
        self._process: Future[int] | None = None

    def submit(self, task: Computable) -> Future[Outcome]:
        if self._process is None:
            self._process = self._executor.submit(os.getpid)
        return self._executor.submit(_reporting, task, self._shares, self.slot)

    def end(self) -> None:
        """Ends the process, also in the middle of a task."""
        if self._process is not None:
            with suppress(ProcessLookupError, BrokenExecutor):
                os.kill(self._process.result(), signal.SIGKILL)
        self._executor.shutdown(wait=False, cancel_futures=True)


def _reporting(task: Computable, shares: str, slot: int) -> Outcome:
    """Performs a task, and writes into the file ``shares`` how much of it is done."""
    try:
        file = os.open(shares, os.O_WRONLY)
    except OSError:  # the file was removed: the task is computed without reports
        return perform(task)

    def report(share: float) -> None:
        os.pwrite(file, _SHARE.pack(share), slot * _SHARE.size)

    try:
        report(0.0)
        return perform(task, Stopwatch(report=report))
    finally:
        os.close(file)


def _prepare() -> None:
    """Ctrl-C is handled by the parent; a worker ends when its parent does, for whatever reason."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
