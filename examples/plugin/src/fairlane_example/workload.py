"""A workload: the exchange pattern of a fast Fourier transform."""

from typing_extensions import override

from fairlane.model.workload import Rank, Workload


class Butterfly(Workload):
    """Every rank exchanges with the rank whose number differs in one bit, bit by bit."""

    @override
    def problem_with(self, ranks: int) -> str | None:
        """The bits of a rank's number must all have a partner."""
        return super().problem_with(ranks) or ("a power of 2" if ranks & (ranks - 1) else None)

    @override
    def communicate(self, rank: Rank, iteration: int) -> None:
        """One exchange for each bit, one after the other."""
        for bit in range((rank.ranks - 1).bit_length()):
            rank.exchange([rank.index ^ (1 << bit)], self.message_size, self.messages_per_iteration)
