"""The congestors of GPCNeT: all-to-all, incasts by messages and by puts, and a broadcast by gets."""

from typing import Literal

from pydantic import Field
from typing_extensions import override

from fairlane.units import Duration, Size
from fairlane.workload.base import KIB, Count
from fairlane.workload.builder import Rank
from fairlane.workload.slices import Slice, SlicedWorkload

_WINDOW = 0


class Congestor(SlicedWorkload):
    """A congestor of GPCNeT (Chunduri et al., SC '19): its communicators load the network without pause.

    ``all_to_all``: pairwise exchanges with all others, one partner after the other. ``incast``: all send to the first
    rank. ``put_incast``: all put to the first rank, each waiting for its put. ``get_broadcast``: all get from the first
    rank, each waiting for its get. By default messages of 4 KiB. An iteration has 64 rounds of the pattern (up
    to 512 in GPCNeT) and ends with a barrier; there is none between its rounds.

    Sends of the incast are synchronous, so that ``window`` bounds what a rank has under way: MPI libraries limit their
    eager messages, the simulator does not.
    """

    pattern: Literal["all_to_all", "incast", "put_incast", "get_broadcast"] = Field(
        default="all_to_all", description="what its ranks do in a round"
    )
    message_size: Size = 4 * KIB
    messages_per_iteration: Count = Field(default=64, description="rounds per iteration")
    compute: Duration | None = 0
    window: Count = Field(
        default=16, description="outstanding messages per rank of an `incast`; other patterns wait for each"
    )

    @property
    def _one_sided(self) -> bool:
        return self.pattern in ("put_incast", "get_broadcast")

    @override
    def write(self, rank: Rank, stages: list[list[int]]) -> None:
        if self._one_sided:
            rank.win_create(_WINDOW)
            if (part := self.slice_of(rank)).index:
                rank.win_lock(_WINDOW, part.world(0), exclusive=False)
        super().write(rank, stages)

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        part = self.slice_of(rank)
        if part.index or not self._one_sided:  # the target of one-sided operations does nothing
            with rank.repeat(self.messages_per_iteration):
                self._round(rank, part)
        rank.collective("barrier", comm=part.comm)

    def _round(self, rank: Rank, part: Slice) -> None:
        root = part.world(0)
        if self.pattern == "all_to_all":
            self._exchange(rank, part)
        elif self.pattern == "incast" and part.index:
            for _ in range(self.window):
                rank.isend(root, self.message_size, synchronous=True)
            rank.wait_all()
        elif self.pattern == "incast":
            for _ in range(self.window):
                for index in range(1, part.size):
                    rank.irecv(part.world(index))
            rank.wait_all()
        else:
            transfer = rank.put if self.pattern == "put_incast" else rank.get
            transfer(_WINDOW, root, self.message_size)
            rank.win_flush(_WINDOW, root)

    def _exchange(self, rank: Rank, part: Slice) -> None:
        """Pairwise: with a power of two partners are those of an exclusive or, else ranks further and further on."""
        is_power = not part.size & (part.size - 1)
        for step in range(1, part.size):
            source, target = (part.index ^ step,) * 2 if is_power else (part.index - step, part.index + step)
            rank.irecv(part.world(source % part.size))
            rank.isend(part.world(target % part.size), self.message_size)
            rank.wait_all()
