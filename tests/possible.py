"""What this machine can run: MPI programs, and testbeds of network namespaces."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from fairlane.testbed import machine


def no_mpi() -> str:
    """Why no MPI program can be compiled and run here; empty if it can."""
    absent = [name for name in ("mpicc", "mpirun") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (openmpi-bin, libopenmpi-dev)" if absent else ""


def no_testbed() -> str:
    """Why there can be no testbed here; empty if there can."""
    if words := machine.missing():
        return words
    name = f"fairlane-probe-{os.getpid()}"  # other processes probe at the same time
    found = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return f"namespaces are not allowed: {found.stderr.strip()}" if found.returncode else ""


@contextmanager
def turn_of_testbed() -> Iterator[None]:
    """A machine has one testbed at a time: within, no other test that asks has it."""
    with (Path(gettempdir()) / "fairlane-testbed-of-tests.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def no_compiler() -> str:
    """Why no C program can be compiled here; empty if it can."""
    absent = [name for name in ("cc", "make") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (gcc, make)" if absent else ""


def fortran() -> str | None:
    """The Fortran compiler: gfortran, or a cc that has its parts; None if there is neither."""
    if shutil.which("gfortran"):
        return "gfortran"
    if no_compiler():
        return None
    part = subprocess.run(["cc", "-print-prog-name=f951"], capture_output=True, text=True, check=False).stdout.strip()
    return "cc" if Path(part).is_absolute() else None
