"""Snapshots of machines: all jobs of a snapshot co-running, each of them isolated on its hosts, and at its best.

Jobs that co-run begin at random instants, so that they are not in phase; the bench's seed and the snapshot's number
seed these instants.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from typing_extensions import override

from fairlane.core.seeds import Purpose, stream
from fairlane.model.scenario import Scenario
from fairlane.study.shipped.base import MeasuredStudy, Measurement, Row
from fairlane.study.shipped.slowdowns.bench import Bench, Best, Resident, simulate
from fairlane.study.tasks.executor import Executor
from fairlane.study.tasks.pools import Threads
from fairlane.study.tasks.task import Answer, Stopwatch, Task, digest_of, read

Machine = tuple[Bench, Mapping[int, Sequence[Resident]]]
"""A fabric, and the jobs of each snapshot of it by its number."""


@dataclass(frozen=True)
class Slowdown:
    """The simulated slowdown of a job of a snapshot."""

    own: float
    """Its iteration time isolated, over that on its best hosts."""
    neighbours: float
    """Its iteration time co-running, over that isolated."""


@dataclass(frozen=True)
class Simulation(Measurement):
    """A simulation of jobs; plans with the same jobs share its answer."""

    @cached_property
    @override
    def digest(self) -> str:
        return digest_of(self.description)


class Snapshots(MeasuredStudy):
    """Snapshots of jobs on fabrics; the simulations at their best give compute times and starts of the others."""

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self.machines = machines

    @override
    def measurements(self) -> Iterator[Measurement]:
        for fabric, (bench, snapshots) in self.machines.items():
            sizes = {(job.pattern, job.ranks) for jobs in snapshots.values() for job in jobs}
            for pattern, ranks in sorted(sizes):
                condition = {"fabric": fabric, "run": "best", "pattern": pattern, "ranks": ranks}
                yield Simulation(self, condition, bench.seed, ranks)

    @override
    def further(self, rows: Sequence[Row]) -> Iterator[Measurement]:
        for row in rows:
            self.machines[row["fabric"]][0].know(row["pattern"], row["ranks"], row)
        for fabric, (bench, snapshots) in self.machines.items():
            for number, jobs in snapshots.items():
                condition = {"fabric": fabric, "snapshot": number}
                yield Simulation(self, {**condition, "run": "co-run"}, bench.seed, sum(job.ranks for job in jobs))
                for at, job in enumerate(jobs):
                    yield Simulation(self, {**condition, "run": "isolated", "job": at}, bench.seed, job.ranks)

    @override
    def written(self, condition: Mapping[str, Any], seed: int) -> dict[str, Any]:
        bench, snapshots = self.machines[condition["fabric"]]
        if condition["run"] == "best":
            return bench.scenario([bench.compact(condition["pattern"], condition["ranks"])])
        jobs = snapshots[condition["snapshot"]]
        best = [bench.best(job.pattern, job.ranks) for job in jobs]
        computes = [best_of_job.compute for best_of_job in best]
        if condition["run"] == "isolated":
            at = condition["job"]
            return bench.scenario([jobs[at]], [computes[at]])
        return bench.scenario(jobs, computes, _starts(best, seed, condition["snapshot"]))

    @override
    def at(self, condition: Mapping[str, Any], seed: int) -> Scenario:
        return read(Task("", self.written(condition, seed), ".", ""))

    @override
    def measure(self, condition: Mapping[str, Any], seed: int, watch: Stopwatch) -> Answer:
        return simulate(self.written(condition, seed), watch)

    def slowdowns(self, executor: Executor | None = None) -> dict[str, dict[int, list[Slowdown]]]:
        """Simulate every job, by fabric and snapshot. Raises ``RunError`` if a simulation fails.

        ``executor`` performs the simulations; without one they are kept in memory only.
        """
        executor = executor or Executor(Threads(1), attempts=1, first_failure_ends=True)
        co_runs, isolated = dict[tuple[str, int], list[float]](), dict[tuple[str, int, int], float]()
        for row in self.perform(executor):
            if row["run"] == "co-run":
                co_runs[row["fabric"], row["snapshot"]] = row["times"]
            elif row["run"] == "isolated":
                (isolated[row["fabric"], row["snapshot"], row["job"]],) = row["times"]
        slowdowns: dict[str, dict[int, list[Slowdown]]] = {fabric: {} for fabric in self.machines}
        for (fabric, number), times in co_runs.items():
            bench, snapshots = self.machines[fabric]
            slowdowns[fabric][number] = [
                Slowdown(alone / bench.best(job.pattern, job.ranks).iteration_time, time / alone)
                for at, (job, time) in enumerate(zip(snapshots[number], times, strict=True))
                for alone in [isolated[fabric, number, at]]
            ]
        return slowdowns


def _starts(best: Sequence[Best], seed: int, number: int) -> list[int]:
    """Random instants within an iteration of each job, ps."""
    shares = stream(seed, Purpose.SNAPSHOT, number, 1).random(len(best))
    return [int(share * best_of_job.iteration_time * 1e12) for share, best_of_job in zip(shares, best, strict=True)]
