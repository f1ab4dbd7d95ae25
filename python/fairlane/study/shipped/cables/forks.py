"""Forks of one simulation, with and without a failure, and the jobs compared after it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import polars as pl

from fairlane.core import bridge
from fairlane.core.drive import Engine
from fairlane.core.tables import PS, Work
from fairlane.model.scenario import Resolved, Scenario
from fairlane.results.latency import Latency, summarize
from fairlane.results.milestones import Milestones, milestones
from fairlane.study.tasks.task import Stopwatch


@dataclass(frozen=True)
class State:
    """Work of the jobs in a simulation so far."""

    milestones: Mapping[int, Milestones]
    latency: Latency
    failed: Mapping[int, int]
    """Times at which jobs failed, ps."""

    @classmethod
    def of(cls, engine: Engine, resolved: Resolved) -> Self:
        """The state of an engine."""
        work = Work.of(engine)
        reached = milestones(work, [job.start for job in resolved.jobs])
        return cls(reached, Latency.measured(engine), dict(work.failures.select("job", "time").iter_rows()))


class Trunk:
    """A simulation up to the failure, from which all of its forks start, and the fork in which nothing fails."""

    def __init__(self, scenario: Scenario, at: int, watch: Stopwatch) -> None:
        """Simulates up to ``at``, ps, and from there the unbroken fork. Raises ``RunError``."""
        with watch.lap("set-up"):
            self.resolved = scenario.resolve()
            self._engine = self.resolved.engine()
        with watch.lap("before the failure"):
            watch.advance(self._engine, at, scenario.duration)
            self.now = self._engine.now
            self.before = State.of(self._engine, self.resolved)
        with watch.lap("unbroken"):
            unbroken = self.fork()
            watch.advance(unbroken, scenario.duration, scenario.duration)
            self.unbroken = State.of(unbroken, self.resolved)
            self.digest = unbroken.digest()

    def fork(self) -> bridge.Simulation:
        """A simulation that continues from the failure."""
        return self._engine.fork()


def jobs_of(trunk: Trunk, broken: State) -> list[dict[str, Any]]:
    """Compare each job after the failure with the unbroken fork; background jobs are left out."""
    rows = []
    for number, job in enumerate(trunk.resolved.jobs):
        if job.background:
            continue
        failed = broken.failed.get(number)
        row: dict[str, Any] = {"name": job.name, "measure": "iteration" if job.iterates else "message"}
        row |= {"failed": failed is not None and number not in trunk.before.failed, "failed_at_ps": failed}
        if job.iterates:
            row |= of_iterations(trunk.unbroken.milestones[number], broken.milestones[number], trunk.now)
        else:
            row |= _of_messages(number, trunk.before, trunk.unbroken, broken)
        if failed is not None:
            row |= {"stalled": False, "broken_s": None, "slowdown": None}
        rows.append(row)
    return rows


def of_iterations(unbroken: Milestones, broken: Milestones, begin: int) -> dict[str, Any]:
    """The time per iteration from the failure to the last iteration that both forks completed.

    Of the iteration that is under way at the failure, only what is left of it counts.

    ``stalled``: the job completed none after the failure, but does in the unbroken fork. Where its program ends in both
    forks, all of the rest counts.
    """
    origin = max(0, begin - unbroken.start)
    stride = max(unbroken.stride, broken.stride)
    count = min(of.stride * len(of.times) for of in (unbroken, broken)) // stride
    first, last = unbroken.stride * sum(time <= origin for time in unbroken.times), count * stride
    times = [of.times[last // of.stride - 1] if count else 0 for of in (unbroken, broken)]
    if unbroken.ended is not None and broken.ended is not None:
        times, last = [unbroken.ended, broken.ended], max(first + 1, unbroken.iterations)
    done = unbroken.ended is not None and unbroken.ended <= origin
    if done or times[0] <= origin:
        known = len(unbroken.times) * unbroken.stride > first and not done
        return {"count": 0, "unbroken_s": None, "broken_s": None, "slowdown": None, "stalled": known}
    spans = [time - origin for time in times]
    each = [span * PS / (last - first - _under_way(unbroken, first, origin)) for span in spans]
    return {
        "count": last - first,
        "unbroken_s": each[0],
        "broken_s": each[1],
        "slowdown": spans[1] / spans[0],
        "stalled": False,
    }


def _under_way(unbroken: Milestones, first: int, origin: int) -> float:
    """Return the part of the iterations after ``first`` done at ``origin``, the failure: before that, forks are one.

    As a part of the time that the iteration under way takes without the failure.
    """
    done = first // unbroken.stride
    if done < len(unbroken.times):
        begin, end, iterations = unbroken.times[done - 1] if done else 0, unbroken.times[done], unbroken.stride
    else:  # the last one, to the end of the program
        begin, end = unbroken.times[-1] if unbroken.times else 0, unbroken.ended or origin
        iterations = max(1, unbroken.iterations - first)
    return iterations * (origin - begin) / (end - begin) if end > begin else 0.0


def _of_messages(job: int, before: State, unbroken: State, broken: State) -> dict[str, Any]:
    """The mean latency of the messages that were delivered after the failure."""
    whole, rest = (_mean(state.latency.since(before.latency), job) for state in (unbroken, broken))
    return {
        "count": rest[0],
        "unbroken_s": whole[1],
        "broken_s": rest[1],
        "slowdown": rest[1] / whole[1] if whole[1] and rest[1] is not None else None,
        "stalled": whole[0] > 0 and not rest[0],
    }


def _mean(latency: Latency, job: int) -> tuple[int, float | None]:
    """Return the number of delivered messages of a job, and their mean latency, s."""
    of_job = (pl.col("job") == job) & (pl.col("of") == "message")
    rows = summarize(latency.exact.filter(of_job), latency.histogram.filter(of_job), ("of",)).to_dicts()
    return (rows[0]["count"], rows[0]["mean"] * PS) if rows and rows[0]["count"] else (0, None)
