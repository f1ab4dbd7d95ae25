"""The machine, programs of other packages that some commands start, and a folder of results."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

from fairlane.cluster.agent.system import call
from fairlane.cluster.opensm.check import simulated as subnet
from fairlane.core.errors import FairlaneError, ResultsError
from fairlane.core.wording import data_size, plural
from fairlane.lab.doctor.installation import Check, Status
from fairlane.lab.testbed import machine as testbed
from fairlane.model.scenario.estimate import free_cores, machine_cores, machine_memory
from fairlane.model.workload.trace import otf2_library
from fairlane.results.manifest import Examined, examine
from fairlane.results.run import load_run

LITTLE_MEMORY = 1 << 30
"""Bytes of memory with which large fabrics and figures of studies are not possible."""
LITTLE_SPACE = 1 << 30
"""Bytes on a disk that a study can fill."""
_MEMORY_INFO = Path("/proc/meminfo")


def machine_checks() -> Iterator[Check]:
    """All of them."""
    yield cores()
    yield memory()
    yield from folders()


def cores() -> Check:
    """The cores that a run may use."""
    usable, present, free = machine_cores(), os.cpu_count() or 1, free_cores()
    limit = f" of {present} (affinity or control group)" if usable < present else ""
    load = f"; {free} free by the load average" if free < usable else ""
    data = {"usable": usable, "present": present, "free": free}
    return Check("cores", Status.OK, f"{plural(usable, 'core')}{limit}{load}", data=data)


def memory() -> Check:
    """The memory that a run may use, by the machine, resource limits and control groups."""
    usable, available = machine_memory(), _available()
    data = {"usable": usable, "available": available}
    least = usable if available is None else min(usable, available)
    message = f"{data_size(usable)} usable" + ("" if available is None else f", {data_size(available)} free")
    if least < LITTLE_MEMORY:
        todo = "stop other programs, or raise the limit of the batch job or container"
        return Check("memory", Status.WARNING, f"{message}: enough for small fabrics only", todo=todo, data=data)
    return Check("memory", Status.OK, message, data=data)


def folders() -> Iterator[Check]:
    """Folders that commands write into."""
    from platformdirs import user_cache_path

    yield _folder("cache", user_cache_path("fairlane"), "run, study: calibrated compute times, unpacked traces")
    yield _folder("runs", Path("runs").absolute(), "run, study and others without --out")
    yield _folder("temporary files", Path(tempfile.gettempdir()), "trace, sm check, fabric export")


def _folder(name: str, path: Path, commands: str) -> Check:
    """Whether a folder, or the nearest one above it that exists, can be written."""
    place = next(parent for parent in (path, *path.parents) if parent.exists())
    data = {"folder": str(path)}
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
        free = shutil.disk_usage(place).free
    except OSError as error:
        message = f"{path}: cannot be written: {error.strerror}"
        hint = {"cache": "set XDG_CACHE_HOME to a folder", "temporary files": "set TMPDIR to a folder"}
        todo = f"{hint.get(name, 'use --out with a folder')} that can be written"
        return Check(name, Status.WARNING, message, commands, todo, data)
    message = f"{path}: {data_size(free)} free"
    if free < LITTLE_SPACE:
        return Check(name, Status.WARNING, message, commands, "make room", data)
    return Check(name, Status.OK, message, commands, data=data)


def _available() -> int | None:
    """Bytes of memory that are free or can be freed; None where the system does not say."""
    try:
        lines = _MEMORY_INFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


_TIMEOUT_S = 120.0
_UNCONFIGURED = re.compile(r"^\S+: fatal: Could not establish a configuration source", re.MULTILINE)
"""Message of Slurm's programs where there is no slurm.conf, even when they are asked for their version."""
_SUBNET, _TESTBED, _AGENT = "sm check", "testbed run", "agent run"


class ProgramError(FairlaneError):
    """A program does not print its version."""


class NoClusterError(FairlaneError):
    """A program of Slurm knows no cluster."""


@dataclass(frozen=True)
class Program:
    """A program that commands start."""

    package: str
    """The Debian package that has it."""
    commands: str
    """The commands that need it."""
    version: tuple[str, ...] = ("--version",)
    """The arguments with which it prints its version."""


def _needed() -> dict[str, Program]:
    """The programs of the simulated subnet and of the testbed, and those of Slurm and of the project's benchmark."""
    programs = {name: Program(package, _SUBNET) for name, package in subnet.PACKAGES.items()}
    for name, package in testbed.PACKAGES.items():
        known = programs.get(name)
        programs[name] = Program(package, f"{known.commands}, {_TESTBED}" if known else _TESTBED)
    for name in ("tc", "ip"):
        programs[name] = Program(programs[name].package, f"{_TESTBED}, {_AGENT} (backend linux)", ("-V",))
    programs["ibsim"] = Program(programs["ibsim"].package, _SUBNET, ("-V",))
    for name in ("ibnetdiscover", "saquery"):
        programs[name] = Program("infiniband-diags", f"{_AGENT} (backend opensm)")
    programs["squeue"] = Program("slurm-client", _AGENT)
    programs["sbatch"] = Program("slurm-client", "study on Slurm")
    programs["valgrind"] = Program("valgrind", "make bench-instructions")
    return programs


