"""One-sided communication: operations on windows, fences, locks, and post, start, complete, wait."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .case import Create, Fence, Flush, Free, Lock, OneSided, Recv, Rma, Send, Signal, Unlock, ser
from .clock import Stage
from .schedules import Phase, phases
from .state import Rank, Request

if TYPE_CHECKING:
    from .mpi import World

#: What creating a window costs: an allgather of so many bytes.
DESCRIPTION = 16
#: Operations that bring payload back.
RETURNING = ("get", "get_accumulate", "compare_and_swap")


@dataclass
class Guard:
    """The lock of one rank's part of a window: who has it, whether exclusively, and who waits."""

    holders: int = 0
    exclusive: bool = False
    waiting: list[tuple[bool, Callable[[], None]]] = field(default_factory=list)

    def grant(self) -> None:
        """Grants what can be granted, in order."""
        while self.waiting:
            exclusive, granted = self.waiting[0]
            if self.holders and (self.exclusive or exclusive):
                return
            self.waiting.pop(0)
            self.holders, self.exclusive = self.holders + 1, exclusive
            granted()


class Windows:
    """The windows of all jobs."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.pending: dict[tuple[int, int, int], list[tuple[int, Request]]] = defaultdict(list)
        self.guards: dict[tuple[int, int, int], Guard] = defaultdict(Guard)
        self.groups: dict[tuple[str, int, int, int], tuple[int, ...]] = {}
        self.combining_until: dict[tuple[int, int], int] = defaultdict(int)

    def call(self, rank: Rank, op: OneSided) -> Iterator[int | None]:
        """Carries out a call of a rank."""
        world, collectives = self.world, self.world.collectives
        ranks = len(world.jobs[rank.job])
        match op:
            case Create(window):
                described = phases("allgather", rank.number, ranks, DESCRIPTION, 0)
                yield from collectives.block(rank, "world", "allgather", described)
                rank.names["window", window] = rank.names["world"]
            case Rma():
                self.begin(rank, op)
                yield from world.spend(world.mpi.sending(self.sent(op)))
            case Fence(window) | Free(window):
                yield from self.finish(rank, window)
                barrier = phases("barrier", rank.number, ranks, 0, 0)
                yield from self.barrier(rank, window, barrier)
            case Flush(window, target):
                yield from self.finish(rank, window, target)
            case Lock(window, target, exclusive):
                yield from self.lock(rank, window, range(ranks) if target is None else [target], exclusive)
            case Unlock(window, target):
                yield from self.finish(rank, window, target)
                targets = range(ranks) if target is None else [target]
                yield from world.spend(self.release(rank, window, targets))
            case Signal(call, window, group):
                yield from self.signal(rank, call, window, group)

    def barrier(self, rank: Rank, window: int, barrier: Iterator[Phase]) -> Iterator[int | None]:
        """A barrier of the window's ranks. It has begun already: with the wait before it."""
        if len(self.world.jobs[rank.job]) > 1:
            yield from self.world.collectives.block(rank, ("window", window), "barrier", barrier)

    def finish(self, rank: Rank, window: int, target: int | None = None) -> Iterator[int | None]:
        """Until the rank's operations at the target, or at all, are complete."""
        pending = self.pending[rank.job, rank.number, window]
        mine = [request for at, request in pending if target in (None, at)]
        pending[:] = [(at, request) for at, request in pending if target not in (None, at)]
        yield from self.world.wait(rank, mine)

    # Operations.

    def begin(self, rank: Rank, op: Rma) -> None:
        """The call of an operation: its first message."""
        world, target, size = self.world, self.world.jobs[rank.job][op.target], op.size
        called, like = world.clock.now, self.like(op.target, size, op.window)
        requests = [Request(rank=rank)]
        self.pending[rank.job, rank.number, op.window].append((op.target, requests[0]))
        if op.request is not None:
            requests.append(Request(rank=rank))
            rank.requests[op.request] = requests[1]

        def end(_first: bool, last: bool) -> None:
            for request in requests if last else []:
                world.complete(request)

        def answer() -> None:
            back, kind = (size, self.kind(size)) if op.kind in RETURNING else (world.mpi.control_bytes, "control")
            returns = called if op.kind in RETURNING else None
            world.transfer(target, rank, back, kind, like, end, world.clock.now, returns, of)

        def landed(_first: bool, last: bool) -> None:
            if last and op.kind in ("put", "get"):
                answer()
            elif last:
                self.combine(target, size, answer)

        sent = self.sent(op)
        kind = "control" if op.kind == "get" else self.kind(sent)
        of_payload = None if op.kind == "get" else called
        of = world.transfer(rank, target, sent, kind, like, landed, called + world.mpi.sending(sent), of_payload)

    def like(self, target: int, size: int, window: int) -> Send:
        """What a message of an operation or a lock is to traffic classes."""
        return Send(target, size, context=("window", window), operation="one_sided")

    def sent(self, op: Rma) -> int:
        """The bytes of its first message."""
        return {"get": self.world.mpi.control_bytes, "compare_and_swap": 2 * op.size}.get(op.kind, op.size)

    def kind(self, size: int) -> str:
        """The kind of payload."""
        return "eager" if size <= self.world.mpi.eager_threshold else "bulk"

    def combine(self, target: Rank, size: int, then: Callable[[], None]) -> None:
        """The target combines, after what came before."""
        world, key = self.world, (target.job, target.number)
        start = max(world.clock.now, self.combining_until[key])
        end = self.combining_until[key] = start + ser(size, world.mpi.reduction_bandwidth)
        world.clock.at(end, Stage.MEMORY, (next(world.numbers),), then)

    # Locks.

    def lock(self, rank: Rank, window: int, targets: Iterable[int], exclusive: bool) -> Iterator[int | None]:
        """Asks for locks, one after another, and waits for all."""
        world, called = self.world, self.world.clock.now
        requests = []
        for number in targets:
            target, request = world.jobs[rank.job][number], Request(rank=rank)
            requests.append(request)
            called += world.mpi.send_overhead
            self.ask(rank, target, window, exclusive, request, called)
        yield from world.wait(rank, requests, called)

    def ask(self, rank: Rank, target: Rank, window: int, exclusive: bool, request: Request, time: int) -> None:
        """Asks one target for its lock."""
        world, guard = self.world, self.guards[rank.job, target.number, window]
        like = self.like(target.number, 0, window)

        def granted() -> None:
            done = lambda _first, _last: world.complete(request)  # noqa: E731
            world.transfer(target, rank, world.mpi.control_bytes, "control", like, done, world.clock.now, of=of)

        def asked(_first: bool, _last: bool) -> None:
            guard.waiting.append((exclusive, granted))
            guard.grant()

        of = world.transfer(rank, target, world.mpi.control_bytes, "control", like, asked, time)

    def release(self, rank: Rank, window: int, targets: Iterable[int]) -> int:
        """Gives locks up, one after another: how long the CPU is busy."""
        world, busy = self.world, 0
        for number in targets:
            guard = self.guards[rank.job, number, window]
            busy += world.mpi.send_overhead

            def released(_first: bool, _last: bool, guard: Guard = guard) -> None:
                guard.holders -= 1
                guard.grant()

            target = world.jobs[rank.job][number]
            like, now = self.like(number, 0, window), world.clock.now
            world.transfer(rank, target, world.mpi.control_bytes, "control", like, released, now + busy)
        return busy

    # Post, start, complete, wait.

    def signal(self, rank: Rank, call: str, window: int, group: tuple[int, ...]) -> Iterator[int | None]:
        """Small messages that open and close the window to a group."""
        world, context = self.world, ("window", window)
        pair = "post" if call in ("post", "wait") else "start"
        if call in ("post", "start"):
            self.groups[pair, rank.job, rank.number, window] = group
        group = self.groups[pair, rank.job, rank.number, window]
        if call == "complete":
            yield from self.finish(rank, window)
        tag = 0 if call in ("post", "start") else 1
        requests: list[Request] = []
        called = world.clock.now
        for number in group:
            if call in ("start", "wait"):
                requests.append(world.receive(rank, Recv(number, tag, context=context)))
            else:
                op = Send(number, world.mpi.control_bytes, tag, context=context, eager=True)
                requests.append(world.send(rank, op, called))
                called += world.mpi.sending(op.size)
        if requests or call != "complete":
            yield from world.wait(rank, requests, called)
