"""Collectives, blocking and not, and those of neighbours in a topology."""

from collections.abc import Iterable, Sequence
from typing import Literal

from fairlane.workload.writer import Request, Writer

__all__ = ["CollectiveCalls", "CollectiveKind", "NeighborKind"]

CollectiveKind = Literal[
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter", "scan"
]
"""The collective operations."""

NeighborKind = Literal["neighbor_allgather", "neighbor_alltoall"]
"""The neighborhood collectives."""


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
