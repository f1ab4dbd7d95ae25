"""Messages that Python sends while the simulation runs."""

from typing import Any, ClassVar, Self

from pydantic import model_validator
from typing_extensions import override

from fairlane.core import bridge
from fairlane.units import Duration
from fairlane.workload.base import Workload
from fairlane.workload.builder import JobScript, Rank


class Stepped(Workload):
    """Messages that ``Simulation.send`` gives while the simulation runs: until then its ranks wait. No parameters."""

    minimum_ranks: ClassVar[int] = 1
    iterates: ClassVar[bool] = False
    stops: ClassVar[bool] = False

    compute: Duration | None = 0

    @model_validator(mode="after")
    def _nothing_to_set(self) -> Self:
        wrong = sorted(self.model_fields_set - ({"compute"} if self.compute == 0 else set()))
        if wrong:
            raise ValueError(f"its messages come from Simulation.send, so it takes no {', no '.join(wrong)}")
        return self

    @override
    def parameters(self) -> dict[str, Any]:
        """None."""
        return {}

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """Nothing by itself."""

    @override
    def program(self, job: JobScript, compute: int, *, steady: bool = False) -> bridge.Program:
        """Ranks that wait for messages."""
        return bridge.stepped(job.ranks)
