"""Messages: what ranks do, eager and rendezvous, matching, transfers through memory."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise

from .arbiters import arbiter
from .case import (
    BeginTiming,
    Case,
    Change,
    Collective,
    Compute,
    Datagram,
    EndBurst,
    Mark,
    Neighbor,
    Pause,
    Recv,
    Send,
    SetName,
    Topology,
    Wait,
    ser,
)
from .clock import Clock, Stage
from .collectives import Collectives
from .network import Interconnect
from .one_sided import Windows
from .outcome import Outcome
from .packets import Message
from .state import Exchange, Rank, Receiving, Request, Sending


@dataclass
class Whole:
    """A message in parts: its first packet is the first of any part, its last the last of all."""

    left: int
    told: Callable[[bool, bool], None]
    begun: bool = False

    def delivered(self, first: bool, last: bool) -> None:
        """A packet of a part has come."""
        first, self.begun, self.left = first and not self.begun, True, self.left - last
        self.told(first, last and self.left == 0)


class World:
    """All ranks of all jobs."""

    def __init__(self, case: Case) -> None:
        self.case, self.mpi = case, case.mpi
        self.clock, self.outcome = Clock(), Outcome()
        self.numbers = count()
        self.interconnect = Interconnect(case, self.clock, self.outcome)
        self.jobs = [[Rank(j, r, host) for r, host in enumerate(job.hosts)] for j, job in enumerate(case.jobs)]
        self.collectives = Collectives(self)
        self.windows = Windows(self)
        self.decisions: dict[tuple[int, int], bool] = {}
        self.job_levels = [job.service_level for job in case.jobs]
        self.rank_levels = [dict(job.ranks) for job in case.jobs]
        self.kind_levels = dict(case.qos.kinds)
        self.class_levels = {one.name: one.service_level for one in case.qos.classes}

    def run(self) -> Outcome:
        """Runs every rank to its end, or all until the end."""
        ranks = [rank for job in self.jobs for rank in job]
        for rank in ranks:
            rank.timed_since = rank.burst_since = self.case.jobs[rank.job].start
            rank.life = self.live(rank)
            self.resume(rank, self.case.jobs[rank.job].start)
        for number, change in enumerate(self.case.changes):
            self.clock.at(change.at, Stage.CHANGE, (number,), partial(self.change, change))
        self.clock.run(self.case.end)
        if self.case.end is not None:
            self.interconnect.finish()
            return self.outcome
        stuck = [(rank.job, rank.number) for rank in ranks if not rank.finished]
        if stuck:
            raise RuntimeError(f"these (job, rank) wait for ever: {stuck}")
        return self.outcome

    def change(self, change: Change) -> None:
        """New service levels, for messages that are made from now on; a new arbiter, from the next decision on."""
        for job, level in change.jobs.items():
            self.job_levels[job] = level
        for job, levels in change.ranks.items():
            self.rank_levels[job] = dict(levels)
        self.kind_levels |= change.kinds
        self.class_levels |= change.classes
        if change.arbiter is not None:
            for port in self.interconnect.ports:
                port.arbiter = arbiter(*change.arbiter, port.link.bandwidth)

    # What a rank does: a generator that yields the instant at which it goes on, or None to sleep until it is woken.
    # Whoever yields lets the host do first what is due there before it, also if the instant is this one.

    def live(self, rank: Rank) -> Iterator[int | None]:
        """Carries out the rank's script."""
        for op in self.case.jobs[rank.job].scripts[rank.number]:
            match op:
                case Compute(time):
                    yield from self.spend(time)
                case Send() | Recv():
                    yield from self.message(rank, op)
                case Datagram(to, size):
                    now, receiver = self.clock.now, self.jobs[rank.job][to]
                    self.transfer(rank, receiver, size, "eager", Send(to, size), lambda _first, _last: None, now, now)
                case Wait(requests):
                    yield from self.wait(rank, [rank.requests.pop(request) for request in requests])
                case Mark():
                    now, ranks = self.clock.now, len(self.jobs[rank.job])
                    self.outcome.mark(rank.job, rank.number, now, now - rank.timed_since, ranks)
                    rank.timed_since = now
                case BeginTiming():
                    rank.timed_since = self.clock.now
                case EndBurst() | Pause():
                    yield from self.rest(rank, op)
                case Collective() | Topology() | SetName() | Neighbor():
                    yield from self.collectives.call(rank, op)
                case _:
                    yield from self.windows.call(rank, op)
        rank.finished = True

    def rest(self, rank: Rank, op: EndBurst | Pause) -> Iterator[int | None]:
        """A broadcast, by which rank 0 tells whether its burst has lasted so long; or the pause after it."""
        if isinstance(op, EndBurst):
            rank.bursts += 1
            if rank.number == 0:
                self.decisions[rank.job, rank.bursts] = self.clock.now - rank.burst_since >= op.after
            yield from self.collectives.call(rank, Collective("bcast", 4, 0))
            rank.burst_over = self.decisions[rank.job, rank.bursts]
        elif rank.burst_over:
            yield from self.spend(op.time)
            rank.burst_over, rank.burst_since = False, self.clock.now

    def message(self, rank: Rank, op: Send | Recv) -> Iterator[int | None]:
        """A send or a receive; without a request it blocks."""
        request: Request
        if isinstance(op, Send):
            request = self.send(rank, op)
            yield from self.spend(self.mpi.sending(op.size))
        else:
            request = self.receive(rank, op)
        if op.request is None:
            yield from self.wait(rank, [request])
        else:
            rank.requests[op.request] = request

    def spend(self, time: int) -> Iterator[int]:
        """Time of the CPU; none at all does not interrupt the rank."""
        if time > 0:
            yield self.clock.now + time

    def wait(self, rank: Rank, requests: list[Request], busy_until: int = 0) -> Iterator[int | None]:
        """Until all are complete and the CPU is free, and the overhead of each receive. Interrupts it in any case."""
        if not all(request.complete for request in requests):
            rank.awaited = requests
            yield None
        receives = sum(isinstance(request, Receiving) for request in requests)
        yield max(self.clock.now, busy_until) + receives * self.mpi.receive_overhead

    def resume(self, rank: Rank, time: int) -> None:
        """At `time` the rank goes on until it is interrupted, sleeps or ends."""

        def go_on() -> None:
            if self.stopped(rank):
                rank.finished = True
                return
            until = next(rank.life, None)
            if until is not None:
                self.resume(rank, until)

        self.clock.at(time, Stage.RANK, (rank.job, rank.number), go_on)

    def stopped(self, rank: Rank) -> bool:
        """Whether the rank's job has been stopped: nothing of it begins any more, what is under way goes on."""
        stop = self.case.jobs[rank.job].stop
        return stop is not None and self.clock.now >= stop

    def complete(self, request: Request) -> None:
        """A request is complete; its rank is woken if that was the last it waited for."""
        request.complete = True
        if request.then is not None:
            request.then()
        elif request in request.rank.awaited and all(other.complete for other in request.rank.awaited):
            request.rank.awaited = []
            self.resume(request.rank, self.clock.now)

    # Matching.

    def receive(self, rank: Rank, op: Recv) -> Receiving:
        """Takes the first unexpected message that suits, or waits for one."""
        receive = Receiving(op=op, rank=rank)
        sending = next((sending for sending in receive.rank.unexpected if sending.suits(receive)), None)
        if sending is None:
            receive.rank.posted.append(receive)
        else:
            receive.rank.unexpected.remove(sending)
            self.match(sending, receive)
        return receive

    def arrive(self, sending: Sending) -> None:
        """The first packet is there: it can be matched, unless an earlier message of its sender is missing."""
        sending.arrived = True
        receiver = self.jobs[sending.rank.job][sending.op.to]
        line = receiver.incoming[sending.rank.number, sending.op.context]
        while line and line[0].arrived:
            self.offer(receiver, line.pop(0))

    def offer(self, receiver: Rank, sending: Sending) -> None:
        """Gives a message to the first posted receive that it suits, or lets it wait for one."""
        receive = next((receive for receive in receiver.posted if sending.suits(receive)), None)
        if receive is None:
            receiver.unexpected.append(sending)
        else:
            receiver.posted.remove(receive)
            self.match(sending, receive)

    def match(self, sending: Sending, receive: Receiving) -> None:
        """The message has found its receive."""
        sending.receive = receive
        self.proceed(sending)

    # The protocols.

    def send(self, rank: Rank, op: Send, called: int | None = None) -> Sending:
        """The send call: the payload, or the request to send it, is handed over once the CPU is done."""
        rendezvous = op.synchronous or (op.size > self.mpi.eager_threshold and not op.eager)
        called = self.clock.now if called is None else called
        sending = Sending(op=op, rank=rank, rendezvous=rendezvous, complete=not rendezvous, called=called)
        receiver = self.jobs[rank.job][op.to]
        receiver.incoming.setdefault((rank.number, op.context), []).append(sending)

        def delivered(first: bool, last: bool) -> None:
            sending.delivered = last
            if first:
                self.arrive(sending)
            else:
                self.proceed(sending)

        control, handed = self.kind(op, "control"), called + self.mpi.sending(op.size)
        mailbox = self.mpi.mailbox_threshold

        def ask(_first: bool, _last: bool) -> None:
            of = sending.exchange
            self.transfer(receiver, rank, self.mpi.control_bytes, control, op, give, self.clock.now, of=of)

        def give(_first: bool, _last: bool) -> None:
            of, eager = sending.exchange, self.kind(op, "eager")
            self.transfer(rank, receiver, op.size, eager, op, delivered, self.clock.now, called, of)

        if rendezvous:
            first = self.transfer(rank, receiver, self.mpi.control_bytes, control, op, delivered, handed)
        elif mailbox is not None and op.size > mailbox:
            first = self.transfer(rank, receiver, self.mpi.control_bytes, control, op, ask, handed)
        else:
            first = self.transfer(rank, receiver, op.size, self.kind(op, "eager"), op, delivered, handed, called)
        sending.exchange = first
        return sending

    def kind(self, op: Send, kind: str) -> str:
        """The kind of a message of a send, or what it is called in a collective."""
        of_collectives = {"control": "collective_control", "eager": "collective_eager", "bulk": "collective"}
        return of_collectives[kind] if op.collective else kind

    def proceed(self, sending: Sending) -> None:
        """Once delivered and matched, an eager message is received; a request is answered by a get."""
        if sending.receive is None or not sending.delivered:
            return
        if sending.rendezvous:
            self.get(sending, sending.receive)
        else:
            self.complete(sending.receive)

    def get(self, sending: Sending, receive: Receiving) -> None:
        """The rest of a rendezvous: get, payload, acknowledgement."""
        sender, receiver, now, of = sending.rank, receive.rank, self.clock.now, sending.exchange
        op, control, bulk = sending.op, self.kind(sending.op, "control"), self.kind(sending.op, "bulk")

        def payload(_first: bool, _last: bool) -> None:
            self.transfer(sender, receiver, op.size, bulk, op, acknowledge, self.clock.now, sending.called, of)

        def acknowledge(_first: bool, last: bool) -> None:
            if last:
                self.complete(receive)
                self.transfer(receiver, sender, self.mpi.control_bytes, control, op, done, self.clock.now, of=of)

        def done(_first: bool, _last: bool) -> None:
            self.complete(sending)

        self.transfer(receiver, sender, self.mpi.control_bytes, control, op, payload, now, of=of)

    def transfer(
        self,
        source: Rank,
        to: Rank,
        size: int,
        kind: str,
        of_send: Send,
        delivered: Callable[[bool, bool], None],
        time: int,
        called: int | None = None,
        of: Exchange | None = None,
    ) -> Exchange | None:
        """Makes a message, handed over at `time`: through memory on one host, else over the interconnect.

        It belongs to a send, or what is like one. If it is its payload, that was `called` then. Returns the exchange
        that it begins or belongs to.
        """
        number = next(self.numbers)
        if source.host == to.host:
            self.through_memory(source, to, number, size, time, lambda: delivered(True, True))
            return None
        lane = self.case.qos.sl2vl[self.service_level(source, to, kind, of_send)]
        if of is None:
            of = Exchange(source, to, source.begun)
            source.begun += 1
        parts = self.parts(of, source, size, kind)
        time += self.mpi.fetching(size)

        def told(first: bool, last: bool) -> None:
            if last and called is not None:
                self.outcome.latencies["message", source.job, kind].append(self.clock.now - called)
            delivered(first, last)

        whole = Whole(len(parts), told)
        for rail, part in parts:
            route = self.case.fabric.route(source.host, to.host, rail, (source.job, lane))
            payloads = self.interconnect.payloads(part)
            message = Message(
                source.job, kind, number, lane, route, payloads, whole.delivered, to.host, (source.number, to.number)
            )
            self.interconnect.hand_over(message, time, self.case.fabric.gap(rail))
            number = next(self.numbers)
        return of

    def through_memory(
        self, source: Rank, to: Rank, number: int, size: int, time: int, end: Callable[[], None]
    ) -> None:
        """A message within a host, handed over at `time`: alone, or over the links of its two ranks."""
        latency, wire = self.mpi.memory_latency, ser(size, self.mpi.memory_bandwidth)

        def at(instant: int, then: Callable[[], None]) -> None:
            self.clock.at(instant, Stage.MEMORY, (number,), then)

        def leave() -> None:
            source.leaving = max(self.clock.now, source.leaving) + wire
            at(source.leaving + latency, enter)

        def enter() -> None:
            to.entering = max(self.clock.now, to.entering + wire)
            at(to.entering, end)

        if self.mpi.memory_contention and source is not to:
            at(time, leave)
        else:
            at(time + latency + wire, end)

    def parts(self, of: Exchange, source: Rank, size: int, kind: str) -> list[tuple[int, int]]:
        """The sending adapter and bytes of each part of a message, by the job's policy."""
        policy = self.case.jobs[source.job].rails
        pairs = self.case.fabric.rail_pairs(of.origin.host, of.target.host)
        side = 0 if source is of.origin else 1
        if policy["policy"] == "stripe" and kind not in ("control", "collective_control") and size > policy["above"]:
            ends = [size * part // len(pairs) for part in range(len(pairs) + 1)]
            sizes = [after - before for before, after in pairwise(ends)] if size >= len(pairs) else [1] * size
            return [(pair[side], part) for pair, part in zip(pairs, sizes, strict=False)]
        match policy["policy"]:
            case "only":
                pair = next(pair for pair in pairs if pair[0] == policy["only"])
            case "by_destination":
                pair = pairs[of.target.number % len(pairs)]
            case "by_source" if policy.get("ranks"):
                rail = policy["ranks"][of.origin.number]
                pair = next((pair for pair in pairs if pair[0] == rail), pairs[rail % len(pairs)])
            case "by_source":
                pair = pairs[of.origin.number % len(pairs)]
            case _:
                pair = pairs[of.turn % len(pairs)]
        return [(pair[side], size)]

    def service_level(self, source: Rank, to: Rank, kind: str, of_send: Send) -> int:
        """The sender's own level, else the receiver's, the class's, the kind's, the job's, the default."""
        qos, kinds, ranks = self.case.qos, self.kind_levels, self.rank_levels[source.job]
        like = {"collective_control": "control", "collective_eager": "collective"}
        of_kind = next((level for name in (kind, like.get(kind, kind)) if (level := kinds.get(name)) is not None), None)
        context = of_send.context[0] if of_send.collective and isinstance(of_send.context, tuple) else of_send.context
        name = source.names.get(context)
        its = next((one.name for one in qos.classes if one.selects(source.job, name, of_send)), "")
        of_ranks = (ranks.get(source.number), ranks.get(to.number))
        candidates = (*of_ranks, self.class_levels.get(its), of_kind, self.job_levels[source.job])
        return next((level for level in candidates if level is not None), qos.default)


def simulate(case: Case) -> Outcome:
    """Runs a case to its end.

    Raises `RuntimeError` if ranks wait for what can no longer come.
    """
    return World(case).run()
