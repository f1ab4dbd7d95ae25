"""Jobs on a fabric: the scenarios of their simulations, the time of their iterations, and each of them at its best.

A job's *best* hosts are a compact allocation on the empty machine, as ``pattern`` gives one for many-to-many traffic.
There its compute time is set, by ``compute_share``, and stays the same wherever else the job runs: an allocation only
changes communication. An *iteration time* is that of the job's slowest rank from mark to mark, because slowdowns
compare throughput, as W does: what is not timed takes time, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.core.drive import Slice, drive
from fairlane.core.seeds import Purpose, stream
from fairlane.core.tables import Iterations
from fairlane.model.fabric.graph import columns
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import observe, program_of
from fairlane.model.placement import PLACEMENTS, Communication, Request
from fairlane.model.scenario import Scenario
from fairlane.model.scenario.models import Job
from fairlane.model.workload.base import Workload
from fairlane.study.tasks.task import Answer, Stopwatch, Task

ITERATIONS = 8
"""Iterations over which the slowest job's time is measured, the first one left out."""
_BUDGET = 1_000_000
_PATIENCE = 400
"""Windows without an iteration after which a simulation is given up; one is twice the longest compute time."""


@dataclass(frozen=True)
class Resident:
    """A job that is on the machine."""

    pattern: int
    """Number of its workload."""
    hosts: tuple[int, ...]
    """Its hosts; rank n lives on host n of these."""

    @property
    def ranks(self) -> int:
        """Number of its ranks: one on each host."""
        return len(self.hosts)


@dataclass(frozen=True)
class Best:
    """A job isolated on its best hosts, with the compute time (ps) and the time (s) of an iteration."""

    hosts: tuple[int, ...]
    compute: int
    iteration_time: float
    traffic: NDArray[numpy.float64]
    """Bytes that each rank (row) sends to each other (column) in an iteration."""


class Bench:
    """A fabric and the workloads of the jobs on it."""

    def __init__(self, fabric: FabricTable, workloads: Sequence[Workload], seed: int = 1) -> None:
        self._table, self._patterns, self.seed = fabric, workloads, seed
        self._best: dict[tuple[int, int], Best] = {}

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric."""
        return Fabric.build(self._table.spec)

    def compact(self, pattern: int, ranks: int) -> Resident:
        """A job on its best hosts."""
        request = Request(ranks, stream(self.seed, Purpose.PLACEMENT), lambda: Communication("many-to-many"))
        policy = PLACEMENTS["pattern"].model_validate({"wait": False})
        hosts = policy.allocate(range(self.fabric.hosts), request, self.fabric)
        assert hosts is not None, "the empty machine has room for a job that is not larger"
        return Resident(pattern, tuple(hosts))

    def best(self, pattern: int, ranks: int) -> Best:
        """A job of a pattern and size at its best; simulates it unless it is known. Raises ``RunError``."""
        if (pattern, ranks) not in self._best:
            self.know(pattern, ranks, simulate(self.scenario([self.compact(pattern, ranks)]), Stopwatch()))
        return self._best[pattern, ranks]

    def know(self, pattern: int, ranks: int, answer: Answer) -> None:
        """Add a job at its best by the ``iteration_times`` of its simulation."""
        (compute,), (time,) = answer["compute"], answer["times"]
        workload = self._patterns[pattern]
        traffic = observe(program_of(workload, ranks, self.seed)).total / workload.distinct_iterations
        self._best[pattern, ranks] = Best(self.compact(pattern, ranks).hosts, compute, time, traffic)

    def scenario(
        self, jobs: Sequence[Resident], computes: Sequence[int] | None = None, starts: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Tables of a scenario with these jobs, their compute times and starts, ps; by default calibrated, from 0."""
        tables = []
        for at, job in enumerate(jobs):
            workload = self._workloads[job.pattern]
            if computes is not None:
                kept = {key: value for key, value in workload.items() if key != "compute_share"}
                workload = {**kept, "compute": f"{computes[at]} ps"}
            tables.append(
                {
                    "name": f"job-{at}",
                    "ranks": job.ranks,
                    "workload": workload,
                    "placement": {"name": "list", "hosts": list(job.hosts)},
                    "start": f"{starts[at] if starts else 0} ps",
                    "stream": 0,
                }
            )
        fabric = self._table.model_dump(mode="json", exclude_none=True)
        return {"fabric": fabric, "jobs": tables, "seed": self.seed, "duration": "1 s"}

    @cached_property
    def _workloads(self) -> list[Mapping[str, Any]]:
        jobs = [Job(ranks=2, workload=workload) for workload in self._patterns]
        tables = [job.model_dump(mode="json", exclude_none=True)["workload"] for job in jobs]
        # Some have a compute time by default, which must not stand where it is to be calibrated.
        return [{"compute": None, **table} for table in tables]


def simulate(scenario: Mapping[str, Any], watch: Stopwatch) -> Answer:
    """The ``iteration_times`` of a scenario's tables."""
    return Task(f"{__name__}:iteration_times", scenario, ".", "").compute(watch)


def iteration_times(scenario: Scenario, _arguments: Mapping[str, Any], watch: Stopwatch) -> Answer:
    """The compute time of each job, ps, and its iteration time, s. Raises ``RunError``."""
    with watch.lap("set-up"):
        resolved = scenario.resolve()
        computes = [job.compute for job in resolved.jobs]
        engine = resolved.engine()
    with watch.lap("simulating"):
        window = max(10**8, *(2 * (compute or 0) for compute in computes))
        step = Slice(hops=_BUDGET, window=window)
        names = [job.name for job in resolved.jobs]
        drive(engine, done=Iterations(names, ITERATIONS, patience=_PATIENCE), every=step, stop=watch.stop)
    ranks = columns(engine.table("ranks"))
    spans = (ranks["last_mark"] - ranks["first_mark"]) / (ranks["iterations"] - 1) * 1e-12
    times = [float(spans[ranks["job"] == job].max()) for job in range(len(names))]
    return {"compute": computes, "times": times}
