"""Linear mapping."""

from collections.abc import Sequence
from typing import Literal

from fairlane.placement.mapping.base import Mapping, Slots

__all__ = ["Linear"]


class Linear(Mapping):
    """Rank by rank, in the order of the allocation."""

    name: Literal["linear"] = "linear"
    """Name of the mapping."""

    def places(self, slots: Slots) -> Sequence[int]:
        """Rank n has place n."""
        return range(len(slots.hosts))
