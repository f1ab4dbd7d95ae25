"""Episodes: each period is a fresh, short simulation, as in section 5.2 of Savoie et al. 2020.

For every period one variant of each job is drawn; default, treated and isolated simulations of a period share them,
and the hosts. A simulation is determined by its settings and variants, so none is repeated. Variants are what differs
between two runs of one application with the same parameters: variant v of a workload draws its own jitter; variant v of
a trace has its compute times scaled by up to 2%, up or down.

An episode begins with the jobs that are present at its time: a job that starts later begins with the first episode
after its arrival, and one that stops has its last episode before its departure.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy

from fairlane.core import bridge
from fairlane.core.errors import Problem
from fairlane.core.seeds import Purpose, stream
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.resolved import injection_of
from fairlane.model.workload.builder import JobScript
from fairlane.model.workload.trace import Trace
from fairlane.sim.controller.base import Settings, Work
from fairlane.sim.controller.fitting import Counts, apply, unchanged, with_settings
from fairlane.sim.simulation import Simulation

if TYPE_CHECKING:
    from fairlane.model.scenario import Scenario
    from fairlane.model.scenario.models import Job

VARIANTS = 5
"""Variants of each job, as the paper has five traces."""
TRACE_JITTER = 0.02
"""Maximum relative deviation of the compute times of a trace's variants."""
Combination = tuple[int, ...]
"""The variant of each job."""


