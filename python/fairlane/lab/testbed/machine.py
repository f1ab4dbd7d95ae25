"""Commands of the machine: what has to be there, namespaces that are made and removed, and processes in them."""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from fairlane.cluster.agent.system import call
from fairlane.core.errors import FairlaneError, RunError
from fairlane.core.signals import HANG_S, deferred_signals, temporary_folder
from fairlane.lab.testbed.plan import PREFIX, Plan


class TestbedError(FairlaneError, RuntimeError):
    """The machine cannot have the testbed: a program or a right is missing, or a command for the network failed."""


class MeasurementError(RunError):
    """A job of the testbed ended, or stood still, while it was measured."""


PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "nft": "nftables",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mpirun": "openmpi-bin",
    "mpicc": "libopenmpi-dev",
}
"""The Debian package of each program that is needed."""
LOCK = Path("/run/fairlane/testbed.lock")
"""The file that a process has locked while it has a testbed."""
NAMESPACES = Path("/run/netns")
"""Folder of the names of network namespaces."""
SHARED_MEMORY = Path("/dev/shm")
"""Folder of files in memory."""
CONGESTION_CONTROLS = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
"""The kernel's list of the congestion controls that it has loaded."""


def missing() -> str:
    """Why this machine cannot have a testbed; empty if it can, as far as one can see without trying."""
    absent = [name for name in PACKAGES if program(name) is None]
    if absent:
        packages = sorted({PACKAGES[name] for name in absent})
        return f"{', '.join(absent)}: not installed; on Debian: apt install {' '.join(packages)}"
    if os.geteuid() != 0:
        return "network namespaces need root (CAP_NET_ADMIN and CAP_SYS_ADMIN); run the command as root"
    return ""


def program(name: str) -> str | None:
    """The path of a program; those of administrators too."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")


def check() -> None:
    """Raises ``TestbedError`` in words if this machine cannot have a testbed."""
    if lacking := missing():
        raise TestbedError(f"testbed: {lacking}")


def present() -> list[str]:
    """Names of all namespaces of testbeds that there are on this machine."""
    try:
        return sorted(path.name for path in NAMESPACES.iterdir() if path.name.startswith(PREFIX))
    except OSError:
        return []


@contextmanager
def only_one() -> Iterator[None]:
    """A machine has one testbed at a time, as names and addresses are fixed: the lock ends with the process.

    Raises ``TestbedError`` if another process has one.
    """
    try:
        LOCK.parent.mkdir(parents=True, exist_ok=True)
        lock = LOCK.open("w")
    except OSError as error:
        raise TestbedError(f"{LOCK}: cannot be written: {error.strerror}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise TestbedError(f"{LOCK}: another process of this machine has a testbed; end it first") from None
        yield


def up(plan: Plan) -> None:
    """Makes the namespaces, devices and queueing disciplines, after removing what an earlier testbed has left.

    Call it within ``only_one``. Raises ``TestbedError`` if the machine does not allow it; nothing is left then.
    """
    check()
    _check_congestion_control(plan.fabric.congestion_control)
    down()
    try:
        _batch(["ip", "-batch", "-"], [f"netns add {name}" for name in plan.namespaces])
        for name in plan.namespaces:
            _sysctl(name, plan.sysctls)
        for name, commands in plan.links():
            _batch(["ip", "-n", name, "-batch", "-"], commands)
        for name, commands in plan.shaping():
            _batch(["ip", "netns", "exec", name, "tc", "-batch", "-"], commands)
    except BaseException:
        down()
        raise


def _check_congestion_control(name: str) -> None:
    try:
        loaded = CONGESTION_CONTROLS.read_text("ascii").split()
    except OSError as error:
        raise TestbedError(f"{CONGESTION_CONTROLS}: cannot be read: {error.strerror}") from None
    if name not in loaded:
        message = f"the kernel has not loaded it; allowed: {', '.join(loaded)}"
        raise TestbedError(f'fabric.congestion_control = "{name}": {message}')


def down() -> list[str]:
    """Ends the processes in namespaces of testbeds, and removes these and temporary folders; returns which there were.

    Call it within ``only_one``. Folders that another process has taken stay, as those of containers that share memory.
    Raises ``TestbedError`` if a namespace cannot be removed.
    """
    names = present()
    for name in names:
        _end(name)
    for name in names:
        call(["ip", "netns", "del", name], HANG_S, TestbedError)
    return [*names, *map(str, filter(_removed, sorted(_temporary().glob(f"{PREFIX}*"))))]


def _temporary() -> Path:
    """Where temporary folders of testbeds are made."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else Path(tempfile.gettempdir())


def _removed(folder: Path) -> bool:
    """Removes a folder of this user that no process has taken; whether it did."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            return False
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)
    except OSError:
        return False
    finally:
        os.close(opened)
    return True


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder for temporary files that is this process's alone while it lives."""
    with temporary_folder(PREFIX, _temporary()) as folder:
        taken = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(taken, fcntl.LOCK_EX)
            yield folder
        finally:
            os.close(taken)


@contextmanager
def established(plan: Plan) -> Iterator[Path]:
    """A testbed that is up, and removed with the block; yields a folder for temporary files, in memory if it can be.

    Raises ``TestbedError`` if the machine cannot have it or has another.
    """
    with only_one():
        up(plan)
        try:
            with _folder() as folder:
                yield folder
        finally:
            with deferred_signals():
                down()


def processes(name: str) -> list[int]:
    """The processes in a namespace."""
    try:
        text = call(["ip", "netns", "pids", name], HANG_S, TestbedError)
    except TestbedError:  # what is there is no namespace: it was left half made
        return []
    return [int(word) for word in text.split() if int(word) != os.getpid()]


def dying_with_parent(command: Sequence[str]) -> list[str]:
    """A command that is killed when the thread that started it ends."""
    return ["setpriv", "--pdeathsig", "KILL", *command]


def inside(name: str, command: Sequence[str]) -> list[str]:
    """A command that runs another one in a namespace."""
    return ["ip", "netns", "exec", name, *command]


def _end(name: str) -> None:
    end = monotonic() + HANG_S
    while (alive := processes(name)) and monotonic() < end:
        for process in alive:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        sleep(0.02)


def _batch(command: Sequence[str], lines: Iterable[str]) -> None:
    call(command, HANG_S, TestbedError, "".join(f"{line}\n" for line in lines))


def _sysctl(name: str, settings: Iterable[str]) -> None:
    """Sets what the kernel has; a kernel without IPv6 has no key for it."""
    lines = "".join(f"{line.replace(',', ' ')}\n" for line in settings)
    subprocess.run(
        inside(name, ["sysctl", "-q", "-e", "-p", "-"]), input=lines, text=True, capture_output=True, check=False
    )
