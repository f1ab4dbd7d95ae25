"""Input-queued switches: queues at the inputs, a crossbar, an allocator, and a buffer for each lane of an output."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING

from .case import Case, ser
from .clock import Stage
from .packets import Packet

if TYPE_CHECKING:
    from .network import Interconnect


class Queue:
    """Packets that wait at an input, and their delay that has not been charged to a job yet."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []
        self.settled = 0
        self.deferred: dict[int, int] = defaultdict(int)

    def settle(self, now: int) -> None:
        """Defers the delay since the last change."""
        for packet in self.packets:
            self.deferred[packet.message.job] += now - self.settled
        self.settled = now


#: What packets are ranked by, of allocators that prefer the lowest.
AGES: dict[str, Callable[[Packet], int]] = {
    "oldest_first": lambda packet: packet.joined,
    "age_based": lambda packet: packet.offered,
}

#: Packets that could cross, with their queues, by input, output and lane at the input.
Requests = dict[tuple[int, int, int], tuple[Packet, Queue]]


class Switch:
    """One switch. Its inputs and outputs are known by the numbers of their links."""

    def __init__(self, number: int, case: Case, interconnect: Interconnect) -> None:
        assert case.network.switch is not None
        self.number, self.interconnect, self.params = number, interconnect, case.network.switch
        links, full = case.fabric.links, case.network.mtu + case.network.header
        self.inputs = [link for link, one in enumerate(links) if one.to_switch == number]
        self.outputs = [link for link, one in enumerate(links) if one.from_switch == number]
        fastest = max(links[link].bandwidth for link in (*self.inputs, *self.outputs))
        self.rate = fastest * self.params.thousandths // 1000
        room = 2 * full if self.params.output_buffer is None else self.params.output_buffer
        self.room: dict[tuple[int, int], int] = defaultdict(lambda: room)
        #: By link and lane of the input, and by output (0 where there is one queue for all).
        self.queues: dict[tuple[int, int, int], Queue] = defaultdict(Queue)
        self.busy: set[tuple[str, int]] = set()
        #: When, and by a packet of which job, an input, an output or room at an output was released last.
        self.released: dict[tuple[str, int, int], tuple[int, int]] = {}
        #: The place in the cyclic order at which the search begins, of outputs, inputs and the lanes of inputs.
        self.pointers: dict[tuple[str, int], int] = defaultdict(int)
        self.changed = False

    def change(self) -> None:
        """Something happened at this time after which inputs and outputs may be matched."""
        self.changed = True
        clock = self.interconnect.clock
        clock.at(clock.now, Stage.ALLOCATE, (self.number,), self.allocate)

    def join(self, packet: Packet) -> None:
        """A packet is at its input."""
        now, came = self.interconnect.clock.now, packet.route[packet.hop - 1]
        packet.joined = now
        lane = self.interconnect.case.fabric.queue(packet.message.lane, came.channel)
        output = packet.route[packet.hop].link if self.params.queues == "voq" else 0
        queue = self.queues[came.link, lane, output]
        queue.settle(now)
        queue.packets.append(packet)
        self.change()

    def requests(self) -> Requests:
        """The packets that could cross now."""
        found: Requests = {}
        for (link, lane, _), queue in self.queues.items():
            if not queue.packets:
                continue
            packet = queue.packets[0]
            output = packet.route[packet.hop].link
            fits = packet.size <= self.room[output, self.interconnect.lane(packet)]
            if fits and ("input", link) not in self.busy and ("output", output) not in self.busy:
                found[link, output, lane] = packet, queue
        return found

    def allocate(self) -> None:
        """Matches inputs with outputs."""
        if not self.changed:
            return
        self.changed = False
        requests = self.requests()
        for iteration in range(self.params.iterations):
            grants: dict[int, list[int]] = defaultdict(list)
            for output in self.outputs:
                inputs = sorted({key[0] for key in requests if key[1] == output})
                if inputs:
                    grants[self.choose("output", output, inputs, requests)].append(output)
            matches = [(link, self.choose("input", link, outputs, requests)) for link, outputs in grants.items()]
            for link, output in matches:
                lanes = sorted(key[2] for key in requests if key[:2] == (link, output))
                lane = self.choose_lane(link, output, lanes, requests)
                if iteration == 0:
                    self.pointers["output", output] = (self.inputs.index(link) + 1) % len(self.inputs)
                    self.pointers["input", link] = (self.outputs.index(output) + 1) % len(self.outputs)
                self.pointers["lane", link] = lane + 1
                self.cross(*requests[link, output, lane], link, output)
            links, outputs = {link for link, _ in matches}, {output for _, output in matches}
            requests = {key: one for key, one in requests.items() if key[0] not in links and key[1] not in outputs}

    def choose(self, side: str, port: int, others: list[int], requests: Requests) -> int:
        """Which of several requests an output grants, or which of several grants an input accepts."""
        order = self.inputs if side == "output" else self.outputs
        if self.params.allocator in AGES:
            age = AGES[self.params.allocator]
            here, there = (1, 0) if side == "output" else (0, 1)

            def oldest(other: int) -> tuple[int, int]:
                keys = [key for key in requests if (key[here], key[there]) == (port, other)]
                return min(age(requests[key][0]) for key in keys), order.index(other)

            return min(others, key=oldest)
        pointer = self.pointers[side, port]
        return min(others, key=lambda other: (order.index(other) - pointer) % len(order))

    def choose_lane(self, link: int, output: int, lanes: list[int], requests: Requests) -> int:
        """Which lane of an input sends to the output that it is matched with."""
        if self.params.allocator in AGES:
            age = AGES[self.params.allocator]
            return min(lanes, key=lambda lane: (age(requests[link, output, lane][0]), lane))
        pointer = self.pointers["lane", link]
        return min(lanes, key=lambda lane: (lane < pointer, lane))

    def cross(self, packet: Packet, queue: Queue, link: int, output: int) -> None:
        """The first packet of a queue starts to cross."""
        clock, job, lane = self.interconnect.clock, packet.message.job, self.interconnect.lane(packet)
        now = clock.now
        queue.settle(now)
        queue.packets.remove(packet)
        lacked = [("room", output, lane), ("input", link, 0), ("output", output, 0)]
        known = [(self.released[key], place) for place, key in enumerate(lacked) if key in self.released]
        latest = max(known, key=lambda one: (one[0][0], one[1]), default=((0, job), 0))
        aggressor = latest[0][1]
        for victim, delay in queue.deferred.items():
            self.interconnect.outcome.interference[victim, aggressor] += delay
        queue.deferred.clear()
        end = max(now + ser(packet.size, self.rate), packet.tail)
        packet.waited = now - packet.joined
        self.room[output, lane] -= packet.size
        self.busy |= {("input", link), ("output", output)}
        self.interconnect.give_back(packet, packet.hop - 1, end)
        clock.at(end, Stage.CREDIT, (), lambda: self.crossed(link, output, job))
        onward = self.interconnect.ports[output]
        join = max(now, end - ser(packet.size, onward.link.bandwidth))
        clock.at(join, Stage.JOIN, (), lambda: onward.join(packet))

    def crossed(self, link: int, output: int, job: int) -> None:
        """A crossing ends."""
        now = self.interconnect.clock.now
        self.busy -= {("input", link), ("output", output)}
        self.released["input", link, 0] = self.released["output", output, 0] = now, job
        self.change()

    def sent(self, packet: Packet, output: int, lane: int, end: int) -> None:
        """An output sends a packet, whose tail will have left its buffer at `end`."""
        size, job = packet.size, packet.message.job

        def left() -> None:
            self.room[output, lane] += size
            self.released["room", output, lane] = end, job
            if size:
                self.change()

        self.interconnect.clock.at(end, Stage.CREDIT, (), left)
