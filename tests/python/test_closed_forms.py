"""The engine against what can be worked out by hand; the oracle passes the same tests, which cross-checks them."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise

import numpy as np
import pytest

from fairlane import BuildError, _core
from oracle import (
    Case,
    Compute,
    Engine,
    Job,
    Mark,
    Mpi,
    Network,
    Op,
    Qos,
    Recv,
    Send,
    Wait,
    core,
    fabrics,
    ser,
)

RATE = 100_000_000_000  # 12.5 GB/s
LATENCY = 100_000
ALWAYS_EAGER = Mpi(eager_threshold=1 << 40)
TWO_LANES = (0, 1) + (0,) * 14

fat_tree = cache(fabrics.fat_tree)
star = partial(fabrics.star, bandwidth=RATE, latency=LATENCY)


def wires(network: Network, size: int) -> list[int]:
    """Bytes on the wire of each packet of a message."""
    full, rest = divmod(size, network.mtu)
    payloads = [network.mtu] * full + ([rest] if rest or not full else [])
    return [payload + network.header for payload in payloads]


def trip(case: Case, source: int, to: int, size: int) -> int:
    """From the NIC's first bit to the receiver's last on an idle fabric whose links have one rate.

    The packets leave one after another; the last one's tail then flies. With store-and-forward every further hop costs
    the time of a packet: of the only one, or of the full one that is in front of the last.
    """
    hops, packets = case.fabric.hops(source, to), wires(case.network, size)
    flight = sum(link.latency for link in hops) + (len(hops) - 1) * case.network.switch_latency
    again = 0 if case.network.cut_through else (len(hops) - 1) * ser(packets[0], hops[0].bandwidth)
    return sum(ser(packet, hops[0].bandwidth) for packet in packets) + flight + again


def ping_pong(size: int, *, cut_through: bool) -> Case:
    """Two ranks on the two leaves of a small tree; overheads longer than a control packet on the wire."""
    fabric = fat_tree(hosts=4, levels=2, leaf_down=2, leaf_up=2, bandwidth=99_999_999_977, latency=123_457)
    ping: list[Op] = [Send(1, size), Mark(), Recv(1), Mark()]
    pong: list[Op] = [Recv(0), Mark(), Send(0, size), Mark()]
    network = Network(switch_latency=90_001, cut_through=cut_through)
    mpi = Mpi(send_overhead=300_000, receive_overhead=250_000)
    return Case(fabric, [Job([0, 3], [ping, pong])], network, mpi=mpi)


@pytest.mark.parametrize("cut_through", [True, False])
@pytest.mark.parametrize("size", [0, 1, 100, 4096, 4097, 16384])
def test_eager_ping_pong(run: Engine, size: int, cut_through: bool) -> None:
    case = ping_pong(size, cut_through=cut_through)
    one_way = case.mpi.send_overhead + trip(case, 0, 3, size) + case.mpi.receive_overhead
    progress = run(case).progress
    assert progress[0, 0].first == case.mpi.send_overhead
    assert progress[0, 1].first == one_way
    assert progress[0, 0].last == 2 * one_way


@pytest.mark.parametrize("size", [512, 513, 16384])
def test_a_message_beyond_the_mailbox_is_fetched_without_the_processor(run: Engine, size: int) -> None:
    """The receiver may compute meanwhile: its adapter has fetched the message by then, and the sender has gone on."""
    case = ping_pong(size, cut_through=True)
    mpi = replace(case.mpi, mailbox_threshold=512)
    control = trip(case, 0, 3, mpi.control_bytes)
    there = mpi.send_overhead + (2 * control if size > 512 else 0) + trip(case, 0, 3, size)
    for busy in (0, there, 2 * there):
        scripts: list[list[Op]] = [[Send(1, size), Mark()], [Compute(busy), Recv(0), Mark()]]
        progress = run(replace(case, jobs=[Job([0, 3], scripts)], mpi=mpi)).progress
        assert progress[0, 0].first == mpi.send_overhead
        assert progress[0, 1].first == max(busy, there) + mpi.receive_overhead


@pytest.mark.parametrize("cut_through", [True, False])
@pytest.mark.parametrize("size", [16385, 40960, 100_000])
def test_rendezvous_ping_pong(run: Engine, size: int, cut_through: bool) -> None:
    case = ping_pong(size, cut_through=cut_through)
    control = trip(case, 0, 3, case.mpi.control_bytes)
    received = case.mpi.send_overhead + 2 * control + trip(case, 0, 3, size)
    one_way = received + case.mpi.receive_overhead
    progress = run(case).progress
    assert progress[0, 0].first == received + control  # the acknowledgement
    assert progress[0, 1].first == one_way
    assert progress[0, 0].last == 2 * one_way


@pytest.mark.parametrize(
    ("size", "time"), [(0, 1_000), (25, 1_500), (99, 2_980), (100, 3_000), (400, 2_400), (9000, 2_000)]
)
def test_the_overhead_of_a_send_is_on_the_line_between_sizes(run: Engine, size: int, time: int) -> None:
    points = ({"size": 100, "time": 3_000}, {"size": 600, "time": 2_000})
    case = ping_pong(size, cut_through=True)
    case = replace(case, mpi=Mpi(send_overhead=1_000, send_overheads=points))
    assert run(case).progress[0, 0].first == time


@pytest.mark.parametrize(("size", "delay"), [(0, 0), (25, 750), (100, 3_000), (350, 2_500), (9000, 2_000)])
def test_an_adapter_delays_a_message_by_its_size(run: Engine, size: int, delay: int) -> None:
    """Two trips, there and back; no CPU is busy for the delay, so the send ends at once."""
    points = ({"size": 100, "time": 3_000}, {"size": 600, "time": 2_000})
    plain, delayed = (replace(ping_pong(size, cut_through=True), mpi=Mpi(adapter_delays=of)) for of in ((), points))
    [before, after] = [run(case).progress for case in (plain, delayed)]
    assert after[0, 0].first == before[0, 0].first
    assert after[0, 0].last == before[0, 0].last + 2 * delay


def test_a_rendezvous_waits_for_the_adapters_of_each_of_its_messages(run: Engine) -> None:
    mpi = Mpi(eager_threshold=1000, control_bytes=60)
    points = ({"size": 600, "time": 6_000}, {"size": 5000, "time": 50_000})
    plain, delayed = (
        replace(ping_pong(5000, cut_through=True), mpi=replace(mpi, adapter_delays=of)) for of in ((), points)
    )
    [before, after] = [run(case).progress[0, 0].last for case in (plain, delayed)]
    request_and_get, payload = 2 * 600, 50_000
    assert after - before == 2 * (request_and_get + payload)


def test_bandwidth_does_not_suffer_from_the_delay_of_adapters(run: Engine) -> None:
    """Messages that are sent one after the other, of one size, are delayed alike: each link is as busy as before."""
    scripts: list[list[Op]] = [[*(Send(1, 5000) for _ in range(20))], [*(Recv(0) for _ in range(20)), Mark()]]
    case = Case(fat_tree(hosts=4, levels=2, leaf_down=2, leaf_up=2), [Job([0, 3], scripts)])
    delayed = replace(case, mpi=Mpi(adapter_delays=({"size": 5000, "time": 10**6},)))
    assert run(delayed).progress[0, 1].first == run(case).progress[0, 1].first + 10**6


@pytest.mark.parametrize("cut_through", [True, False])
def test_bandwidth_of_a_long_message_is_the_links_less_the_headers(run: Engine, cut_through: bool) -> None:
    packets = 64
    case, twice = (ping_pong(count * packets * 4096, cut_through=cut_through) for count in (1, 2))
    more = run(twice).progress[0, 1].first - run(case).progress[0, 1].first
    assert more == packets * ser(4096 + 26, 99_999_999_977)


@pytest.mark.parametrize(("outer", "inner"), [(RATE, RATE // 7), (RATE // 7, RATE)])
def test_cut_through_between_unequal_links(run: Engine, outer: int, inner: int) -> None:
    """A head is held back so that a faster link does not run dry: at every step by the difference of the two times."""
    fabric = fat_tree(hosts=4, levels=2, leaf_down=2, leaf_up=2, bandwidth=inner, host_bandwidth=outer)
    case = Case(fabric, [Job([0, 3], [[Send(1, 1000)], [Recv(0), Mark()]])])
    hops = fabric.hops(0, 3)
    times = [ser(1026, link.bandwidth) for link in hops]
    held_back = sum(max(0, this - following) for this, following in pairwise(times))
    flight = sum(link.latency for link in hops) + 3 * case.network.switch_latency
    assert run(case).progress[0, 1].last == flight + held_back + times[-1]


@pytest.mark.parametrize("packets_of_buffer", [1, 2, 3])
def test_credits_bound_the_bandwidth(run: Engine, packets_of_buffer: int) -> None:
    """Room comes back to the NIC after two flights, the switch, and the packet's time on the next link."""
    packets, wire = 30, 1050
    network = Network(mtu=1024, buffer=packets_of_buffer * wire)
    case = Case(star(2), [Job([0, 1], [[Send(1, packets * 1024)], [Recv(0), Mark()]])], network, mpi=ALWAYS_EAGER)
    loop = 2 * LATENCY + network.switch_latency + ser(wire, RATE)
    rounds, rest = divmod(packets - 1, packets_of_buffer)
    last_start = rounds * loop + rest * ser(wire, RATE)
    assert run(case).progress[0, 1].last == last_start + 2 * LATENCY + network.switch_latency + ser(wire, RATE)


