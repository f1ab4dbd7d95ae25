"""The benchmarks of nccl-tests: one collective over and over, for buffers of growing size.

Source: NVIDIA/nccl-tests, ``src/common.cu`` and the ``getBw`` functions of its benchmarks.
"""

from collections.abc import Callable, Mapping
from itertools import count, takewhile
from typing import ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator
from typing_extensions import override

from fairlane.core.errors import Problem
from fairlane.core.units import SIZE, Duration, Size
from fairlane.inputs.problems import Problems
from fairlane.model.workload.base import CLOSED_LOOP, Count, Workload
from fairlane.model.workload.builder import Rank

Operation = Literal["allreduce", "allgather", "reduce_scatter", "alltoall", "bcast", "reduce"]
BLOCKS: frozenset[str] = frozenset({"allgather", "reduce_scatter", "alltoall"})
"""Operations whose buffer has a block for each rank."""
BUS_FACTORS: Mapping[str, Callable[[int], float]] = {
    "allreduce": lambda ranks: 2 * (ranks - 1) / ranks,
    **dict.fromkeys(BLOCKS, lambda ranks: (ranks - 1) / ranks),
    "bcast": lambda _: 1.0,
    "reduce": lambda _: 1.0,
}
"""Bus bandwidth over algorithm bandwidth, by operation, for a number of ranks."""
assert set(BUS_FACTORS) == set(get_args(Operation))


class NcclTests(Workload):
    """A collective of buffers from one size to another, each several times, as nccl-tests; ends after the largest.

    Table ``collectives`` of the results has its bandwidths.
    """

    on_gpus: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    stops: ClassVar[bool] = False
    unused: ClassVar[frozenset[str]] = CLOSED_LOOP | {"message_size"}
    unused_because: ClassVar[str] = "it has sizes and numbers of calls of its own"

    operation: Operation = Field(default="allreduce", description="the collective")
    from_size: Size = Field(
        default=1 << 20, ge=1, description="bytes of the smallest buffer; of the larger of the two where they differ"
    )
    to_size: Size = Field(default=1 << 28, description="bytes of the largest buffer")
    factor: int = Field(default=2, ge=2, description="ratio of a size and the one before")
    repetitions: Count = Field(default=5, description="calls of a size that are measured")
    warm_up: Count = Field(default=1, description="calls of a size before these")
    compute: Duration | None = 0

    @model_validator(mode="after")
    def _sizes_in_order(self) -> Self:
        if self.to_size < self.from_size:
            allowed = f"at least from_size = {SIZE.format(self.from_size)}"
            raise Problems(Problem("to_size", "is smaller than from_size", SIZE.format(self.to_size), allowed))
        return self

    @property
    def sizes(self) -> list[int]:
        """The sizes in order, bytes."""
        return list(takewhile(lambda size: size <= self.to_size, (self.from_size * self.factor**at for at in count())))

    @property
    def calls(self) -> int:
        """Calls of one size."""
        return self.warm_up + self.repetitions

    @override
    def problem_with(self, ranks: int) -> str | None:
        if self.operation in BLOCKS and self.from_size % ranks:
            size = SIZE.format(self.from_size)
            return f"a divisor of from_size = {size}: a buffer of {self.operation} has a block for each rank"
        return super().problem_with(ranks)

    @override
    def whole_numbers(self) -> dict[str, int]:
        return {name: value for name, value in super().whole_numbers().items() if name in ("repetitions", "warm_up")}

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        for size in self.sizes:
            with rank.repeat(self.calls):
                rank.collective(self.operation, size // rank.ranks if self.operation in BLOCKS else size)
                rank.mark_progress()
