"""The server: bound to 127.0.0.1, and ended by Ctrl-C or SIGTERM.

*Who is answered: requests to this machine by its own name, from whoever has the token, and no other site's.* A page of
another site, open in the same browser, can send requests here, but it has neither the token nor the cookie: that one is
``SameSite=Strict``. With a name that it makes point to 127.0.0.1 (DNS rebinding) its requests have a wrong ``Host``.
Requests that change something need a header with a second token, which only pages of this server have and which other
sites cannot send without being allowed to, and an ``Origin`` that is this server's.
"""

import asyncio
import errno
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.lab.serve.access import Access

if TYPE_CHECKING:
    from tornado.web import Application

__all__ = ["HOST", "Server", "serve"]


HOST = "127.0.0.1"
_MOST_BODY = 64 << 10
_MOST_PORT = 65535
_IDLE_S = 120.0


class Server:
    """A server of a folder, bound to a port when it is made.

    Raises ``ScenarioError`` if the folder or the port cannot be used, and ``MissingExtraError`` without the library
    that it needs.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        require("serve")
        root = _root(folder)
        self._sockets = _bound(port)
        self.port: int = self._sockets[0].getsockname()[1]
        """The port that it listens on."""
        self._application, self.url, self._close = _application(root, self.port)

    async def run(self, until: asyncio.Event) -> None:
        """Answers until the event is set."""
        from tornado.httpserver import HTTPServer

        server = HTTPServer(self._application, max_body_size=_MOST_BODY, idle_connection_timeout=_IDLE_S)
        server.add_sockets(self._sockets)
        try:
            await until.wait()
        finally:
            server.stop()
            await server.close_all_connections()

    def close(self) -> None:
        """Gives the port back, and removes what was made for pages."""
        for listening in self._sockets:
            listening.close()
        self._close()


def serve(folder: Path, port: int = 0, ready: Callable[[Server], None] = lambda _server: None) -> None:
    """Serves a folder until Ctrl-C or SIGTERM.

    Args:
        folder: The folder.
        port: The port on 127.0.0.1; 0 for a free one.
        ready: Called when it can be reached.

    Raises:
        ScenarioError: The folder or the port cannot be used.
        ResultsError: fairlane was built without the JavaScript of its pages.
    """
    server = Server(folder, port)

    async def main() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        ready(server)
        await server.run(ended)

    try:
        asyncio.run(main())
    finally:
        server.close()


def _root(folder: Path) -> Path:
    try:
        root = folder.resolve(strict=True)
        if root.is_dir():
            next(root.iterdir(), None)
            return root
        reason = "is no folder"
    except (OSError, RuntimeError) as error:
        reason = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    raise ScenarioError(Problem("FOLDER", reason, str(folder), "a folder with results in it, as runs"))


def _bound(port: int) -> list[socket.socket]:
    reason = "is no port"
    try:
        if 0 <= port <= _MOST_PORT:
            bound = socket.create_server((HOST, port))
            bound.setblocking(False)
            return [bound]
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
    raise ScenarioError(Problem("--port", reason, port, f"a free port from 1 to {_MOST_PORT}, or 0 for any"))


def _application(root: Path, port: int) -> "tuple[Application, str, Callable[[], None]]":
    """Return the application, its address with the token, and a function that ends it."""
    from tornado.web import Application

    from fairlane.lab.serve.folders import Folders
    from fairlane.lab.serve.handlers import ROUTES, Served
    from fairlane.lab.serve.pages import Pages, assets

    access, pages = Access(), Pages()
    served = Served(access, Folders(root), pages, assets(), root.name or str(root), f"fairlane-{port}")
    routes = [(path, handler, {"served": served}) for path, handler in ROUTES]
    # Addresses in a log would have the token.
    application = Application(routes, log_function=lambda _handler: None)
    return application, f"http://{HOST}:{port}/?token={access.token}", pages.close
