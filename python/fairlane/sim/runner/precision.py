"""Whether the results of a run are precise enough to end it, and what limits them.

A job is precise enough when half of its 95% interval is at most what was asked for at two checks in succession, each
with enough iterations: an interval that is narrow by chance once does not end a run. A job whose program has ended, or
that has been stopped, will not become more precise; it is not waited for. A run without any job that iterates, as one
of open-loop load alone, is not ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlane.core.statistics import Estimate
from fairlane.core.tables import Work
from fairlane.core.wording import fine_percent, listed, percent, plural, seconds
from fairlane.results.milestones import Milestones, common, milestones

if TYPE_CHECKING:
    from fairlane.model.scenario.observe import Until
    from fairlane.model.scenario.resolved import ResolvedJob

ENOUGH = 20
"""Iterations after the warm-up below which no interval ends a run."""
IN_SUCCESSION = 2
"""Number of checks that a job must pass one after the other."""
_LONGEST = 1000.0  # times; an estimate beyond it is only said to be longer


@dataclass(frozen=True)
class _Job:
    """A job at a check: half of its interval, None if there is none, and whether more time could narrow it."""

    half: float | None
    over: bool


@dataclass
class Precision:
    """The checks of a run."""

    until: "Until"
    of_run: "Sequence[ResolvedJob]"
    """The jobs of the run."""
    jobs: Sequence[int]
    """Those that are waited for."""
    _now: int = 0
    _last: Mapping[int, _Job] = field(default_factory=dict)
    _passed: dict[int, int] = field(default_factory=dict)
    _slowest: int | None = None
    """The job that was the last to pass."""

    def reached(self, together: Work, alone: Mapping[int, Work]) -> bool:
        """Checks what was measured so far: whether every job is precise enough. ``alone`` are the isolated runs."""
        here = milestones(together, [job.start for job in self.of_run])
        self._now = together.now
        self._last = {job: self._job(here.get(job), alone.get(job), job) for job in self.jobs}
        for job, found in self._last.items():
            narrow = found.half is not None and found.half <= self.until.precision
            self._passed[job] = self._passed.get(job, 0) + 1 if narrow else 0
        late = [job for job in self.jobs if self._passed[job] < IN_SUCCESSION and not self._last[job].over]
        if late:
            halves = {job: self._last[job].half for job in late}
            self._slowest = max(late, key=lambda job: float("inf") if halves[job] is None else halves[job] or 0.0)
        return bool(self.jobs) and not late

    def _job(self, here: Milestones | None, alone: Work | None, job: int) -> _Job:
        there = milestones(alone, [self.of_run[job].start]).get(0) if alone else None
        stop = self.of_run[job].stop
        over = here is not None and (here.ended is not None or (stop is not None and self._now >= stop))
        if here is None:
            return _Job(None, over)
        if self.until.of == "time_per_iteration":
            return _Job(_relative(here.pace), over)
        found = common(here, there) if there else None
        estimate = found and found.estimate
        return _Job(estimate.half_width if estimate and estimate.count >= ENOUGH else None, over)

    def words(self) -> str:
        """Describe the checks, and what limited the run."""
        of = "W" if self.until.of == "w" else "the time per iteration"
        wanted = f"±{fine_percent(self.until.precision)}"
        if not self._last:
            return f"No job has an interval of {of}: the precision of {wanted} was not checked."
        names = {job: self.of_run[job].name for job in self.jobs}
        wide = [job for job, found in self._last.items() if found.half is None or found.half > self.until.precision]
        if not wide:
            after = seconds(self._now * 1e-12)
            last = f"; {names[self._slowest]} was the last" if self._slowest is not None else ""
            return f"{of[0].upper()}{of[1:]} is precise to {wanted} for every job after {after}{last}."
        each = [f"{names[job]} ({self._how_far(job)})" for job in wide]
        every = plural(len(self.jobs), "job")
        return f"{of[0].upper()}{of[1:]} is not precise to {wanted} for {len(wide)} of {every}: {listed(each)}."

    def _how_far(self, job: int) -> str:
        """Half of a job's interval, and the simulated time that would narrow it enough: its width falls as the root."""
        found = self._last[job]
        if found.half is None:
            return "it ended first" if found.over else "too few iterations"
        shown = f"±{percent(found.half)}"
        if found.over:
            return f"{shown}, it has ended"
        longer = (found.half / self.until.precision) ** 2
        if longer > _LONGEST:
            return f"{shown}, more than {seconds(self._now * _LONGEST * 1e-12)} needed"
        return f"{shown}, about {seconds(self._now * longer * 1e-12)} needed"


def _relative(pace: Estimate | None) -> float | None:
    if pace is None or pace.half_width is None or pace.count < ENOUGH or not pace.value:
        return None
    return pace.half_width / pace.value
