"""A subnet without hardware: ibsim answers the management datagrams of all ports, and a real OpenSM manages them.

All processes end with the one that has started them, whatever ends it: the kernel kills them when their parent dies
(``setpriv --pdeathsig``). Several subnets can run at a time; each has a socket name of its own (IBSIM_SOCKNAME).
"""

import os
import re
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fairlane.core.errors import Problem, RunError, ScenarioError
from fairlane.core.signals import HANG_S, deferred_signals

PACKAGES: Mapping[str, str] = {
    "opensm": "opensm",
    "ibsim": "ibsim-utils",
    "dump_fts": "infiniband-diags",
    "setpriv": "util-linux",
}
"""The package of each program."""
SIMULATED_UMAD = "libumad2sim.so"
"""Of ``ibsim-utils``: connects a program's management datagrams with the simulated subnet."""
_SYSTEM = "/usr/sbin:/sbin"  # where a user's PATH does not lead
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


@dataclass(frozen=True)
class Programs:
    """Paths of the programs."""

    path: str
    """The value of PATH with which they are found."""
    umad2sim: Path
    """``libumad2sim``."""


def search_path() -> str:
    """PATH with the folders of system programs."""
    return f"{os.environ.get('PATH', os.defpath)}:{_SYSTEM}"


def missing_programs() -> dict[str, str]:
    """The package of each program that is not installed."""
    path = search_path()
    missing = {name: package for name, package in PACKAGES.items() if shutil.which(name, path=path) is None}
    return missing if _library() else missing | {SIMULATED_UMAD: PACKAGES["ibsim"]}


def find_programs() -> Programs:
    """The programs. Raises ``ScenarioError`` with the packages of those that are missing."""
    missing, library = missing_programs(), _library()
    if missing or library is None:
        packages = " ".join(dict.fromkeys(missing.values()))
        message = f"not installed: {', '.join(missing)}"
        raise ScenarioError(
            Problem("sm check", message, allowed=f"with the packages of Debian: apt install {packages}")
        )
    return Programs(search_path(), library)


def _library() -> Path | None:
    folders = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    places = (Path(folder) / "umad2sim" / SIMULATED_UMAD for folder in (*_LIBRARIES, *folders))
    return next((place for place in places if place.exists()), None)


UP = "SUBNET UP"
"""Message of OpenSM in its log when all ports have their settings."""
_READY = "simulator ready"
_REFUSED = re.compile(r"ERR AC\w\w|PARSE ERROR|setup routing engine|No routing engine able")  # in its log
_OPTION = re.compile(r"Unrecognized token|Invalid Cached Option|Warning: Cached Option")  # in what it prints
_USED = re.compile(r"(\S+) tables configured on all switches")
_ERROR = " 0x01 -> "  # in its log
_POLL_S = 0.02
_SHOWN = 5  # lines of a log in a message


@dataclass(frozen=True)
class Sizes:
    """Sizes of a simulated fabric."""

    nodes: int
    switches: int
    ports: int

    def options(self) -> list[str]:
        """Options of ibsim for so many, with room."""
        return ["-N", str(self.nodes + 16), "-S", str(self.switches + 16), "-P", str(self.ports + 64)]


