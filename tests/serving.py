"""A server of a folder for tests, in a thread, and requests to it over real sockets."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from fairlane.lab.serve import Server
from waiting import HANG_S

__all__ = ["Answered", "Client", "serving"]


@dataclass(frozen=True)
class Answered:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)


class Client:
    """Asks a server; with the cookie once it has logged in."""

    def __init__(self, server: Server) -> None:
        self.port = server.port
        self.url = server.url
        self.token = parse_qs(urlsplit(server.url).query)["token"][0]
        self.cookie = ""

    def ask(self, path: str, method: str = "GET", **headers: str) -> Answered:
        """One request. Underscores in the names of headers are hyphens; an empty header is not sent."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)
        given = {"Cookie": self.cookie} | {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.putrequest(method, path, skip_host="Host" in given, skip_accept_encoding=True)
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            if method == "POST":
                connection.putheader("Content-Length", "0")
            connection.endheaders()
            answer = connection.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()

    def log_in(self) -> Answered:
        """Uses the token, and keeps the cookie."""
        answer = self.ask(f"/?token={self.token}")
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return answer

    def entries(self) -> dict[str, dict[str, Any]]:
        """What is listed, by path."""
        return {entry["path"]: entry for entry in self.ask("/api/results").json["entries"]}

    def action(self, page: str) -> str:
        """The second token, as a page has it."""
        text = self.ask(page).text
        return str(json.loads(text.partition('id="given">')[2].partition("</script>")[0])["action"])


@contextmanager
def serving(folder: Path) -> Iterator[Client]:
    """A server of a folder within, in a thread of its own, and a client that has not logged in."""
    server = Server(folder)
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.run(ended)))
    thread.start()
    try:
        yield Client(server)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        server.close()
