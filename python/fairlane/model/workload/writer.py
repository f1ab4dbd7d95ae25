"""The operations of a rank's script: requests, collectives, and persistent requests."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NewType

from fairlane.core import bridge

Request = NewType("Request", int)
"""A non-blocking operation, or a persistent request."""

_PERSISTENT = 1 << 20
"""Numbers from here on are those of persistent requests."""

CollectiveKind = Literal[
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter", "scan"
]
"""The collective operations."""


class Writer:
    """A rank's script in the making, and its requests."""

    def __init__(self, index: int, builder: bridge.ProgramBuilder) -> None:
        self.index = index
        """This rank's number in the job."""
        self._builder = builder
        self._open: list[Request] = []
        self._next = 0
        self._unnamed: dict[Request, str] = {}  # what no wait has named yet, and must be waited for
        self._persistent: dict[Request, tuple[str, Callable[[], None]]] = {}

    def _refuse(self, is_wrong: object, message: str) -> None:
        if is_wrong:
            raise ValueError(f"rank {self.index} {message}")

    def check_end(self) -> None:
        """Raises ``ValueError`` if a request that has to be waited for never is."""
        for request, name in self._unnamed.items():
            self._refuse(True, f"never waits for its {name} (request {request})")

    def _request(self, name: str | None = None) -> Request:
        """A new request; with a name, one that has to be waited for."""
        self._next = self._next + 1 if self._open else 0
        request = Request(self._next)
        self._open.append(request)
        if name is not None:
            self._unnamed[request] = name
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
            self._refuse(request not in self._open, f"has no request {request} under way")
            self._unnamed.pop(request, None)
        return [int(request) for request in waited]

    def _is_inactive(self, request: Request) -> bool:
        return request in self._persistent and request not in self._open


class CollectiveCalls(Writer):
    """The calls of collectives, and of communicators with a topology."""

    def collective(self, kind: CollectiveKind, volume: int | list[int] = 0, *, comm: int = 0, root: int = 0) -> None:
        """Takes part in a collective.

        ``volume`` is in bytes: one number, the same at every member, or for the v-variants a list with the block of
        each member of ``comm``, in order. Only the root of a gatherv or scatterv must know every block: the others may
        give a list of one number, their own block.
        """
        self._builder.collective(self.index, kind, volume, comm, root)

    def icollective(
        self, kind: CollectiveKind, volume: int | list[int] = 0, *, comm: int = 0, root: int = 0
    ) -> Request:
        """Starts a collective that does not block: ``MPI_Ibarrier``, ``MPI_Iallreduce`` and so on.

        It makes progress by itself while the rank computes. Every member calls it, in the same order among the
        collectives of ``comm``, and waits for the request.
        """
        request = self._request(f"i{kind}")
        self._builder.icollective(self.index, kind, request, volume, comm, root)
        return request

    def cart_create(
        self, new: int, dims: Sequence[int], *, periods: bool | Sequence[bool] = False, comm: int = 0
    ) -> None:
        """Gives the first ranks of ``comm`` a grid with these sides, the last varying fastest; ``new`` names it.

        ``periods`` says, for all dimensions or for each, whether the grid wraps around. A rank has two neighbours a
        dimension, the one before and the one after; at an end that does not wrap there is none. Every member of
        ``comm`` takes part; ranks beyond the grid get no communicator.
        """
        wraps = [periods] * len(dims) if isinstance(periods, bool) else list(periods)
        if len(wraps) != len(dims):
            raise ValueError(f"rank {self.index}: {len(wraps)} periods for {len(dims)} dims")
        self._builder.cart_create(self.index, new, list(zip(dims, wraps, strict=True)), comm)

    def dist_graph_create_adjacent(
        self, new: int, sources: Iterable[int], destinations: Iterable[int], *, comm: int = 0
    ) -> None:
        """Gives ``comm`` a graph in which this rank receives from ``sources`` and sends to ``destinations``.

        Every member of ``comm`` takes part and gives its own neighbours, ranks of ``comm``; ``new`` names it.
        """
        self._builder.dist_graph_create_adjacent(self.index, new, list(sources), list(destinations), comm)

    def graph_create(self, new: int, neighbors: Iterable[Iterable[int]], *, comm: int = 0) -> None:
        """Gives ranks of ``comm`` a graph: the neighbours of every rank, the same list at every member."""
        self._builder.graph_create(self.index, new, [list(of_rank) for of_rank in neighbors], comm)

    def neighbor_allgather(self, size: int, *, comm: int) -> None:
        """Sends the same ``size`` bytes to every destination and receives from every source in ``comm``'s topology."""
        self._builder.neighbor(self.index, "neighbor_allgather", size, comm)

    def neighbor_alltoall(self, volume: int | list[int], *, comm: int) -> None:
        """Sends a block to every destination and receives one from every source in ``comm``'s topology.

        ``volume`` is in bytes: one number, or for the v- and w-variants a list with the block of each destination. In a
        grid that has an entry for a neighbour that is missing, too.
        """
        self._builder.neighbor(self.index, "neighbor_alltoall", volume, comm)

    def ineighbor_allgather(self, size: int, *, comm: int) -> Request:
        """Starts a ``neighbor_allgather`` that does not block."""
        request = self._request("ineighbor_allgather")
        self._builder.ineighbor(self.index, "neighbor_allgather", request, size, comm)
        return request

    def ineighbor_alltoall(self, volume: int | list[int], *, comm: int) -> Request:
        """Starts a ``neighbor_alltoall`` that does not block."""
        request = self._request("ineighbor_alltoall")
        self._builder.ineighbor(self.index, "neighbor_alltoall", request, volume, comm)
        return request


class PersistentCalls(Writer):
    """The calls of persistent requests. Starting one is equivalent to the corresponding non-blocking call."""

    def _new_persistent(self, name: str, start: Callable[[Request], None]) -> Request:
        """A persistent request; ``start`` writes its operation."""
        request = Request(_PERSISTENT + len(self._persistent))
        self._persistent[request] = name, lambda: start(request)
        return request

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
        made_by = "send_init, recv_init and collective_init make some"
        self._refuse(request not in self._persistent, f"has no persistent request {request}: {made_by}")
        name, write = self._persistent[request]
        self._refuse(request in self._open, f"has started request {request} ({name}) already: a wait comes first")
        write()
        self._open.append(request)
        self._unnamed[request] = f"started {name}"

    def start_all(self, requests: Iterable[Request]) -> None:
        """Starts persistent requests, one after another."""
        for request in requests:
            self.start(request)

    def request_free(self, request: Request) -> None:
        """Frees a request: if it is under way it completes without a wait.

        Raises ``ValueError`` if there is no such request, or for a collective, which has to be waited for.
        """
        name = self._unnamed.get(request, "")
        self._refuse(name.startswith("i"), f"cannot free its {name} (request {request})")
        if not self._is_inactive(request):
            for number in self._close([request]):
                self._builder.request_free(self.index, number)
        if request in self._persistent:
            name, _ = self._persistent[request]

            self._persistent[request] = name, lambda: self._refuse(True, f"has freed request {request} ({name})")
