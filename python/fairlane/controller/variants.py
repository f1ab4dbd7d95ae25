"""The variations of each job: what differs between two runs of one application with the same parameters.

Variant v of a workload draws its own jitter; variant v of a trace has its compute times scaled by up to 2%, up or down.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from fairlane import _core
from fairlane.scenario import Resolved
from fairlane.scenario.resolved import injection_of
from fairlane.seeds import Purpose, stream
from fairlane.workload.builder import JobScript
from fairlane.workload.trace import Trace

if TYPE_CHECKING:
    from fairlane.scenario import Scenario

__all__ = ["Variants"]

TRACE_JITTER = 0.02
"""How much the variants of a trace differ in compute time, up and down."""


class Variants:
    """A scenario whose jobs can be had in any of their variants; programs are written once and kept."""

    def __init__(self, scenario: "Scenario") -> None:
        self.seed = scenario.seed
        """The seed of all random choices."""
        self.resolved: Resolved = scenario.resolve()
        """The scenario as it stands: hosts, and the compute times that all variants share."""
        self._programs: dict[tuple[int, int], _core.Program] = {}

    @property
    def names(self) -> list[str]:
        """The jobs' names."""
        return [job.name for job in self.resolved.jobs]

    def drifts(self, job: int) -> bool:
        """Whether its variants are stages of one long run: then they come in order and are not drawn."""
        workload = self.resolved.jobs[job].table.workload
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
        found = self.resolved.jobs[job]
        if variant == 0:
            return found.program
        source = found.table.source
        if isinstance(source, Trace):
            wobble = stream(self.seed, Purpose.VARIANT, found.number, variant).uniform(-TRACE_JITTER, TRACE_JITTER)
            return source.model_copy(update={"compute_scale": source.compute_scale * (1 + wobble)}).program()
        assert found.compute is not None, "a job with a workload has a compute time"
        number = source.variant + variant
        script = JobScript(
            found.ranks,
            seed=self.seed,
            job=found.number,
            variant=number,
            injection=lambda: injection_of(self.resolved, found),
        )
        return source.model_copy(update={"variant": number}).program(script, found.compute)
