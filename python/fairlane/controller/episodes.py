"""Episodes: each period is a fresh, short simulation, as in section 5.2 of Savoie et al. 2020.

For every period one variant of each job is drawn; default, treated and isolated simulations of a period share them,
and the hosts. A simulation is determined by its settings and variants, so none is repeated.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy

from fairlane.controller.base import Settings, Work
from fairlane.controller.fitting import Counts, with_settings
from fairlane.controller.variants import Variants
from fairlane.seeds import Purpose, stream
from fairlane.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.scenario import Resolved, Scenario

__all__ = ["VARIANTS", "Combination", "Episodes"]

VARIANTS = 5
"""Variants of each job, as the paper has five traces."""
Combination = tuple[int, ...]
"""The variant of each job."""


class Episodes:
    """Short simulations of one scenario.

    Args:
        scenario: What is simulated.
        period: How long each simulation is, ps.
        seed: Seed of which variants a period gets.
        variants: How many variants each job has.
        draws: How many different combinations of variants there are; None for a new one each period. With few, the
            simulations of periods that have the same combination and settings are the same, and are run once.
        threads: How many simulations run at the same time.
    """

    def __init__(
        self,
        scenario: "Scenario",
        *,
        period: int,
        seed: int = 1,
        variants: int = VARIANTS,
        draws: int | None = None,
        threads: int = 1,
    ) -> None:
        self._variants = Variants(scenario)
        self._period, self._seed, self._count, self._draws = period, seed, variants, draws
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._together: dict[tuple[object, ...], Future[Work]] = {}
        self._alone: dict[tuple[int, int], Future[Work]] = {}
        self.simulated = 0
        """Simulations so far, those that were found to be done already not counted."""
        self.packet_hops = 0
        """Packets times links crossed in them."""

    @property
    def jobs(self) -> dict[str, int]:
        """Number of ranks by job."""
        return {job.name: job.ranks for job in self._variants.resolved.jobs}

    @cached_property
    def resolved(self) -> "Resolved":
        """The scenario with hosts and compute times."""
        return self._variants.resolved

    def combination(self, period: int) -> Combination:
        """The variants of the jobs in a period: each job's own draw, whoever else is there."""
        which = period
        if self._draws is not None:
            which = int(self._rng(0, period).integers(self._draws))
        return tuple(
            period if self._variants.drifts(at) else int(self._rng(1, which, job.number).integers(self._count))
            for at, job in enumerate(self.resolved.jobs)
        )

    def _rng(self, *numbers: int) -> numpy.random.Generator:
        return stream(self._seed, Purpose.VARIANT, 2**32 - 1, *numbers)

    def together(self, settings: Settings, combination: Combination) -> Future[Work]:
        """All jobs with these settings."""
        key = (settings.key, combination)
        if key not in self._together:
            self._together[key] = self._submit(with_settings(self._variants.of(combination), settings))
        return self._together[key]

    def alone(self, job: int, variant: int) -> Future[Work]:
        """One variant of one job with nobody beside it."""
        if (job, variant) not in self._alone:
            self._alone[job, variant] = self._submit(self._variants.alone(job, variant))
        return self._alone[job, variant]

    def _submit(self, resolved: "Resolved") -> Future[Work]:
        if self._pool is not None:
            return self._pool.submit(self._simulate, resolved)
        future: Future[Work] = Future()
        future.set_result(self._simulate(resolved))
        return future

    def _simulate(self, resolved: "Resolved") -> Work:
        simulation = Simulation(resolved)
        simulation.run_until(self._period)
        self.simulated += 1
        self.packet_hops += simulation.packet_hops
        return Counts(simulation).since(None)

    def close(self) -> None:
        """Ends the threads; what has not begun is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
