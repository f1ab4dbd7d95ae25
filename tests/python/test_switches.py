"""Input-queued switches against closed forms and laws; the comparison with the oracle is in `test_oracle`."""

import sys
from collections import defaultdict
from collections.abc import Callable
from functools import cache, partial
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

import fairlane
from oracle import (
    Case,
    Datagram,
    Job,
    Mark,
    Mpi,
    Network,
    Op,
    Outcome,
    Qos,
    Recv,
    Send,
    core,
    fabrics,
    ser,
    simulate,
)
from oracle.case import InputQueued

RATE = 8 * 10**12
"""A byte in a picosecond."""
SIZE = 1000
"""Every packet has this many bytes, so that a link carries one in a slot of as many picoseconds."""
LATENCY = 100
FIFO = InputQueued(queues="fifo", thousandths=1000, iterations=1, output_buffer=SIZE)
VOQ = InputQueued(queues="voq", thousandths=1000, iterations=4, output_buffer=SIZE)

star = partial(fabrics.star, bandwidth=RATE, latency=LATENCY)


def network(switch: InputQueued | None, packets: int = 16) -> Network:
    """Input buffers of so many packets."""
    return Network(mtu=SIZE, header=0, buffer=packets * SIZE, switch_latency=0, switch=switch)


def saturated(ports: int, switch: InputQueued | None, packets: int) -> tuple[float, float]:
    """Throughput of an output as part of its link's rate, with its standard error.

    So many hosts send to as many others, each packet to one drawn uniformly, and always have packets to send.
    """
    slots = max(3000, 24_000 // ports)
    to = np.random.default_rng(ports).integers(ports, 2 * ports, (ports, slots)).tolist()
    scripts: list[list[Op]] = [[Datagram(host, SIZE) for host in row] for row in to]
    scripts = [[*script, Mark()] for script in [*scripts, *([] for _ in range(ports))]]
    case = Case(star(2 * ports), [Job(list(range(2 * ports)), scripts)], network(switch, packets))
    # Hosts have sent half of their packets at the end, at the earliest.
    warm_up, end, batches = slots * SIZE // 10, slots * SIZE // 2, 20
    outputs = {number for number, link in enumerate(case.fabric.links) if link.from_switch == 0}
    starts = np.array([one.time for one in core.simulate(case).departures if one.link in outputs])
    counts, edges = np.histogram(starts, batches, (warm_up, end))
    rates = counts / (edges[1] - edges[0]) * SIZE / ports
    return float(rates.mean()), float(rates.std(ddof=1) / sqrt(batches))


@cache
def head_of_line(ports: int) -> float:
    """Throughput of a saturated switch with one FIFO queue an input.

    A Markov chain over how many first packets go to each output: in a slot each requested output takes one, and each of
    these is replaced by a packet to an output drawn uniformly. Which of several is taken makes no difference.
    """
    chain = {(ports, *[0] * (ports - 1)): 1.0}
    for _ in range(30):
        following: dict[tuple[int, ...], float] = defaultdict(float)
        for state, share in chain.items():
            rest = tuple(sorted((max(0, count - 1) for count in state), reverse=True))
            drawn = {rest: share}
            for _ in range(sum(count > 0 for count in state)):
                more: dict[tuple[int, ...], float] = defaultdict(float)
                for counts, part in drawn.items():
                    for place in range(ports):
                        one = [count + (number == place) for number, count in enumerate(counts)]
                        more[tuple(sorted(one, reverse=True))] += part / ports
                drawn = more
            for counts, part in drawn.items():
                following[counts] += part
        chain = dict(following)
    return sum(share * sum(count > 0 for count in state) for state, share in chain.items()) / ports


@pytest.mark.parametrize(("ports", "published"), [(2, 0.75), (4, 0.6553), (8, 0.6184)])
@pytest.mark.parametrize("allocator", ["round_robin", "oldest_first"])
def test_head_of_line_blocking_limits_fifo_queues(ports: int, published: float, allocator: str) -> None:
    """M. Karol, M. Hluchyj, S. Morgan 1987; 2 - sqrt(2) for many ports."""
    expected = head_of_line(ports)
    assert expected == pytest.approx(published, abs=1e-4)
    switch = InputQueued("fifo", 1000, allocator, 1, SIZE)
    throughput, error = saturated(ports, switch, 16)
    assert error < 0.01
    assert throughput == pytest.approx(expected, abs=4 * error)


def test_many_ports_approach_the_limit_of_head_of_line_blocking() -> None:
    throughput, error = saturated(32, FIFO, 16)
    # The finite switch is above the limit, and below one of 8 ports.
    assert 2 - sqrt(2) - 4 * error < throughput < head_of_line(8)


@pytest.mark.parametrize("ports", [4, 8])
def test_virtual_output_queues_and_a_speed_up_let_nearly_everything_through(ports: int) -> None:
    """Without head-of-line blocking a switch does nearly what the ideal crossbar does.

    At a load of 1 the ideal one is idle, too: what comes for an output is a random walk, so that after `n` slots the
    output has missed sqrt(2 v n / pi) of them on average, `v` being the variance of the packets for it in a slot.
    """
    ideal, error = saturated(ports, None, 256)
    slots, variance = max(3000, 24_000 // ports) / 2, 1 - 1 / ports
    assert 1 - 2 * sqrt(2 * variance / (np.pi * slots)) < ideal <= 1 + 4 * error
    voq, _ = saturated(ports, VOQ, 256)
    assert ideal - 0.03 < voq <= ideal + 4 * error
    # A speed-up of two carries twice what head-of-line blocking leaves, more than the links, into large output buffers.
    assert 2 * head_of_line(ports) > 1.2
    fast, _ = saturated(ports, InputQueued("fifo", 2000, "round_robin", 1, 128 * SIZE), 256)
    assert ideal - 0.02 < fast <= ideal + 4 * error


@pytest.mark.parametrize("queues", ["fifo", "voq"])
@pytest.mark.parametrize("simulator", [simulate, core.simulate], ids=["oracle", "core"])
def test_times_and_charges_of_packets_that_share_an_input(queues: str, simulator: Callable[[Case], Outcome]) -> None:
    """Hosts 0, 1 and 3, each a job, send to host 2 at once; right behind it, host 3 sends to host 4."""
    scripts: list[list[Op]] = [[Datagram(1, SIZE)], [Datagram(1, SIZE)], [Datagram(1, SIZE), Datagram(2, SIZE)]]
    jobs = [
        Job([host, 2, 4], [[*script, Mark()], [Mark()], [Mark()]])
        for host, script in zip((0, 1, 3), scripts, strict=True)
    ]
    found = simulator(Case(star(5), jobs, network(InputQueued(queues, 1000, "round_robin", 1, SIZE))))
    at = {link.to_host: number for number, link in enumerate(star(5).links) if link.from_switch == 0}
    # Heads are at the switch at 100, that of host 3's second packet at 1100. The output to host 2 takes them in order.
    assert [(one.time, one.job) for one in found.on(at[2])] == [(100, 0), (1100, 1), (2100, 2)]
    # The second packet crosses at once, or after the first, which starts at 2100.
    assert [(one.time, one.job) for one in found.on(at[4])] == [(3100 if queues == "fifo" else 1100, 2)]
    # Job 1 waits for job 0. The first packet of job 2 waits from 100 to 2100, when job 1 releases the output; so does
    # its second packet from 1100 on if it is in the same queue, and from 2100 to 3100 for the first. It has waited for
    # the first at the NIC, too.
    charged = {cell: delay for cell, delay in found.interference.items() if delay}
    at_input = {(2, 1): 3 * SIZE, (2, 2): 2 * SIZE} if queues == "fifo" else {(2, 1): 2 * SIZE, (2, 2): SIZE}
    assert charged == {(1, 0): SIZE, **at_input}


def test_an_idle_input_queued_switch_is_as_fast_as_an_output_queued_one() -> None:
    """Cut-through goes on through the crossbar, at any speed-up."""
    script: list[list[Op]] = [[Send(1, 3 * SIZE), Mark()], [Recv(0), Mark()]]
    for thousandths, cut_through in product([1000, 2000, 5000], [True, False]):
        switches = [None, InputQueued("fifo", thousandths, "round_robin", 1, SIZE)]
        networks = [Network(SIZE, 0, 16 * SIZE, 50, cut_through, switch) for switch in switches]
        mpi = Mpi(eager_threshold=10**6)
        cases = [Case(star(2), [Job([0, 1], script)], one, Qos(), mpi) for one in networks]
        ends = [core.simulate(case).progress[0, 1].last for case in cases]
        store = 0 if cut_through else ser(SIZE, RATE)
        assert ends[0] == ends[1] == 3 * SIZE + 2 * LATENCY + 50 + store


def test_wrong_settings_name_the_key() -> None:
    def refused(switch: object) -> str:
        with pytest.raises(fairlane.ScenarioError) as error:
            fairlane.Scenario(
                duration="10 us",
                fabric={"topology": "fat_tree", "hosts": 4, "levels": 1},
                network={"switch": switch},
                jobs=[{"workload": "ring", "ranks": 4}],
            ).resolve()
        return str(error.value)

    assert "network.switch" in refused("input_queud")
    assert "input_queued" in refused("input_queud")
    assert "network.switch.queues" in refused({"name": "input_queued", "queues": "fifos"})
    assert "fifo" in refused({"name": "input_queued", "queues": "fifos"})
    assert "network.switch.speedup" in refused({"name": "input_queued", "speedup": 0.5})
    assert "three decimals" in refused({"name": "input_queued", "speedup": 1.00005})
    assert "network.switch.iterations" in refused({"name": "input_queued", "iterations": 0})
    assert "at least one full packet" in refused({"name": "input_queued", "output_buffer": "1000 B"})
    assert "speedup" in refused({"name": "output_queued", "speedup": 2})


@pytest.mark.parametrize(("number", "fabric"), [(0, "ftree64_8ary2"), (1, "ftree64_8ary2"), (7, "dfly72")])
def test_curves_of_published_simulators(number: int, fabric: str) -> None:
    """A small version of ``benches/switches.py``: BookSim and CAMINOS within 5%."""
    spec = spec_from_file_location("switches", Path(__file__).parents[2] / "benches" / "switches.py")
    assert spec is not None
    assert spec.loader is not None
    bench = module_from_spec(spec)
    sys.modules["switches"] = bench  # where dataclasses look for it
    spec.loader.exec_module(bench)
    case = bench.CASES[number]
    assert case.fabric == fabric
    theirs = bench.reference(case)
    points = bench.measure(case, bench.architecture(case), (0.5, 1.0), (2000, 1000))
    for offered, accepted, latency in points:
        assert accepted == pytest.approx(theirs[offered][0], rel=0.05)
        if offered < 1:
            assert latency == pytest.approx(theirs[offered][1], rel=0.05)
