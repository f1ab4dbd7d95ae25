"""Progress of the processes of jobs: reads the pages that they write, here, by a local socket, or on another host.

Users write the pages, so nothing in them is trusted. A page counts if the process that it names lives, started when the
page says, belongs to the owner of the file, and is in the Slurm job that it names, where its control group tells. What
does not count is listed with the reason. Pages of processes that have ended are removed.
"""

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fairlane.cluster.agent.system import AgentError, LocalServer, ask, call
from fairlane.core.signals import HANG_S
from fairlane.progress import layout

Key = tuple[str, int]
"""A job and a rank of it."""
SSH = ("ssh", "{host}", "fairlane", "agent", "progress", "--interval", "0s", "--json")
"""Command that reads the pages of another host."""
MOST_FILES = 16384
"""Files of a directory that are read; a user may make any number."""
_MOST_BYTES = 1 << 26  # of an answer
_SLURM_JOB = re.compile(rb"^[^\n]*slurm[^\n]*/job_(\d+)(?:/|$)", re.MULTILINE)
_USERS = re.compile(rb"^Uid:([\t\d]+)$", re.MULTILINE)  # real, effective, saved and file system user


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a process."""

    job: str
    rank: int
    marks: float
    """Iterations, with the fraction of the current one."""
    at: float
    """Time of reading, s of the host's CLOCK_MONOTONIC."""
    marked: float | None
    """Time of the last mark, s of the same clock; None before the first."""
    pid: int
    started: int
    """Start of the process, clock ticks since boot."""
    user: int
    host: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that does not count."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pages of a host at some time."""

    host: str
    at: float
    """s of the host's CLOCK_MONOTONIC."""
    processes: tuple[Progress, ...]
    """By job and rank, one each."""
    skipped: tuple[Skipped, ...] = ()

    @property
    def by_rank(self) -> dict[Key, Progress]:
        """The processes by job and rank."""
        return {(process.job, process.rank): process for process in self.processes}


def read(
    host: str | None = None,
    *,
    socket: Path | None = None,
    directories: Sequence[Path] | None = None,
    through: Sequence[str] = SSH,
    timeout_s: float = HANG_S,
) -> Snapshot:
    """Reads the progress of the processes of all jobs on a host.

    Args:
        host: A host that is not this one is read by the command ``through``.
        socket: On this host, ask the server here, which may read the pages of all users.
        directories: On this host, read these directories; by default those of ``own_directories``.
        through: A command that prints a snapshot as JSON; ``{host}`` is replaced.
        timeout_s: How long that command may take, s.

    Raises:
        AgentError: The server or the command does not answer, or not with a snapshot.
    """
    if host is not None and layout.plain(host) != layout.host_name(os.environ):
        if re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", host) is None:
            raise AgentError(f"{host!r}: is no name of a host")
        command = [word.replace("{host}", host) for word in through]
        return _parsed(" ".join(command), call(command, timeout_s, AgentError))
    if socket is not None:
        return _parsed(str(socket), ask(socket, b"read", longest=_MOST_BYTES))
    return scan(own_directories(os.environ) if directories is None else directories)


def gained(before: Snapshot, after: Snapshot) -> dict[Key, float]:
    """Iterations that each rank has made between two snapshots; without ranks whose process is not in both."""
    earlier = before.by_rank
    return {
        key: now.marks - then.marks
        for key, now in after.by_rank.items()
        if (then := earlier.get(key)) and (then.pid, then.started) == (now.pid, now.started)
    }


def server(path: Path, directories: Sequence[Path] | None = None, group: str | None = None) -> LocalServer:
    """Return a server that answers ``read(socket=path)``, for a ``with`` statement; root's serves the pages of all."""

    def answer(line: bytes) -> str:
        from pydantic_core import to_json

        if line.strip() != b"read":
            raise ValueError('expected the line "read"')
        return to_json(asdict(read(directories=directories))).decode()

    return LocalServer(path, answer, group, ("--socket", "--group"))


