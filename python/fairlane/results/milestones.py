"""Completed iterations of a job, and comparisons of two runs over the iterations that both of them completed.

A job completes its iteration ``k`` at the instant at which the last of its ranks marks it. Both runs do the same work
in the same iterations, so the times that they take to them compare the runs exactly. With ``k`` the last iteration that
the job completed in both runs, and ``h`` those of the warm-up, which are left out,

    W = (t_isolated(k) - t_isolated(h)) / (t_co-run(k) - t_co-run(h)) - 1.

``statistics`` has the rule by which the warm-up is found, 0 of fewer than 20 iterations. Where the job's program
ends in both runs, all of it counts, and the times are those until its last rank ended. W is then the change of the
job's throughput against the isolated run, and changes as smoothly as the times do. Its interval is that of the ratio of
the times of the same iterations: what one iteration takes more in both runs does not widen it.

An iteration may have a timed part (``Rank.begin_timing``). Then the time per iteration is that of the timed part of its
slowest rank. W stays the change of throughput, of all that a job does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl

from fairlane.core.statistics import Estimate, differences, mean, ratio_change
from fairlane.core.tables import PS, Work

FEW_ITERATIONS = 10
"""W over fewer common iterations than this is flagged: what is particular to the first ones weighs too much."""


@dataclass(frozen=True)
class Milestones:
    """Completed iterations of a job in one run. Times are picoseconds from the job's start."""

    stride: int
    """The times are those of iterations ``stride``, ``2 stride``, ...: 1, or a power of two in very long runs."""
    times: Sequence[int]
    """Times of completion."""
    iterations: int
    """Number of completed iterations."""
    ended: int | None = None
    """Time at which its last rank came to the end of its program; None if not all did."""
    later: Sequence[int] = ()
    """Times of the others of its first two after the end of the simulated time, if it was simulated on."""
    start: int = 0
    """Its beginning, ps after that of the simulation."""
    stop: int | None = None
    """Time at which it is stopped, ps after the beginning of the simulation; None if it is not."""
    until: int = 0
    """Simulated time, without that of ``later``."""
    elapsed: Sequence[int] | None = None
    """Times of the timed parts of these iterations; None without such parts."""
    failed: bool = False
    """Whether it failed because a packet was lost for good. Nothing is compared with such a run."""

    def written(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``written`` has made."""
        return cls(**data)

    def cut(self, until: int) -> Self:
        """Return those of the same run if it had ended earlier, ``until`` ps after the beginning of the simulation."""
        lasted = until - self.start
        times = [time for time in self.times if time <= lasted]
        return replace(
            self,
            times=times,
            iterations=len(times) * self.stride,
            ended=self.ended if self.ended is not None and self.ended <= lasted else None,
            later=(),
            until=min(self.until, max(0, lasted)),
            elapsed=self.elapsed[: len(times)] if self.elapsed is not None else None,
        )

    @property
    def known(self) -> Sequence[int]:
        """Return the times of completed iterations, those after the end of the simulated time included."""
        return [*self.times, *self.later]

    @property
    def first(self) -> float | None:
        """The time of the first iteration, ps, with what happens once at the job's start; None if none is known."""
        return self.known[0] / self.stride if self.known else None

    @property
    def per_iteration(self) -> float | None:
        """The mean time from one known iteration to the next, ps; None of fewer than two."""
        known = self.known
        return (known[-1] - known[0]) / (self.stride * (len(known) - 1)) if len(known) > 1 else None

    @cached_property
    def pace(self) -> Estimate | None:
        """The time per iteration, s: the mean ``spacing``, or the mean time of the timed parts if there are some."""
        return self.spacing if self.elapsed is None else mean(np.array(self.elapsed, np.float64) * PS)

    @cached_property
    def spacing(self) -> Estimate | None:
        """The mean time from one completed iteration to the next after the warm-up, s; None of fewer than two.

        Its inverse is the throughput.
        """
        return mean(differences(self.times)[1:] * (PS / self.stride))


@dataclass(frozen=True)
class Common:
    """Iterations of a job in two runs, and their comparison.

    The iterations that are compared, and the time that the first of the runs and the other (``reference``) took to
    them, ps.
    """

    iterations: int
    at: int
    reference_at: int
    whole: bool
    """Whether they are the whole program, to its end."""
    warm_up: int = 0
    """The iterations before them, which are left out."""
    estimate: Estimate | None = None
    """The change of throughput against the reference; None if one of them took no time."""

    @property
    def change(self) -> float | None:
        """The change of throughput against the reference; None if that took no time."""
        return self.reference_at / self.at - 1 if self.at and self.reference_at else None


def common(run: Milestones, reference: Milestones, *, warm_up: bool = True) -> Common | None:
    """Compare two runs of a job; None if there is no iteration that both completed, or it failed in one of them.

    ``warm_up`` says whether the first iterations may be left out: not where what is learnt in them counts.
    """
    if run.failed or reference.failed:
        return None
    stride, times, others = _aligned(run, reference)
    count = len(times)
    if run.ended is not None and reference.ended is not None:
        last, other = run.ended, reference.ended
        compared = Common(min(run.iterations, reference.iterations), last, other, whole=True)
        if compared.change is None:
            return compared
        spread = ratio_change(differences(others), differences(times), skip=0) or Estimate(compared.change)
        return replace(compared, estimate=spread.shifted(compared.change - spread.value))
    if not count:
        return None
    estimate = ratio_change(differences(others), differences(times), skip=None if warm_up else 0)
    skipped = estimate.warm_up if estimate else 0
    at, reference_at = (of[-1] - (of[skipped - 1] if skipped else 0) for of in (times, others))
    iterations = (count - skipped) * stride
    return Common(iterations, at, reference_at, False, skipped * stride, estimate if at and reference_at else None)


def _aligned(run: Milestones, reference: Milestones) -> tuple[int, Sequence[int], Sequence[int]]:
    """The times of the iterations that both runs completed, and the stride of these iterations."""
    stride = max(run.stride, reference.stride)  # both are powers of two
    count = min(of.stride * len(of.times) for of in (run, reference)) // stride
    times, others = (of.times[stride // of.stride - 1 :: stride // of.stride][:count] for of in (run, reference))
    return stride, times, others


def segments(run: Milestones, reference: Milestones, count: int) -> Sequence[float]:
    """Return the change of throughput in each of ``count`` parts of a run, with as many iterations each.

    There must be at least one iteration for each.
    """
    _, times, others = _aligned(run, reference)
    spent, before = (np.array_split(differences(of), count) for of in (times, others))
    return [float(reference_part.sum() / part.sum()) - 1 for part, reference_part in zip(spent, before, strict=True)]


def lost_time(run: Milestones, reference: Milestones) -> tuple[Common, Estimate] | None:
    """Compare two runs of a job, with the time that an iteration takes longer in ``run``, s; None as in ``common``.

    The interval is that of the differences between the times of the same iterations.
    """
    compared = common(run, reference)
    if compared is None or not compared.iterations or not compared.at:
        return None
    stride, times, others = _aligned(run, reference)
    value = (compared.at - compared.reference_at) / compared.iterations * PS
    paired = (differences(times) - differences(others)) * (PS / stride)
    spread = mean(paired, skip=compared.warm_up // stride) or Estimate(value)
    return compared, spread.shifted(value - spread.value)


def enough(run: Milestones, isolated: Milestones | None) -> int | None:
    """The simulated time in which a job completes enough iterations for W, ps; None if it did or that is not known.

    That is the time of the first iteration, and for each of the others the mean time from one to the next so far, both
    in the slower of the two runs; the iteration that was under way at the end of a run ends after it. A run of which
    one iteration is known slows the others down as it does the first. Of a job that completed none in one of them the
    other's is a lower bound, and so is the time of one iteration where no second one is known. Of a program with fewer
    iterations it is the time until its end, at least.
    """
    both = [of for of in (run, isolated) if of]
    if any(of.failed for of in both):
        return None
    if run.ended is not None or min(of.iterations for of in both) >= FEW_ITERATIONS:
        return None
    first = max((of.first or 0.0 for of in both), default=0.0)
    known = [(of.first, of.per_iteration) for of in both if of.first and of.per_iteration]
    alone = [of.first for of in both if of.first and not of.per_iteration]
    pace = max(
        [pace for _, pace in known] + [pace * pace_of / of for of, pace in known for pace_of in alone], default=0.0
    )
    if isolated is not None and isolated.ended is not None and isolated.iterations < FEW_ITERATIONS:
        return run.start + round(max(isolated.ended, first + pace * (isolated.iterations - 1)))
    simulated = [
        of.until + pace * (FEW_ITERATIONS - 1 - of.iterations) for of in both if of.iterations < FEW_ITERATIONS
    ]
    return run.start + round(max(first + pace * (FEW_ITERATIONS - 1), *simulated)) if first else None


def milestones(work: Work, starts: Sequence[int] = (), stops: Sequence[int | None] = ()) -> dict[int, Milestones]:
    """By job, of one simulation. Jobs begin at ``starts`` and are stopped at ``stops``, ps."""
    marks = {int(str(job)): rows for (job,), rows in work.marks.group_by("job", maintain_order=True)}
    ended = pl.when((pl.col("finished") != 0).all()).then(pl.col("finished_at").max())
    jobs = work.ranks.group_by("job", maintain_order=True).agg(pl.col("iterations").min(), ended.alias("ended"))
    by_job, failed = {}, work.failed
    for job, iterations, end in jobs.iter_rows():
        start = starts[job] if job < len(starts) else 0
        rows = marks.get(job, work.marks.clear())
        by_job[job] = Milestones(
            stride=int(rows["iteration"][0]) if rows.height else 1,
            times=[at - start for at in rows["time"]],
            iterations=iterations,
            elapsed=rows["elapsed"].to_list() if (rows["timed"] != 0).any() else None,
            ended=None if end is None else end - start,
            later=[at - start for at in work.later_iterations],
            start=start,
            stop=(stop := stops[job] if job < len(stops) else None),
            until=max(0, (work.now if stop is None else min(work.now, stop)) - start),
            failed=job in failed,
        )
    return by_job
