"""Programs, paths and sockets as the agent uses them, and what goes wrong outside of it: in Slurm, OpenSM, the kernel.

Over a socket in the file system a client sends one line and gets one line back. Only its owner, or a group too, may
write to it; there is no network port.
"""

import os
import shutil
import socket
import socketserver
import stat
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator

from fairlane.core.errors import FairlaneError, Problem, ScenarioError
from fairlane.core.signals import HANG_S
from fairlane.inputs.document import Document, current_document


def _in_folder(path: Path) -> Path:
    return current_document.get().folder / path


FilePath = Annotated[Path, AfterValidator(_in_folder)]
"""A model's field that holds a path."""


def journal_of(file: Path) -> Path:
    """The journal that agent.toml names. The rest of the file is not read, which takes seconds less than all of it."""
    document = Document.read(file)
    path = document.data.get("journal")
    if not isinstance(path, str):
        message = "missing" if path is None else "is not a path"
        raise ScenarioError(document.locate(Problem("journal", message, path, "a path"), ("journal",)))
    return document.folder / path


class AgentError(FairlaneError):
    """The agent cannot start or go on: another one runs, Slurm does not answer, the journal cannot be used."""


class BackendError(FairlaneError):
    """A backend refused a setting, or what is in force afterwards is not what was written."""


class NoAnswerError(BackendError):
    """A machine that a backend uses does not answer."""


_MOST_SHOWN = 300  # characters of a program's error message


def call(command: Sequence[str], timeout_s: float, error: type[FairlaneError], given: str | None = None) -> str:
    """Run a program with ``given`` as its standard input; return its standard output.

    Raises ``error`` with the command and the reason if it cannot be started, takes longer, or ends with a code other
    than 0.
    """
    shown = " ".join(command)
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise error(f"{shown}: no answer within {timeout_s:g} s") from None
    except (OSError, ValueError) as reason:  # a ValueError is a NUL in a word
        raise error(f"{shown}: cannot be started: {getattr(reason, 'strerror', None) or reason}") from None
    if done.returncode:
        message = (done.stderr.strip() or done.stdout.strip() or "no message")[:_MOST_SHOWN]
        raise error(f"{shown}: ended with code {done.returncode}: {message}")
    return done.stdout


LONGEST = 1 << 20
"""Bytes of a question."""
_MODE, _GROUP_MODE = 0o600, 0o660


def ask(path: Path, line: bytes, timeout_s: float = HANG_S, longest: int = LONGEST) -> str:
    """The line that a server answers; raises ``AgentError`` if there is none within this time."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout_s)
            client.connect(str(path))
            client.sendall(line + b"\n")
            return client.makefile("rb").readline(longest).decode(errors="replace").strip()
    except OSError as error:
        raise AgentError(f"{path}: the agent does not answer: {error.strerror or error}") from None


class _Handler(socketserver.StreamRequestHandler):
    timeout = HANG_S

    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _Server), "the only one that has this handler"
        try:
            line = self.rfile.readline(LONGEST + 1)
            if len(line) > LONGEST:
                raise ValueError(f"longer than {LONGEST} bytes")
            answer = server.answer(line)
        except (ValueError, RecursionError) as error:  # a ScenarioError is a ValueError
            answer = f"refused: {' '.join(str(error).split())}"
        except OSError:  # the client sent nothing in time
            return
        self.wfile.write(answer.encode() + b"\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, path: str, answer: Callable[[bytes], str]) -> None:
        self.answer = answer
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


class LocalServer:
    """A socket that is served by a thread. Use it in a ``with`` statement.

    A socket that a server left when it was killed is replaced; any other file at the path is refused.

    Args:
        path: Where the socket is.
        answer: The line for a line. A ``ValueError`` is sent back as a refusal, in its words.
        group: A group of users who may write to it besides its owner.
        keys: What the user calls path and group.
    """

    def __init__(
        self,
        path: Path,
        answer: Callable[[bytes], str],
        group: str | None = None,
        keys: tuple[str, str] = ("slurm.socket", "slurm.socket_group"),
    ) -> None:
        self.path, self.group, self._answer, self._keys = path, group, answer, keys

    def __enter__(self) -> Self:
        choose = f"choose another path for {self._keys[0]}"
        try:
            if self.path.exists() or self.path.is_symlink():
                if not stat.S_ISSOCK(self.path.lstat().st_mode):
                    raise AgentError(f"{self.path}: is not a socket; {choose}")
                if _is_served(self.path):
                    raise AgentError(f"{self.path}: another agent has this socket; {choose}")
                self.path.unlink()
            before = os.umask(0o777 & ~_MODE)
            try:
                self._server = _Server(str(self.path), self._answer)
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
            message = "no such group" if isinstance(error, LookupError) else error.strerror or str(error)
            key = self._keys[1]
            raise AgentError(f'{key} = "{self.group}": {self.path} cannot be given to it: {message}') from None
        self.path.chmod(_GROUP_MODE)

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.path.unlink(missing_ok=True)
