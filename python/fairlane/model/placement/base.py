"""The base of placement policies: a policy allocates free hosts to a job."""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy
from numpy.typing import NDArray

from fairlane.inputs.registry import Named


class FabricView(Protocol):
    """Fabric as a placement policy sees it."""

    @property
    def hosts(self) -> int:
        """How many hosts there are."""

    @property
    def leaf_of(self) -> Sequence[int]:
        """The switch at each host."""

    @property
    def plan(self) -> Mapping[str, Any]:
        """Layout of the switches: ``kind`` is "free" (by levels only), "groups" or "grid", with its sizes."""

    @property
    def levels(self) -> Sequence[int]:
        """The level of each switch in a tree, 1 for leaves; 0 where the fabric has no levels."""

    @property
    def links(self) -> Mapping[str, NDArray[Any]]:
        """The links' columns."""


@dataclass(frozen=True)
class Communication:
    """Communication pattern of a job as a placement policy sees it."""

    kind: str
    """ "nearest neighbour", "many-to-many", "hybrid" or "unclear"."""
    unit: int | None = None
    """Hosts next to each other that keep local traffic together; None if nothing is local."""


@dataclass(frozen=True)
class Request:
    """Request of a job for hosts."""

    hosts: int
    """Number of hosts that it needs."""
    rng: numpy.random.Generator
    """Its own stream of random numbers."""
    communication: Callable[[], Communication] | None = None
    """Finds out its communication pattern; None if that is not known."""


class PlacementPolicy(Named):
    """Picks hosts for jobs. The fields of a subclass are its parameters, next to its name in a scenario.

    A subclass says in ``allocate`` which hosts it takes, and in ``check`` what its parameters need of the fabric.
    """

    together: ClassVar[bool] = False
    """Whether the jobs of one placement table are allocated together, not one after the other."""

    @abstractmethod
    def allocate(self, free: Sequence[int], request: Request, fabric: FabricView) -> list[int] | None:
        """Hosts among the ``free`` ones, in the order in which ranks fill them; None if it finds none that will do.

        ``free`` is in ascending order.
        """

    def allocate_together(
        self, free: Sequence[int], requests: Sequence[Request], fabric: FabricView
    ) -> list[list[int] | None]:
        """Hosts for several jobs; by default for one after the other."""
        left, allocated = list(free), []
        for request in requests:
            hosts = self.allocate(left, request, fabric)
            taken = set(hosts or ())
            left = [host for host in left if host not in taken]
            allocated.append(hosts)
        return allocated

    def check(self, fabric: FabricView, hosts: Sequence[int]) -> None:
        """Raises ``Problems`` if the parameters do not fit the fabric, or jobs that need this many ``hosts`` each."""

    def wanted(self) -> str:
        """What a job that gets no hosts would have needed, in words."""
        return "free hosts"


def by_leaf(free: Sequence[int], fabric: FabricView) -> dict[int, list[int]]:
    """The free hosts of each leaf switch, both in ascending order."""
    leaves: dict[int, list[int]] = defaultdict(list)
    for host in free:
        leaves[fabric.leaf_of[host]].append(host)
    return dict(sorted(leaves.items()))
