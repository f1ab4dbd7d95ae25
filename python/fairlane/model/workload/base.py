"""Common parts of workloads: messages, compute time, its imbalance and its small variations."""

from typing import Annotated, Any, ClassVar, Self

import numpy
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import override

from fairlane.core import bridge
from fairlane.core.errors import Problem
from fairlane.core.seeds import Purpose
from fairlane.core.units import Duration, Size
from fairlane.core.wording import plural
from fairlane.inputs.hosts import Host
from fairlane.inputs.problems import Problems
from fairlane.inputs.registry import Named
from fairlane.model.workload.builder import JobScript, Rank
from fairlane.model.workload.imbalance import ImbalanceField, Uniform

KIB = 1024
CLOSED_LOOP = frozenset(
    {
        *("compute", "compute_share", "imbalance", "memory_bound", "jitter", "distinct_iterations"),
        *("messages_per_iteration", "burst", "pause"),
    }
)
"""Parameters of workloads that compute and communicate in iterations."""
LARGEST_NUMBER = 2**32 - 1
"""The largest whole number among a workload's parameters."""
Count = Annotated[int, Field(ge=1)]
"""A parameter that is a positive whole number; of an inherited one that gets another default, with its description."""
Share = Annotated[float, Field(ge=0, le=1)]
"""A parameter between 0 and 1."""


