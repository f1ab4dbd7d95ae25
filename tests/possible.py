"""What this machine can run: MPI programs, Slurm, OpenSM, browsers, and testbeds of network namespaces."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import slurm
from fairlane.cluster.opensm.check import missing_programs
from fairlane.lab.testbed import machine


def no_slurm() -> str:
    """Why no Slurm can run here; empty if it can."""
    absent = slurm.missing()
    return f"not installed: {', '.join(absent)} (slurm-wlm, munge)" if absent else ""


def no_slurm_with_mpi() -> str:
    """Why no MPI job can run under a Slurm; empty if it can."""
    plugins = Path("/usr/lib").glob("*/slurm*/mpi_pmix.so")
    return no_slurm() or no_mpi() or no_compiler() or ("" if any(plugins) else "Slurm has no plugin for PMIx")


def no_subnet() -> str:
    """Why no OpenSM can manage a simulated subnet here; empty if it can."""
    absent = missing_programs()
    return f"not installed: {', '.join(absent)}" if absent else ""


def no_otf2_print() -> str:
    """Why no OTF2 archive can be printed here; empty if it can."""
    return "" if shutil.which("otf2-print") else "not installed: otf2-print (otf2-tools)"


def no_browser() -> str:
    """Why no page can be opened here; empty if it can."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (chromium, chromium-driver)" if absent else ""


def no_mpi() -> str:
    """Why no MPI program can be compiled and run here; empty if it can."""
    absent = [name for name in ("mpicc", "mpirun") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)} (openmpi-bin, libopenmpi-dev)" if absent else ""


@cache
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
