"""Workloads of messages between two ranks: pairs, neighbours in a plane, in space, in multigrid, and in a ring."""

from collections.abc import Iterator
from itertools import product
from math import isqrt
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.units import Duration, Size
from fairlane.model.workload.base import KIB, Count, Workload
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.grid import GriddedWorkload, grid_shape, neighbours
from fairlane.model.workload.imbalance import Growing, ImbalanceField

_GRID, _WINDOW = 2, 0
"""Names of the communicator with the grid, and of the window, of ``Halo3D``."""
_CELL = 8
"""Bytes of a cell of ``Halo3D``."""
_FACES: list[tuple[int, ...]] = [(-1, 0, 0), (1, 0, 0), (0, -1, 0), (0, 1, 0), (0, 0, -1), (0, 0, 1)]
_EDGES, _CORNERS = (
    [offset for offset in product((-1, 0, 1), repeat=3) if sum(map(abs, offset)) == axes] for axes in (2, 3)
)


class FloodPairs(Workload):
    """Rank x and rank n/2 + x exchange many messages at once; bandwidth-bound.

    Savoie 2020, section 5.3. By default 1 MiB each way an iteration: 0.33 ms of a 3.2 GB/s link, an iteration of about
    0.9 ms when alone.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 32

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        partner = (rank.index + rank.ranks // 2) % rank.ranks
        rank.exchange([partner], self.message_size, self.messages_per_iteration)


class RandomPairs(Workload):
    """Ranks of the lower half exchange many messages with random partners in the upper half, fixed for the run.

    By default 1 MiB each way an iteration, like Flood-Pairs: the pairs differ, the load does not.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 32

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        half = rank.ranks // 2
        partners = rank.job.drawn("pairs", lambda rng: pair_up([int(x) for x in rng.random(half).argsort()]))
        rank.exchange([partners[rank.index]], self.message_size, self.messages_per_iteration)


def pair_up(order: list[int]) -> list[int]:
    """Each rank's partner, if rank x of the lower half is paired with number ``order[x]`` of the upper half."""
    half = len(order)
    partners = [half + upper for upper in order] + [0] * half
    for lower, upper in enumerate(order):
        partners[half + upper] = lower
    return partners


class PingPong(Workload):
    """Rank x sends a message to rank n/2 + x, which sends it back; no computation by default.

    With ``sizes``, iterations go through the sizes one after the other, and ``distinct_iterations`` defaults to their
    number.
    """

    even_ranks: ClassVar[bool] = True
    message_size: Size = 8
    sizes: list[Size] | None = Field(
        default=None, min_length=1, description="instead of `message_size`: message sizes of successive iterations"
    )
    compute: Duration | None = 0

    @model_validator(mode="before")
    @classmethod
    def _one_round(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("sizes"), list) and "distinct_iterations" not in given:
            return {**given, "distinct_iterations": max(1, len(given["sizes"]))}
        return given

    @model_validator(mode="after")
    def _whole_rounds(self) -> Self:
        if self.sizes and self.distinct_iterations % len(self.sizes):
            raise ValueError(f"distinct_iterations must be a multiple of the number of sizes, {len(self.sizes)}")
        return self

    @override
    def repeats(self) -> bool:
        return not self.sizes

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        half = rank.ranks // 2
        size = self.sizes[iteration % len(self.sizes)] if self.sizes else self.message_size
        for _ in range(self.messages_per_iteration):
            if rank.index < half:
                rank.send(rank.index + half, size)
                rank.recv(rank.index + half)
            else:
                rank.recv(rank.index - half)
                rank.send(rank.index - half, size)


class NearestNeighbor(Workload):
    """Ranks in a two-dimensional grid exchange messages with their up to four neighbours, without wraparound.

    Savoie 2020, section 5.3. By default 384 KiB each way with each neighbour: 0.35 ms of a 3.2 GB/s link for a rank
    with three neighbours.
    """

    message_size: Size = 32 * KIB
    messages_per_iteration: Count = 12

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        peers = neighbours(rank.index, grid_shape(rank.ranks), [(-1, 0), (0, -1), (0, 1), (1, 0)])
        rank.exchange(peers, self.message_size, self.messages_per_iteration)


class MiniParadis(NearestNeighbor):
    """Nearest neighbours whose compute times drift apart as the run goes on, as dislocations gather on some ranks.

    The sum of the ranks' compute times stays the same. With ``imbalance.per_variant`` each variant starts further on
    (Savoie 2020, section 5.3; Bulatov 2004).
    """

    imbalance: ImbalanceField = Field(default_factory=Growing, description="how Y is divided among the ranks")


