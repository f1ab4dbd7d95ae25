"""Packet-level simulations of how fast jobs are: all jobs of a snapshot co-running, one isolated, one at its best.

A job's *best* hosts are a compact allocation on the empty machine, as ``pattern`` gives one for many-to-many traffic.
There its compute time is set, by ``compute_share``, and stays the same wherever else the job runs: an allocation only
changes communication. An *iteration time* is that of the job's slowest rank from mark to mark, because slowdowns
compare throughput, as W does: what is not timed takes time, too. Jobs begin at random instants, so that they are not in
phase.

Random snapshots to fit a model to are machines on which jobs have started and ended, under a random allocator.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy

from fairlane.core.drive import Slice, drive
from fairlane.core.seeds import Purpose, stream
from fairlane.core.tables import Iterations
from fairlane.learn.models import Floats
from fairlane.learn.scheduler.log import PatternMix
from fairlane.model.fabric.graph import columns
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import observe, program_of
from fairlane.model.placement import PLACEMENTS, Communication, PlacementPolicy, Request
from fairlane.model.placement.grid import sides_of
from fairlane.model.scenario.models import Job
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.task import Answer, Stopwatch, Task

if TYPE_CHECKING:
    from fairlane.model.fabric.table import FabricTable
    from fairlane.model.scenario import Scenario

_ARRIVALS = 40
"""Jobs that have arrived before the snapshot is taken."""
_STAY = 0.35
"""Probability that a job which finds no hosts is rejected, instead of ending another one."""
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
    """Simulates jobs of a mix on a fabric. An executor performs each simulation once, and keeps it."""

    def __init__(self, fabric: "FabricTable", mix: PatternMix, seed: int = 1, executor: Executor | None = None) -> None:
        self._table, self._seed = fabric, seed
        self._executor = executor or Executor(Threads(1), attempts=1, first_failure_ends=True)
        self.mix = mix
        """The patterns; all have a workload."""
        self._best: dict[tuple[int, int], Best] = {}

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric."""
        return Fabric.build(self._table.spec)

    def measure(self, snapshots: Mapping[int, Sequence[Resident]]) -> dict[int, list[Slowdown]]:
        """Simulate every job of snapshots, by number, co-running and isolated, in parallel.

        Numbers of snapshots seed the instants at which jobs begin. Raises ``RunError`` if a simulation fails.
        """
        self._find_best({(job.pattern, job.ranks) for jobs in snapshots.values() for job in jobs})
        co_runs = {number: self._together(jobs, number) for number, jobs in snapshots.items()}
        isolated = {job: self._isolated(job) for jobs in snapshots.values() for job in jobs}
        times = self._times([*co_runs.values(), *isolated.values()])
        slowdowns: dict[int, list[Slowdown]] = {number: [] for number in snapshots}
        for number, jobs in snapshots.items():
            for job, co_run in zip(jobs, times[co_runs[number].digest], strict=True):
                (alone,) = times[isolated[job].digest]
                best = self.best(job.pattern, job.ranks).iteration_time
                slowdowns[number].append(Slowdown(alone / best, co_run / alone))
        return slowdowns

    def best(self, pattern: int, ranks: int) -> Best:
        """A job of a pattern and size at its best."""
        if (pattern, ranks) not in self._best:
            self._find_best([(pattern, ranks)])
        return self._best[pattern, ranks]

    def _find_best(self, sizes: Iterable[tuple[int, int]]) -> None:
        """Finds jobs of some patterns and sizes at their best: first the compute times, then the iteration times."""
        new = [key for key in sorted(sizes) if key not in self._best]
        jobs = [Resident(pattern, self._compact(ranks)) for pattern, ranks in new]
        calibrations = [self._task("fairlane.study.pinned:calibrate", [job], None, [0]) for job in jobs]
        answers = self._executor.run(calibrations)
        computes = [answers[task.digest]["compute"][0] for task in calibrations]
        tasks = [self._iterations([job], [compute], [0]) for job, compute in zip(jobs, computes, strict=True)]
        times = self._times(tasks)
        for key, job, compute, task in zip(new, jobs, computes, tasks, strict=True):
            self._best[key] = Best(job.hosts, compute, times[task.digest][0], self._traffic(*key))

    def _times(self, tasks: Sequence[Task]) -> dict[str, list[float]]:
        """Perform tasks: the iteration time of each job, s, by the digest of its task."""
        answers = self._executor.run(tasks)
        return {task.digest: answers[task.digest]["times"] for task in tasks}

    def _compact(self, ranks: int) -> tuple[int, ...]:
        request = Request(ranks, stream(self._seed, Purpose.PLACEMENT), lambda: Communication("many-to-many"))
        policy = PLACEMENTS["pattern"].model_validate({"wait": False})
        hosts = policy.allocate(range(self.fabric.hosts), request, self.fabric)
        assert hosts is not None, "the empty machine has room for a job that is not larger"
        return tuple(hosts)

    def _traffic(self, pattern: int, ranks: int) -> Floats:
        job = Job(ranks=ranks, workload=self.mix.workload(pattern))
        total = observe(program_of(job.source, ranks, self._seed)).total
        traffic: Floats = total / self.mix.workload(pattern).distinct_iterations
        return traffic

    def _together(self, snapshot: Sequence[Resident], number: int) -> Task:
        best = [self.best(job.pattern, job.ranks) for job in snapshot]
        shares = stream(self._seed, Purpose.SNAPSHOT, number, 1).random(len(best))
        starts = [
            int(share * best_of_job.iteration_time * 1e12) for share, best_of_job in zip(shares, best, strict=True)
        ]
        return self._iterations(snapshot, [best_of_job.compute for best_of_job in best], starts)

    def _isolated(self, job: Resident) -> Task:
        return self._iterations([job], [self.best(job.pattern, job.ranks).compute], [0])

    def _iterations(self, snapshot: Sequence[Resident], computes: Sequence[int], starts: Sequence[int]) -> Task:
        """Return the task that measures the iteration time of each job, with all of them on the machine."""
        window = max(10**8, *(2 * compute for compute in computes))
        return self._task(f"{__name__}:iteration_times", snapshot, computes, starts, {"window": window})

    def _task(
        self,
        function: str,
        snapshot: Sequence[Resident],
        computes: Sequence[int] | None,
        starts: Sequence[int],
        arguments: Mapping[str, Any] | None = None,
    ) -> Task:
        jobs = []
        for at, (job, start) in enumerate(zip(snapshot, starts, strict=True)):
            workload = dict(self._workloads[job.pattern])
            if computes is not None:
                workload = {**workload, "compute": f"{computes[at]} ps"}
                workload.pop("compute_share", None)
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
        fabric = self._table.model_dump(mode="json", exclude_none=True)
        scenario = {"fabric": fabric, "jobs": jobs, "seed": self._seed, "duration": "1 s"}
        ranks = [job.ranks for job in snapshot]
        label = f"jobs of {', '.join(map(str, ranks))} ranks"
        return Task(function, scenario, ".", label, arguments or {}, float(sum(ranks)))

    @cached_property
    def _workloads(self) -> list[dict[str, Any]]:
        patterns = range(len(self.mix.pattern))
        tables = [Job(ranks=2, workload=self.mix.workload(number)) for number in patterns]
        # Some have a compute time by default, which must not stand where it is to be calibrated.
        return [{"compute": None, **table.model_dump(mode="json", exclude_none=True)["workload"]} for table in tables]


