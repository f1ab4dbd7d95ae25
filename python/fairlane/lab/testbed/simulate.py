"""A testbed simulated: what the simulator knows of hosts and protocol, isolated times, and W with and without levels.

Two numbers stand for TCP, IP, Ethernet, the kernel and the MPI library:

- **efficiency**: the share of a link's rate that frames with payload have. Acknowledgements of the other direction, one
  for two full frames, take at least ``ack_share``.
- **overhead**: the time that a send, and a receive, occupies a rank.

They minimise the squared differences of the logarithms of measured and simulated times per iteration of the isolated
jobs. What happens when jobs run together has no part in it.

*The same testbed simulated: its scenario with a host model, isolated times, and W with and without service levels.*
What stands for what: a queueing discipline's FIFO is a port's queue, its limit the buffer of the link that leads to it;
an HTB class is a virtual lane. TCP has no counterpart: messages wait at the sender for credits in place of a window.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

import numpy

from fairlane.cluster.agent.backends.htb import LevelClass
from fairlane.core.seeds import Purpose, stream
from fairlane.core.units import DURATION, SIZE
from fairlane.lab.testbed.file import TestbedFile
from fairlane.lab.testbed.plan import ETHERNET, TCP_IP
from fairlane.model.fabric.wiring import Cable, Wiring
from fairlane.model.scenario import Scenario
from fairlane.sim.runner import run
from fairlane.sim.simulation import Simulation

LOWEST_EFFICIENCY = 0.5
"""The fit looks for efficiencies from here on."""
LONGEST_OVERHEAD_S = 0.01
"""The fit looks for overheads up to this, s."""
_SHORTEST_OVERHEAD_S = 1e-6
_START = (0.95, 50e-6)
_STEP = 0.05  # of finite differences, relative: simulated times have steps of packets


@dataclass(frozen=True)
class HostModel:
    """Differences of hosts and protocol from ideal ones."""

    efficiency: float
    """Share of a link's rate that frames with payload have, up to 1."""
    overhead_s: float
    """Time that a send or a receive occupies a rank, s."""


@dataclass(frozen=True)
class Fit:
    """A fitted model, and how well it describes the isolated runs."""

    model: HostModel
    measured_s: Mapping[str, float]
    """Measured time per iteration by job, s."""
    simulated_s: Mapping[str, float]
    """Simulated time per iteration by job, s."""

    @property
    def error(self) -> float:
        """Root mean square of the relative differences."""
        squares = [(self.simulated_s[job] / time - 1) ** 2 for job, time in self.measured_s.items()]
        return sqrt(sum(squares) / len(squares))


def ack_share(frame: int, ack: int) -> float:
    """The share of a link that acknowledgements take while both directions send full frames; sizes in bytes."""
    return ack / (2 * frame + ack)


def fit(
    measured_s: Mapping[str, float], simulate: Callable[[HostModel], Mapping[str, float]], highest: float = 1.0
) -> Fit:
    """The model with which simulated times per iteration are nearest to the measured ones.

    Args:
        measured_s: Time per iteration of each isolated job, s.
        simulate: The same of the simulated jobs, for a model.
        highest: The highest efficiency.
    """
    from scipy.optimize import least_squares

    def model_of(values: "numpy.typing.NDArray[numpy.float64]") -> HostModel:
        return HostModel(float(values[0]), exp(float(values[1])))

    def residuals(values: "numpy.typing.NDArray[numpy.float64]") -> list[float]:
        simulated = simulate(model_of(values))
        return [log(simulated[job] / time) for job, time in measured_s.items()]

    bounds = ([LOWEST_EFFICIENCY, log(_SHORTEST_OVERHEAD_S)], [highest, log(LONGEST_OVERHEAD_S)])
    start = [min(_START[0], highest - _STEP), log(_START[1])]
    solution = least_squares(
        residuals,
        start,
        bounds=bounds,
        x_scale=[0.05, 1.0],
        diff_step=[_STEP, _STEP],
        xtol=1e-3,
        ftol=1e-4,
        max_nfev=20,
    )
    model = model_of(solution.x)
    return Fit(model, dict(measured_s), dict(simulate(model)))


LATENCY_PS = 10_000_000
"""Latency of a cable: what a virtual cable and its bridge take, 10 us."""
_FIT_ITERATIONS = 40
STARTS_PS = 10**11
"""Simulated jobs start at random within the first 100 ms."""


def wiring(file: TestbedFile, model: HostModel) -> Wiring:
    """The fabric with the rates that payload has."""
    fabric = file.fabric
    link, cables = fabric.host_link, []
    rate = int(link.rate * model.efficiency)
    for switch in fabric.switches:
        cables += [Cable((host, switch.name), bandwidth=rate, latency=LATENCY_PS) for host in switch.hosts]
    for trunk in fabric.trunks:
        ends = (trunk.between[0], trunk.between[1])
        cables.append(Cable(ends, bandwidth=int(trunk.rate * model.efficiency), latency=LATENCY_PS))
    return Wiring(fabric.hosts, tuple(cables))


