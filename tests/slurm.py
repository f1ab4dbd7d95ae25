"""A Slurm of its own on this machine: munged, slurmctld and a few slurmd on loopback, in a folder, ended afterwards.

Nothing of the machine's own Slurm or Munge is touched: ports, sockets, key and state are the folder's. The daemons run
as the user who runs the tests.
"""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
SBIN = "/usr/sbin"
STARTED_S = 30.0
"""The longest that anything may take: the nodes to be ready, a job to start or end."""

_CONF = """
ClusterName=fairlane
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in DAEMONS if shutil.which(name, path=f"{os.environ['PATH']}:{SBIN}") is None]


@contextmanager
def slurm(folder: Path, nodes: int = 4, more: str = "") -> Iterator[Mapping[str, str]]:
    """A running Slurm with more lines of slurm.conf; yields the environment in which ``sbatch`` finds it."""
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:{SBIN}", "SLURM_CONF": str(folder / "slurm.conf")}
    daemons: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> None:
        log = (folder / f"{command[0]}-{len(daemons)}.out").open("wb")
        daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True))
        log.close()

    _configure(folder, nodes, more)
    try:
        start(
            *("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key"),
            *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"),
        )
        _until((folder / "munge.socket").exists, "munged")
        start("slurmctld", "-D", "-c")
        for node in range(1, nodes + 1):
            start("slurmd", "-D", "-N", f"n{node}")
        _until(lambda: _idle(environment) == nodes, "the nodes of Slurm")
        yield environment
        subprocess.run(["scancel", f"--user={getpass.getuser()}"], env=environment, check=False, timeout=10)
        _until(lambda: not _output(environment, "squeue", "-h"), "the end of Slurm's jobs")
    finally:
        munged, *others = daemons
        for daemon in others:
            daemon.terminate()
        _ended(others)
        munged.terminate()
        _ended([munged])


def wait_for(path: Path) -> None:
    """Returns when a job has written the file: one that is cancelled before its processes run may take long to end."""
    _until(path.exists, str(path))


def _ended(daemons: list[subprocess.Popen[bytes]]) -> None:
    for daemon in daemons:
        try:
            daemon.wait(5)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _output(environment: Mapping[str, str], *command: str) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=10).stdout


def _configure(folder: Path, nodes: int, more: str) -> None:
    folder.chmod(0o755)  # munged refuses a socket in a folder that others cannot enter
    ports = _free_ports(nodes + 1)
    lines = [
        f"NodeName=n{node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=4000"
        for node, port in enumerate(ports[1:], 1)
    ]
    text = _CONF.format(
        host=socket.gethostname(), port=ports[0], user=getpass.getuser(), folder=folder, nodes="\n".join(lines)
    )
    (folder / "slurm.conf").write_text(f"{text}{more}\n")
    (folder / "state").mkdir()
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _idle(environment: Mapping[str, str]) -> int:
    return len(set(_output(environment, "sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split()))


def _until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + STARTED_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {STARTED_S:.0f} s")
        time.sleep(0.1)
