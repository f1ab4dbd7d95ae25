"""Open-loop load: the standard of network studies (Dally and Towles 2004, chapter 23)."""

from statistics import fmean
from typing import Any, ClassVar, Literal, Self

import numpy
from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core import bridge
from fairlane.core.seeds import Purpose
from fairlane.core.units import Duration, Size
from fairlane.inputs.distribution import SizeDistribution
from fairlane.model.workload.base import CLOSED_LOOP, KIB, Workload
from fairlane.model.workload.builder import JobScript
from fairlane.model.workload.destinations import DestinationsField, Uniform

_SIZES = 1024
"""Number of equally likely quantiles that represent a distribution of sizes."""


class OpenLoop(Workload):
    """Open-loop load: each rank generates messages at times that do not depend on the delivery of earlier ones.

    Messages are datagrams: they need no receive and no CPU time, and one that cannot be sent waits in its NIC, which
    counts in its latency. Every message is an iteration. By default messages of 4 KiB to random ranks.
    """

    message_size: Size = 4 * KIB
    sizes: SizeDistribution | None = Field(
        default=None, description="distribution of the message size, instead of one size"
    )
    load: float = Field(
        default=0.5,
        gt=0,
        le=1,
        description="offered load: share of the injection bandwidth of the rank's host, headers included",
    )
    arrivals: Literal["poisson", "fixed"] = Field(
        default="poisson", description="a Poisson process, or fixed intervals with a random phase"
    )
    pattern: DestinationsField = Field(default_factory=Uniform, description="destinations of each rank's messages")
    compute: Duration | None = 0

    iterates: ClassVar[bool] = False
    unused: ClassVar[frozenset[str]] = CLOSED_LOOP
    unused_because: ClassVar[str] = "open-loop load has no iterations"

    @model_validator(mode="after")
    def _sizes_given_once(self) -> Self:
        if self.sizes is not None and "message_size" in self.model_fields_set:
            raise ValueError("message_size and sizes exclude each other: give one")
        return self

    @override
    def parameters(self) -> dict[str, Any]:
        refused = set() if self.sizes is None else {"message_size"}
        return {key: value for key, value in super().parameters().items() if key not in refused}

    @override
    def problem_with(self, ranks: int) -> str | None:
        """The pattern must fit."""
        return super().problem_with(ranks) or self.pattern.problem_with(ranks)

    def message_sizes(self) -> list[int]:
        """Sizes of messages in bytes, each as likely."""
        if self.sizes is None:
            return [self.message_size]
        return [max(0, round(size)) for size in self.sizes.quantiles(_SIZES)]

    @override
    def offered(self) -> tuple[float, float]:
        """Its load, and the mean of its sizes."""
        return self.load, fmean(self.message_sizes())

    def senders(self, ranks: int) -> list[int]:
        """The ranks that send: those that have a target other than themselves."""
        if self.pattern.share < 1:
            return list(range(ranks))
        targets_of_ranks = self.pattern.targets(ranks, numpy.random.default_rng)
        return [rank for rank, targets in enumerate(targets_of_ranks) if set(targets) - {rank}]

    def targets(self, job: JobScript) -> list[list[int]]:
        """The targets of each rank, the rank itself left out."""
        drawn = self.pattern.targets(job.ranks, lambda: job.stream(Purpose.PATTERN))
        return [[target for target in targets if target != rank] for rank, targets in enumerate(drawn)]

    @override
    def program(self, job: JobScript, compute: int, *, steady: bool = False) -> bridge.Program:
        """The load of all ranks; ``iterations`` of ``job`` are messages of each rank."""
        sizes, injection = self.message_sizes(), job.injection
        mean_wire = fmean(injection.wire(size) for size in sizes)
        lists: dict[tuple[int, ...], int] = {}
        ranks = [
            {
                "gap": 8e12 * mean_wire / (injection.bandwidth(rank) * self.load),
                "targets": lists.setdefault(tuple(targets), len(lists)),
            }
            for rank, targets in enumerate(self.targets(job))
        ]
        spec = {
            "arrivals": self.arrivals,
            "sizes": sizes,
            "targets": list(lists),
            "fraction": self.pattern.share,
            "messages": job.iterations,
            "seed": int(job.stream(Purpose.VARIANT).integers(2**64, dtype=numpy.uint64)),
            "ranks": ranks,
        }
        return bridge.open_loop(spec)