def tables(file: TestbedFile, model: HostModel) -> dict[str, Any]:
    """The tables ``fabric``, ``network`` and ``mpi`` of a scenario."""
    limits = [file.fabric.host_link.queue, *(trunk.queue for trunk in file.fabric.trunks)]
    if file.fabric.window != "auto":
        limits.append(file.fabric.window)
    overhead = DURATION.format(round(model.overhead_s * 1e12))
    return {
        "fabric": {"topology": "imported", **wiring(file, model).parameters()},
        "network": {
            "mtu": SIZE.format(file.fabric.mtu - TCP_IP),
            "header": SIZE.format(ETHERNET + TCP_IP),
            "buffer": SIZE.format(min(limits)),
            "switch_latency": 0,
        },
        "mpi": {
            "eager_threshold": SIZE.format(file.measure.eager_threshold),
            "send_overhead": overhead,
            "receive_overhead": overhead,
            "collectives": {"alltoall": "scattered"},
        },
    }


def qos_table(levels: Sequence[LevelClass] | None) -> dict[str, Any]:
    """The table ``qos`` of a scenario that serves levels as HTB classes on the trunks do.

    Classes of one priority share a link in proportion to their shares: weighted round-robin. With different priorities
    a class comes first up to its share, then those of higher priority get what is left: strict priority with shares.
    """
    if not levels:
        return {}
    count = max(level_class.level for level_class in levels) + 1
    by_level = {level_class.level: level_class for level_class in levels}
    least = min(level_class.share for level_class in levels)
    if len({level_class.priority for level_class in levels}) == 1:
        weights = [round(by_level[at].share / least) if at in by_level else 1 for at in range(count)]
        arbiter: dict[str, Any] = {"name": "weighted_round_robin", "weights": weights}
    else:
        order = sorted(by_level, key=lambda level: (by_level[level].priority, -level))
        # The last has what is left in any case. The others hold their priority up to what is guaranteed to no other.
        shares = [
            [level, max(1, round(100 * (1 - sum(by_level[level_class].share for level_class in order[at + 1 :]))))]
            for at, level in enumerate(order[:-1])
        ]
        arbiter = {"name": "strict_priority", "order": order, "shares": shares, "interval": "10 ms"}
    return {"service_levels": count, "arbiter": arbiter}


def scenario(
    file: TestbedFile,
    model: HostModel,
    jobs: Sequence[str],
    *,
    levels: Mapping[str, int] | None = None,
    starts: Mapping[str, int] | None = None,
    duration: int | None = None,
) -> Scenario:
    """The scenario of some of the jobs; ``levels`` are service levels by job, ``starts`` times in ps."""
    listed = []
    for number, job in enumerate(file.jobs):
        if job.name not in jobs:
            continue
        job_table: dict[str, Any] = {
            "name": job.name,
            "ranks": len(job.hosts),
            "workload": {"name": type(job.workload).name, **job.workload.parameters()},
            "placement": {"hosts": list(job.hosts)},
            "stream": number,
        }
        if levels and job.name in levels:
            job_table["service_level"] = levels[job.name]
        if starts and job.name in starts:
            job_table["start"] = DURATION.format(starts[job.name])
        listed.append(job_table)
    with_qos = {"qos": qos_table(file.qos.levels)} if levels and file.qos else {}
    length = file.simulate.duration if duration is None else duration
    return Scenario(
        name=file.name, seed=file.seed, duration=DURATION.format(length), jobs=listed, **tables(file, model), **with_qos
    )


def isolated_s(file: TestbedFile, model: HostModel, measured_s: Mapping[str, float]) -> dict[str, float]:
    """The simulated time per iteration of each job by itself, s, over as long as some measured iterations take."""
    times_of_jobs = {}
    for job in file.jobs:
        length = round(_FIT_ITERATIONS * measured_s[job.name] * 1e12)
        simulation = Simulation(scenario(file, model, [job.name], duration=length), threads=1)
        simulation.run_until(length)
        iterations = simulation.work()[job.name]
        while not iterations:
            length *= 2
            simulation.run_until(length)
            iterations = simulation.work()[job.name]
        times = simulation.table("completions")["at_ps"]
        times_of_jobs[job.name] = int(times.to_numpy().max()) * 1e-12 / iterations
    return times_of_jobs


def predicted_w(file: TestbedFile, model: HostModel, levels: Mapping[str, int] | None = None) -> dict[str, list[float]]:
    """W of each job when all run together, by replicate: each has random starts of its own.

    Programs are the same in all of them, as the scripts that ranks of the real network execute: with another seed a job
    would divide its computation among its ranks in another way.
    """
    names = [job.name for job in file.jobs]
    w_of_jobs: dict[str, list[float]] = {name: [] for name in names}
    for replicate in range(file.simulate.replicates):
        draw = stream(file.seed, Purpose.SNAPSHOT, replicate)
        starts = {name: int(draw.integers(1, STARTS_PS)) for name in names}
        scenario_of = scenario(file, model, names, levels=levels, starts=starts)
        for name, w in run(scenario_of, threads=1).tables()["jobs"].select("name", "w").iter_rows():
            w_of_jobs[name].append(float("nan") if w is None else w)
    return w_of_jobs