def iteration_times(scenario: "Scenario", arguments: Mapping[str, Any], watch: Stopwatch) -> Answer:
    """The iteration time of each job, s."""
    with watch.lap("set-up"):
        engine = scenario.resolve().engine()
    names = [f"job-{at}" for at in range(len(scenario.jobs))]
    with watch.lap("simulating"):
        step = Slice(hops=_BUDGET, window=arguments["window"])
        drive(engine, done=Iterations(names, ITERATIONS, patience=_PATIENCE), every=step, stop=watch.stop)
    ranks = columns(engine.table("ranks"))
    spans = (ranks["last_mark"] - ranks["first_mark"]) / (ranks["iterations"] - 1) * 1e-12
    return {"times": [float(spans[ranks["job"] == job].max()) for job in range(len(names))]}


def allocators(fabric: Fabric) -> list[PlacementPolicy]:
    """The allocators of snapshots: contiguous, in order, in units, at random, by pattern."""
    policies = [
        PLACEMENTS["linear"](),
        PLACEMENTS["random"](),
        PLACEMENTS["pattern"](),
        PLACEMENTS["fragmented"](),
        PLACEMENTS["box"]() if sides_of(fabric) is not None else PLACEMENTS["packed"](),
    ]
    units = [size for size in (4, 8) if fabric.hosts % size == 0]
    policies += [PLACEMENTS["units"].model_validate({"size": size, "order": "random"}) for size in units]
    return policies


def draw_snapshot(fabric: Fabric, mix: PatternMix, seed: int, number: int) -> list[Resident]:
    """The jobs at the end of a random history; their sizes are distributed evenly on a logarithmic scale."""
    rng = stream(seed, Purpose.SNAPSHOT, number, 0)
    choices = allocators(fabric)
    policy = choices[int(rng.integers(len(choices)))]
    jobs: list[Resident] = []
    for _ in range(_ARRIVALS):
        pattern = int(rng.integers(len(mix.pattern)))
        ranks = _size(rng, fabric.hosts // 2)
        hosts = allocated(policy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        while hosts is None and jobs and rng.random() > _STAY:
            jobs.pop(int(rng.integers(len(jobs))))
            hosts = allocated(policy, fabric, mix, jobs, Resident(pattern, tuple(range(ranks))), rng)
        if hosts is not None:
            jobs.append(Resident(pattern, hosts))
    return jobs


def _size(rng: numpy.random.Generator, largest: int) -> int:
    """A power of two with probability 1/2, else any size, log-uniform."""
    exact = 2.0 ** rng.uniform(1, numpy.log2(largest))
    return int(2 ** round(float(numpy.log2(exact)))) if rng.random() < 0.5 else round(exact)


def allocated(
    policy: PlacementPolicy,
    fabric: Fabric,
    mix: PatternMix,
    jobs: Sequence[Resident],
    job: Resident,
    rng: numpy.random.Generator,
) -> tuple[int, ...] | None:
    """The hosts of one more job among the free ones; None if the policy finds none."""
    taken = {host for resident in jobs for host in resident.hosts}
    free = [host for host in range(fabric.hosts) if host not in taken]
    if len(free) < job.ranks:
        return None
    request = Request(job.ranks, rng, lambda: mix.communication(job.pattern))
    hosts = policy.allocate(free, request, fabric)
    return None if hosts is None else tuple(hosts)