class MiniAmg(Workload):
    """V-cycles of algebraic multigrid: on coarser grids a rank has more neighbours and smaller messages.

    On level l of a three-dimensional grid of ranks the neighbours are those within l + 1 steps (by the sum of the
    coordinates) and a message has ``message_size`` / 4^l bytes, at least 64; the cycle goes down to the coarsest level
    and up again, and ends with the norm of the residual, eight bytes (Savoie 2020, section 5.3; Gahvari 2011). By
    default about 0.4 MiB a rank and iteration with 32 ranks.
    """

    message_size: Size = 32 * KIB
    levels: int = Field(default=4, ge=1, le=16, description="grids from finest to coarsest")

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        shape = grid_shape(rank.ranks, 3)
        down = range(self.levels)
        for level in (*down, *reversed(down[:-1])):
            size = max(64, self.message_size >> (2 * level))
            reach = range(-level - 1, level + 2)
            offsets = [offset for offset in product(reach, repeat=3) if 0 < sum(map(abs, offset)) <= level + 1]
            rank.exchange(neighbours(rank.index, shape, offsets), size, self.messages_per_iteration)
        rank.collective("allreduce", 8)


class Halo3D(GriddedWorkload):
    """Ranks in a three-dimensional grid exchange faces with their up to six neighbours: bound by bandwidth.

    Wilke 2020, section V. By default faces of 2 MiB and no computation: 1 ms of a 100 Gb/s link for a rank inside the
    grid. Of SST's programs of this name, ``halo3d`` is the default, the skeleton ``halo3d-26`` of SST/macro is
    periodic with 18 neighbours, and Ember's ``Halo3D26`` has 26. Edges and corners follow from the faces, squares of
    8-byte cells: with 2 MiB, 4 KiB and 8 bytes.
    """

    message_size: Size = 2048 * KIB
    compute: Duration | None = 0
    neighbours: Literal[6, 18, 26] = Field(
        default=6, description="6: across faces; 18: across edges, too; 26: across corners, too"
    )
    periodic: bool = Field(default=False, description="whether the grid wraps around")
    exchange: Literal["neighbor_alltoall", "put"] | None = Field(
        default=None, description="neighborhood collectives, or puts between fences. Default: messages"
    )

    @model_validator(mode="after")
    def _cartesian(self) -> Self:
        if self.exchange == "neighbor_alltoall" and self.neighbours != 6:
            raise ValueError(f"exchange neighbor_alltoall is among the 6 neighbours of a grid, not {self.neighbours}")
        return self

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        if self.exchange == "neighbor_alltoall":
            rank.cart_create(_GRID, self.shape(rank.ranks), periods=self.periodic)
            rank.comm_set_name(_GRID, "grid")
        elif self.exchange == "put":
            rank.win_create(_WINDOW)
            rank.win_fence(_WINDOW)
        super().write(rank, stages)

    @override
    def repeats(self) -> bool:
        return True

    def peers(self, index: int, ranks: int) -> Iterator[tuple[int, int]]:
        """The neighbours of a rank and the bytes that each gets: faces, then edges, then corners."""
        parts = {
            6: (_FACES, self.message_size),
            18: (_EDGES, _CELL * isqrt(self.message_size // _CELL)),
            26: (_CORNERS, _CELL),
        }
        for least, (offsets, size) in parts.items():
            if least <= self.neighbours:
                for peer in neighbours(index, self.shape(ranks), offsets, periodic=self.periodic):
                    yield peer, size

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        if self.exchange == "neighbor_alltoall":
            for _ in range(self.messages_per_iteration):
                rank.neighbor_alltoall(self.message_size, comm=_GRID)
            return
        messages = list(self.peers(rank.index, rank.ranks)) * self.messages_per_iteration
        if self.exchange == "put":
            for peer, size in messages:
                rank.put(_WINDOW, peer, size)
            rank.win_fence(_WINDOW)
        else:
            for peer, _ in messages:
                rank.irecv(peer)
            for peer, size in messages:
                rank.isend(peer, size)
            rank.wait_all()


class PointToPointRing(Workload):
    """Every rank exchanges messages with the rank before and the rank after it; with wraparound.

    The point-to-point congestor of GPCNeT (Chunduri et al. 2019). By default four messages of 64 KiB each way.
    """

    message_size: Size = 64 * KIB
    messages_per_iteration: Count = 4
    compute: Duration | None = 0

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        peers = {(rank.index - 1) % rank.ranks, (rank.index + 1) % rank.ranks}
        rank.exchange(sorted(peers), self.message_size, self.messages_per_iteration)
