"""Packets: ports, lanes, credits, switches and NICs."""

from collections import defaultdict, deque
from collections.abc import Hashable
from dataclasses import dataclass, field

from .arbiters import arbiter
from .case import Case, Link, Network, ser
from .clock import Clock, Stage
from .outcome import Departure, Outcome
from .packets import Message, Packet
from .pauses import Pauses
from .routing import Router
from .switches import Switch

UNLIMITED = 2**62
"""Credits of lanes with priority flow control."""


def reverse(links: list[Link]) -> list[int]:
    """The other direction of the cable of each link: of several between two ends, in order."""
    back: dict[Hashable, deque[int]] = defaultdict(deque)
    for number, link in enumerate(links):
        back[link.from_host, link.from_switch, link.to_host, link.to_switch].append(number)
    return [back[link.to_host, link.to_switch, link.from_host, link.from_switch].popleft() for link in links]


@dataclass
class Lane:
    """A FIFO queue, the credits for its own part of the far end's buffer, and what it has taken of the shared part."""

    credits: int
    borrowed: int = 0
    queue: deque[Packet] = field(default_factory=deque)


def parts(network: Network, lanes: int) -> tuple[int, int]:
    """What each of so many lanes has of the buffers at the far end of a link, and what they share."""
    if network.port_buffer is None:
        return network.buffer, 0
    if not network.dynamic:
        return network.port_buffer // lanes, 0
    full = network.mtu + network.header
    return full, network.port_buffer - lanes * full


