"""Persistent requests: operations that are described once and started many times."""

from collections.abc import Iterable

from fairlane.workload.collectives import CollectiveKind
from fairlane.workload.writer import Request, Writer

__all__ = ["PersistentCalls"]


class PersistentCalls(Writer):
    """The calls of persistent requests. Starting one is equivalent to the corresponding non-blocking call."""

    def send_init(self, to: int, size: int, *, tag: int = 0, comm: int = 0, synchronous: bool = False) -> Request:
        """Describes a send of ``size`` bytes, which ``start`` starts."""
        return self._new_persistent(
            "send_init",
            lambda request: self._builder.isend(self.index, to, size, request, tag, comm, synchronous),
        )

    def recv_init(self, source: int | None, *, tag: int | None = None, comm: int = 0) -> Request:
        """Describes a receive from ``source`` (None: from any rank) with ``tag`` (None: any)."""
        return self._new_persistent(
            "recv_init", lambda request: self._builder.irecv(self.index, source, request, tag, comm)
        )

    def collective_init(
        self, kind: CollectiveKind, volume: int | list[int] = 0, *, comm: int = 0, root: int = 0
    ) -> Request:
        """Describes a collective. Starting it is an ``icollective``, in the order of the calls on ``comm``."""
        return self._new_persistent(
            f"{kind}_init",
            lambda request: self._builder.icollective(self.index, kind, request, volume, comm, root),
        )

    def start(self, request: Request) -> None:
        """Starts a persistent request. Raises ``ValueError`` if there is no such one, or if it is under way."""
        if request not in self._persistent:
            made_by = "send_init, recv_init and collective_init make some"
            raise ValueError(f"rank {self.index} has no persistent request {request}: {made_by}")
        name, write = self._persistent[request]
        if request in self._open:
            raise ValueError(f"rank {self.index} has started request {request} ({name}) already: a wait comes first")
        write()
        self._open.append(request)
        self._unnamed[request] = f"started {name}"

    def start_all(self, requests: Iterable[Request]) -> None:
        """Starts persistent requests, one after another."""
        for request in requests:
            self.start(request)

    def request_free(self, request: Request) -> None:
        """Gives a request up: if it is under way it completes by itself, and nobody waits for it.

        Raises ``ValueError`` if there is no such request, or for a collective, which has to be waited for.
        """
        if self._unnamed.get(request, "").startswith("i"):
            raise ValueError(f"rank {self.index} cannot free its {self._unnamed[request]} (request {request})")
        if not self._is_inactive(request):
            for number in self._close([request]):
                self._builder.request_free(self.index, number)
        self._freed(request)

    def _freed(self, request: Request) -> None:
        """A persistent request that was freed cannot be started again."""
        if request in self._persistent:
            name, _ = self._persistent[request]

            def refuse() -> None:
                raise ValueError(f"rank {self.index} has freed request {request} ({name})")

            self._persistent[request] = name, refuse
