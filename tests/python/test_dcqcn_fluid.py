"""DCQCN against its fluid model: N flows of one bottleneck, their rates and its queue.

The model is that of Y. Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, section 5:
delay differential equations for the queue, alpha, the target rate and the current rate. It describes means. It holds if

- no packet lacks credits: buffers have 64 MiB, and the tests assert that no port stalls,
- the queue stays on the ramp between kmin and kmax, far from both in terms of its fluctuations: the ramp has the slope
  of the paper, 0.01 in 195 KB, but is eight times as long,
- the instants of CNPs are those of independent marks: the CNP interval is short in comparison with the increase timer.

The last does not hold for the paper's interval of 50 us and timer of 55 us. After a CNP, none can follow within 50 us:
the rate has almost always made its first and largest step back to the target when the next one comes. The target then
falls less with each CNP than in the model, and the queue is longer, by 20 to 35%. The last test has this interval. It
compares the queue with a balance of mean increase and decrease in which CNPs are at least the interval apart.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq
from typing_extensions import override

from fairlane import Scenario, Simulation
from fairlane.model.workload import Rank, Workload

Floats = NDArray[np.float64]

PACKET = 4096 + 26
BANDWIDTH = 40e9
STEPS = 5  # of fast recovery
TOLERANCE = 0.1
SETTLED, END = 40, 110  # ms
APART = (1_000_000, 5_300_000, 11_000_000, 17_000_000)  # ps


@dataclass(frozen=True)
class Parameters:
    """What the model has, in seconds, packets, and packets per second."""

    flows: int
    cnp_interval: float = 4e-6
    g: float = 1 / 256
    alpha_timer: float = 55e-6
    increase_timer: float = 55e-6
    byte_counter: float = 10e6 / PACKET
    rai: float = 40e6 / (8 * PACKET)
    kmin: float = 5e3 / PACKET
    kmax: float = 1.6e6 / PACKET
    pmax: float = 0.08
    delay: float = 5e-6
    """From a mark to the arrival of packets at the new rate: a full packet to the receiver, a CNP back, and a packet
    to the switch, over links of 1 us."""

    @property
    def capacity(self) -> float:
        """Of the bottleneck."""
        return BANDWIDTH / (8 * PACKET)

    def probability(self, queue: float) -> float:
        """Of a mark."""
        if queue > self.kmax:
            return 1.0
        return self.pmax * max(0.0, queue - self.kmin) / (self.kmax - self.kmin)

    def transport(self) -> dict[str, Any]:
        """The same for the simulator; the other parameters are its defaults."""
        sizes = {"kmin": self.kmin, "kmax": self.kmax}
        return {
            "name": "dcqcn",
            "pmax": self.pmax,
            "cnp_interval": f"{self.cnp_interval * 1e6} us",
            **{name: f"{round(packets * PACKET)} B" for name, packets in sizes.items()},
        }


def change(of: Parameters, state: Floats, p: float, rate: float) -> Floats:
    """Equations 6 to 9: the derivatives of queue, alpha, target rate and current rate.

    ``p`` and ``rate`` are the probability of a mark and the current rate one delay before.
    """
    queue, alpha, target, current = state
    overload = of.flows * current - of.capacity

    def marked(packets: float) -> float:
        """The probability of a mark among so many packets."""
        return -float(np.expm1(packets * np.log1p(-p)))

    def events(packets: float) -> tuple[float, float]:
        """The frequency of increases if each takes so many packets without a mark, and of those after fast recovery."""
        unmarked = packets * np.log1p(-p)
        if p == 0 or unmarked < -100:
            return (rate / packets, rate / packets) if p == 0 else (0.0, 0.0)
        frequency = rate * p / float(np.expm1(-unmarked))
        return frequency, frequency * float(np.exp(STEPS * unmarked))

    p = min(p, 1 - 1e-12)
    cnps = marked(of.cnp_interval * rate) / of.cnp_interval
    steps, beyond = map(sum, zip(events(of.increase_timer * rate), events(of.byte_counter), strict=True))
    return np.array(
        [
            0.0 if queue <= 0 and overload < 0 else overload,
            of.g / of.alpha_timer * (marked(of.alpha_timer * rate) - alpha),
            -(target - current) * cnps + of.rai * beyond,
            -current * alpha / 2 * cnps + (target - current) / 2 * steps,
        ]
    )


def integrate(of: Parameters, seconds: float, since: float = 0.0, step: float = 2e-6) -> Floats:
    """The states after each step, from ``since`` on. At the start, all flows send at the bandwidth of their links."""
    states = np.zeros((round(seconds / step) + 1, 4))
    states[0] = 0.0, 1.0, of.capacity, of.capacity
    whole, part = divmod(of.delay / step, 1.0)
    for now in range(len(states) - 1):
        before, after = max(0, now - int(whole) - 1), max(0, now - int(whole))
        queue, _, _, rate = part * states[before] + (1 - part) * states[after]
        states[now + 1] = states[now] + step * change(of, states[now], of.probability(queue), rate)
        states[now + 1, 0] = max(0.0, states[now + 1, 0])
    return states[round(since / step) :]


class Flows(Workload):
    """Every rank but the first sends an endless message to the first, each a little later than the one before."""

    apart: int = 0

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        if rank.index:
            rank.compute(1 + self.apart * rank.index)
            rank.datagram(0, 1 << 31)
        rank.compute(10**12)


def simulate(of: Parameters, apart: int, milliseconds: Sequence[int]) -> tuple[Floats, Floats]:
    """The rates of the flows, packets/s, and the mean queue of the bottleneck, packets, from each time to the next."""
    hosts = [f"h{number:02}" for number in range(of.flows + 1)]
    scenario = Scenario(
        fabric={
            "topology": "imported",
            "hosts": hosts,
            "bandwidth": f"{BANDWIDTH / 1e9} Gb/s",
            "latency": "1 us",
            "links": [{"ends": [host, "switch"]} for host in hosts],
        },
        jobs=[
            {
                "name": "flows",
                "workload": Flows(compute=0, jitter=0, apart=apart),
                "ranks": len(hosts),
                "placement": {"hosts": hosts},
            }
        ],
        network={"transport": of.transport(), "buffer": "64 MiB"},
        duration="1 s",
    )
    simulation = Simulation(scenario, threads=1)
    sent, queueing, times = [], [], []
    for millisecond in milliseconds:
        simulation.run_until(f"{millisecond} ms")
        ports = simulation.table("ports")
        assert ports["stalled_ps"].sum() == 0
        sources = ports.filter(pl.col("from_name").is_in(hosts[1:])).sort("from_name")
        sent.append(sources["bytes"].to_numpy() / PACKET)
        queueing.append(ports.filter(pl.col("to_name") == hosts[0])["queueing_ps"].item())
        times.append(simulation.now)
    spans = np.diff(times)
    return np.diff(sent, axis=0) / (spans[:, None] * 1e-12), np.diff(queueing) / spans


def mean_of_runs(of: Parameters, milliseconds: Sequence[int]) -> tuple[Floats, Floats]:
    """The same, averaged over runs in which the flows start 1 to 17 us one after the other."""
    runs = [simulate(of, apart, milliseconds) for apart in APART]
    return np.mean([rates for rates, _ in runs], axis=0), np.mean([queue for _, queue in runs], axis=0)


@pytest.mark.parametrize("flows", [4, 8])
def test_rates_and_queue_are_those_of_the_fluid_model(flows: int) -> None:
    of = Parameters(flows)
    rates, queue = mean_of_runs(of, [SETTLED, END])
    expected, share = integrate(of, END * 1e-3, SETTLED * 1e-3).mean(axis=0), of.capacity / flows
    print(f"rates {rates / share}, queue {queue / expected[0]}")
    assert expected[3] == pytest.approx(share, rel=0.01)
    assert rates[0] == pytest.approx(np.full(flows, share), rel=TOLERANCE)
    assert queue[0] == pytest.approx(expected[0], rel=TOLERANCE)


def test_rates_rise_as_in_the_fluid_model() -> None:
    """With the paper's kmax the queue exceeds it at the start, so the rates collapse; then they rise for 15 ms."""
    of = Parameters(4, pmax=0.04, kmax=200e3 / PACKET)
    end, share = 15, of.capacity / 4
    rates, _ = simulate(of, APART[0], range(end + 1))
    expected = integrate(of, end * 1e-3)[1:, 3].reshape(end, -1).mean(axis=1)
    print((rates.mean(axis=1) - expected) / share)
    assert expected[1] < 0.2 * share
    assert 0.9 * share < expected[-1]
    assert rates.mean(axis=1) == pytest.approx(expected, abs=TOLERANCE * share)


