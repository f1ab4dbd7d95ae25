"""Events of jobs over a local socket: Slurm's prolog and epilog report that a job begins or ends.

The socket is in the file system, and only its owner, or a group too, may write to it; there is no network port. A
client sends one line of JSON and gets one line back. ``fairlane agent notify`` is the client for the
prolog and the epilog.
"""

import json
import os
import shutil
import socket
import socketserver
import stat
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal

from fairlane.agent.errors import AgentError
from fairlane.errors import ScenarioError
from fairlane.limits import HANG_S
from fairlane.slurm import expand
from fairlane.slurm.jobs import SlurmJob, printable

LONGEST = 1 << 20
"""Bytes of an event."""
_MODE, _GROUP_MODE = 0o600, 0o660

What = Literal["begin", "end"]


@dataclass(frozen=True)
class Event:
    """A job begins or ends."""

    what: What
    job: SlurmJob
    """The job; of one that ends only its number counts."""


def read_event(line: bytes) -> Event:
    """An event from a line of JSON; raises ``ValueError`` in words."""
    data = json.loads(line)
    if not isinstance(data, dict) or data.get("event") not in ("begin", "end"):
        raise ValueError('expected a JSON object with "event": "begin" or "end"')
    if not str(data.get("job") or "").isdigit():
        raise ValueError('expected "job" to be the number of a job')
    texts = {key: printable(str(data.get(key) or "")) for key in ("name", "account", "partition", "user")}
    nodes = tuple(expand(str(data.get("nodes") or "")))
    if data["event"] == "begin" and not nodes:
        raise ValueError('expected "nodes" with a list of nodes, as "n[1-4]"')
    return Event(data["event"], SlurmJob(str(int(data["job"])), nodes, **texts))


def from_environment(what: What, environment: Mapping[str, str]) -> dict[str, Any]:
    """An event from the variables that Slurm sets for a prolog or an epilog; raises ``ScenarioError``."""
    from fairlane.errors import Problem

    job = environment.get("SLURM_JOB_ID", "")
    if not job.isdigit():
        words = "not set to the number of a job: call this in PrologSlurmctld and EpilogSlurmctld"
        raise ScenarioError(Problem("SLURM_JOB_ID", words, job or None))
    keys = {"nodes": "NODELIST", "name": "NAME", "account": "ACCOUNT", "partition": "PARTITION", "user": "USER"}
    found = {key: environment.get(f"SLURM_JOB_{name}", "") for key, name in keys.items()}
    found = {
        key: "" if value == "(null)" else printable(value) for key, value in found.items()
    }  # as of a job without account
    return {"event": what, "job": job, **found}


def notify(path: Path, event: Mapping[str, Any], timeout_s: float = HANG_S) -> None:
    """Sends an event; raises ``AgentError`` if no agent takes it within this time."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout_s)
            client.connect(str(path))
            client.sendall(json.dumps(event).encode() + b"\n")
            answer = client.makefile("rb").readline(LONGEST).decode(errors="replace").strip()
    except OSError as error:
        raise AgentError(f"{path}: the agent does not answer: {error.strerror or error}") from None
    if answer != "ok":
        raise AgentError(f"{path}: the agent refuses the event: {answer or 'no answer'}")


class _Handler(socketserver.StreamRequestHandler):
    timeout = HANG_S

    def handle(self) -> None:
        try:
            line = self.rfile.readline(LONGEST + 1)
            if len(line) > LONGEST:
                raise ValueError(f"longer than {LONGEST} bytes")
            event = read_event(line)
        except (ValueError, RecursionError) as error:  # a ScenarioError is a ValueError
            self.wfile.write(f"refused: {' '.join(str(error).split())}\n".encode())
            return
        except OSError:  # the client sent nothing in time
            return
        server = self.server
        assert isinstance(server, _Server), "the only one that has this handler"
        server.events.put(event)
        self.wfile.write(b"ok\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: str, events: "SimpleQueue[Event]") -> None:
        self.events = events
        super().__init__(path, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error of the agent."""


def _is_served(path: Path) -> bool:
    """Whether a process takes connections at a socket."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(HANG_S)
        try:
            client.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
    return True


class Listener:
    """The socket of an agent: what arrives is in ``events``. Use it in a ``with`` statement.

    A socket that an agent left when it was killed is replaced; any other file at the path is refused.

    Args:
        path: Where the socket is.
        group: A group of users who may write to it besides its owner.
    """

    def __init__(self, path: Path, group: str | None = None) -> None:
        self.path, self.group = path, group
        self.events: SimpleQueue[Event] = SimpleQueue()

    def __enter__(self) -> "Listener":
        try:
            if self.path.exists() or self.path.is_symlink():
                if not stat.S_ISSOCK(self.path.lstat().st_mode):
                    raise AgentError(f"{self.path}: is not a socket; choose another path for slurm.socket")
                if _is_served(self.path):
                    raise AgentError(
                        f"{self.path}: another agent has this socket; choose another path for slurm.socket"
                    )
                self.path.unlink()
            before = os.umask(0o777 & ~_MODE)
            try:
                self._server = _Server(str(self.path), self.events)
            finally:
                os.umask(before)
            self._permit()
        except OSError as error:
            raise AgentError(f"{self.path}: the socket cannot be made: {error.strerror or error}") from None
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        return self

    def _permit(self) -> None:
        """Lets the group write to the socket; without a group it has the mode with which it was made."""
        if self.group is None:
            return
        try:
            shutil.chown(self.path, group=self.group)
        except (LookupError, OSError) as error:
            self._server.server_close()
            self.path.unlink(missing_ok=True)
            words = "no such group" if isinstance(error, LookupError) else error.strerror or str(error)
            raise AgentError(
                f'slurm.socket_group = "{self.group}": {self.path} cannot be given to it: {words}'
            ) from None
        self.path.chmod(_GROUP_MODE)

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.path.unlink(missing_ok=True)
