"""Collectives and neighborhood collectives, blocking and not: phases of messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from .case import Collective, Neighbor, Recv, Send, SetName, Topology, ser
from .clock import Stage
from .schedules import Phase, phases
from .state import Rank, Request

if TYPE_CHECKING:
    from .mpi import World

#: What giving ranks a topology costs: an allreduce of so many bytes.
AGREEMENT = 4


class Collectives:
    """The collectives of all jobs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.calls: dict[tuple[int, int, Hashable], int] = defaultdict(int)
        self.begun: dict[tuple[int, int], int] = defaultdict(int)
        self.topologies: dict[tuple[int, int], Topology] = {}

    def call(self, rank: Rank, op: Collective | Topology | SetName | Neighbor) -> Iterator[int | None]:
        """Carries out a call of a rank."""
        if isinstance(op, SetName):
            rank.names[op.communicator] = op.name
            return
        ranks = len(self.world.jobs[rank.job])
        match op:
            case Collective(kind, volume, root, request):
                todo, over = phases(kind, rank.number, ranks, volume, root), "world"
            case Topology():
                self.topologies[rank.job, rank.number] = op
                kind, request = "allreduce", None
                todo, over = phases(kind, rank.number, ranks, AGREEMENT, 0), "world"
            case Neighbor(kind, request=request):
                todo, over = self.neighborhood(rank, op), "topology"
        if request is None:
            yield from self.block(rank, over, kind, todo)
        else:
            rank.requests[request] = self.start(rank, over, kind, todo)

    def neighborhood(self, rank: Rank, op: Neighbor) -> Iterator[Phase]:
        """The one phase of a neighborhood collective."""
        topology = self.topologies[rank.job, rank.number]
        destinations = topology.destinations
        blocks = op.volume if isinstance(op.volume, tuple) else (op.volume,) * len(destinations)
        if topology.sources or destinations:
            yield list(topology.sources), list(zip(destinations, blocks, strict=True)), 0

    def number(self, rank: Rank, over: Hashable) -> int:
        """Counts a rank's collective calls on a communicator or window."""
        self.calls[rank.job, rank.number, over] += 1
        return self.calls[rank.job, rank.number, over]

    def issue(self, rank: Rank, over: Hashable, kind: str, number: int, phase: Phase) -> tuple[list[Request], int]:
        """Starts the messages of a phase: the requests, and when the last send is handed over."""
        world, context = self.world, (over, "collectives")
        receives, sends, _ = phase
        requests: list[Request] = [world.receive(rank, Recv(source, number, context=context)) for source in receives]
        called = world.clock.now
        for to, size in sends:
            op = Send(to, size, number, context=context, collective=True, operation=kind)
            requests.append(world.send(rank, op, called))
            called += world.mpi.sending(size)
        return requests, called

    def block(self, rank: Rank, over: Hashable, kind: str, todo: Iterator[Phase]) -> Iterator[int | None]:
        """Phase after phase, on the rank's own CPU."""
        world, number, nothing = self.world, self.number(rank, over), True
        for phase in todo:
            nothing = False
            requests, handed_over = self.issue(rank, over, kind, number, phase)
            yield from world.wait(rank, requests, handed_over)
            yield from world.spend(ser(phase[2], world.mpi.reduction_bandwidth))
        if nothing:
            yield world.clock.now

    def start(self, rank: Rank, over: Hashable, kind: str, todo: Iterator[Phase]) -> Request:
        """Starts a collective that goes on by itself."""
        world, number = self.world, self.number(rank, over)
        request = Request(rank=rank)
        self.begun[rank.job, rank.number] += 1
        order = self.begun[rank.job, rank.number]

        def step() -> None:
            if world.stopped(rank):
                return
            phase = next(todo, None)
            if phase is None:
                world.complete(request)
                return
            requests, handed_over = self.issue(rank, over, kind, number, phase)
            spent = len(phase[0]) * world.mpi.receive_overhead + ser(phase[2], world.mpi.reduction_bandwidth)
            left = sum(not one.complete for one in requests)

            def over_with_one() -> None:
                nonlocal left
                left -= 1
                if left <= 0:
                    end = max(world.clock.now, handed_over) + spent
                    world.clock.at(end, Stage.PROGRESS, (rank.job, rank.number, order), step)

            for one in requests:
                one.then = over_with_one
            if not left:
                over_with_one()

        step()
        return request
