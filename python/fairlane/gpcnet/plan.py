"""The network tests of GPCNeT's ``network_load_test``, its congestors, and how hosts are divided among them.

Taylor Groves, Sudheer Chunduri, Pete Mendygral et al.: GPCNeT: Designing a benchmark suite for inducing and measuring
contention in HPC networks, SC '19. Message sizes, names and units are those of version 1.3 of the benchmark.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.core.tables import PS
from fairlane.errors import BuildError, Problem, ScenarioError
from fairlane.fabric.view import Fabric
from fairlane.inputs.parameters import entries
from fairlane.inputs.problems import Problems, validated
from fairlane.scenario import Scenario
from fairlane.scenario.network import Transport
from fairlane.scenario.resolve import building
from fairlane.tasks.pools import affordable
from fairlane.units import DURATION, SIZE
from fairlane.workload.base import KIB

CONGESTORS = ("all_to_all", "incast", "put_incast", "get_broadcast")
"""The patterns that run at the same time, on equal shares of the congestors' hosts."""
FEWEST_HOSTS = 2 + 2 * len(CONGESTORS)
"""Two hosts of the network test, and two of each congestor."""
ROUNDS = 512
"""Rounds of a congestor between two barriers."""
_FOR_TEST = 5  # one host in five has the network test
_WINDOW, _BANDWIDTH_SIZE = 8, 128 * KIB


