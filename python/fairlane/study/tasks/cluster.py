"""Workers on other machines: a running Dask cluster, or one that Slurm starts by a study's table ``[cluster]``.

Dask is an extra: ``pip install "fairlane[dask]"``. A worker that dies is Dask's to replace, as is the first choice of
another one for its task. What stands in ``[cluster]`` becomes a shell script. Names are single words of it, options are
single lines; what can run code of its own, as commands before the worker starts or another environment, takes the
permission for code.
"""

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from fairlane.core.errors import Problem, RunError, ScenarioError, require
from fairlane.core.signals import HANG_S
from fairlane.core.units import SIZE, whole_number
from fairlane.inputs.problems import Problems
from fairlane.inputs.table import Table
from fairlane.study.tasks.task import Computable, Outcome, perform

IN_FLIGHT = 4
"""Tasks that are sent for each thread of the workers, so that none waits for the network."""
FIRST_WAIT_S = "120 s"
"""Time that a scheduler has to answer once its port has."""
PORT_WAIT_S = 30.0
"""Time that its port has to answer."""
LAST_PORT = 65535
WEB = ("ws", "wss")
SCHEMES = ("tcp", "tls", "ucx", *WEB)
"""Protocols of schedulers."""
_HARMLESS = frozenset(
    (
        *("exclusive", "contiguous", "requeue", "no-requeue", "overcommit", "oversubscribe", "spread-job", "hold"),
        *("constraint", "qos", "reservation", "nodelist", "exclude", "nodes", "ntasks", "ntasks-per-node"),
        *("cpus-per-task", "cores-per-socket", "sockets-per-node", "threads-per-core", "hint", "mem", "mem-per-cpu"),
        *("mem-per-gpu", "gres", "gpus", "gpus-per-node", "tmp", "time", "time-min", "begin", "deadline", "dependency"),
        *("priority", "nice", "partition", "account", "clusters", "licenses", "switches", "comment", "mail-type"),
        *("mail-user", "C", "q", "w", "x", "N", "n", "c", "p", "A", "t", "M", "L", "s", "O", "d", "b"),
    )
)
"""Options of ``sbatch`` that decide where and when a job runs, not what."""


def _memory(given: str) -> str:
    """Memory as it is written, if it is some."""
    SIZE.parse(given)
    return given


def _word(given: str) -> str:
    """A name that a shell takes for one word, as it stands."""
    if not re.fullmatch(r"[\w.,@:+-]+", given):
        raise Problems(Problem("", "not one word of a job script", given, "letters, digits and _ . , @ : + -"))
    return given


def _option(given: str) -> str:
    """An option that is one line of a job script."""
    if not re.fullmatch(r"-[^\x00-\x1f\x7f\x85\u2028\u2029]+", given):
        raise Problems(Problem("", "not an option of sbatch in one line", given, 'as "--exclusive"'))
    return given


_Word = Annotated[str, AfterValidator(_word)]


class Cluster(Table):
    """Workers that a batch system starts: each job of it is one, and takes as many simulations as it has cores."""

    jobs: int = Field(default=1, ge=1)
    """Number of jobs that are submitted."""
    cores: int = Field(default=1, ge=1)
    """Cores of a job."""
    memory: Annotated[str, AfterValidator(_memory)] = "4 GiB"
    """Memory of a job."""
    queue: _Word | None = None
    """Slurm's partition."""
    account: _Word | None = None
    """Slurm's account."""
    walltime: _Word | None = None
    """Slurm's time limit, as ``"01:00:00"``."""
    interface: _Word | None = None
    """Network interface through which workers and this process communicate."""
    directives: list[Annotated[str, AfterValidator(_option)]] = Field(default_factory=list)
    """Further options of ``sbatch``, as ``["--exclusive"]``; those that change what runs need ``--allow-code``."""
    skip: list[str] = Field(default_factory=list)
    """Options that are left out if a line of them contains one of these words, as ``["--mem"]``."""
    prologue: list[str] = Field(default_factory=list)
    """Shell commands before the worker starts, as ``["module load python"]``; they need ``--allow-code``."""

    def code(self) -> Iterator[tuple[str, str]]:
        """Key and description of what can run code of its own."""
        if self.prologue:
            yield "prologue", "commands of a shell"
        for at, line in enumerate(self.directives):
            for option in re.findall(r"(?:^|(?<=\s))--?[^\s=]*", line):
                name = option[2:] if option.startswith("--") else option[1:2]
                if name not in _HARMLESS:
                    yield f"directives[{at}]", f"a job with the option {option}, which can change what runs"


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
        """Number of workers, at least one, which is expected to come."""
        return max(1, self.ready)

    @property
    def room(self) -> int:
        """Number of further tasks to send."""
        return max(0, IN_FLIGHT * self.workers - self._running)

    def submit(self, task: Computable) -> Future[Outcome]:
        """Sends a task."""
        with _connection():
            future: Future[Outcome] = self._executor.submit(perform, task)
        self._running += 1
        future.add_done_callback(self._done)
        return future

    def share(self, _future: Future[Outcome]) -> float | None:
        """Not known: workers on other machines report with the answer only."""
        return None

    def _done(self, _future: Future[Outcome]) -> None:
        self._running -= 1

    def close(self) -> None:
        """Cancels what has not begun, and leaves the cluster or ends it if the study has started it."""
        self._executor.shutdown(wait=False)
        self._ends.close()


@contextmanager
def _connection() -> Iterator[None]:
    """Errors of the connection to a scheduler become a ``RunError`` that says how to resume."""
    from distributed.client import ClosedClientError

    try:
        yield
    except (OSError, ClosedClientError) as error:
        message = f"the Dask scheduler is gone: {error}; finished tasks are stored, --resume continues"
        raise RunError(message) from None


def find(address: str) -> None:
    """Raises ``ScenarioError`` if nothing listens at the address of a scheduler, or it is none."""
    require("dask")
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
    distributed = import_extra("distributed")
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
    distributed, jobqueue = import_extra("distributed"), import_extra("dask_jobqueue")
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
                    death_timeout=HANG_S,  # how long a worker may take to start and to find the scheduler
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
    """Why Slurm rejects a job, or that Slurm is not installed; None if it accepts the job.

    One is submitted, held, and cancelled: ``sbatch --test-only`` also rejects jobs that ``sbatch`` accepts, as while
    all nodes are drained.
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


def import_extra(name: str) -> Any:
    """A module of Dask. Raises ``MissingExtraError``; the handler of Ctrl-C stays, which dask_jobqueue replaces."""
    before = signal.getsignal(signal.SIGINT)
    try:
        require("dask")
        return import_module(name)
    finally:
        if signal.getsignal(signal.SIGINT) is not before:
            signal.signal(signal.SIGINT, before)
