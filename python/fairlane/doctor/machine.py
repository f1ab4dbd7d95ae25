"""The machine: cores, memory, and folders that have to be writable."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from fairlane.doctor.check import Check, Status
from fairlane.wording import data_size, plural

LITTLE_MEMORY = 1 << 30
"""Bytes of memory with which large fabrics and figures of studies are not possible."""
LITTLE_SPACE = 1 << 30
"""Bytes on a disk that a study can fill."""
_MEMORY_INFO = Path("/proc/meminfo")


def checks() -> Iterator[Check]:
    """All of them."""
    yield cores()
    yield memory()
    yield from folders()


def cores() -> Check:
    """The cores that a run may use."""
    from fairlane.scenario.estimate import free_cores, machine_cores

    usable, present, free = machine_cores(), os.cpu_count() or 1, free_cores()
    limit = f" of {present} (affinity or control group)" if usable < present else ""
    load = f"; {free} free by the load average" if free < usable else ""
    data = {"usable": usable, "present": present, "free": free}
    return Check("cores", Status.OK, f"{plural(usable, 'core')}{limit}{load}", data=data)


def memory() -> Check:
    """The memory that a run may use, by the machine, resource limits and control groups."""
    from fairlane.scenario.estimate import machine_memory

    usable, available = machine_memory(), _available()
    data = {"usable": usable, "available": available}
    least = usable if available is None else min(usable, available)
    words = f"{data_size(usable)} usable" + ("" if available is None else f", {data_size(available)} free")
    if least < LITTLE_MEMORY:
        todo = "stop other programs, or raise the limit of the batch job or container"
        return Check("memory", Status.WARNING, f"{words}: enough for small fabrics only", todo=todo, data=data)
    return Check("memory", Status.OK, words, data=data)


def folders() -> Iterator[Check]:
    """Folders that commands write into."""
    from platformdirs import user_cache_path

    yield _folder("cache", user_cache_path("fairlane"), "run, study: calibrated compute times, unpacked traces")
    yield _folder("runs", Path("runs").absolute(), "run, study and others without --out")
    yield _folder("temporary files", Path(tempfile.gettempdir()), "trace, sm check, fabric export")


def _folder(name: str, path: Path, commands: str) -> Check:
    """Whether a folder, or the nearest one above it that exists, can be written."""
    place = next(one for one in (path, *path.parents) if one.exists())
    data = {"folder": str(path)}
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
        free = shutil.disk_usage(place).free
    except OSError as error:
        words = f"{path}: cannot be written: {error.strerror}"
        hint = {"cache": "set XDG_CACHE_HOME to a folder", "temporary files": "set TMPDIR to a folder"}
        todo = f"{hint.get(name, 'use --out with a folder')} that can be written"
        return Check(name, Status.WARNING, words, commands, todo, data)
    words = f"{path}: {data_size(free)} free"
    if free < LITTLE_SPACE:
        return Check(name, Status.WARNING, words, commands, "make room", data)
    return Check(name, Status.OK, words, commands, data=data)


def _available() -> int | None:
    """Bytes of memory that are free or can be freed; None where the system does not say."""
    try:
        lines = _MEMORY_INFO.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)
