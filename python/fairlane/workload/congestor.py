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
            if (own := self.slice_of(rank)).index:
                rank.win_lock(_WINDOW, own.world(0), exclusive=False)
        super().write(rank, stages)

    @override
    def repeats(self) -> bool:
        return True

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        own = self.slice_of(rank)
        if own.index or not self._one_sided:  # the target of one-sided operations does nothing
            with rank.repeat(self.messages_per_iteration):
                self._round(rank, own)
        rank.collective("barrier", comm=own.comm)

    def _round(self, rank: Rank, own: Slice) -> None:
        root = own.world(0)
        if self.pattern == "all_to_all":
            self._exchange(rank, own)
        elif self.pattern == "incast" and own.index:
            for _ in range(self.window):
                rank.isend(root, self.message_size, synchronous=True)
            rank.wait_all()
        elif self.pattern == "incast":
            for _ in range(self.window):
                for index in range(1, own.size):
                    rank.irecv(own.world(index))
            rank.wait_all()
        else:
            one = rank.put if self.pattern == "put_incast" else rank.get
            one(_WINDOW, root, self.message_size)
            rank.win_flush(_WINDOW, root)

    def _exchange(self, rank: Rank, own: Slice) -> None:
        """Pairwise: with a power of two partners are those of an exclusive or, else ranks further and further on."""
        is_power = not own.size & (own.size - 1)
        for step in range(1, own.size):
            source, target = (own.index ^ step,) * 2 if is_power else (own.index - step, own.index + step)
            rank.irecv(own.world(source % own.size))
            rank.isend(own.world(target % own.size), self.message_size)
            rank.wait_all()
