"""Conditions for ``drive`` that wait for progress of jobs, and notice when there will be none."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import polars as pl

from fairlane.engine.drive import Engine
from fairlane.engine.tables import frame
from fairlane.errors import RunError
from fairlane.wording import plural

STANDSTILL = 500  # iterations of one rank without any of another of its job: the other waits forever


def job_finished(job: int) -> Callable[[Engine], bool]:
    """A condition: every rank of the job with this number has come to the end of its program."""

    def finished(engine: Engine) -> bool:
        ranks = frame(engine.table("ranks")).filter(pl.col("job") == job)
        return bool((ranks["finished"] != 0).all())

    return finished


@dataclass
class Iterations:
    """A condition: every rank of every job has done more than ``count`` iterations.

    Checking it raises ``RunError`` if a rank stands still while another of its job goes on, or if no job has completed
    an iteration in ``patience`` checks.
    """

    jobs: Sequence[str]
    """The names of the jobs."""
    count: int
    patience: int | None = None
    """Checks without progress after which it is given up; None for no limit."""
    _slowest: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By job: iterations of its slowest rank, and of its fastest when the slowest had just done them."""
    _quiet: int = 0

    def __call__(self, engine: Engine) -> bool:
        """Whether it holds. Raises ``RunError`` if it never will."""
        progress = engine.progress()
        advanced = [job for job, ranks in enumerate(progress) if self._advanced(job, ranks)]
        self._quiet = 0 if advanced else self._quiet + 1
        if self.patience is not None and self._quiet > self.patience:
            job = min(range(len(progress)), key=lambda job: min(progress[job]))
            done = plural(min(progress[job]), "iteration")
            raise RunError(f"job {self.jobs[job]} stands still after {done}", slug="stuck")
        return all(min(ranks) > self.count for ranks in progress)

    def _advanced(self, job: int, ranks: list[int]) -> bool:
        done, fastest = min(ranks), max(ranks)
        before, fastest_then = self._slowest.setdefault(job, (0, 0))
        if done > before:
            self._slowest[job] = (done, fastest)
            return True
        if fastest - fastest_then > STANDSTILL:
            slow, fast = ranks.index(done), ranks.index(fastest)
            words = f"rank {slow} stands still after {plural(done, 'iteration')} while rank {fast} goes on"
            raise RunError(f"job {self.jobs[job]}, {words}: does it wait for what never comes?", slug="stuck")
        return False