def own_directories(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of pages by default: of this user, or of all users for root."""
    given = environment.get("FAIRLANE_PROGRESS_DIR")
    if os.geteuid() == 0:
        folders = [*Path("/dev/shm").glob("fairlane-[0-9]*"), *Path("/run/user").glob("*/fairlane")]
    else:
        folders = [Path(f"/dev/shm/fairlane-{os.geteuid()}")]
        if runtime := environment.get("XDG_RUNTIME_DIR"):
            folders.append(Path(runtime, "fairlane"))
    return sorted({*folders, *([Path(given).resolve()] if given else [])})


def scan(directories: Sequence[Path]) -> Snapshot:
    """Reads the pages in directories of this host. Symbolic links, which a user could turn elsewhere, are skipped."""
    processes: list[Progress] = []
    skipped: list[Skipped] = []
    for directory in directories:
        try:
            folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        except OSError as error:
            skipped.append(Skipped(str(directory), error.strerror or str(error)))
            continue
        try:
            for name, outcome in _pages(folder):
                if isinstance(outcome, Progress):
                    processes.append(outcome)
                else:
                    skipped.append(Skipped(str(directory / name), outcome))
        finally:
            os.close(folder)
    # A rank is one process: the one that was there first.
    ranks: dict[Key, Progress] = {}
    for process in sorted(processes, key=lambda process: (process.job, process.rank, process.started, process.pid)):
        first = ranks.setdefault((process.job, process.rank), process)
        if first is not process:
            message = (
                f"process {process.pid} has job {process.job} and rank {process.rank} too, like process {first.pid}"
            )
            skipped.append(Skipped(f"/proc/{process.pid}", message))
    return Snapshot(layout.host_name(os.environ), time.monotonic(), tuple(ranks.values()), tuple(skipped))


class _DeadError(Exception):
    """The process of a page has ended."""


def _pages(folder: int) -> Iterator[tuple[str, Progress | str]]:
    """Yield each file of a directory with its page, or the reason why it does not count. Other files are left out."""
    namespace = layout.pid_namespace()
    names = sorted(name for name in os.listdir(folder) if name.endswith(".progress"))
    for name in names[:MOST_FILES]:
        try:
            yield name, _page(folder, name, namespace)
        except _DeadError:
            with suppress(OSError):
                os.unlink(name, dir_fd=folder)
        except (FileNotFoundError, ProcessLookupError):  # its process has just ended
            continue
        except ValueError as error:
            yield name, str(error)
        except OSError as error:
            yield name, error.strerror or str(error)
    if len(names) > MOST_FILES:
        yield "", f"has {len(names)} files; {MOST_FILES} are read"


def _page(folder: int, name: str, namespace: int) -> Progress:
    """A page whose process lives. Raises ``ValueError`` in words, ``OSError``, or ``_DeadError``."""
    named = layout.NAME.fullmatch(name)
    if named is None:
        raise ValueError("is not named JOB-RANK-PID.progress")
    pid = int(named["pid"])
    data, owner = _content(folder, name)
    at = time.monotonic()
    try:
        page = layout.decode(data)
    except ValueError:
        if layout.start_of(pid) is None:
            raise _DeadError from None  # killed before it was complete
        raise
    header = page.header
    if header.pid != pid:
        raise ValueError(f"is about process {header.pid}, not {pid}")
    if header.pid_namespace not in (0, namespace):
        raise ValueError("is from another PID namespace, whose processes cannot be told from here")
    _check(header, owner)
    marked = page.marked / 1e9 if page.marked else None
    return Progress(header.job, header.rank, page.marks, at, marked, pid, header.started, owner, header.host)


def _content(folder: int, name: str) -> tuple[bytes, int]:
    """The beginning of a file, and its owner: this user or root; for root, any."""
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        about = os.fstat(file)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("is no regular file")
        if os.geteuid() not in (0, about.st_uid) and about.st_uid:
            raise ValueError(f"belongs to user {about.st_uid}")
        return os.pread(file, layout.USED_BYTES, 0), about.st_uid  # not mapped: its owner may cut it off at any time
    finally:
        os.close(file)


def _check(header: layout.Header, owner: int) -> None:
    """Compares a page with the process that it names. Raises ``ValueError`` in words, or ``_DeadError``."""
    pid = header.pid
    try:
        process = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # one process from here on
    except FileNotFoundError:
        raise _DeadError from None
    try:
        if layout.start_in(_text(process, "stat")) != header.started:
            raise _DeadError
        users = {int(user) for user in _USERS.findall(_text(process, "status"))[0].split()}
        job = slurm_job(_text(process, "cgroup"))
    finally:
        os.close(process)
    if owner not in users:
        raise ValueError(f"belongs to user {owner}, process {pid} to {', '.join(map(str, sorted(users)))}")
    if job is not None and header.job.split(".")[0] != job:
        raise ValueError(f"is about job {header.job}; process {pid} is in Slurm's job {job}")


def _text(process: int, name: str) -> bytes:
    """A file of a directory of ``/proc``."""
    file = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
    try:
        return os.read(file, 1 << 16)
    finally:
        os.close(file)


def slurm_job(control_groups: bytes) -> str | None:
    """The job of a process by ``/proc/PID/cgroup``, which users cannot choose; None if Slurm has made none."""
    match = _SLURM_JOB.search(control_groups)
    return match[1].decode() if match else None


def _parsed(source: str, text: str) -> Snapshot:
    """A snapshot from JSON."""
    try:
        return TypeAdapter(Snapshot).validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise AgentError(f"{source}: no snapshot of progress: {place}{': ' if place else ''}{first['msg']}") from None
