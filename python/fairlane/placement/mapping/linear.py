"""Linear mapping."""

from collections.abc import Sequence

from fairlane.placement.mapping.base import Mapping, Slots

__all__ = ["Linear"]


class Linear(Mapping):
    """Rank by rank, in the order of the allocation."""

    def places(self, slots: Slots) -> Sequence[int]:
        """Rank n has place n."""
        return range(len(slots.hosts))
