"""The twin of the controlled system: short simulations of a model of it, in which settings are tried ahead.

The model has the fabric, the routes, the hosts of the jobs, and their programs: partners, message sizes and the mean
compute time of each rank, as a profile of an earlier run has them. It does not have the variants of the programs that
the controlled run executes: its compute times vary from iteration to iteration by other random numbers. It has no
access to the state of the controlled run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from fairlane.core.tables import Work
from fairlane.model.scenario import Resolved
from fairlane.results.milestones import Milestones, common, milestones
from fairlane.sim.controller.base import Settings
from fairlane.sim.controller.episodes import Episodes
from fairlane.sim.controller.fitting import with_settings
from fairlane.sim.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario

FIRST_VARIANT = 1_000_000
"""Variants from this number on are the twin's; no period of a controlled run has one of them."""


@dataclass(frozen=True)
class Observation:
    """Results of a short simulation of the twin."""

    milestones: Mapping[str, Milestones]
    """Completed iterations of each job."""
    iterations: Mapping[str, Sequence[int]]
    """Iterations of each rank, by job."""
    compute: Mapping[str, Sequence[float]]
    """Compute time of each rank in an iteration, as a share of the time that an iteration of its job takes, by job."""

    def gains(self, reference: "Observation") -> dict[str, float]:
        """Change of each job's throughput against another simulation, over the iterations completed in both.

        A job without an iteration in the reference has none to lose: 0. One that completes none here loses all: -1.
        """
        return {job: _change(milestones, reference.milestones[job]) for job, milestones in self.milestones.items()}


def _change(milestones: Milestones, reference: Milestones) -> float:
    if not reference.times:
        return 0.0
    compared = common(milestones, reference, warm_up=False)
    change = compared.change if compared else None
    return -1.0 if change is None else change


class Twin:
    """Simulates the jobs of a scenario for a short time under given settings.

    Args:
        scenario: The system.
        jobs: Names of the jobs that are present.
        horizon: Simulated time of each trial, ps.
        seed: Seed of the variants of its programs.
        profile_seed: Seed of programs of another input than those that run: other partners of random patterns and
            another division of compute time. None for those that run.
    """

    def __init__(
        self, scenario: "Scenario", jobs: Mapping[str, int], *, horizon: int, seed: int, profile_seed: int | None = None
    ) -> None:
        self._horizon, self._variant = horizon, FIRST_VARIANT + seed
        own_seed = scenario.seed if profile_seed is None else profile_seed
        self._episodes = Episodes(scenario, period=horizon, program_seed=own_seed)
        self._jobs = [at for at, job in enumerate(self._episodes.resolved.jobs) if job.name in jobs]
        self.program_seed = own_seed
        """Seed of its programs."""
        self.trials = 0
        """Number of simulations of all jobs together so far."""

    @cached_property
    def model(self) -> Resolved:
        """Return the resolved scenario that it simulates."""
        resolved = self._episodes.resolved
        jobs = [
            replace(resolved.jobs[at], program=self._episodes.program(at, self._variant), start=0, stop=None)
            for at in self._jobs
        ]
        return replace(resolved, jobs=tuple(jobs))

    @cached_property
    def default(self) -> Observation:
        """The jobs together without settings."""
        return self.simulate(Settings())

    @cached_property
    def isolated_gains(self) -> dict[str, float]:
        """Change of each job's throughput if it were alone on its hosts, against the default."""
        alone = [_simulated(self.model.alone(at), self._horizon) for at in range(len(self.model.jobs))]
        gains: dict[str, float] = {}
        for each in alone:
            gains |= each.gains(self.default)
        return gains

    def simulate(self, settings: Settings) -> Observation:
        """The jobs together with these settings."""
        self.trials += 1
        return _simulated(with_settings(self.model, settings), self._horizon)


def _simulated(model: Resolved, horizon: int) -> Observation:
    simulation = Simulation(model, threads=1)
    simulation.run_until(horizon)
    work = Work.of(simulation.engine)
    reached = milestones(work)
    number, iterations, compute = (work.ranks[name].to_numpy() for name in ("job", "iterations", "compute"))
    at = {job.name: numpy.flatnonzero(number == index) for index, job in enumerate(model.jobs)}
    return Observation(
        {job.name: reached[index] for index, job in enumerate(model.jobs)},
        {job: tuple(iterations[rows].tolist()) for job, rows in at.items()},
        {job: _shares(compute[rows], iterations[rows], horizon) for job, rows in at.items()},
    )


def _shares(compute: NDArray[Any], iterations: NDArray[Any], horizon: int) -> tuple[float, ...]:
    done = numpy.maximum(1, iterations.astype(float))
    shares = compute.astype(float) / done * done.min() / horizon
    return tuple(shares.tolist())
