"""The page of a process: what stands where, what it is called, and how it is read.

``c/fairlane_progress.c`` writes the same layout; docs/progress.md has it as a table. A page is only read on the host
where it was written, so numbers have the byte order of the machine.

Sources of libfairlane-progress for a machine, and the libraries, as far as its compilers are there.
"""

import os
import re
import shutil
import socket
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from struct import Struct

from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.inputs.files import write_text

MAGIC, VERSION = b"fairlane", 1
PAGE_BYTES = 4096
HEADER = Struct("=8sIIQQQiI64s64s16x")
"""Magic, version, pid, start of the process, PID namespace, time of opening, rank, reserved, job, host."""
WORDS = Struct("=QQQ")
"""Count; its low 32 bits and the fraction in units of 2^-32; time of the last mark."""
USED_BYTES = HEADER.size + WORDS.size
COUNT, FRACTION, MARKED = (HEADER.size // 8 + at for at in range(3))
"""Indices of the words that marks change, among words of 8 bytes."""
NAME = re.compile(r"[A-Za-z0-9._-]{1,63}-[0-9]{1,10}-(?P<pid>[0-9]{1,10})(\.python)?\.progress")
_TEXT = re.compile(rb"([A-Za-z0-9._-]{1,63})\0+")
_TEXT_BYTES = 63
# Within a Slurm job, mpirun passes on SLURM_PROCID of its daemon: ranks that MPI itself sets come first.
_RANKS = ("FAIRLANE_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
_JOBS = ("FAIRLANE_JOB", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "PMI_JOBID", "PMIX_NAMESPACE")


@dataclass(frozen=True, slots=True)
class Header:
    """Owner of a page."""

    pid: int
    started: int
    """Start of the process, clock ticks since boot: tells a reused pid."""
    pid_namespace: int
    """Inode of its PID namespace; 0 if unknown."""
    opened: int
    """ns of CLOCK_MONOTONIC."""
    rank: int
    job: str
    host: str

    def packed(self, magic: bytes = MAGIC) -> bytes:
        """The bytes at the beginning of the page."""
        texts = (self.job.encode(), self.host.encode())
        return HEADER.pack(
            magic, VERSION, self.pid, self.started, self.pid_namespace, self.opened, self.rank, 0, *texts
        )


@dataclass(frozen=True, slots=True)
class Page:
    """A page as read."""

    header: Header
    marks: float
    """Iterations, with the fraction of the current one."""
    marked: int
    """Time of the last mark, ns of CLOCK_MONOTONIC; 0 before the first."""


def decode(data: bytes) -> Page:
    """Reads a page; raises ``ValueError`` in words if it is none, or is not complete yet."""
    if len(data) < USED_BYTES:
        raise ValueError(f"has {len(data)} bytes, not {USED_BYTES} or more")
    magic, version, pid, started, namespace, opened, rank, _, job, host = HEADER.unpack_from(data)
    if magic != MAGIC:
        raise ValueError("is not complete" if magic == bytes(8) else "is no page of progress")
    if version != VERSION:
        raise ValueError(f"has version {version} of the layout; this reader knows {VERSION}")
    names = [_TEXT.fullmatch(text) for text in (job, host)]
    if not (names[0] and names[1] and 0 < pid < 2**31 and rank >= 0):
        raise ValueError("has a header with an impossible job, host, pid or rank")
    count, fraction, marked = WORDS.unpack_from(data, HEADER.size)
    # A fraction counts only for the iteration in which it was set: a mark is one increment and leaves it behind.
    part = (fraction & 0xFFFFFFFF) / 2**32 if fraction >> 32 == count & 0xFFFFFFFF else 0.0
    texts = [name[1].decode() for name in names if name]
    return Page(Header(pid, started, namespace, opened, rank, *texts), count + part, marked)


def identify(environment: Mapping[str, str], pid: int) -> tuple[str, int, str]:
    """Job, rank and host of a process by the variables of its launcher."""
    job = next((plain(value) for name in _JOBS if (value := environment.get(name))), f"pid-{pid}")
    ranks = (environment.get(name, "") for name in _RANKS)
    rank = next((int(text) for text in ranks if re.fullmatch("0*[0-9]{1,10}", text) and int(text) < 2**31), 0)
    return job, rank, host_name(environment)


def host_name(environment: Mapping[str, str]) -> str:
    """The name of this host: Slurm's, else that of the machine."""
    return plain(environment.get("SLURMD_NODENAME") or socket.gethostname())


def plain(text: str) -> str:
    """A text as it stands in pages and in names of files."""
    return re.sub(rb"[^A-Za-z0-9._-]", b"_", os.fsencode(text))[:_TEXT_BYTES].decode()


def directory(environment: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the folder of this process's page, and whether it may be a symbolic link; raises ``OSError``."""
    if given := environment.get("FAIRLANE_PROGRESS_DIR"):
        if not given.startswith("/"):
            raise OSError(f"{given}: FAIRLANE_PROGRESS_DIR has to be an absolute path")
        return Path(given), True
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if os.access("/dev/shm", os.W_OK | os.X_OK) or not runtime.startswith("/"):
        return Path(f"/dev/shm/fairlane-{os.geteuid()}"), False
    return Path(runtime, "fairlane"), True


def unsafe(status: os.stat_result) -> str:
    """Why the files of a directory cannot be trusted; empty if they can: others must not be able to replace them."""
    if status.st_uid not in (os.geteuid(), 0):
        return "belongs to another user"
    if status.st_mode & 0o022 and not status.st_mode & stat.S_ISVTX:
        return "others may write to it, and it is not sticky"
    return ""


def start_of(pid: int) -> int | None:
    """Start of a process, clock ticks since boot; None if there is no such process, or it is a zombie."""
    try:
        return start_in(Path(f"/proc/{pid}/stat").read_bytes())
    except OSError:
        return None


def start_in(text: bytes) -> int | None:
    """The same by the text of ``/proc/PID/stat``."""
    fields = text.rpartition(b")")[2].split()  # the name in parentheses may have any characters
    return None if len(fields) < 20 or fields[0] in (b"Z", b"X") else int(fields[19])


def pid_namespace() -> int:
    """Inode of the PID namespace of this process; 0 if unknown."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


SOURCES = ("fairlane_progress.h", "fairlane_progress.c", "fairlane_progress.f90", "fairlane_pmpi.c", "Makefile")


@dataclass(frozen=True)
class Library:
    """Library that make builds, and its compiler."""

    target: str
    variable: str
    """The variable of the Makefile that names the compiler."""
    compiler: str


LIBRARIES = (
    Library("libfairlane-progress.so", "CC", "cc"),
    Library("libfairlane-progress.a", "CC", "cc"),
    Library("libfairlane-pmpi.so", "MPICC", "mpicc"),
    Library("fairlane_progress_fortran.o", "FC", "gfortran"),
)


@dataclass(frozen=True)
class Built:
    """A library, or why there is none."""

    target: str
    missing: str | None = None
    """The program that is not installed."""


def build(folder: Path, **compilers: str | None) -> list[Built]:
    """Writes the sources into a folder and builds what the installed compilers can.

    Args:
        folder: New, empty, or with an earlier build.
        compilers: Names of the compilers by variable of the Makefile (``CC``, ``MPICC``, ``FC``); those of the
            Makefile by default. One that is named has to be there.

    Raises:
        ScenarioError: The folder has other files, or a named compiler is not installed.
        FairlaneError: A compiler ends with an error.
    """
    if folder.exists() and not folder.is_dir():
        raise ScenarioError(Problem("--out", "is not a folder", str(folder)))
    others = [path.name for path in folder.iterdir()] if folder.exists() else []
    if others and "fairlane_progress.h" not in others:
        raise ScenarioError(Problem("--out", "exists and is not empty; choose another folder", str(folder)))
    for variable, compiler in compilers.items():
        if compiler is not None and shutil.which(compiler) is None:
            raise ScenarioError(Problem(f"--{variable.lower()}", "is not installed", compiler))
    folder.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        write_text(folder / name, (files("fairlane.progress") / "c" / name).read_text("utf-8"))
    return [_built(folder, library, compilers.get(library.variable) or library.compiler) for library in LIBRARIES]


def _built(folder: Path, library: Library, compiler: str) -> Built:
    for program in ("make", compiler):
        if shutil.which(program) is None:
            return Built(library.target, program)
    command = ["make", "-C", str(folder), library.target, f"{library.variable}={compiler}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise FairlaneError(f"{' '.join(command)}: ended with code {done.returncode}:\n{done.stderr.strip()}")
    return Built(library.target)