@dataclass(frozen=True)
class Subnet:
    """A subnet that is up."""

    folder: Path
    """Folder of its files: ``fabric.net``, ``opensm.conf``, ``osm.log`` and others that the processes write."""
    opensm: int
    """The process number of OpenSM."""
    within: Mapping[str, str]
    """The environment in which a program sees the simulated subnet."""
    seconds: float
    """Time that OpenSM took, s."""

    def run(self, command: Sequence[str], given: bytes = b"", timeout_s: float = HANG_S) -> bytes:
        """Run a program that sees the subnet; return its output. Raises ``RunError`` if it fails."""
        shown = " ".join(command[:3])
        try:
            done = subprocess.run(
                _bound(command, self.within["LD_PRELOAD"]),
                input=given,
                capture_output=True,
                env={key: value for key, value in self.within.items() if key != "LD_PRELOAD"},
                cwd=self.folder,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise RunError(f"{shown}: no answer within {timeout_s:g} s") from None
        if done.returncode:
            message = done.stderr.decode(errors="replace").strip() or "no message"
            raise RunError(f"{shown}: ended with code {done.returncode}: {message[-300:]}")
        return done.stdout

    def read_again(self, timeout_s: float = 60.0) -> None:
        """Has OpenSM read its options again (SIGHUP), and waits until it has set all ports."""
        before, deadline = self.log().count(UP), time.monotonic() + timeout_s
        os.kill(self.opensm, signal.SIGHUP)
        while self.log().count(UP) == before:
            if time.monotonic() > deadline:
                raise RunError(f"OpenSM: the subnet is not up again after {timeout_s:g} s: {_last(self.log())}")
            time.sleep(_POLL_S)

    def log(self) -> str:
        """OpenSM's log."""
        return _read(self.folder / "osm.log")

    @property
    def errors(self) -> list[str]:
        """Return the errors in OpenSM's log, each once."""
        return list(dict.fromkeys(_without_time(line) for line in self.log().splitlines() if _ERROR in line))

    @property
    def engine(self) -> str:
        """The routing engine whose tables OpenSM has set last."""
        engines = _USED.findall(self.log())
        return engines[-1] if engines else "unknown"


def _bound(command: Sequence[str], library: str | None = None) -> list[str]:
    """A command whose process dies with this one; the library is loaded into it alone."""
    preload = ["env", f"LD_PRELOAD={library}"] if library else []
    return ["setpriv", "--pdeathsig", "KILL", *preload, *command]


@contextmanager
def simulated_subnet(
    folder: Path, hosts: Sequence[str], sizes: Sizes, timeout_s: float = HANG_S, programs: Programs | None = None
) -> Iterator[Subnet]:
    """The subnet of ``fabric.net`` under OpenSM with ``opensm.conf``, both in ``folder``.

    OpenSM runs on the first of ``hosts``, programs on the last. Raises ``ScenarioError`` with the line of OpenSM's log
    if it refuses what it is given, and ``RunError`` if the subnet does not come up in time.
    """
    programs, folder = programs or find_programs(), folder.absolute()
    base = os.environ | {"PATH": programs.path, "IBSIM_SOCKNAME": f"fairlane-{os.getpid()}-{secrets.token_hex(4)}"}
    base |= {"OSM_TMP_DIR": str(folder), "OSM_CACHE_DIR": str(folder)}
    preloaded = str(programs.umad2sim)
    with _running(["ibsim", *sizes.options(), "-s", "-n", "fabric.net"], folder, base, "ibsim.out") as ibsim:
        _await_ibsim(ibsim, folder)
        command = ["opensm", "-F", "opensm.conf", "-f", str(folder / "osm.log")]
        began = time.monotonic()
        with _running(command, folder, base | {"SIM_HOST": hosts[0]}, "opensm.out", preloaded) as opensm:
            _await_opensm(opensm, folder, timeout_s)
            within = base | {"SIM_HOST": hosts[-1], "LD_PRELOAD": preloaded}
            yield Subnet(folder, opensm.pid, within, time.monotonic() - began)


@contextmanager
def _running(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], output: str, library: str | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """A process that has ended when the block does, also if a signal arrives while it is started.

    An OpenSM that ran on would make its folder anew after that has been removed.
    """
    process = None
    try:
        with deferred_signals():
            process = _start(command, folder, environment, output, library)
        yield process
    finally:
        with deferred_signals():
            if process is not None:
                process.send_signal(signal.SIGKILL)
                process.wait()


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], output: str, library: str | None = None
) -> "subprocess.Popen[bytes]":
    with (folder / output).open("wb") as out:
        return subprocess.Popen(
            _bound(command, library), cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )


def _await_ibsim(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    deadline = time.monotonic() + HANG_S
    while _READY not in (text := _read(folder / "ibsim.out")):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RunError(f"ibsim did not start: {_last(text)}")
        time.sleep(_POLL_S)


def _await_opensm(process: "subprocess.Popen[bytes]", folder: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        ended, log = process.poll() is not None, _read(folder / "osm.log")
        if refused := [line for line in log.splitlines() if _REFUSED.search(line)]:
            message = f"OpenSM refuses what was exported: {' / '.join(map(_without_time, refused[:_SHOWN]))}"
            raise ScenarioError(Problem("sm check", message))
        if ended:
            message = f"OpenSM ended: {_last(_read(folder / 'opensm.out') + log)}"
            raise ScenarioError(Problem("sm check", message))
        if UP in log:
            break
        if time.monotonic() > deadline:
            raise RunError(f"OpenSM: the subnet is not up after {timeout_s:g} s: {_last(log)}")
        time.sleep(_POLL_S)
    printed = [line.strip() for line in _read(folder / "opensm.out").splitlines() if _OPTION.search(line)]
    if printed:
        message = f"OpenSM refuses an option: {' / '.join([*dict.fromkeys(printed)][:_SHOWN])}"
        raise ScenarioError(Problem("sm check", message))


def _without_time(line: str) -> str:
    return line.partition("-> ")[2].strip() or line.strip()


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " / ".join(map(_without_time, lines[-3:])) or "no output"


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