class Port:
    """An output port. Its link carries a packet of job `carried`, or none."""

    def __init__(self, number: int, case: Case, interconnect: "Interconnect") -> None:
        self.number = number
        self.link = case.fabric.links[number]
        self.interconnect = interconnect
        fabric = case.fabric
        own, self.pool = parts(case.network, fabric.queue(case.qos.lanes, 0))
        each = case.network.own or (own,) * fabric.queue(case.qos.lanes, 0)
        self.lanes = [Lane(size) for size in each]
        self.pauses = None
        if case.network.pfc is not None:
            self.pauses = Pauses(self, case.network, case.network.pfc, [lane.credits for lane in self.lanes])
            self.lanes = [Lane(UNLIMITED) for _ in self.lanes]
        self.arbiter = arbiter(case.qos.arbiter, case.qos.params, self.link.bandwidth)
        self.lines: dict[Hashable, deque[Message]] = defaultdict(deque)
        self.busy_until = 0
        self.carried: int | None = None
        self.settled = 0
        self.aside: dict[int, int] = defaultdict(int)
        self.lacking: set[int] = set()
        # What was charged during the transmission under way: to whom, for whom, how much.
        self.recent: list[tuple[int, int, int]] = []

    def join(self, packet: Packet) -> None:
        """A packet joins its lane's queue."""
        now = self.interconnect.clock.now
        self.settle()
        packet.joined = now - packet.waited
        packet.waited = 0
        packet.offered = now if packet.hop == 0 else packet.offered
        self.lanes[self.interconnect.lane(packet)].queue.append(packet)
        self.interconnect.clock.at(now, Stage.DECIDE, (self.number,), self.decide)

    def take(self, message: Message) -> None:
        """A message is handed over: it joins its lane's list now, or once those before it in its line are sent."""
        line = self.lines[self.interconnect.line(message)]
        line.append(message)
        if line[0] is message:
            self.join(self.interconnect.packet(message, 0))

    def following(self, packet: Packet) -> Packet | None:
        """What a NIC sends after a packet: the next one of its message, else the first of the next in its line."""
        message = packet.message
        if packet.index + 1 < len(message.payloads):
            return self.interconnect.packet(message, packet.index + 1)
        line = self.lines[self.interconnect.line(message)]
        line.popleft()
        return self.interconnect.packet(line[0], 0) if line else None

    def credit(self, lane: int, size: int, job: int) -> None:
        """Room of `size` bytes comes back, left by a packet of `job`, which pays for a stall for the lack of it."""
        self.settle()
        to_pool = min(size, self.lanes[lane].borrowed)
        self.lanes[lane].borrowed -= to_pool
        self.pool += to_pool
        self.lanes[lane].credits += size - to_pool
        if lane in self.lacking or (self.lacking and to_pool):
            for delayed, waited in self.aside.items():
                self.interconnect.outcome.interference[delayed, job] += waited
                self.recent.append((delayed, job, waited))
            self.aside.clear()
            self.lacking.clear()
        self.interconnect.clock.at(self.interconnect.clock.now, Stage.DECIDE, (self.number,), self.decide)

    def settle(self) -> None:
        """Accounts the time since the last change of this port to those who wait and those for whom they wait."""
        now, outcome = self.interconnect.clock.now, self.interconnect.outcome
        for number, lane in enumerate(self.lanes):
            for packet in lane.queue:
                waited = max(0, now - max(self.settled, packet.joined))
                if self.carried is None:
                    self.aside[packet.message.job] += waited
                else:
                    outcome.interference[packet.message.job, self.carried] += waited
            if lane.queue and self.carried is None and now > self.settled:
                outcome.ports[self.number, number].stalled += now - self.settled
                self.lacking.add(number)
        if self.carried is None and any(lane.queue for lane in self.lanes):
            outcome.links[self.number].stalled += now - self.settled
        self.settled = now

    def measure(self) -> None:
        """Counts how many packets are queued."""
        now = self.interconnect.clock.now
        for number, lane in enumerate(self.lanes):
            count = self.interconnect.outcome.ports[self.number, number]
            count.longest = max(count.longest, sum(packet.joined <= now for packet in lane.queue))

    def decide(self) -> None:
        """If the link is free, picks a ready lane and starts its first packet."""
        now = self.interconnect.clock.now
        self.settle()
        self.measure()
        if now < self.busy_until:
            return
        self.carried = None
        self.recent.clear()
        lane_of = self.interconnect.case.fabric.lane_of
        first: dict[int, tuple[int, int]] = {}  # of each virtual lane, the ready queue whose packet has waited longest
        for number, lane in enumerate(self.lanes):
            if self.pauses is not None and number in self.pauses.since:
                continue
            if lane.queue and lane.queue[0].size <= lane.credits + self.pool:
                waiting = (lane.queue[0].joined, number)
                first[lane_of(number)] = min(waiting, first.get(lane_of(number), waiting))
        heads = {lane: self.lanes[queue].queue[0] for lane, (_, queue) in first.items()}
        if heads:
            sizes = {lane: packet.size for lane, packet in heads.items()}
            offered = {lane: packet.offered for lane, packet in heads.items()}
            self.start(first[self.arbiter.choose(sizes, offered, now)][1])

    def start(self, number: int) -> None:
        """The first packet of a lane starts now."""
        now, lane = self.interconnect.clock.now, self.lanes[number]
        packet = lane.queue.popleft()
        from_pool = max(0, packet.size - lane.credits)
        if self.pauses is None:
            lane.credits -= packet.size - from_pool
        else:
            self.pauses.change(now + self.link.latency, number, packet.size)
        lane.borrowed += from_pool
        self.pool -= from_pool
        self.interconnect.outcome.ports[self.number, number].waiting += now - packet.joined
        wire = ser(packet.size, self.link.bandwidth)
        self.carried, self.busy_until = packet.message.job, now + wire
        if self.link.from_switch in self.interconnect.switches:
            self.interconnect.switches[self.link.from_switch].sent(packet, self.number, number, self.busy_until)
        self.interconnect.clock.at(self.busy_until, Stage.DECIDE, (self.number,), self.decide)
        following = self.following(packet) if packet.hop == 0 else None
        if following is not None:
            # In the lane's list from now, offered when the link is done.
            following.joined = following.offered = self.busy_until
            self.lanes[self.interconnect.lane(following)].queue.append(following)
        self.interconnect.departed(packet, self.number, number, wire)


