"""What a mapping is: it says which rank of a job goes to which of its hosts."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from fairlane.inputs.registry import Named

__all__ = ["Mapping", "Slots"]


@dataclass(frozen=True)
class Slots:
    """The places for a job's ranks, in the order in which the allocation gives them."""

    hosts: Sequence[int]
    """The host of each place; as many places as ranks, and a host's places follow each other."""
    distances: Callable[[], NDArray[numpy.int64]]
    """Links between the switches of every two places."""
    traffic: Callable[[], NDArray[numpy.float64]]
    """Bytes that each rank (row) sends to each other (column)."""


class Mapping(Named):
    """Says which rank goes where. The fields of a subclass are its parameters."""

    @abstractmethod
    def places(self, slots: Slots) -> Sequence[int]:
        """The place of each rank: each of the ``slots`` once."""

    def problem_with(self, ranks: int) -> tuple[str, str, str] | None:
        """The key that does not fit a job of so many ranks, what is wrong, and what is allowed; None if all is well."""
        del ranks
        return None
