"""The variations of each job: what differs between two runs of one application with the same parameters.

Variant v of a workload draws its own jitter; variant v of a trace has its compute times scaled by up to 2%, up or down.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlane import _core
from fairlane.scenario import Resolved
from fairlane.seeds import Purpose, stream
from fairlane.workload.builder import JobScript
from fairlane.workload.injection import injection_of

if TYPE_CHECKING:
    from fairlane.scenario import Scenario
    from fairlane.scenario.models import Job

__all__ = ["Variants"]

TRACE_JITTER = 0.02
"""How much the variants of a trace differ in compute time, up and down."""


class Variants:
    """A scenario whose jobs can be had in any of their variants; programs are written once and kept."""

    def __init__(self, scenario: "Scenario") -> None:
        scenario = scenario.with_background()
        self.scenario = scenario
        """What they are variants of."""
        self.resolved: Resolved = scenario.resolve()
        """The scenario as it stands: hosts, and the compute times that all variants share."""
        copies = [(job, copy) for job in scenario.jobs for copy in range(job.count)]
        self._jobs: list[Job] = [job for job, _ in copies]
        self.streams = [place if job.stream is None else job.stream + copy for place, (job, copy) in enumerate(copies)]
        """The number of each job's random streams: its own, or its place among all."""
        self._programs: dict[tuple[int, int], _core.Program] = {}

    @property
    def names(self) -> list[str]:
        """The jobs' names."""
        return [job.name for job in self.resolved.jobs]

    def drifts(self, job: int) -> bool:
        """Whether its variants are stages of one long run: then they come in order and are not drawn."""
        workload = self._jobs[job].workload
        return bool(workload is not None and getattr(workload.imbalance, "per_variant", 0.0))

    def of(self, combination: tuple[int, ...]) -> Resolved:
        """The scenario with the given variant of each job."""
        jobs = zip(self.resolved.jobs, combination, strict=True)
        return replace(
            self.resolved,
            jobs=tuple(replace(job, program=self._program(at, variant)) for at, (job, variant) in enumerate(jobs)),
        )

    def alone(self, job: int, variant: int) -> Resolved:
        """One variant of one job by itself, on its hosts."""
        alone = self.resolved.alone(job)
        return replace(alone, jobs=(replace(alone.jobs[0], program=self._program(job, variant)),))

    def _program(self, job: int, variant: int) -> _core.Program:
        if (job, variant) not in self._programs:
            self._programs[job, variant] = self._write(job, variant)
        return self._programs[job, variant]

    def _write(self, job: int, variant: int) -> _core.Program:
        if variant == 0:
            return self.resolved.jobs[job].program
        seed, given = self.scenario.seed, self._jobs[job]
        if given.trace is not None:
            wobble = stream(seed, Purpose.VARIANT, self.streams[job], variant).uniform(-TRACE_JITTER, TRACE_JITTER)
            return given.trace.model_copy(update={"compute_scale": given.trace.compute_scale * (1 + wobble)}).program()
        workload, found = given.workload, self.resolved.jobs[job]
        if workload is None or found.compute is None:
            raise ValueError(f"job {found.name!r} has neither a trace nor a workload")
        number = workload.variant + variant
        script = JobScript(
            found.ranks,
            seed=seed,
            job=self.streams[job],
            variant=number,
            injection=lambda: injection_of(self.resolved, found),
        )
        return workload.model_copy(update={"variant": number}).program(script, found.compute)
