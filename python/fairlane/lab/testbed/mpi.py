"""Open MPI jobs in the namespaces of a testbed's hosts.

The control file of a job: memory that its ranks and the process that measures them share.

It has 64-bit words: a header, and for each rank a block with its count of iterations and the times of their ends, in
nanoseconds of the clock that all processes of the machine share. ``replay.c`` has the other side.
"""

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from time import monotonic, sleep

import numpy
from numpy.typing import NDArray

from fairlane.cluster.agent.system import call
from fairlane.core.signals import HANG_S
from fairlane.lab.testbed.file import Job, TestbedFile
from fairlane.lab.testbed.machine import MeasurementError, TestbedError, dying_with_parent, inside
from fairlane.lab.testbed.plan import CONTROL, CONTROL_NETWORK, DATA_NETWORK, PREFIX
from fairlane.lab.testbed.script import script_of

_RANKS, _CAPACITY, _LIMIT, _FROZEN, _QUIT, _MARKING, _DSCP, _HEADER = 0, 1, 2, 3, 4, 5, 6, 64
_COUNT, _READY, _BLOCK = 0, 1, 8
CAPACITY = 1 << 20
"""Iterations that a job can complete in all phases together."""
_NO_LIMIT = 1 << 62
_POLL_S = 0.001


class Control:
    """A job's control file, new and with all ranks stopped before their first iteration.

    Args:
        path: Where it is made; it is sparse.
        ranks: Number of ranks.
        alive: Whether the job still runs; asked while waiting for it.
    """

    def __init__(self, path: Path, ranks: int, alive: Callable[[], bool] = lambda: True) -> None:
        self.path = path
        self._alive = alive
        self._printed: Callable[[], str] = str
        self._words: NDArray[numpy.int64] = numpy.memmap(
            path, numpy.int64, "w+", shape=_HEADER + ranks * (_BLOCK + CAPACITY)
        )
        self._words[_RANKS], self._words[_CAPACITY] = ranks, CAPACITY
        self._blocks = self._words[_HEADER:].reshape(ranks, _BLOCK + CAPACITY)
        self.marking = 0
        """Number of the last change of the DSCP."""

    def watch(self, alive: Callable[[], bool], printed: Callable[[], str] = str) -> None:
        """Sets what says whether the job still runs, and what it printed."""
        self._alive, self._printed = alive, printed

    def wait_ready(self, timeout_s: float) -> None:
        """Waits until all ranks are ready. Raises ``MeasurementError`` if the job ends before, or takes longer."""
        self._wait(lambda: bool((self._blocks[:, _READY] == 1).all()), timeout_s, "start")

    def set_dscp(self, dscp: int) -> None:
        """Has the ranks mark their packets, from their next iteration on."""
        self.marking += 1
        self._words[_DSCP] = dscp
        self._words[_MARKING] = self.marking

    def go(self) -> int:
        """Lets the ranks go on; returns the number of the first iteration."""
        first = int(self._blocks[:, _COUNT].max())
        self._words[_LIMIT] = _NO_LIMIT
        return first

    def freeze(self) -> None:
        """No rank begins another iteration than the last that one of them has begun."""
        self._words[_FROZEN] = 1
        sleep(_POLL_S)
        # A rank may have looked before it was frozen, and has begun the iteration after those that it has completed.
        self._words[_LIMIT] = int(self._blocks[:, _COUNT].max()) + 1
        self._words[_FROZEN] = 0

    def wait_stopped(self, timeout_s: float) -> int:
        """Waits until all ranks have stopped; returns how many iterations each has completed.

        Raises ``MeasurementError`` if the job ends, or stands still for so long.
        """
        limit = int(self._words[_LIMIT])
        self._wait(lambda: bool((self._blocks[:, _COUNT] >= limit).all()), timeout_s, "end their iterations")
        return limit

    def completions(self, first: int, last: int) -> NDArray[numpy.float64]:
        """Return the times, s, at which the slowest rank completed iterations from ``first`` on and before ``last``."""
        times = self._blocks[:, _BLOCK + first : _BLOCK + last]
        return numpy.asarray(times.max(axis=0), numpy.float64) * 1e-9

    def quit(self) -> None:
        """Has the ranks end."""
        self._words[_QUIT] = 1

    def _wait(self, done: Callable[[], bool], timeout_s: float, what: str) -> None:
        end = monotonic() + timeout_s
        while not done():
            if not self._alive():
                raise MeasurementError(f"{self.path.stem}: its processes ended{self._printed()}")
            if monotonic() > end:
                raise MeasurementError(
                    f"{self.path.stem}: its ranks did not {what} within {timeout_s:g} s{self._printed()}"
                )
            sleep(_POLL_S)