class Workload(Named):
    """A job's behaviour: iterations of compute, then communication, for ever.

    A subclass gives its defaults and writes one iteration's communication of one rank in ``communicate``. With
    ``compute_share``, the compute time Y is chosen so that the rank that computes longest computes for that share of
    its time when the job runs alone; with ``compute``, Y is given.
    """

    minimum_ranks: ClassVar[int] = 2
    """Minimum number of ranks."""
    even_ranks: ClassVar[bool] = False
    """Whether the number of ranks must be even."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Parameters of every workload that it refuses, because they would have no effect."""
    unused_because: ClassVar[str] = ""
    """Why, in words."""
    on_gpus: ClassVar[bool] = False
    """Whether its ranks are GPUs, whose collectives are NCCL's by default."""
    measures: ClassVar[bool] = False
    """Whether results of its own are computed from the instants of its iterations."""
    iterates: ClassVar[bool] = True
    """Whether its iterations measure its speed; those of open-loop load do not."""
    stops: ClassVar[bool] = True
    """Whether it ends after the number of iterations that a job's ``stop`` sets."""

    message_size: Size = Field(default=32 * KIB, description="bytes of a message")
    messages_per_iteration: Count = Field(default=1, description="messages to each partner per iteration")
    compute: Duration | None = Field(default=None, description="Y: compute time per iteration of the slowest rank")
    compute_share: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="compute share of the slowest rank in the isolated run; 0.65 if `compute` is not set either",
    )
    imbalance: ImbalanceField = Field(default_factory=Uniform, description="distribution of Y over the ranks")
    memory_bound: Share = Field(
        default=0.0, description="share of the compute time that is memory-bound: a power cap does not slow it down"
    )
    variant: int = Field(default=0, ge=0, description="number of the trace variant: each draws its own jitter")
    jitter: float = Field(
        default=0.02, ge=0, lt=1, description="maximum relative deviation of compute times, up and down"
    )
    distinct_iterations: Count = Field(
        default=8, description="number of iterations with jitter of their own; the program then repeats them"
    )
    burst: Duration | None = Field(
        default=None,
        description="length of a burst: iterations are repeated until this time has passed on rank 0, which broadcasts "
        "its decision after each (4 bytes); then all ranks pause",
    )
    pause: Duration | None = Field(default=None, description="how long each rank sleeps after a burst")

    @model_validator(mode="after")
    def _compute_given_once(self) -> Self:
        if self.compute is not None and self.compute_share is not None:
            raise ValueError("compute and compute_share exclude each other: give one")
        return self

    @model_validator(mode="after")
    def _has_effect(self) -> Self:
        wrong = sorted(self.unused & self.model_fields_set - ({"compute"} if self.compute == 0 else set()))
        if wrong:
            raise ValueError(f"{self.unused_because}, so no {', no '.join(wrong)}")
        return self

    @override
    def parameters(self) -> dict[str, Any]:
        """Its parameters, quantities as strings with units, without those that it refuses."""
        return {key: value for key, value in super().parameters().items() if key not in self.unused}

    @model_validator(mode="after")
    def _pause_after_burst(self) -> Self:
        if self.pause is not None and self.burst is None:
            raise ValueError("a pause follows a burst: give burst, too")
        return self

    @model_validator(mode="after")
    def _countable(self) -> Self:
        large = {name: value for name, value in self.whole_numbers().items() if value > LARGEST_NUMBER}
        if large:
            allowed = f"at most {LARGEST_NUMBER}"
            raise Problems(*(Problem(name, "out of range", value, allowed) for name, value in large.items()))
        return self

    def whole_numbers(self) -> dict[str, int]:
        """The parameters that count something, without those that have a unit."""
        return {
            name: int(getattr(self, name))
            for name, info in type(self).model_fields.items()
            if info.annotation is int and not any(isinstance(metadata, BeforeValidator) for metadata in info.metadata)
        }

    def communicate(self, rank: Rank, iteration: int) -> None:
        """Writes what ``rank`` communicates in an iteration; ``iteration`` counts up to ``distinct_iterations``."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it communicates")

    def repeats(self) -> bool:
        """Whether ``communicate`` writes the same in every iteration; it is then called once for all of them."""
        return False

    def iterate(self, rank: Rank, iteration: int, compute: int) -> None:
        """Writes an iteration of ``rank`` in which it computes this long, ps: all of it before it communicates."""
        rank.compute(compute)
        self.communicate(rank, iteration)

    def problem_with(self, ranks: int) -> str | None:
        """The requirement on the number of ranks that ``ranks`` does not meet; None if it can run on them."""
        if ranks < self.minimum_ranks:
            return f"at least {plural(self.minimum_ranks, 'rank')}"
        return "an even number of ranks" if self.even_ranks and ranks % 2 else None

    def fixed_hosts(self) -> tuple[Host, ...]:
        """The hosts of its last ranks, one each, whatever the placement; last ranks of other jobs may be there, too."""
        return ()

    def one_sided_targets(self) -> int | None:
        """Return the number of targets of its puts and gets, if they are few: the traffic to one bounds its speed."""
        return None

    def offered(self) -> tuple[float, float] | None:
        """Offered share of its hosts' injection bandwidth, and mean message size, bytes; None with iterations."""
        return None

    @property
    def target_share(self) -> float:
        """The requested compute share."""
        return 0.65 if self.compute_share is None else self.compute_share

    def parts(self, job: JobScript) -> NDArray[numpy.float64]:
        """Each rank's part of Y at full imbalance."""
        return self.imbalance.parts(job.ranks, job.stream(Purpose.COMPUTE))

    def program(self, job: JobScript, compute: int, *, steady: bool = False) -> bridge.Program:
        """The job's program, in which the compute time Y is ``compute`` picoseconds."""
        parts = self.parts(job)
        levels = [1.0] if steady else self.imbalance.stages(self.variant)
        stages = [numpy.rint(compute * (parts.mean() + level * (parts - parts.mean()))) for level in levels]
        wobble = job.stream(Purpose.VARIANT).uniform(-1.0, 1.0, (self.distinct_iterations, job.ranks))
        factors = 1.0 + (0.0 if steady else self.jitter) * wobble
        for rank in job:
            times = [numpy.rint(stage[rank.index] * factors[:, rank.index]).astype(int).tolist() for stage in stages]
            self.write(rank, times)
        return job.build()

    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        """Writes a rank's script: each stage once, the last for ever.

        A stage has ``distinct_iterations`` compute times. A job that departs has as many iterations as it was given.
        """
        left = rank.job.iterations
        for number, times in enumerate(stages):
            last = number == len(stages) - 1
            if left is None:
                self._iterate(rank, times, None if last else 1)
                continue
            passes = left // len(times) if last else min(1, left // len(times))
            self._iterate(rank, times, passes)
            left -= passes * len(times)
            if last or not passes:
                self._iterate(rank, times[:left], 1)
                return

    def _iterate(self, rank: Rank, times: list[int], passes: int | None) -> None:
        if not times or passes == 0:
            return
        with rank.repeat(passes):
            if len(times) > 1 and self.repeats() and type(self).iterate is Workload.iterate:
                with rank.each(times):
                    self.communicate(rank, 0)
                    self.end_iteration(rank)
                return
            for iteration, time in enumerate(times):
                self.iterate(rank, iteration, time)
                self.end_iteration(rank)

    def end_iteration(self, rank: Rank) -> None:
        """Writes the end of an iteration, and that of its burst if it is over; neither is timed."""
        rank.mark_progress()
        if self.burst is not None:
            rank.end_burst(self.burst, self.pause or 0)
            rank.begin_timing()

    def __str__(self) -> str:
        return type(self).__name__
