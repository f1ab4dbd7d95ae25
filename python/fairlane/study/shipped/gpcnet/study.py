"""GPCNeT's ``network_load_test``: a network test, isolated or with four congestors, on a random assignment of hosts."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import polars as pl
from pydantic import Field
from typing_extensions import override

from fairlane.core.drive import Engine
from fairlane.core.errors import BuildError, Problem, ScenarioError
from fairlane.core.tables import marks
from fairlane.core.units import DURATION, SIZE, Duration, Size
from fairlane.inputs.parameters import entries
from fairlane.inputs.problems import refusing, validated
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.network import Transport
from fairlane.study.shipped.base import (
    Measurement,
    Options,
    ShippedStudy,
    check_before,
    fabric_of,
    from_options,
    seeds_of,
)
from fairlane.study.shipped.gpcnet.results import TESTS, Gpcnet
from fairlane.study.tasks.task import Answer, Stopwatch

CONGESTORS = ("all_to_all", "incast", "put_incast", "get_broadcast")
"""The patterns that run at the same time, on equal shares of the congestors' hosts."""
FEWEST_HOSTS = 2 + 2 * len(CONGESTORS)
"""Two hosts of the network test, and two of each congestor."""
ROUNDS = 512
"""Rounds of a congestor between two barriers."""
TESTED = "test"
"""Name of the job that is measured, the first one."""
_FOR_TEST = 5  # one host in five has the network test
_KEPT = ("name", "memory", "fabric", "network", "qos", "mpi")  # tables of the scenario that are used


