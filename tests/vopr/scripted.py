"""A workload of random programs: any collective, communicators, one-sided operations, probes, persistent calls.

Every iteration is a round in which all ranks take part and that comes to an end: a rank posts what it receives and
sends before it waits for anything. Rounds are drawn from the variant alone, so that every rank draws the same.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import get_args

from pydantic import Field
from typing_extensions import override

from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import Rank
from fairlane.model.workload.writer import CollectiveKind, Request

__all__ = ["Scripted"]

ROUNDS = (
    "burst",
    "burst",
    "collectives",
    "collectives",
    "datagrams",
    "fence",
    "lock",
    "graph",
    "grid",
    "split",
    "persistent",
)
PLAIN = ("burst", "collectives", "datagrams", "fence", "lock", "graph")
PLAIN_COLLECTIVES: tuple[CollectiveKind, ...] = ("barrier", "bcast", "allreduce", "allgather", "alltoall")
LISTED = ("alltoall", "allgather", "gather", "scatter")
"""Collectives whose blocks may differ."""
SIZES = [0, 1, 64, 500, 4096, 9000]


class Scripted(Workload):
    """Random rounds of communication, repeated."""

    distinct_iterations: int = Field(default=4, ge=1, description="number of different rounds")
    kinds: list[str] = Field(default=list(ROUNDS), min_length=1, description="kinds of rounds")
    plain: bool = Field(default=False, description="only what the second simulator knows")

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Writes the round of an iteration."""
        rng = Random(f"{self.variant} {iteration}")
        kinds = [kind for kind in self.kinds if kind in PLAIN or not self.plain] or ["burst"]
        getattr(self, f"_{rng.choice(kinds)}")(rank, rng, Random(f"{self.variant} {iteration} {rank.index}"))

    def _burst(self, rank: Rank, rng: Random, own: Random) -> None:
        """Messages between any ranks; receives name the source, the tag, or both."""
        # The same in all rounds. Otherwise a receive by source could take a message that an earlier one by tag left,
        # because that receive matched a sender that is rounds ahead.
        styles = Random(f"{self.variant}")
        by = [styles.choice(["both", "source", "tag"]) for _ in range(rank.ranks)]
        base, posts = rng.randrange(1000), list[Callable[[], Request]]()
        for _ in range(rng.randint(1, 8)):
            source, to, size = rng.randrange(rank.ranks), rng.randrange(rank.ranks), rng.choice(SIZES)
            tag, synchronous = base + (rng.randrange(3) if by[to] == "both" else 0), rng.random() < 0.2
            if source == rank.index:
                posts.append(partial(rank.isend, to, size, tag=tag, synchronous=synchronous))
            if to == rank.index:
                named = None if by[to] == "tag" else source
                posts.append(partial(rank.irecv, named, tag=None if by[to] == "source" else tag))
        own.shuffle(posts)
        started: list[Request] = []
        for post in posts:
            if own.random() < 0.3:
                rank.compute(own.choice([1, 10_000, 777_777]))
            started.append(post())
        if started and own.random() < 0.2 and not self.plain:
            own.choice([rank.wait_any, rank.wait_some])(started)
        own.shuffle(started)
        if own.random() < 0.5:
            rank.wait_all(started)
        else:
            for request in started:
                rank.wait(request)
        if "tag" in by:
            # A receive from any rank could take a message of one that is rounds ahead, in place of a slow rank's, which
            # then waits for a receive that may never be posted.
            rank.collective("barrier", 0)

    def _collectives(self, rank: Rank, rng: Random, own: Random, comm: int = 0, ranks: int | None = None) -> None:
        """Collectives one after another, blocking or not."""
        members = rank.ranks if ranks is None else ranks
        started = []
        for _ in range(rng.randint(1, 3)):
            kind: CollectiveKind = rng.choice(PLAIN_COLLECTIVES if self.plain else get_args(CollectiveKind))
            volume: int | list[int] = rng.choice(SIZES)
            if kind in (("alltoall",) if self.plain else LISTED) and rng.random() < 0.3:
                volume = [rng.choice(SIZES) for _ in range(members)]
            root = rng.randrange(members) if kind in ("bcast", "reduce", "gather", "scatter") else 0
            if own.random() < 0.3:
                rank.compute(own.choice([1, 10_000, 777_777]))
            if rng.random() < 0.4:
                started.append(rank.icollective(kind, volume, comm=comm, root=root))
            else:
                rank.collective(kind, volume, comm=comm, root=root)
        rank.wait_all(started)

    def _datagrams(self, rank: Rank, rng: Random, own: Random) -> None:
        """Messages that nobody receives."""
        del rng
        for _ in range(own.randint(0, 3)):
            rank.compute(own.randrange(1, 500_000))
            to = (rank.index + own.randrange(1, rank.ranks)) % rank.ranks
            rank.datagram(to, own.choice(SIZES))

    def _fence(self, rank: Rank, rng: Random, own: Random) -> None:
        """One-sided operations between fences."""
        rank.win_create(1)
        rank.win_fence(1)
        for _ in range(rng.randint(1, 2)):
            self._operations(rank, own, list(range(rank.ranks)))
            rank.win_fence(1)
        rank.win_free(1)

    def _lock(self, rank: Rank, rng: Random, own: Random) -> None:
        """One-sided operations under locks."""
        del rng
        rank.win_create(1)
        for _ in range(own.randint(0, 2)):
            target = own.randrange(rank.ranks)
            rank.win_lock(1, target, exclusive=own.random() < 0.5)
            self._operations(rank, own, [target])
            rank.win_unlock(1, target)
        rank.win_free(1)

    def _operations(self, rank: Rank, own: Random, targets: list[int]) -> None:
        started = []
        for _ in range(own.randint(0, 3)):
            target, size = own.choice(targets), own.choice(SIZES)
            if own.random() < 0.6:
                own.choice([rank.put, rank.get, rank.accumulate])(1, target, size)
            else:
                started.append(own.choice([rank.rput, rank.rget])(1, target, size))
        rank.wait_all(started)

    def _graph(self, rank: Rank, rng: Random, own: Random) -> None:
        """Neighborhood collectives on a random graph."""
        edges = [(rng.randrange(rank.ranks), rng.randrange(rank.ranks)) for _ in range(rng.randint(0, 2 * rank.ranks))]
        to = [target for source, target in edges if source == rank.index]
        rank.dist_graph_create_adjacent(2, [source for source, target in edges if target == rank.index], to)
        size = rng.choice(SIZES)
        rank.neighbor_allgather(size, comm=2)
        rank.wait(rank.ineighbor_alltoall([own.choice(SIZES) for _ in to], comm=2))
        rank.comm_free(2)

    def _grid(self, rank: Rank, rng: Random, own: Random) -> None:
        """Neighborhood collectives on a grid."""
        del own
        rank.cart_create(2, [rank.ranks], periods=rng.random() < 0.5)
        rank.neighbor_alltoall(rng.choice(SIZES), comm=2)
        rank.comm_free(2)

    def _split(self, rank: Rank, rng: Random, own: Random) -> None:
        """Collectives of parts of the ranks."""
        colors = [rng.randrange(2) for _ in range(rank.ranks)]
        rank.comm_split(2, colors[rank.index])
        # What the parts call is drawn per part.
        part = Random(f"{rng.random()} {colors[rank.index]}")
        self._collectives(rank, part, own, comm=2, ranks=colors.count(colors[rank.index]))
        rank.comm_free(2)

    def _persistent(self, rank: Rank, rng: Random, own: Random) -> None:
        """A ring of persistent requests, started twice; the second message is probed for."""
        del own
        after, before = (rank.index + 1) % rank.ranks, (rank.index - 1) % rank.ranks
        send, receive = rank.send_init(after, rng.choice(SIZES), tag=7), rank.recv_init(before, tag=7)
        for number in range(2):
            rank.start(send)
            if number:
                rank.probe(before, tag=7)
            rank.start(receive)
            rank.wait_all([send, receive])
