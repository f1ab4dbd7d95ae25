"""Messages that Python sends while the simulation runs."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core import bridge
from fairlane.core.units import Duration
from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import WORLD, JobScript, Rank


class Stepped(Workload):
    """Messages that ``Simulation.send`` gives while the simulation runs: until then its ranks wait."""

    minimum_ranks: ClassVar[int] = 1
    iterates: ClassVar[bool] = False
    stops: ClassVar[bool] = False

    compute: Duration | None = 0
    communicators: list[Annotated[str, Field(min_length=1)]] = Field(
        [],
        max_length=1000,
        description="names of communicators of all ranks, one for each kind of traffic: of traffic classes",
    )

    @model_validator(mode="after")
    def _nothing_to_set(self) -> Self:
        taken = {"communicators", *({"compute"} if self.compute == 0 else ())}
        wrong = sorted(self.model_fields_set - taken)
        if twice := next((name for name in self.communicators if self.communicators.count(name) > 1), None):
            raise ValueError(f"communicators: two are called {twice!r}")
        if WORLD in self.communicators:
            raise ValueError(f"communicators: {WORLD!r} is that of all messages without a communicator")
        if wrong:
            raise ValueError(f"its messages come from Simulation.send, so it takes no {', no '.join(wrong)}")
        return self

    @override
    def parameters(self) -> dict[str, Any]:
        """The names of its communicators."""
        return {"communicators": self.communicators} if self.communicators else {}

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Nothing by itself."""

    @override
    def program(self, job: JobScript, compute: int, *, steady: bool = False) -> bridge.Program:
        """Ranks that wait for messages."""
        return bridge.stepped(job.ranks, self.communicators)