def balanced(of: Parameters, excess: Callable[[float], float]) -> float:
    """The queue, packets, at the probability of a mark for which increases and decreases balance."""
    p = brentq(excess, 1e-6, of.pmax)
    return of.kmin + p / of.pmax * (of.kmax - of.kmin)


@pytest.mark.parametrize("flows", [4, 8])
def test_queue_with_cnps_at_least_the_interval_apart(flows: int) -> None:
    of = Parameters(flows, cnp_interval=50e-6)
    share, count = of.capacity / flows, np.arange(4000)

    def excess(p: float) -> float:
        """The mean change of the target rate from one CNP to the next."""

        def reached(times: NDArray[Any]) -> NDArray[Any]:
            """The probability that no CNP has followed by then."""
            return np.exp(-p * share * np.maximum(0.0, times - of.cnp_interval))

        alpha = 1 / (1 + reached(count[1:] * of.alpha_timer).sum())
        at_least = reached(count * of.increase_timer)
        exactly, beyond = at_least - np.append(at_least[1:], 0.0), np.maximum(0, count - STEPS)
        # The current rate, from which the target is set, is below the target by the decrease, halved by each step, and
        # by half the last increase of the target, a quarter of that before, and so on.
        below = share * alpha / 2 * 0.5**count + of.rai * (1 - 0.5**beyond)
        return float((exactly * (of.rai * beyond - below)).sum())

    rates, queue = mean_of_runs(of, [SETTLED, END])
    expected, of_model = balanced(of, excess), integrate(of, END * 1e-3, SETTLED * 1e-3)[:, 0].mean()
    print(f"rates {rates / share}, queue {queue / expected}, in the fluid model {queue / of_model}")
    assert rates[0] == pytest.approx(np.full(flows, share), rel=TOLERANCE)
    assert queue[0] == pytest.approx(expected, rel=TOLERANCE)
    assert 1.1 < queue[0] / of_model < 1.5
