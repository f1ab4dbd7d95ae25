"""What every part of a rank's script needs: where it is written, and which requests are under way."""

from collections.abc import Callable, Iterable
from typing import NewType

from fairlane import _core

__all__ = ["Request", "Writer"]

Request = NewType("Request", int)
"""A non-blocking operation, or a persistent request."""

_PERSISTENT = 1 << 20
"""Numbers from here on are those of persistent requests."""


class Writer:
    """A rank's script in the making, and its requests."""

    def __init__(self, index: int, builder: _core.ProgramBuilder) -> None:
        self.index = index
        """This rank's number in the job."""
        self._builder = builder
        self._open: list[Request] = []
        self._next = 0
        self._unnamed: dict[Request, str] = {}  # what no wait has named yet, and must be waited for
        self._persistent: dict[Request, tuple[str, Callable[[], None]]] = {}

    def check_end(self) -> None:
        """Raises ``ValueError`` if a request that has to be waited for never is."""
        for request, name in self._unnamed.items():
            raise ValueError(f"rank {self.index} never waits for its {name} (request {request})")

    def _request(self, name: str | None = None) -> Request:
        """A new request; with a name, one that has to be waited for."""
        self._next = self._next + 1 if self._open else 0
        request = Request(self._next)
        self._open.append(request)
        if name is not None:
            self._unnamed[request] = name
        return request

    def _new_persistent(self, name: str, start: Callable[[Request], None]) -> Request:
        """A persistent request; ``start`` writes what it stands for."""
        request = Request(_PERSISTENT + len(self._persistent))
        self._persistent[request] = name, lambda: start(request)
        return request

    def _close(self, requests: Iterable[Request]) -> list[int]:
        """Those of ``requests`` that a wait has to ask for; they are no longer under way."""
        waited = [request for request in requests if not self._is_inactive(request)]
        for request in waited:
            self._under_way([request])
            self._open.remove(request)
        return [int(request) for request in waited]

    def _under_way(self, requests: Iterable[Request] | None) -> list[int]:
        waited = list(self._open if requests is None else requests)
        for request in waited:
            if request not in self._open:
                raise ValueError(f"rank {self.index} has no request {request} under way")
            self._unnamed.pop(request, None)
        return [int(request) for request in waited]

    def _is_inactive(self, request: Request) -> bool:
        return request in self._persistent and request not in self._open
