"""Workers elsewhere: a Dask cluster that is there, or one that Slurm starts.

Dask is an extra: ``pip install fairlane[dask]``. A worker that dies is Dask's to replace, as is the first choice of
another one for its task.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairlane.errors import FairlaneError, Problem, RunError, ScenarioError
from fairlane.study.task import Computable, perform
from fairlane.units import whole_number

if TYPE_CHECKING:
    from fairlane.study.batch import Cluster

__all__ = ["DaskPool", "connect", "find", "start_slurm"]

IN_FLIGHT = 4
"""Tasks that are sent for each thread of the workers, so that none waits for the network."""
FIRST_WAIT_S = "10 s"
"""How long a scheduler may take to answer once its port has."""
PORT_WAIT_S = 3.0
"""How long its port may take."""
LAST_PORT = 65535
WEB = ("ws", "wss")
SCHEMES = ("tcp", "tls", "ucx", *WEB)
"""What a scheduler can be talked to by."""


class DaskPool:
    """The workers of a Dask scheduler, however many there are."""

    def __init__(self, client: Any, ends: ExitStack) -> None:
        self._client, self._ends = client, ends  # untyped, as its methods are
        self._executor = client.get_executor(pure=False, retries=0)
        self._running = 0

    @property
    def ready(self) -> int:
        """Threads of the workers that are there now. Raises ``RunError`` if the scheduler is gone."""
        with _connection():
            threads: dict[str, int] = self._client.nthreads()
        return sum(threads.values())

    @property
    def workers(self) -> int:
        """The same; at least one is expected to come."""
        return max(1, self.ready)

    @property
    def room(self) -> int:
        """How many more tasks are worth sending."""
        return max(0, IN_FLIGHT * self.workers - self._running)

    def submit(self, task: Computable) -> Future[dict[str, Any]]:
        """Sends a task."""
        with _connection():
            future: Future[dict[str, Any]] = self._executor.submit(perform, task)
        self._running += 1
        future.add_done_callback(self._done)
        return future

    def share(self, _future: Future[dict[str, Any]]) -> float | None:
        """Not known: what workers elsewhere have done comes home with the answer."""
        return None

    def _done(self, _future: Future[dict[str, Any]]) -> None:
        self._running -= 1

    def close(self) -> None:
        """Takes back what has not begun, and leaves the cluster or ends it if it is the study's own."""
        self._executor.shutdown(wait=False)
        self._ends.close()


@contextmanager
def _connection() -> Iterator[None]:
    """What goes wrong with the connection to a scheduler is a ``RunError`` that says how to go on."""
    from distributed.client import ClosedClientError

    try:
        yield
    except (OSError, ClosedClientError) as error:
        words = f"the Dask scheduler is gone: {error}; what was found is kept, and --resume goes on"
        raise RunError(words) from None


def find(address: str) -> None:
    """Raises ``ScenarioError`` if nothing listens at the address of a scheduler, or it is none: within seconds."""
    scheme, separator, place = address.rpartition("://")
    if separator and scheme not in SCHEMES:
        raise ScenarioError(Problem.unknown("--dask", "protocol", scheme, SCHEMES, address))
    host, _, port = place.rpartition(":")
    is_url = scheme in WEB  # as of a scheduler behind a proxy
    if not is_url and (not host or not port.isdecimal() or not 0 < whole_number(port) <= LAST_PORT):
        raise ScenarioError(Problem("--dask", "names no host and port", address, "as tcp://127.0.0.1:8786"))
    if is_url or scheme == "ucx":
        return
    try:
        socket.create_connection((host.strip("[]"), whole_number(port)), PORT_WAIT_S).close()
    except OSError as error:
        raise _silent(address, error.strerror or str(error)) from None


def _silent(address: str, words: object) -> ScenarioError:
    return ScenarioError(Problem("--dask", f"no scheduler answers: {words}", address, "as tcp://127.0.0.1:8786"))


def connect(address: str) -> DaskPool:
    """The cluster at an address, as ``tcp://127.0.0.1:8786``. Raises ``ScenarioError`` if none answers."""
    find(address)
    distributed = _library("distributed")
    ends = ExitStack()
    try:
        client = ends.enter_context(distributed.Client(address, timeout=FIRST_WAIT_S, set_as_default=False))
    except (OSError, ValueError) as error:
        raise _silent(address, error) from None
    return DaskPool(client, ends)


def start_slurm(cluster: Cluster, name: str, logs: str) -> DaskPool:
    """Submits the jobs of a ``[cluster]`` table; workers join as Slurm starts them.

    Raises ``ScenarioError`` if Slurm does not take them.
    """
    distributed, jobqueue = _library("distributed"), _library("dask_jobqueue")
    with ExitStack() as ends:
        try:
            started = ends.enter_context(
                jobqueue.SLURMCluster(
                    cores=cluster.cores,
                    processes=cluster.cores,
                    memory=cluster.memory,
                    queue=cluster.queue,
                    account=cluster.account,
                    walltime=cluster.walltime,
                    interface=cluster.interface,
                    job_extra_directives=cluster.directives,
                    job_directives_skip=cluster.skip,
                    job_script_prologue=cluster.prologue,
                    job_name="fairlane-" + re.sub(r"[^\w.+-]+", "_", name),
                    log_directory=logs,
                    scheduler_options={"dashboard_address": ":0"},
                )
            )
        except RuntimeError as error:
            raise ScenarioError(Problem("cluster", f"the scheduler cannot be started: {error}")) from None
        refused = _refused(started.job_script())
        if refused is not None:
            raise ScenarioError(Problem("cluster", f"Slurm does not take its jobs: {refused}"))
        started.scale(jobs=cluster.jobs)
        client = ends.enter_context(distributed.Client(started, set_as_default=False))
        return DaskPool(client, ends.pop_all())


def _refused(script: str) -> str | None:
    """What Slurm has against a job, or that it is not there; None if it takes the job.

    One is submitted, held, and cancelled: what ``sbatch --test-only`` refuses, as while all nodes are drained, may well
    be taken.
    """
    try:
        command = ["sbatch", "--hold", "--parsable", "--job-name=fairlane-asks"]
        asked = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            number, _, _ = asked.stdout.strip().partition(";")
            subprocess.run(["scancel", number], capture_output=True, check=False)
            return None
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return " ".join(f"{asked.stderr} {asked.stdout}".split()) or f"sbatch ends with {asked.returncode}"


def _library(name: str) -> Any:
    try:
        with _keeping_interrupts():
            return import_module(name)
    except ImportError:
        raise FairlaneError(f'{name} is not installed: pip install "fairlane[dask]"') from None


@contextmanager
def _keeping_interrupts() -> Iterator[None]:
    """Ctrl-C does what it did before: dask_jobqueue makes it ``sys.exit()`` when it is imported."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
