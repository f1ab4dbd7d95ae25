"""What a rank can inject: its part of its host's links, and what a message takes on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["UNKNOWN", "Injection"]


@dataclass(frozen=True)
class Injection:
    """Injection bandwidth and packets."""

    bandwidths: Sequence[float]
    """Of each rank, bits per second; with a single value it is that of every rank."""
    mtu: int
    """Payload of the largest packet, bytes."""
    header: int
    """Header of each packet, bytes."""

    def bandwidth(self, rank: int) -> float:
        """The injection bandwidth of a rank, bits per second."""
        return self.bandwidths[rank if len(self.bandwidths) > 1 else 0]

    def packets(self, size: int) -> int:
        """The packets of a message."""
        return max(1, -(-size // self.mtu))

    def wire(self, size: int) -> int:
        """The bytes of a message on the wire."""
        return size + self.packets(size) * self.header


UNKNOWN = Injection((1e11,), 4096, 26)
"""Where there is no fabric to ask: links of 100 Gbit/s."""