class Interconnect:
    """All ports, and what happens to a packet between them."""

    def __init__(self, case: Case, clock: Clock, outcome: Outcome) -> None:
        self.case, self.clock, self.outcome = case, clock, outcome
        self.reverse = reverse(case.fabric.links)
        self.ports = [Port(number, case, self) for number in range(len(case.fabric.links))]
        self.next_offer: dict[int, int] = defaultdict(int)
        numbers = {link.from_switch for link in case.fabric.links if link.from_switch is not None}
        self.switches = {number: Switch(number, case, self) for number in numbers if case.network.switch}
        self.router = Router(case, clock) if case.fabric.choices else None

    def lane(self, packet: Packet) -> int:
        """The queue that a packet uses at the port where it is."""
        return self.case.fabric.queue(packet.message.lane, packet.route[packet.hop].channel)

    def packet(self, message: Message, index: int) -> Packet:
        """One packet of a message."""
        return Packet(message, index, message.payloads[index] + self.case.network.header, route=message.route)

    def line(self, message: Message) -> Hashable:
        """The line of an adapter in which a message is sent after those before it."""
        match self.case.network.injection:
            case "queue_pairs":
                return message.job, message.lane, message.ranks
            case "fifo":
                return message.lane
            case "adapter_fifo":
                return "all"
        return message.number

    def payloads(self, size: int) -> list[int]:
        """The payload of each packet of a message of `size` bytes."""
        mtu = self.case.network.mtu
        count = max(1, -(-size // mtu))
        return [mtu] * (count - 1) + [size - mtu * (count - 1)]

    def hand_over(self, message: Message, time: int, gap: int) -> None:
        """At `time`, and `gap` after the message made before it at the earliest, a message is handed to the NIC."""
        port = self.ports[message.route[0].link]
        if gap > 0:
            time = max(time, self.next_offer[port.number])
            self.next_offer[port.number] = time + gap
        self.clock.at(time, Stage.HAND_OVER, (message.number,), lambda: port.take(message))

    def departed(self, packet: Packet, number: int, lane: int, wire: int) -> None:
        """What follows from a packet's start on link `number`, where it takes `wire` picoseconds."""
        now, link, message = self.clock.now, self.ports[number].link, packet.message
        self.outcome.departures.append(
            Departure(now, number, lane, message.job, packet.index, packet.size, message.number)
        )
        count = self.outcome.ports[number, lane]
        count.size += packet.size
        count.packets += 1
        self.outcome.links[number].active += wire
        recorded = self.case.fabric.recorded
        if packet.hop == 0 and recorded is not None:
            packet.route = recorded[now, number]
        if packet.hop > 0 and self.router is not None:
            self.router.started(number)
        if packet.hop > 0 and not self.switches:
            self.give_back(packet, packet.hop - 1, now + wire)
        packet.hop += 1
        if link.to_host is not None:
            assert link.to_host == message.destination, f"a packet to {message.destination} comes to {link.to_host}"
            delivery = now + wire + link.latency
            self.clock.at(delivery, Stage.DELIVERY, (number,), lambda: self.arrived(packet))
            self.give_back(packet, packet.hop - 1, delivery)
            return
        head, hop = now + link.latency + self.case.network.switch_latency, packet.hop
        if self.router is not None:
            route = self.router.route
            self.clock.at(head, Stage.ROUTE, (number,), lambda: route(packet, hop))
        if link.to_switch in self.switches:
            switch = self.switches[link.to_switch]
            packet.tail = head + wire
            join = head if self.case.network.cut_through else packet.tail
            self.clock.at(join, Stage.JOIN, (number,), lambda: switch.join(packet))
            return
        onward = self.ports[packet.route[packet.hop].link]
        delay = wire  # from the departure of the head to when it may go on, the way itself not counted
        if self.case.network.cut_through:
            delay = max(0, wire - ser(packet.size, onward.link.bandwidth))
        self.clock.at(head + delay, Stage.JOIN, (number,), lambda: onward.join(packet))

    def arrived(self, packet: Packet) -> None:
        """A packet is at its host. Packets of a message may have overtaken each other."""
        message = packet.message
        latencies = self.outcome.latencies["packet", message.job, message.kind]
        latencies.append(self.clock.now - packet.offered)
        message.arrived += 1
        message.delivered(message.arrived == 1, message.arrived == len(message.payloads))

    def finish(self) -> None:
        """The end comes while links transmit: their time counts up to it, the delay of what is queued up to theirs."""
        end = self.clock.now
        for port in self.ports:
            self.outcome.links[port.number].active -= max(0, port.busy_until - end)
            self.clock.now = max(end, port.busy_until) if port.carried is not None else end
            if port.carried is not None and port.busy_until >= end:
                for delayed, job, waited in port.recent:
                    self.outcome.interference[delayed, job] -= waited
            port.settle()
            port.measure()
            if port.pauses is not None:
                self.clock.now = end
                port.pauses.finish()
        self.clock.now = end

    def give_back(self, packet: Packet, hop: int, time: int) -> None:
        """At `time` a packet's tail leaves the buffer at the end of its hop `hop`."""
        port = self.ports[packet.route[hop].link]
        lane = self.case.fabric.queue(packet.message.lane, packet.route[hop].channel)
        size, job = packet.size, packet.message.job
        if port.pauses is not None:
            port.pauses.change(time, lane, -size, job)
        if self.router is not None and hop > 0:
            self.router.loads.change(port.number, time + port.link.latency, -size)
        if port.pauses is None:
            self.clock.at(time + port.link.latency, Stage.CREDIT, (lane, job), lambda: port.credit(lane, size, job))