PROGRAMS: Mapping[str, Program] = _needed()
"""By name."""


def program_checks() -> Iterator[Check]:
    """All of them."""
    for name, program in PROGRAMS.items():
        yield check(name, program)
    yield simulated_umad()
    yield otf2()
    yield namespaces()


def check(name: str, program: Program) -> Check:
    """Whether a program is installed, and its version."""
    path = shutil.which(name, path=subnet.search_path())
    data = {"path": path, "package": program.package}
    if path is None:
        todo = f"on Debian: apt install {program.package}"
        return Check(name, Status.MISSING, "not installed", program.commands, todo, data)
    try:
        version = _version([path, *program.version])
    except NoClusterError:
        message = f"{path}: no Slurm cluster is configured on this machine"
        todo = "use a machine of the cluster, or set SLURM_CONF to its slurm.conf"
        return Check(name, Status.MISSING, message, program.commands, todo, data)
    except ProgramError as error:
        message = f"{path}: {error}"
        return Check(name, Status.WARNING, message, program.commands, "check its configuration", data)
    return Check(name, Status.OK, f"{version}, {path}", program.commands, data={**data, "version": version})


def simulated_umad() -> Check:
    """The library that connects programs with a simulated subnet."""
    package = subnet.PACKAGES["ibsim"]
    if subnet.SIMULATED_UMAD in subnet.missing_programs():
        todo = f"on Debian: apt install {package}"
        return Check(subnet.SIMULATED_UMAD, Status.MISSING, "not installed", _SUBNET, todo)
    return Check(subnet.SIMULATED_UMAD, Status.OK, "installed", _SUBNET)


def otf2() -> Check:
    """The C library of OTF2, which the package ``otf2`` brings."""
    commands = "trace, and scenarios with traces in OTF2"
    library = otf2_library()
    if library is None:
        return Check("otf2", Status.BROKEN, "the library of the package otf2 is missing", commands, "pip install otf2")
    return Check("otf2", Status.OK, library, commands)


def namespaces() -> Check:
    """Whether this user may make network namespaces: one is made for a program that ends at once."""
    name, commands = "network namespaces", _TESTBED
    if testbed.program("unshare") is None:
        return Check(name, Status.MISSING, "not tried: unshare is not installed", commands, "apt install util-linux")
    try:
        call(["unshare", "--net", "true"], _TIMEOUT_S, ProgramError)
    except ProgramError as error:
        message = f"not allowed: {str(error).rpartition(': ')[2]}"
        return Check(name, Status.MISSING, message, commands, "run as root (CAP_SYS_ADMIN and CAP_NET_ADMIN)")
    return Check(name, Status.OK, "allowed", commands)


def _version(command: list[str]) -> str:
    """The version that a program prints about itself, on standard output or error.

    Raises ``ProgramError``, and ``NoClusterError`` of a program of Slurm without a configuration.

    Some programs end with an error after that, as ibsim does; their version stands behind their name.
    """
    try:
        done = subprocess.run(
            command,
            stdout=PIPE,
            stderr=STDOUT,
            stdin=DEVNULL,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"prints no version within {_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise ProgramError(f"cannot be started: {error.strerror}") from None
    number = r"(\d+(?:\.\d+)+[^\s,;)]*)"
    name = re.escape(Path(command[0]).name)
    if match := re.search(rf"^(?:\S*/)?{name} {number}" if done.returncode else number, done.stdout, re.MULTILINE):
        return match[1]
    if _UNCONFIGURED.search(done.stdout):
        raise NoClusterError
    if done.returncode:
        first = next(iter(done.stdout.strip().splitlines()), "no message")
        raise ProgramError(f"ends with code {done.returncode}: {first[:120]}")
    return "version unknown"


def folder_checks(folder: Path) -> Iterator[Check]:
    """Of one folder. Raises ``ResultsError`` if there are no results of fairlane in it."""
    yield from _checks(folder, examine(folder))


def _checks(folder: Path, examined: Examined) -> Iterator[Check]:
    from importlib.metadata import version

    here = version("fairlane")
    data = {"kind": examined.kind, "version": examined.version, "schema_version": examined.schema_version}
    message = f"a {examined.kind}, written by fairlane {examined.version}, schema_version {examined.schema_version}"
    if examined.version != here:
        todo = f"to compare numbers, simulate it again with fairlane {here}"
        yield Check("results", Status.WARNING, message, todo=todo, data=data)
    else:
        yield Check("results", Status.OK, message, data=data)
    for problem in examined.problems:
        yield Check("file", Status.BROKEN, problem, todo="simulate it again")
    if not examined.problems:
        yield Check("files", Status.OK, f"{examined.files} files are as they were written")
    if examined.kind == "run" and not examined.problems:
        yield _readable(folder)


def _readable(folder: Path) -> Check:
    try:
        meta = load_run(folder).meta
    except ResultsError as error:
        return Check("run", Status.BROKEN, str(error), todo="simulate it again")
    message = f"scenario {meta.scenario}, seed {meta.seed}, digest {meta.digest}"
    status, todo = (Status.WARNING, "it was interrupted: simulate it again") if meta.partial else (Status.OK, "")
    data = {"scenario": meta.scenario, "seed": meta.seed, "digest": meta.digest, "partial": meta.partial}
    return Check("run", status, message, todo=todo, data=data)
