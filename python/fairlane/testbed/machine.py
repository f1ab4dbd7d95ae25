"""Commands of the machine: what has to be there, namespaces that are made and removed, and processes in them.

*The control file of a job: memory that its ranks and the process that measures them share.* It has 64-bit words: a
header, and for each rank a block with its count of iterations and the times of their ends, in nanoseconds of the clock
that all processes of the machine share. ``replay.c`` has the other side.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

import numpy
from numpy.typing import NDArray

from fairlane.agent.system import call
from fairlane.errors import FairlaneError, RunError
from fairlane.signals import HANG_S, deferred_signals, temporary_folder
from fairlane.testbed.plan import PREFIX, Plan


class TestbedError(FairlaneError, RuntimeError):
    """The machine cannot have the testbed: a program or a right is missing, or a command for the network failed."""


class MeasurementError(RunError):
    """A job of the testbed ended, or stood still, while it was measured."""


PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "mpirun": "openmpi-bin",
    "mpicc": "libopenmpi-dev",
}
"""The Debian package of each program that is needed."""
LOCK = Path("/run/fairlane/testbed.lock")
"""The file that a process has locked while it has a testbed."""
NAMESPACES = Path("/run/netns")
"""Where the machine has names of network namespaces."""
SHARED_MEMORY = Path("/dev/shm")
"""Where files are in memory."""
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
    if words := missing():
        raise TestbedError(f"testbed: {words}")


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
        words = f"the kernel has not loaded it; allowed: {', '.join(loaded)}"
        raise TestbedError(f'fabric.congestion_control = "{name}": {words}')


def down() -> list[str]:
    """Ends the processes in namespaces of testbeds and removes these; returns which there were.

    Call it within ``only_one``. Raises ``TestbedError`` if one cannot be removed.
    """
    names = present()
    for name in names:
        _end(name)
    for name in names:
        call(["ip", "netns", "del", name], HANG_S, TestbedError)
    return names


@contextmanager
def established(plan: Plan) -> Iterator[Path]:
    """A testbed that is up, and removed with the block; yields a folder for temporary files, in memory if it can be.

    Raises ``TestbedError`` if the machine cannot have it or has another.
    """
    with only_one():
        up(plan)
        try:
            with temporary_folder("fairlane-testbed-", SHARED_MEMORY if SHARED_MEMORY.is_dir() else None) as folder:
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
    while (found := processes(name)) and monotonic() < end:
        for process in found:
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
        """When the slowest rank completed each iteration from ``first`` on and before ``last``, s of the clock."""
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
