"""Open MPI jobs in the namespaces of a testbed's hosts."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import as_file, files
from pathlib import Path
from time import monotonic, sleep

from fairlane.agent.system import call
from fairlane.signals import HANG_S
from fairlane.testbed.control import Control
from fairlane.testbed.file import Job, TestbedFile
from fairlane.testbed.machine import TestbedError, dying_with_parent, inside
from fairlane.testbed.plan import CONTROL, CONTROL_NETWORK, DATA_NETWORK, PREFIX
from fairlane.testbed.script import script_of

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
        as_file(files("fairlane.testbed") / "replay.c") as source,
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