_AGENT = f"""#!/bin/sh
# Starts a command in the namespace of a host, with the host's name, for mpirun; it is killed with its parent.
host=$1
shift
exec setpriv --pdeathsig KILL ip netns exec {PREFIX}host-$host unshare -u sh -c "hostname $host; exec $*"
"""
PAGES = "progress"
"""The folder of the pages in which ranks mark their progress, beside their scripts; the first job has the number 1."""
_OB1_HEADER = 64  # bytes that Open MPI's protocol adds to an eager message, at most
_END_S = 10.0  # how long they may take to end
_OPTIONS = (
    "--allow-run-as-root --leave-session-attached --bind-to none --map-by node --oversubscribe "
    "--mca routed direct --mca plm_rsh_no_tree_spawn 1 --mca pml ob1 --mca btl tcp,self "
    f"--mca btl_tcp_if_include {DATA_NETWORK} --mca oob_tcp_if_include {CONTROL_NETWORK} "
    "--mca coll_libnbc_ialltoall_algorithm 1 --mca mpi_yield_when_idle 1"
).split()


def compile_replay(folder: Path) -> Path:
    """Compiles the program of the ranks. Raises ``TestbedError`` with the compiler's message if it cannot."""
    target = folder / "replay"
    with (
        as_file(files("fairlane.lab.testbed") / "replay.c") as source,
        as_file(files("fairlane.progress") / "c") as headers,
    ):
        library = headers / "fairlane_progress.c"
        command = ["mpicc", "-O2", "-pthread", "-I", str(headers), "-o", str(target), str(source), str(library)]
        call(command, HANG_S, TestbedError)
    return target


def write_agent(folder: Path) -> Path:
    """Writes the program with which ``mpirun`` starts commands in the namespaces of hosts."""
    agent = folder / "start-on-host"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    return agent


def mpirun_options(eager_threshold: int, agent: Path, folder: Path) -> list[str]:
    """Options of ``mpirun`` in the namespace of the control network; ``folder`` is for its temporary files."""
    limit = str(eager_threshold + _OB1_HEADER)
    return [
        *_OPTIONS,
        *("--mca", "btl_tcp_eager_limit", limit, "--mca", "btl_tcp_rndv_eager_limit", limit),
        *("--mca", "plm_rsh_agent", str(agent), "--mca", "orte_tmpdir_base", str(folder)),
    ]


class RunningJob:
    """A job whose ranks have started, and wait before their first iteration."""

    def __init__(self, job: Job, control: Control, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.job, self.control = job, control
        self._process, self._log = process, log
        control.watch(lambda: process.poll() is None, self._printed)

    def wait_ready(self) -> None:
        """Waits until all ranks are ready. Raises ``MeasurementError`` with what they printed if they are not."""
        self.control.wait_ready(HANG_S)

    def end(self) -> None:
        """Has the ranks end, and kills what does not."""
        self.control.quit()
        end = monotonic() + _END_S
        while self._process.poll() is None and monotonic() < end:
            sleep(0.02)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _printed(self) -> str:
        with suppress(OSError):
            lines = [line for line in self._log.read_text(errors="replace").splitlines() if line.strip(" -")]
            if lines:
                return "; it printed: " + " ".join(lines[:6])[:600]
        return ""


@contextmanager
def running(file: TestbedFile, folder: Path) -> Iterator[list[RunningJob]]:
    """All jobs of a testbed, started in ``folder`` and ready; they end with the block.

    Raises ``TestbedError`` if the program cannot be compiled, ``MeasurementError`` if a job does not start.
    """
    replay = compile_replay(folder)
    agent = write_agent(folder)
    (folder / PAGES).mkdir()
    started: list[RunningJob] = []
    try:
        for number in range(len(file.jobs)):
            started.append(_start(file, number, folder, [str(replay)], agent))  # noqa: PERF401 - one may fail
        for job in started:
            job.wait_ready()
        yield started
    finally:
        for job in started:
            job.control.quit()
        for job in started:
            job.end()


def _start(file: TestbedFile, number: int, folder: Path, program: Sequence[str], agent: Path) -> RunningJob:
    job = file.jobs[number]
    job_folder = folder / job.name
    job_folder.mkdir()
    script = script_of(job.workload, len(job.hosts), seed=file.seed, job=number)
    for rank in range(len(job.hosts)):
        (job_folder / f"{rank}.txt").write_text(script.text(rank))
    control = Control(folder / f"{job.name}.control", len(job.hosts))
    command = [
        *("mpirun", *mpirun_options(file.measure.eager_threshold, agent, job_folder)),
        *("-x", f"FAIRLANE_JOB={number + 1}", "-x", f"FAIRLANE_PROGRESS_DIR={folder / PAGES}"),
        *("-np", str(len(job.hosts)), "--host", ",".join(f"{host}:1" for host in job.hosts)),
        *(*program, str(job_folder), str(control.path)),
    ]
    log = folder / f"{job.name}.log"
    with log.open("wb") as printed:
        process = subprocess.Popen(
            dying_with_parent(inside(CONTROL, command)),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMPI_MCA_btl_base_warn_component_unused": "0"},
        )
    return RunningJob(job, control, process, log)