@pytest.mark.parametrize("flows", [2, 3, 5])
def test_flows_from_one_host_share_its_link_equally(run: Engine, flows: int) -> None:
    packets = 20
    sends: list[Op] = [Send(to, packets * 4096) for to in range(1, flows + 1)]
    receives: list[list[Op]] = [[Recv(0)] for _ in range(flows)]
    case = Case(star(flows + 1), [Job(list(range(flows + 1)), [sends, *receives])], mpi=ALWAYS_EAGER)
    turns = [departure.message for departure in run(case).on(case.fabric.routes[0, 1][0].link)]
    assert len(set(turns[:flows])) == flows
    assert turns == turns[:flows] * packets


@pytest.mark.parametrize("flows", [2, 3, 5])
def test_flows_from_many_hosts_share_a_link_equally(run: Engine, flows: int) -> None:
    packets = 20
    sends: list[list[Op]] = [[Send(flows, packets * 4096)] for _ in range(flows)]
    receives: list[Op] = [Recv()] * flows
    case = Case(star(flows + 1), [Job(list(range(flows + 1)), [*sends, receives])], mpi=ALWAYS_EAGER)
    shared = run(case).on(case.fabric.routes[0, flows][-1].link)
    for end in range(flows, flows * packets + 1, flows):
        assert list(Counter(departure.message for departure in shared[:end]).values()) == [end // flows] * flows


def two_streams(qos: Qos, packets: int, network: Network) -> Case:
    """Two jobs, each from its own host, to one host; job 0 on lane 0, job 1 on lane 1."""
    jobs = [
        Job([sender, 2], [[Send(1, packets * network.mtu)], [Recv(0), Mark()]], service_level=sender)
        for sender in (0, 1)
    ]
    return Case(star(3), jobs, network, qos, ALWAYS_EAGER)


def test_weights_of_seven_and_two_give_seven_and_two(run: Engine) -> None:
    case = two_streams(Qos(TWO_LANES, params={"weights": [7, 2]}), 70, Network())
    lanes = [departure.lane for departure in run(case).on(case.fabric.routes[0, 2][-1].link)]
    assert lanes == ([0] * 7 + [1] * 2) * 10 + [1] * 50


def test_weights_in_64_byte_units_give_their_ratio(run: Engine) -> None:
    """A packet is 4160 B = 65 x 64 B on the wire: weights 65 and 130 are one packet and two."""
    params = {"vlarb_high": [], "vlarb_low": [[0, 65], [1, 130]], "high_limit": 0}
    case = two_streams(Qos(TWO_LANES, "vlarb", params), 40, Network(header=64))
    lanes = [departure.lane for departure in run(case).on(case.fabric.routes[0, 2][-1].link)]
    assert lanes[:60] == [0, 1, 1] * 20


@pytest.mark.parametrize(("high_limit", "in_a_row"), [(0, 1), (1, 1), (2, 2), (3, 3), (255, 30)])
def test_high_limit_bounds_the_high_table(run: Engine, high_limit: int, in_a_row: int) -> None:
    """Packets of 4160 B on the wire: n of them are the first to use up n x 4096 B, and then a low one goes."""
    params = {"vlarb_high": [[0, 255]], "vlarb_low": [[1, 1]], "high_limit": high_limit}
    case = two_streams(Qos(TWO_LANES, "vlarb", params), 30, Network(header=64))
    lanes = [departure.lane for departure in run(case).on(case.fabric.routes[0, 2][-1].link)]
    turns = 30 // in_a_row
    assert lanes[: 30 + turns] == ([0] * in_a_row + [1]) * turns


def test_high_limit_counts_only_what_a_low_lane_had_to_wait_for(run: Engine) -> None:
    """The low lane's first packet comes while the high lane sends: two more high packets, then it goes."""
    params = {"vlarb_high": [[0, 255]], "vlarb_low": [[1, 1]], "high_limit": 2}
    case = two_streams(Qos(TWO_LANES, "vlarb", params), 30, Network(header=64))
    case.jobs[1].scripts[0].insert(0, Compute(7 * ser(4160, RATE) + 1))
    shared = run(case).on(case.fabric.routes[0, 2][-1].link)
    joined = 7 * ser(4160, RATE) + 1 + LATENCY + case.network.switch_latency
    first_low = next(departure.time for departure in shared if departure.lane == 1)
    assert sum(joined <= departure.time < first_low for departure in shared) == 2


def test_streams_at_25_and_75_of_a_link(run: Engine) -> None:
    """The published figures for one link of 12.5 GB/s: 3.1 and 9.4 GB/s."""
    case = two_streams(Qos(TWO_LANES, params={"weights": [25, 75]}), 750, Network(header=0, switch_latency=0))
    shared = run(case).on(case.fabric.routes[0, 2][-1].link)[:900]
    sizes = Counter({lane: sum(each.size for each in shared if each.lane == lane) for lane in (0, 1)})
    seconds = (shared[-1].time + ser(4096, RATE) - shared[0].time) / 1e12
    assert round(sizes[0] / seconds / 1e9, 1) == 3.1
    assert round(sizes[1] / seconds / 1e9, 1) == 9.4


def test_strict_priority_starves(run: Engine) -> None:
    case = two_streams(Qos(TWO_LANES, "strict_priority", {"order": [1, 0]}), 50, Network())
    lanes = [departure.lane for departure in run(case).on(case.fabric.routes[0, 2][-1].link)]
    assert lanes == [1] * 50 + [0] * 50


SERVICE = ser(1000, RATE)


def exponential_gaps(load: float, packets: int, seed: int) -> list[int]:
    """Times between arrivals of packets: exactly exponential, in random order."""
    quantiles = -np.log1p(-(np.arange(packets) + 0.5) / packets)
    np.random.default_rng(seed).shuffle(quantiles)
    gaps: list[int] = np.rint(quantiles * (SERVICE / load / quantiles.mean())).astype(int).tolist()
    return gaps


def one_nic(scripts: list[list[Op]]) -> Case:
    """Packets of one size from one NIC that is never short of credits."""
    return Case(star(2), [Job([0, 1], scripts)], Network(header=0, buffer=1 << 30))


def waits(gaps: list[int]) -> list[int]:
    """Lindley's recursion: a packet waits for what the one before had to wait and to send, less the gap."""
    found = [0]
    for gap in gaps[1:]:
        found.append(max(0, found[-1] + SERVICE - gap))
    return found


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_waiting_follows_lindley(run: Engine, load: float) -> None:
    gaps = exponential_gaps(load, 1000, seed=1)
    case = one_nic([[op for gap in gaps for op in (Compute(gap), Send(1, 1000))], [Recv()] * len(gaps)])
    nic = run(case).ports[case.fabric.routes[0, 1][0].link, 0]
    assert nic.waiting == sum(waits(gaps))


@pytest.mark.parametrize(("load", "packets"), [(0.3, 100_000), (0.6, 200_000), (0.9, 600_000)])
def test_mean_waiting_of_random_arrivals(load: float, packets: int) -> None:
    """M/D/1: load x service / (2 (1 - load)), by Pollaczek and Khinchine."""
    case, builder = one_nic([[], []]), _core.ProgramBuilder(2)
    for gap in exponential_gaps(load, packets, seed=2):
        builder.compute(0, gap)
        builder.send(0, 1, 1000)
    builder.repeat(1, packets)
    builder.recv(1, 0)
    builder.end(1)
    mean = core.simulate(case, [builder.build()], departures=False).mean_waiting(case.fabric.routes[0, 1][0].link)
    assert mean == pytest.approx(load * SERVICE / (2 * (1 - load)), rel=0.03)


def test_uniform_random_traffic_saturates_a_full_tree(run: Engine) -> None:
    """All hosts send as fast as they can: the time is that of the most loaded link, found from the routes."""
    hosts, packets = 16, 60
    fabric = fat_tree(hosts=hosts, levels=2, radix=8, bandwidth=RATE, latency=LATENCY)
    shift = np.random.default_rng(3).integers(1, hosts, (hosts, packets))
    destinations = [[(host + int(step)) % hosts for step in shift[host]] for host in range(hosts)]
    received = Counter(to for each in destinations for to in each)
    scripts: list[list[Op]] = [
        [*(Send(to, 4096) for to in destinations[host]), *[Recv()] * received[host], Mark()] for host in range(hosts)
    ]
    case = Case(fabric, [Job(list(range(hosts)), scripts)], Network(buffer=1 << 20), mpi=ALWAYS_EAGER)
    load = Counter(hop.link for host in range(hosts) for to in destinations[host] for hop in fabric.routes[host, to])
    bound = max(load.values()) * ser(4122, RATE)
    end = max(progress.last for progress in run(case).progress.values())
    assert bound < end < 1.1 * bound


def test_rotation_takes_every_link_in_turn() -> None:
    """Each packet takes the next of the four links up; on the way down the packets to each leaf are counted apart."""
    params = {"hosts": 16, "levels": 2, "radix": 8, "bandwidth": RATE, "latency": LATENCY}
    fabric = fabrics.any_fabric({"topology": "fat_tree", "params": params, "routing": "rotation"})
    sends: list[Op] = [Send(to, 4096) for to in (1, 1, 2, 2) * 4]
    receives: list[Op] = [Recv(0)] * 8
    job = Job([0, 4, 8], [[*sends, Mark()], *[[*receives, Mark()]] * 2])
    departures = sorted(core.simulate(Case(fabric, [job], mpi=ALWAYS_EAGER)).departures)
    ways: dict[tuple[int, int], list[int]] = {}
    for departure in departures:
        link = fabric.links[departure.link]
        if link.from_switch is not None and link.to_switch is not None:
            down = (link.from_switch, link.to_switch)
            ways.setdefault((0, -1) if down[0] == 0 else down, []).append(departure.link)
    up = sorted(set(ways.pop((0, -1))[:4]))
    ups = [departure.link for departure in departures if departure.link in up]
    assert ups == up * 4
    assert [fabric.links[link].to_switch for link in up] == [4, 5, 4, 5]
    assert sorted(ways) == [(4, 1), (4, 2), (5, 1), (5, 2)]
    for links in ways.values():
        first, second = sorted(set(links))
        assert links == [first, second] * 2


@pytest.mark.parametrize(("injection", "order"), [("fifo", "0101"), ("adapter_fifo", "0011")])
def test_one_fifo_of_an_adapter_serves_messages_in_order_whatever_their_lanes(
    run: Engine, injection: str, order: str
) -> None:
    """Two messages of two packets, handed over at once, on two lanes that take turns packet by packet."""
    qos = Qos(TWO_LANES, "weighted_round_robin", {"weights": [1, 1]}, kinds={"eager": 0})
    scripts: list[list[Op]] = [[Send(1, 8192, request=1), Wait((1,))], [Recv(0)]]
    jobs = [Job([0, 1], scripts), Job([0, 1], scripts, ranks={0: 1})]
    case = Case(star(2), jobs, Network(injection=injection), qos, ALWAYS_EAGER)
    first = case.fabric.routes[0, 1][0].link
    departures = [departure for departure in sorted(run(case).departures) if departure.link == first]
    assert "".join(str(departure.job) for departure in departures) == order
    assert [departure.lane for departure in departures] == [departure.job for departure in departures]


@pytest.mark.parametrize("leaf_up", [1, 2, 4])
def test_all_to_all_is_bounded_by_bisection(run: Engine, leaf_up: int) -> None:
    """Each of two leaves sends 4 x 4 messages over its cables up; each host sends 7 over its own."""
    packets = 24
    fabric = fat_tree(hosts=8, levels=2, leaf_down=4, leaf_up=leaf_up, bandwidth=RATE, latency=LATENCY)
    scripts: list[list[Op]] = [
        [*(Send((rank + step) % 8, packets * 4096) for step in range(1, 8)), *[Recv()] * 7, Mark()] for rank in range(8)
    ]
    case = Case(fabric, [Job(list(range(8)), scripts)], mpi=ALWAYS_EAGER)
    bound = max(16 / leaf_up, 7) * packets * ser(4122, RATE)
    end = max(progress.last for progress in run(case).progress.values())
    assert bound < end < 1.25 * bound


def test_rows_of_the_matrix_are_the_jobs_waiting(run: Engine) -> None:
    """Three jobs on a lane each: what a lane's packets waited at all ports is the row of its job."""
    jobs = [
        Job([job, job + 3, 6], [[Send(2, 30_000)], [Send(2, 50_000)], [Recv(), Recv()]], service_level=job)
        for job in range(3)
    ]
    qos = Qos((0, 1, 2, *(0,) * 13), params={"weights": [3, 1, 2]})
    outcome = run(Case(star(7), jobs, Network(mtu=1024, buffer=4096), qos))
    for job in range(3):
        row = sum(waited for (delayed, _), waited in outcome.interference.items() if delayed == job)
        assert row == sum(count.waiting for (_, lane), count in outcome.ports.items() if lane == job)
        assert all(outcome.interference[job, other] > 0 for other in range(3))


@pytest.mark.parametrize("lanes", [1, 2])
def test_a_full_lane_blocks_only_itself(run: Engine, lanes: int) -> None:
    """Hosts 0 to 3 flood host 4, and host 0 sends as much to host 5, whose own link is idle.

    On one lane the packets to host 5 stand behind those to host 4, which get a quarter of its link: four times the
    time. On a lane of their own they get the three quarters of host 0's link that the others leave.
    """
    packets = 100
    size = packets * 4096
    hot: list[list[Op]] = [[Send(4, size)] for _ in range(4)]
    hot[0].append(Send(5, size))
    scripts: list[list[Op]] = [*hot, [Recv()] * 4, [Recv(), Mark()]]
    qos = Qos((0, lanes - 1, *(0,) * 14), params={"weights": [1] * lanes})
    network = Network(buffer=4 * 4122)
    case = Case(star(6), [Job(list(range(6)), scripts, ranks={5: 1})], network, qos, ALWAYS_EAGER)
    times = run(case).progress[0, 5].last / (packets * ser(4122, RATE))
    assert times == pytest.approx(4 if lanes == 1 else 4 / 3, rel=0.06)


PUBLISHED = Network(mtu=4096, header=0, buffer=65536, switch_latency=0)


@pytest.mark.parametrize("size", [8, 4096, 16384, 65536, 1 << 20])
def test_one_way_time_in_the_published_configuration(run: Engine, size: int) -> None:
    """Three-level k = 8 fat-tree, hosts 0 and 63, 12.5 GB/s, 100 ns links, 4096 B packets, 64 KiB of credits.

    Six links of 100 ns, and 80 ps a byte; a rendezvous has a request and a get of 64 B before.
    """
    fabric = fat_tree(hosts=128, levels=3, radix=8, bandwidth=RATE, latency=LATENCY)
    case = Case(fabric, [Job([0, 63], [[Send(1, size)], [Recv(0), Mark()]])], PUBLISHED)
    expected = 600_000 + 80 * size
    if size > case.mpi.eager_threshold:
        expected += 2 * (600_000 + 80 * 64)
    assert run(case).progress[0, 1].last == expected


@pytest.mark.parametrize("pods", [False, True])
def test_allreduce_of_8_bytes_grows_by_a_constant_per_doubling(pods: bool) -> None:
    """Recursive doubling: one exchange and one addition of 8 B each time; every exchange crosses as many links."""
    fabric = fat_tree(hosts=128, levels=3, radix=8, bandwidth=RATE, latency=LATENCY) if pods else star(16)
    hosts = range(0, 128, 16) if pods else range(16)
    mpi = Mpi(send_overhead=200_000, receive_overhead=300_000)
    for doublings in range(1, len(hosts).bit_length()):
        ranks = 2**doublings
        builder = _core.ProgramBuilder(ranks)
        for rank in range(ranks):
            builder.collective(rank, "allreduce", 8)
            builder.mark_progress(rank)
        case = Case(fabric, [Job(list(hosts[:ranks]), [[]] * ranks)], PUBLISHED, mpi=mpi)
        exchange = mpi.send_overhead + trip(case, hosts[0], hosts[1], 8) + mpi.receive_overhead
        end = doublings * (exchange + ser(8, mpi.reduction_bandwidth))
        progress = core.simulate(case, [builder.build()]).progress
        assert [progress[0, rank].last for rank in range(ranks)] == [end] * ranks


def test_wait_all_costs_an_overhead_per_receive(run: Engine) -> None:
    script: list[Op] = [Recv(0, request=1), Recv(0, request=2), Recv(0, request=3), Wait((1, 2, 3)), Mark()]
    case = Case(star(2), [Job([0, 1], [[Send(1, 1)] * 3, script])], mpi=Mpi(receive_overhead=500))
    tail = 2 * LATENCY + case.network.switch_latency + 3 * ser(27, RATE)
    assert run(case).progress[0, 1].last == tail + 3 * 500


def handed_over(run: Engine, scripts: list[list[Op]], mpi: Mpi) -> list[tuple[int, int]]:
    """Instant and size on the wire of what one host sends: all ranks but the last live there, the last one receives."""
    hosts = [0] * (len(scripts) - 1) + [1]
    case = Case(star(2), [Job(hosts, scripts)], mpi=mpi)
    return [(each.time, each.size) for each in run(case).on(case.fabric.routes[0, 1][0].link)]


def test_a_rank_that_is_woken_takes_its_turn_by_its_number(run: Engine) -> None:
    """Two ranks of a host send at one instant: rank 1 was due then, rank 0 is woken by a transfer through memory."""
    instant = 1_000
    scripts: list[list[Op]] = [
        [Recv(2), Send(3, 10)],
        [Compute(instant), Send(3, 11)],
        [Send(0, 0)],
        [Recv(), Recv()],
    ]
    sent = handed_over(run, scripts, Mpi(memory_latency=instant))
    assert sent == [(instant, 36), (instant + ser(36, RATE), 37)]


def test_a_rank_that_waits_for_nothing_lets_lower_ranks_go_first(run: Engine) -> None:
    """Rank 1's first send wakes rank 0 at once, which sends before rank 1 goes on; a non-blocking send does not."""
    for first, sizes in [(Send(0, 0), [10, 11]), (Send(0, 0, request=1), [11, 10])]:
        scripts: list[list[Op]] = [[Recv(1), Send(2, 10)], [first, Send(2, 11)], [Recv(), Recv()]]
        sent = handed_over(run, scripts, Mpi(memory_latency=0))
        assert sent == [(0, sizes[0] + 26), (ser(sizes[0] + 26, RATE), sizes[1] + 26)]


def test_messages_handed_over_at_one_instant_join_in_the_order_of_their_making(run: Engine) -> None:
    """Rank 1 calls its send an overhead before it is handed over, at the instant at which rank 0's get is made."""
    overhead = 1_000
    arrived = overhead + 2 * LATENCY + Network().switch_latency + ser(64 + 26, RATE)
    scripts: list[list[Op]] = [
        [Compute(arrived + overhead), Recv(2)],
        [Compute(arrived), Send(2, 10)],
        [Send(0, 0, request=1, synchronous=True), Recv(1), Wait((1,))],
    ]
    sent = handed_over(run, scripts, Mpi(send_overhead=overhead))
    assert sent[:2] == [(arrived + overhead, 36), (arrived + overhead + ser(36, RATE), 64 + 26)]


@pytest.mark.parametrize(
    ("size", "synchronous", "lanes"), [(100, False, [1]), (100, True, [3, 2]), (101, False, [3, 2])]
)
def test_the_protocol_makes_the_kind_of_traffic(run: Engine, size: int, synchronous: bool, lanes: list[int]) -> None:
    """Lane 1 for eager payload, lane 2 for payload by rendezvous, a short one too, lane 3 for control messages."""
    qos = Qos((0, 1, 2, 3, *(0,) * 12), params={"weights": [1] * 4}, kinds={"eager": 1, "bulk": 2, "control": 3})
    job = Job([0, 1], [[Send(1, size, synchronous=synchronous)], [Recv()]])
    case = Case(star(2), [job], qos=qos, mpi=Mpi(eager_threshold=100))
    assert [each.lane for each in run(case).on(case.fabric.routes[0, 1][0].link)] == lanes


def test_control_messages_are_one_packet() -> None:
    case = ping_pong(1, cut_through=True)
    mpi = replace(case.mpi, control_bytes=case.network.mtu + 1)
    with pytest.raises(BuildError, match="4096") as error:
        core.simulate(replace(case, mpi=mpi))
    assert error.value.path == "mpi.control_bytes"


@pytest.mark.parametrize(("hosts", "to"), [([0, 0], 1), ([0, 1], 0)], ids=["a neighbour", "itself"])
def test_matching_follows_the_order_of_sending(run: Engine, hosts: list[int], to: int) -> None:
    """A long message through memory is overtaken by a short one, and is received first all the same."""
    size = 1000
    sends: list[Op] = [Send(to, size, 7, request=1), Send(to, 0, 7, request=2)]
    receives: list[Op] = [Recv(0, 7), Mark(), Recv(0, 7), Mark()]
    scripts = [sends, receives] if to == 1 else [[*sends, *receives], []]
    case = Case(star(2), [Job(hosts, scripts)], mpi=ALWAYS_EAGER)
    progress = run(case).progress[0, to]
    assert progress.first == progress.last == case.mpi.memory_latency + ser(size, case.mpi.memory_bandwidth)
