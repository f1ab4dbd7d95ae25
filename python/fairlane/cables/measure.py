"""Failures on seeds: a fork of the simulation of all jobs, compared with the fork in which nothing fails."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

import polars as pl

from fairlane.cables.plan import Part, Plan
from fairlane.core import bridge
from fairlane.core.tables import PS, Work, frame, totals
from fairlane.errors import RunError
from fairlane.results import derive
from fairlane.results.latency import Latency, summarize
from fairlane.results.milestones import Milestones, milestones
from fairlane.scenario import Resolved
from fairlane.tasks.task import Answer, Stopwatch, digest_of

MOST_TRUNKS = 2
"""Seeds whose beginnings are kept: tasks of one seed may still start when those of the next one do."""


@dataclass(frozen=True)
class State:
    """Work of the jobs in a simulation so far."""

    milestones: Mapping[int, Milestones]
    latency: Latency
    failed: Mapping[int, int]
    """Times at which jobs failed, ps."""

    @classmethod
    def of(cls, engine: bridge.Simulation, resolved: Resolved) -> "State":
        """The state of an engine."""
        work = Work.of(engine)
        reached = milestones(work, [job.start for job in resolved.jobs])
        return cls(reached, Latency.measured(engine), dict(work.failures.select("job", "time").iter_rows()))


class Trunk:
    """A seed's simulation up to the failure, from which all of its forks start, and the fork in which nothing fails."""

    def __init__(self, plan: Plan, seed: int, watch: Stopwatch) -> None:
        with watch.lap("set-up"):
            self.resolved = plan.of(seed).resolve()
            self._engine = self.resolved.engine()
        with watch.lap("before the failure"):
            watch.advance(self._engine, plan.at, plan.duration)
            self.now = self._engine.now
            self.before = State.of(self._engine, self.resolved)
        with watch.lap("unbroken"):
            unbroken = self.fork()
            watch.advance(unbroken, plan.duration, plan.duration)
            self.unbroken = State.of(unbroken, self.resolved)
            self.digest = unbroken.digest()

    def fork(self) -> bridge.Simulation:
        """A simulation that continues from the failure."""
        return self._engine.fork()


class Trunks:
    """The trunk of each seed, simulated by the first task that needs it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = Lock()
        self._locks: OrderedDict[int, Lock] = OrderedDict()
        self._known: dict[int, Trunk] = {}

    def of(self, seed: int, watch: Stopwatch) -> Trunk:
        """The trunk of a seed; others wait while it is simulated. Raises ``RunError``."""
        with self._lock:
            lock = self._locks.setdefault(seed, Lock())
            while len(self._locks) > MOST_TRUNKS:
                self._known.pop(self._locks.popitem(last=False)[0], None)
        with lock:
            found = self._known.get(seed)
            if found is None:
                found = Trunk(self._plan, seed, watch)
                with self._lock:
                    if seed in self._locks:  # else others have taken its place meanwhile
                        self._known[seed] = found
            return found


@dataclass(frozen=True)
class Failure:
    """The task that lets a part of the fabric fail, on one seed."""

    plan: Plan
    trunks: Trunks
    part: Part
    seed: int

    @property
    def label(self) -> str:
        """A name for people."""
        return f"{self.part.name}, seed {self.seed}"

    @property
    def cost(self) -> float:
        """All take about as long."""
        return 1.0

    @property
    def digest(self) -> str:
        """The same for those that have the same answer, in one survey."""
        return digest_of([self.part.kind, self.part.names, self.seed])

    @property
    def description(self) -> Mapping[str, Any]:
        """Its scenario, with the failure."""
        scenario = self.plan.of(self.seed).model_dump(mode="json", exclude_defaults=True, exclude_none=True)
        key = "switch" if self.part.kind == "switch_down" else "link"
        faults = [{"kind": self.part.kind, key: name, "at": f"{self.plan.at} ps"} for name in self.part.names]
        return {**scenario, "fault": [*scenario.get("fault", []), *faults]}

    def compute(self, watch: Stopwatch) -> Answer:
        """Simulates the fork with the failure. Raises ``RunError`` if the unbroken one cannot continue."""
        plan, trunk = self.plan, self.trunks.of(self.seed, watch)
        engine, error = trunk.fork(), None
        for fault in self.part.faults(trunk.now):
            engine.add_fault(fault)
        with watch.lap("simulating"):
            try:
                watch.advance(engine, plan.duration, plan.duration)
            except RunError as raised:
                if raised.slug == "stopped":
                    raise
                error = str(raised)
        sweeps = derive.sweeps(frame(engine.table("sweeps"))).filter(pl.col("time_ps") >= trunk.now)
        last = sweeps.row(-1, named=True) if sweeps.height else {}
        carried = totals(engine)
        return {
            "error": error,
            **{name: carried[name] for name in ("packets_lost", "packets_retransmitted", "packets_given_up")},
            **{name: last.get(name) for name in ("routing", "reason", "hosts_cut_off", "cut_off")},
            "digest": engine.digest(),
            "unbroken_digest": trunk.digest,
            "jobs": [] if error else jobs_of(trunk, State.of(engine, trunk.resolved)),
        }


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
    whole, found = (_mean(state.latency.since(before.latency), job) for state in (unbroken, broken))
    return {
        "count": found[0],
        "unbroken_s": whole[1],
        "broken_s": found[1],
        "slowdown": found[1] / whole[1] if whole[1] and found[1] is not None else None,
        "stalled": whole[0] > 0 and not found[0],
    }


def _mean(latency: Latency, job: int) -> tuple[int, float | None]:
    """Return the number of delivered messages of a job, and their mean latency, s."""
    own = (pl.col("job") == job) & (pl.col("of") == "message")
    rows = summarize(latency.exact.filter(own), latency.histogram.filter(own), ("of",)).to_dicts()
    return (rows[0]["count"], rows[0]["mean"] * PS) if rows and rows[0]["count"] else (0, None)
