"""Online: one continuous simulation, in which service levels and weights change while the jobs run.

A second simulation of the same scenario goes on beside it untouched: it is the default that improvements compare with.
The controller never sees it.
"""

from typing import TYPE_CHECKING

from fairlane.controller.base import Settings, Work
from fairlane.controller.fitting import Counts, apply
from fairlane.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.results.milestones import Milestones
    from fairlane.scenario import Resolved

__all__ = ["Continuous"]


class Continuous:
    """A simulation that is run period by period."""

    def __init__(self, resolved: "Resolved", period: int) -> None:
        self._simulation = Simulation(resolved)
        self._period, self._periods = period, 0
        self._set: object = None
        self._before = Counts(self._simulation)

    @property
    def jobs(self) -> dict[str, int]:
        """The jobs that are there now, with their number of ranks."""
        return self._before.present()

    def milestones(self) -> dict[str, "Milestones"]:
        """When each job completed its iterations, from the beginning of the first period."""
        from fairlane.engine.measured import Work as Measured
        from fairlane.results.milestones import milestones

        jobs = self._simulation.scenario.jobs
        reached = milestones(Measured.of(self._simulation.engine), [job.start for job in jobs])
        return {job.name: reached[number] for number, job in enumerate(jobs)}

    def run(self, settings: Settings | None = None) -> Work:
        """The next period, with these settings from its beginning on; None changes nothing.

        What is set already is not set again: arbiters would begin their turns anew.
        """
        if settings is not None and settings.key != self._set:
            apply(self._simulation, settings)
            self._set = settings.key
        self._periods += 1
        self._simulation.run_until(self._periods * self._period)
        now = Counts(self._simulation)
        work, self._before = now.since(self._before), now
        return work