@dataclass(frozen=True)
class NetworkTest:
    """A network test."""

    name: str
    """Name in the tables of results."""
    title: str
    """Name in the benchmark's own table."""
    unit: str
    """Unit in that table."""
    workload: Mapping[str, Any] = field(hash=False)
    """The workload without its communicators."""
    part: int = 1
    """It has one iteration where the test of latency has so many."""
    messages: int = 1
    """Messages of an iteration, over which its time is divided."""
    bytes: int | None = None
    """Bytes that a rank sends in an iteration, for a bandwidth; None if times are what is measured."""

    def iterations(self, of_latency: int) -> int:
        """Return the number of measured iterations."""
        return max(1, of_latency // self.part)

    def measured(self, times: NDArray[numpy.int64]) -> tuple[float, float]:
        """Mean and 99th percentile of what is measured, from the time of each iteration of each rank, ps.

        A bandwidth is bytes over the mean time; at most one iteration in a hundred is slower than its 99th percentile.
        """
        mean, worst = float(times.mean()), float(numpy.quantile(times, 0.99))
        if self.bytes is None:
            return mean * PS * 1e6 / self.messages, worst * PS * 1e6 / self.messages
        return self.bytes / (mean * PS) / 2**20, self.bytes / (worst * PS) / 2**20

    def impact(self, isolated: float, congested: float) -> float:
        """The congestion impact factor: how many times worse it is with congestion."""
        return congested / isolated if self.bytes is None else isolated / congested


_BANDWIDTH = {"message_size": f"{_BANDWIDTH_SIZE} B", "messages_per_iteration": _WINDOW, "barrier": True}
TESTS: Mapping[str, NetworkTest] = {
    test.name: test
    for test in (
        NetworkTest("latency", "RR Two-sided Lat (8 B)", "usec", {"name": "random_ring"}, messages=2),
        NetworkTest(
            "bandwidth",
            f"RR Two-sided BW+Sync ({_BANDWIDTH_SIZE} B)",
            "MiB/s/rank",
            {"name": "random_ring", **_BANDWIDTH},
            part=25,
            bytes=2 * _WINDOW * _BANDWIDTH_SIZE,
        ),
        NetworkTest("allreduce", "Multiple Allreduce (8 B)", "usec", {"name": "multiple_allreduce"}),
    )
}
"""The network tests by name, in the order of the benchmark's table."""


def divided(hosts: int) -> tuple[int, Sequence[int]]:
    """Hosts of the network test, and those of each congestor: one in five, rounded up, and equal shares of the rest."""
    tested = -(-hosts // _FOR_TEST)
    share, left = divmod(hosts - tested, len(CONGESTORS))
    return tested, [share + (number < left) for number in range(len(CONGESTORS))]


TESTED = "test"
"""Name of the job that is measured."""
_COUNTS = ("ranks_per_host", "replicates", "iterations", "window")  # options of 1 or more
_KEPT = ("name", "memory", "fabric", "network", "qos", "mpi")  # tables of the scenario that are used


@dataclass(frozen=True)
class Options:
    """Options of the benchmark."""

    transports: Sequence[str] = ()
    """Names of transports; none for all that work on the fabric with their default parameters."""
    ranks_per_host: int = 8
    replicates: int = 5
    """Number of random assignments of hosts."""
    iterations: int = 200
    """Measured iterations of latency and allreduce; bandwidth has a 25th of them."""
    message_size: str = "4 KiB"
    """Message size of the congestors."""
    window: int = 16
    """Messages of the incast that a rank has under way."""
    warm_up: str = "200 us"
    """Time for which congestors run before the network test begins."""
    duration: str = "200 ms"
    """Simulated time after which a network test ends, whatever its number of iterations."""


@dataclass(frozen=True)
class Plan:
    """A scenario with its jobs replaced, and what is simulated of it."""

    scenario: Scenario
    """Fabric, network and seed; its jobs are not used."""
    transports: Mapping[str, Transport]
    """The transports by name."""
    seeds: Sequence[int]
    """Seeds of the replicates: each assigns hosts at random."""
    ranks_per_host: int
    iterations: int
    message_size: int
    window: int
    warm_up: int
    """ps."""
    duration: int
    """ps."""
    hosts: int
    """Hosts of the fabric."""
    left_out: Mapping[str, str]
    """Transports that do not work on the fabric, with the reason; none if transports were named."""

    def at(self, transport: str, test: NetworkTest, seed: int) -> Scenario:
        """The scenario of a network test with all congestors."""
        tested, shares = divided(self.hosts)
        ranks = self.ranks_per_host
        workload = {**test.workload, "communicators": ranks}
        # The first iteration is not measured: it begins when the job does.
        time = {"start": DURATION.format(self.warm_up), "stop": test.iterations(self.iterations) + 1}
        jobs: list[dict[str, Any]] = [{"name": TESTED, "ranks": tested * ranks, "workload": workload, **time}]
        for pattern, hosts in zip(CONGESTORS, shares, strict=True):
            congestor = {"name": "congestor", "pattern": pattern, "communicators": ranks, "window": self.window}
            congestor |= {"message_size": f"{self.message_size} B", "messages_per_iteration": ROUNDS}
            jobs.append({"name": pattern, "ranks": hosts * ranks, "workload": congestor})
        kept = {name: getattr(self.scenario, name) for name in _KEPT}
        network = self.scenario.network.model_copy(update={"transport": self.transports[transport]})
        tables = {**kept, "network": network, "seed": seed, "duration": DURATION.format(self.duration), "jobs": jobs}
        placement = {"name": "random", "ranks_per_host": ranks}
        return Scenario(**tables, placement=placement, observe={"iterations": [TESTED]})

    @cached_property
    def workers(self) -> int:
        """Return the number of simulations for which there are cores and memory, by the estimate of the first one."""
        first = next(iter(self.transports))
        estimate = self.at(first, TESTS["latency"], self.seeds[0]).resolve().estimate
        return affordable(estimate.memory if estimate else 0.0, self.scenario.memory)

    def described(self) -> Mapping[str, Any]:
        """Settings that the results depend on besides transport, network test and seed."""
        used = self.scenario.model_dump(mode="json", exclude_defaults=True, include={*_KEPT})
        return {
            "scenario": used,
            "ranks_per_host": self.ranks_per_host,
            "iterations": self.iterations,
            "message_size": self.message_size,
            "window": self.window,
            "warm_up_ps": self.warm_up,
            "duration_ps": self.duration,
        }


def prepared(scenario: Scenario, options: Options) -> Plan:
    """The plan for a scenario. Raises ``ScenarioError``, also for a transport that does not work on its fabric."""
    counts = {f"--{name.replace('_', '-')}": getattr(options, name) for name in _COUNTS}
    if wrong := [Problem(name, "out of range", value, "1 or more") for name, value in counts.items() if value < 1]:
        raise ScenarioError(wrong)
    if scenario.background is not None:
        raise ScenarioError(Problem("background", "the benchmark has jobs of its own on all hosts", allowed="none"))
    try:
        hosts = building(lambda: Fabric.build(scenario.fabric.spec)).hosts
    except Problems as problems:
        raise scenario.error(problems) from None
    if hosts < FEWEST_HOSTS:
        words = "too few hosts for a network test and four congestors"
        raise ScenarioError(Problem("fabric", words, f"{hosts} hosts", f"{FEWEST_HOSTS} hosts or more"))
    warm_up, duration = (_time(f"--{name}", given) for name, given in _times(options))
    if warm_up >= duration:
        allowed = f"below {DURATION.format(duration)}"
        raise ScenarioError(Problem("--warm-up", "nothing is left to measure", options.warm_up, allowed))
    transports, left_out = _transports(scenario, options.transports)
    plan = Plan(
        scenario,
        transports,
        [scenario.seed + number for number in range(options.replicates)],
        options.ranks_per_host,
        options.iterations,
        _size(options.message_size),
        options.window,
        warm_up,
        duration,
        hosts,
        left_out,
    )
    return _working(plan, named=bool(options.transports))


def _times(options: Options) -> Iterable[tuple[str, str]]:
    return (("warm-up", options.warm_up), ("duration", options.duration))


def _time(option: str, given: str) -> int:
    try:
        return DURATION.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem(option, str(error), given)) from None


def _size(given: str) -> int:
    try:
        return SIZE.parse(given)
    except ValueError as error:
        raise ScenarioError(Problem("--message-size", str(error), given)) from None


def _transports(scenario: Scenario, names: Sequence[str]) -> tuple[dict[str, Transport], dict[str, str]]:
    """The transports of these names, or all, and those without usable defaults with the reason.

    That of the scenario has the scenario's parameters. Raises ``ScenarioError`` for one that is named.
    """
    known = list(entries("transport"))
    own = scenario.network.transport
    found, left_out = {}, {}
    for name in names or known:
        if name not in known:
            raise ScenarioError(Problem.unknown("--transport", "name", name, known, name))
        try:
            found[name] = own if name == own.name else validated(Transport, {"name": name})
        except Problems as problems:
            if names:
                raise ScenarioError(problem.under("network.transport") for problem in problems.problems) from None
            left_out[name] = str(problems)
    return found, left_out


def _working(plan: Plan, *, named: bool) -> Plan:
    """The plan with the transports with which a simulation can be built. Raises ``ScenarioError`` if one is named."""
    working, left_out = {}, dict(plan.left_out)
    for name, transport in plan.transports.items():
        try:
            plan.at(name, TESTS["latency"], plan.seeds[0]).resolve().engine()
        except (ScenarioError, BuildError) as error:
            if named or name == plan.scenario.network.transport.name:
                raise
            left_out[name] = str(error)
        else:
            working[name] = transport
    return replace(plan, transports=working, left_out=left_out)