class Episodes:
    """Short simulations of one scenario.

    Args:
        scenario: What is simulated.
        period: Length of each simulation, ps.
        seed: Seed of which variants a period gets.
        variants: Number of variants of each job.
        draws: Number of different combinations of variants; None for a new one each period. With few, the
            simulations of periods that have the same combination and settings are the same, and are run once.
        threads: Maximum number of concurrent simulations.
        cost: Time from the beginning of a period until settings that are new in it are in effect, ps.
        program_seed: Seed of the programs of all variants but 0; None for the scenario's.
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
        cost: int = 0,
        program_seed: int | None = None,
    ) -> None:
        self.resolved = scenario.resolve()
        """The scenario with its hosts, and the compute times that all variants share."""
        self.simulated = 0
        """Number of simulations so far."""
        self.packet_hops = 0
        """Packets times links crossed in them."""
        self._period, self._seed, self._count, self._draws = period, seed, variants, draws
        self._cost = cost
        self._program_seed = scenario.seed if program_seed is None else program_seed
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._together: dict[tuple[object, ...], Future[Work]] = {}
        self._alone: dict[tuple[int, int], Future[Work]] = {}
        self._programs: dict[tuple[int, int], bridge.Program] = {}

    @property
    def jobs(self) -> dict[str, int]:
        """Number of ranks by job."""
        return {job.name: job.ranks for job in self.resolved.jobs}

    def combination(self, period: int) -> Combination:
        """The variants of the jobs in a period: each job's own draw, independent of the other jobs."""
        which = period if self._draws is None else int(self._rng(0, period).integers(self._draws))
        return tuple(
            period if self._drifts(at) else int(self._rng(1, which, job.number).integers(self._count))
            for at, job in enumerate(self.resolved.jobs)
        )

    def _drifts(self, job: int) -> bool:
        """Whether its variants are stages of one long run: then they come in order and are not drawn."""
        workload = self.resolved.jobs[job].table.workload
        return bool(workload is not None and getattr(workload.imbalance, "per_variant", 0.0))

    def _rng(self, *numbers: int) -> numpy.random.Generator:
        return stream(self._seed, Purpose.VARIANT, 2**32 - 1, *numbers)

    def together(self, settings: Settings, combination: Combination, before: Settings | None = None) -> Future[Work]:
        """All jobs with these settings; without any if they are those of the scenario.

        For the time ``cost`` the settings ``before`` are in effect; None for the same.
        """
        first = settings if before is None else before
        settings, first = (
            Settings() if unchanged(self.resolved, setting) else setting for setting in (settings, first)
        )
        key = (settings.key, first.key, combination)
        if key not in self._together:
            jobs = (
                replace(job, program=self.program(at, variant))
                for at, (job, variant) in enumerate(zip(self.resolved.jobs, combination, strict=True))
            )
            resolved = with_settings(replace(self.resolved, jobs=tuple(jobs)), first)
            self._together[key] = self._submit(resolved, None if settings.key == first.key else settings)
        return self._together[key]

    def alone(self, job: int, variant: int) -> Future[Work]:
        """One variant of one job, isolated on its hosts."""
        if (job, variant) not in self._alone:
            alone = self.resolved.alone(job)
            jobs = (replace(alone.jobs[0], program=self.program(job, variant)),)
            self._alone[job, variant] = self._submit(replace(alone, jobs=jobs))
        return self._alone[job, variant]

    def _submit(self, resolved: Resolved, later: Settings | None = None) -> Future[Work]:
        if self._pool is not None:
            return self._pool.submit(self._simulate, resolved, later)
        future: Future[Work] = Future()
        future.set_result(self._simulate(resolved, later))
        return future

    def _simulate(self, resolved: Resolved, later: Settings | None = None) -> Work:
        """The work of a period; the settings ``later`` apply from the time ``cost`` on."""
        simulation = Simulation(resolved, threads=1)
        begin = Counts(simulation)
        if later is not None:
            simulation.run_until(self._cost)
            apply(simulation, later)
        simulation.run_until(self._period)
        self.simulated += 1
        self.packet_hops += simulation.packet_hops
        return Counts(simulation, begin).since(None)

    def program(self, job: int, variant: int) -> bridge.Program:
        """The program of a variant of a job."""
        if (job, variant) not in self._programs:
            self._programs[job, variant] = self._write(job, variant)
        return self._programs[job, variant]

    def _write(self, job: int, variant: int) -> bridge.Program:
        resolved_job = self.resolved.jobs[job]
        if variant == 0:
            return resolved_job.program
        source = resolved_job.table.source
        if isinstance(source, Trace):
            rng = stream(self._program_seed, Purpose.VARIANT, resolved_job.number, variant)
            scale = source.compute_scale * (1 + rng.uniform(-TRACE_JITTER, TRACE_JITTER))
            return source.model_copy(update={"compute_scale": scale}).program()
        assert resolved_job.compute is not None, "a job with a workload has a compute time"
        number = source.variant + variant
        script = JobScript(
            resolved_job.ranks,
            seed=self._program_seed,
            job=resolved_job.number,
            variant=number,
            injection=lambda: injection_of(self.resolved, resolved_job),
        )
        return source.model_copy(update={"variant": number}).program(script, resolved_job.compute)

    def close(self) -> None:
        """Ends the threads; what has not begun is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def phases(scenario: "Scenario", period: int, periods: int) -> "dict[int, Scenario]":
    """Scenarios by the first period in which they hold, without times of arrival and departure; ``period`` in ps."""
    spans = [_span(job, period, periods) for job in scenario.jobs]
    starts = sorted({0, *(edge for span in spans for edge in span if 0 < edge < periods)})
    plain = [job.model_copy(update={"start": 0, "stop": None}) for job in scenario.jobs]
    by_start = {}
    for start in starts:
        jobs = [job for job, (first, end) in zip(plain, spans, strict=True) if first <= start < end]
        by_start[start] = scenario.model_copy(update={"jobs": jobs})
    return by_start


def _span(job: "Job", period: int, periods: int) -> tuple[int, int]:
    """Its first period, and the first one without it."""
    return -(-job.start // period), periods if job.departure is None else -(-job.departure // period)


def endless(scenario: "Scenario") -> Problem | None:
    """The problem of jobs that stop after a number of iterations, which no episode reaches; None without such jobs."""
    for at, job in enumerate(scenario.jobs):
        if isinstance(job.stop, int):
            message = "episodes begin anew, so iterations of one do not add up"
            return Problem(f"jobs[{at}].stop", message, job.stop, 'a time, as "600 ms"')
    return None


def missing(scenario: "Scenario", period: int, periods: int) -> Iterator[int]:
    """The periods from which on no job would be present."""
    return (start for start, phase in phases(scenario, period, periods).items() if not phase.jobs)