def divided(hosts: int) -> tuple[int, Sequence[int]]:
    """Hosts of the network test, and those of each congestor: one in five, rounded up, and equal shares of the rest."""
    tested = -(-hosts // _FOR_TEST)
    share, left = divmod(hosts - tested, len(CONGESTORS))
    return tested, [share + (number < left) for number in range(len(CONGESTORS))]


class BenchmarkOptions(Options):
    """Options of the benchmark."""

    transports: list[str] = Field(default_factory=list)
    """Names of transports; none for all that work on the fabric with their default parameters."""
    ranks_per_host: int = Field(default=8, ge=1)
    """Ranks on each host."""
    replicates: int = Field(default=5, ge=1)
    """Number of random assignments of hosts."""
    iterations: int = Field(default=200, ge=1)
    """Measured iterations of latency and allreduce; bandwidth has a 25th of them."""
    message_size: Size = SIZE.parse("4 KiB")
    """Message size of the congestors."""
    window: int = Field(default=16, ge=1)
    """Messages of the incast that a rank has under way."""
    warm_up: Duration = DURATION.parse("200 us")
    """Time for which congestors run before the network test begins."""
    duration: Duration = DURATION.parse("200 ms")
    """Simulated time after which a network test ends, whatever its number of iterations."""


class Benchmark(ShippedStudy[Gpcnet]):
    """The network tests on the fabric of a scenario, whose jobs are not used, with each transport."""

    results, noun = Gpcnet, "gpcnet"

    def __init__(self, scenario: Scenario, **options: Any) -> None:
        """Prepares the benchmark with ``BenchmarkOptions``.

        Raises ``ScenarioError``, also for a transport that is named and does not work on the fabric.
        """
        self.scenario = scenario
        self.options = wanted = from_options(BenchmarkOptions, options)
        if scenario.background is not None:
            raise ScenarioError(Problem("background", "the benchmark has jobs of its own on all hosts", allowed="none"))
        self.hosts = fabric_of(scenario, Fabric.build).hosts
        if self.hosts < FEWEST_HOSTS:
            message = "too few hosts for a network test and four congestors"
            raise ScenarioError(Problem("fabric", message, f"{self.hosts} hosts", f"{FEWEST_HOSTS} hosts or more"))
        check_before("--warm-up", wanted.warm_up, wanted.duration)
        self.seeds = seeds_of(scenario, wanted.replicates)
        self.transports: dict[str, Transport] = {}
        self.left_out: dict[str, str] = {}
        """Transports that do not work on the fabric, with the reason; none if transports were named."""
        known, default = list(entries("transport")), scenario.network.transport.name
        for name in wanted.transports or known:
            if name not in known:
                raise ScenarioError(Problem.unknown("--transport", "name", name, known, name))
            try:
                self._try(name)
            except (ScenarioError, BuildError) as error:
                if wanted.transports or name == default:
                    raise
                self.transports.pop(name, None)
                self.left_out[name] = str(error)
        self.remarks = [f"transport {name} is left out: {reason}" for name, reason in self.left_out.items()]

    def _try(self, name: str) -> None:
        """Adds a transport, that of the scenario with its parameters. Raises an error if it does not work."""
        default = self.scenario.network.transport
        with refusing("network.transport"):
            self.transports[name] = default if name == default.name else validated(Transport, {"name": name})
        self.at({"transport": name, "test": "latency"}, self.seeds[0]).resolve().engine()

    @override
    def measurements(self) -> Iterator[Measurement]:
        for transport, test, seed, congested in product(self.transports, TESTS, self.seeds, (False, True)):
            condition = {"transport": transport, "test": test, "congested": congested}
            yield Measurement(self, condition, seed, cost=(10.0 if congested else 1.0) * TESTS[test].part)

    @override
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        """The scenario of a network test with all congestors."""
        tested, shares = divided(self.hosts)
        test, options, ranks = TESTS[condition["test"]], self.options, self.options.ranks_per_host
        workload = {**test.workload, "communicators": ranks}
        # The first iteration is not measured: it begins when the job does.
        time = {"start": DURATION.format(options.warm_up), "stop": test.iterations(options.iterations) + 1}
        jobs = [{"name": TESTED, "ranks": tested * ranks, "workload": workload, **time}]
        for pattern, hosts in zip(CONGESTORS, shares, strict=True):
            congestor = {"name": "congestor", "pattern": pattern, "communicators": ranks, "window": options.window}
            congestor |= {"message_size": f"{options.message_size} B", "messages_per_iteration": ROUNDS}
            jobs.append({"name": pattern, "ranks": hosts * ranks, "workload": congestor})
        kept = {name: getattr(self.scenario, name) for name in _KEPT}
        network = self.scenario.network.model_copy(update={"transport": self.transports[condition["transport"]]})
        tables = {**kept, "network": network, "seed": seed, "duration": DURATION.format(options.duration), "jobs": jobs}
        placement = {"name": "random", "ranks_per_host": ranks}
        return Scenario(**tables, placement=placement, observe={"iterations": [TESTED]})

    @override
    def described(self) -> dict[str, Any]:
        options = self.options
        return {
            "scenario": self.scenario.model_dump(mode="json", exclude_defaults=True, include={*_KEPT}),
            **{name: getattr(options, name) for name in ("ranks_per_host", "iterations", "message_size", "window")},
            "warm_up_ps": options.warm_up,
            "duration_ps": options.duration,
        }

    @override
    def summary(self) -> dict[str, Any]:
        hosts = {"hosts": self.hosts, "hosts_of_test": divided(self.hosts)[0]}
        return {**hosts, "transports": list(self.transports), "left_out": self.left_out}

    @override
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        """Simulates until every rank has its iterations, or the time is over."""
        with watch.lap("set-up"):
            resolved = self.at(condition, seed).resolve()
            engine = (resolved if condition["congested"] else resolved.alone(0)).engine()
        test, duration = TESTS[condition["test"]], self.options.duration
        wanted = test.iterations(self.options.iterations)

        def done(engine: Engine) -> bool:
            least = min(engine.progress()[0])
            watch.reached(min(1.0, least / (wanted + 1)))
            return least > wanted

        with watch.lap("simulating"):
            watch.advance(engine, duration, duration, done)
        least = min(engine.progress()[0])
        measured = (pl.col("job") == 0) & pl.col("iteration").is_between(2, least)
        times = marks(engine).filter(measured).sort("rank", "iteration")["elapsed"].to_numpy()
        mean, worst = test.measured(times) if len(times) else (None, None)
        count = {"iterations": max(0, least - 1), "samples": len(times)}
        return {"mean": mean, "p99": worst, **count, "digest": engine.digest()}
