"""Steering: which settings hold in a period, and what the controller learns of it, simulated or real.

A controller is asked with the measurements of jobs that were present throughout a period with the settings that it
gave for them. Simulations (``loop``) and the agent (``fairlane.agent``) both go through here.
"""

from collections.abc import Collection, Mapping

from fairlane.controller.base import Controller, Settings, Work


class Steering:
    """A controller, period by period: ``begin``, then ``end`` with what was measured.

    Args:
        controller: Decides.
        jobs: The number of ranks of each job that is present before the first period.
    """

    def __init__(self, controller: Controller, jobs: Mapping[str, int]) -> None:
        self.controller = controller
        self._settings = controller.start(jobs)
        self._known: Collection[str] = jobs.keys()
        self._others = False

    def begin(self, present: Mapping[str, int]) -> Settings:
        """The settings of the period that begins with these jobs, each with its number of ranks."""
        self._others = bool(present.keys() - self._known)
        return self.controller.rearrange(present) if self._others else self._settings

    def end(self, work: Work) -> bool:
        """Lets the controller learn of the period; whether it has adopted a new configuration."""
        seen = work.throughout()
        # Its settings were not in force if other jobs were present for a while: they have not been tried yet.
        if not seen.jobs or (self._others and seen.jobs.keys() == self._known):
            return False
        self._settings, self._known = self.controller.observe(seen), seen.jobs.keys()
        return self.controller.accepted
