"""Packet-level simulations of how fast jobs are: all jobs of a snapshot co-running, one isolated, one at its best.

A job's *best* hosts are a compact allocation on the empty machine, as ``pattern`` gives one for many-to-many traffic.
There its compute time is set, by ``compute_share``, and stays the same wherever else the job runs: an allocation only
changes communication. An *iteration time* is that of the job's slowest rank; jobs begin at random instants, so that
they are not in phase.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from fairlane.engine import Iterations, Slice, drive
from fairlane.fabric import Fabric, columns
from fairlane.models import Floats
from fairlane.placement import STRATEGIES, Communication, Request
from fairlane.scheduler.mix import PatternMix
from fairlane.seeds import Purpose, stream

if TYPE_CHECKING:
    from fairlane import Scenario
    from fairlane.fabric.table import FabricTable

__all__ = ["Bench", "Best", "Resident", "Slowdown"]

ITERATIONS = 8
"""Iterations over which the slowest job's time is measured, the first one left out."""
_BUDGET = 1_000_000
_PATIENCE = 400
"""Windows without an iteration after which a simulation is given up; a window is at least the longest best one."""


@dataclass(frozen=True)
class Resident:
    """A job that is on the machine."""

    pattern: int
    """Its pattern: a number in the mix."""
    hosts: tuple[int, ...]
    """Where it is; rank n lives on host n of these."""

    @property
    def ranks(self) -> int:
        """How many ranks it has: one on each host."""
        return len(self.hosts)


@dataclass(frozen=True)
class Best:
    """A job of some pattern and size on its best hosts, alone."""

    hosts: tuple[int, ...]
    """Where that is."""
    compute: int
    """Compute time of an iteration, ps."""
    iteration_time: float
    """Time of an iteration, s."""
    traffic: Floats
    """Bytes that each rank (row) sends to each other (column) in an iteration."""


@dataclass(frozen=True)
class Slowdown:
    """The simulated slowdown of a job of a snapshot."""

    own: float
    """Its iteration time isolated, over that on its best hosts."""
    neighbours: float
    """Its iteration time co-running, over that isolated."""


class Bench:
    """Simulates jobs of a mix on a fabric; results are kept."""

    def __init__(self, fabric: "FabricTable", mix: PatternMix, seed: int = 1) -> None:
        self._table, self._seed = fabric, seed
        self.mix = mix
        """The patterns; all have a workload."""
        self._best: dict[tuple[int, int], Best] = {}
        self._isolated: dict[tuple[int, tuple[int, ...]], float] = {}

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric."""
        return Fabric.build(self._table.spec)

    def best(self, pattern: int, ranks: int) -> Best:
        """A job of a pattern and size at its best."""
        key = (pattern, ranks)
        if key not in self._best:
            hosts = self._compact(ranks)
            compute = self._calibrated(pattern, hosts)
            isolated = self._iteration_times([Resident(pattern, hosts)], [compute], [0])[0]
            self._best[key] = Best(hosts, compute, isolated, self._traffic(pattern, ranks))
        return self._best[key]

    def measure(self, snapshot: Sequence[Resident], number: int) -> list[Slowdown]:
        """Every job of a snapshot, co-running and isolated; ``number`` seeds the instants at which they begin."""
        best = [self.best(job.pattern, job.ranks) for job in snapshot]
        computes = [one.compute for one in best]
        rng = stream(self._seed, Purpose.SNAPSHOT, number, 1)
        starts = [
            int(share * one.iteration_time * 1e12) for share, one in zip(rng.random(len(best)), best, strict=True)
        ]
        together = self._iteration_times(snapshot, computes, starts)
        alone = [self._isolated_time(job, compute) for job, compute in zip(snapshot, computes, strict=True)]
        rows = zip(together, alone, best, strict=True)
        return [Slowdown(one / at_best.iteration_time, beside / one) for beside, one, at_best in rows]

    def _compact(self, ranks: int) -> tuple[int, ...]:
        request = Request(ranks, stream(self._seed, Purpose.PLACEMENT), lambda: Communication("many-to-many"))
        strategy = STRATEGIES["pattern"].model_validate({"wait": False})
        found = strategy.allocate(range(self.fabric.hosts), request, self.fabric)
        assert found is not None, "the empty machine has room for a job that is not larger"
        return tuple(found)

    def _calibrated(self, pattern: int, hosts: tuple[int, ...]) -> int:
        """The compute time, which only the best hosts decide."""
        compute: int | None = self._scenario([Resident(pattern, hosts)], None, [0]).resolve().jobs[0].compute
        assert compute is not None, "a workload has a compute time"
        return compute

    def _traffic(self, pattern: int, ranks: int) -> Floats:
        from fairlane.pattern import observe, program_of
        from fairlane.scenario.models import Job

        job = Job(ranks=ranks, workload=self.mix.workload(pattern))
        total = observe(program_of(job.source, ranks, self._seed)).total
        found: Floats = total / self.mix.workload(pattern).distinct_iterations
        return found

    def _isolated_time(self, job: Resident, compute: int) -> float:
        key = (job.pattern, job.hosts)
        if key not in self._isolated:
            self._isolated[key] = self._iteration_times([job], [compute], [0])[0]
        return self._isolated[key]

    def _iteration_times(
        self, snapshot: Sequence[Resident], computes: Sequence[int], starts: Sequence[int]
    ) -> list[float]:
        """The iteration time of each job, s, with all of them on the machine."""
        engine = self._scenario(snapshot, computes, starts).resolve().engine()
        step = Slice(hops=_BUDGET, window=max(10**8, *(2 * compute for compute in computes)))
        names = [f"job-{at}" for at in range(len(snapshot))]
        drive(engine, done=Iterations(names, ITERATIONS, patience=_PATIENCE), every=step)
        ranks = columns(engine.table("ranks"))
        spans = (ranks["last_mark"] - ranks["first_mark"]) / (ranks["iterations"] - 1) * 1e-12
        return [float(spans[ranks["job"] == job].max()) for job in range(len(snapshot))]

    def _scenario(
        self, snapshot: Sequence[Resident], computes: Sequence[int] | None, starts: Sequence[int]
    ) -> "Scenario":
        from fairlane import Scenario

        jobs = []
        for at, (job, start) in enumerate(zip(snapshot, starts, strict=True)):
            workload = self.mix.workload(job.pattern)
            if computes is not None:
                workload = workload.model_copy(update={"compute": computes[at], "compute_share": None})
            jobs.append(
                {
                    "name": f"job-{at}",
                    "ranks": job.ranks,
                    "workload": workload,
                    "placement": {"name": "list", "hosts": list(job.hosts)},
                    "start": f"{start} ps",
                    "stream": 0,
                }
            )
        return Scenario(fabric=self._table, jobs=jobs, seed=self._seed, duration="1 s")
