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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waiting import wait_for

DAEMONS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
SBIN = "/usr/sbin"
GRACE_S = 5.0
"""How long a daemon has to end by itself; then it is killed."""

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
MessageTimeout=100
TCPTimeout=100
BatchStartTimeout=1500
UnkillableStepTimeout=1500
SlurmdTimeout=1500
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

    _configure(folder, [f"n{node}" for node in range(1, nodes + 1)], more)
    try:
        start(*_munged(folder))
        wait_for((folder / "munge.socket").exists, "munged", daemons[0])
        start("slurmctld", "-D", "-c")
        for node in range(1, nodes + 1):
            start("slurmd", "-D", "-N", f"n{node}")
        wait_for(lambda: _idle(environment) == nodes, "the nodes of Slurm", daemons[1])
        yield environment
        subprocess.run(["scancel", f"--user={getpass.getuser()}"], env=environment, check=False)
        wait_for(lambda: not _output(environment, "squeue", "-h"), "the end of Slurm's jobs", daemons[1])
    finally:
        munged, *others = daemons
        for daemon in others:
            daemon.terminate()
        _ended(others)
        munged.terminate()
        _ended([munged])


def topology(folder: Path, hosts: list[str], text: str) -> str:
    """What ``scontrol`` shows of a ``topology.conf`` for these hosts, or the log of a controller that refused it."""
    environment = os.environ | {"PATH": f"{os.environ['PATH']}:{SBIN}", "SLURM_CONF": str(folder / "slurm.conf")}
    _configure(folder, hosts, "TopologyPlugin=topology/tree")
    (folder / "topology.conf").write_text(text)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        for command, socket_file in ((_munged(folder), "munge.socket"), (("slurmctld", "-D", "-c"), None)):
            with (folder / f"{command[0]}.out").open("wb") as log:
                daemons.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
                )
            if socket_file:
                wait_for((folder / socket_file).exists, "munged", daemons[0])
        answer: list[str] = []

        def answered() -> bool:
            answer[:] = [_output(environment, "scontrol", "-o", "show", "topology")]
            return bool(answer[0]) or daemons[1].poll() is not None

        wait_for(answered, "slurmctld")
        return answer[0] or (folder / "slurmctld.log").read_text()
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            _ended([daemon])


def _munged(folder: Path) -> tuple[str, ...]:
    return (
        *("munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key"),
        *(f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munge.seed"),
    )


def _ended(daemons: list[subprocess.Popen[bytes]]) -> None:
    for daemon in daemons:
        try:
            daemon.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()


def _output(environment: Mapping[str, str], *command: str) -> str:
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False).stdout


def _configure(folder: Path, nodes: list[str], more: str) -> None:
    folder.chmod(0o755)  # munged refuses a socket in a folder that others cannot enter
    ports = _free_ports(len(nodes) + 1)
    lines = [
        f"NodeName={node} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=4000"
        for node, port in zip(nodes, ports[1:], strict=True)
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
