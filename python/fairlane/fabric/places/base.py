"""What joins hosts and switches of a fabric, for those who say where they stand."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fairlane.fabric.subtrees import subtrees
from fairlane.fabric.view import Fabric

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Point = Sequence[float] | Floats


def cables(fabric: Fabric) -> Counter[Pair]:
    """How many cables join each pair of switches, the lower number first."""
    ends = zip(fabric.links["from_switch"].tolist(), fabric.links["to_switch"].tolist(), strict=True)
    return Counter((a, b) for a, b in ends if 0 <= a < b)


def hosts_of(fabric: Fabric) -> Counter[int]:
    """How many hosts hang at each switch. One that has links to several counts at each of them."""
    return Counter({switch: len(hosts) for switch, hosts in hosts_at(fabric).items()})


def hosts_at(fabric: Fabric) -> dict[int, set[int]]:
    """The hosts of each switch that has some."""
    found: dict[int, set[int]] = defaultdict(set)
    for host, switch, _ in adapters(fabric):
        found[switch].add(host)
    return found


def adapters(fabric: Fabric) -> list[tuple[int, int, int]]:
    """The host, switch and rail of each adapter that has a cable to a switch."""
    ends = zip(fabric.links["from_host"].tolist(), fabric.links["to_switch"].tolist(), strict=True)
    of_hosts = [(host, switch) for host, switch in ends if host >= 0]
    rails = (rail for count in fabric.adapters_of_hosts.tolist() for rail in range(count))
    return [(host, switch, rail) for (host, switch), rail in zip(of_hosts, rails, strict=True) if switch >= 0]


def planes(fabric: Fabric) -> int:
    """How many parts there are that no cable between switches joins: copies of one network, if hosts have rails."""
    return len(set(subtrees(fabric, max(fabric.levels, default=0)))) if fabric.rails > 1 else 1


def circle(count: int, radius: float = 1.0, centre: Point = (0.0, 0.0), start: float = np.pi / 2) -> Floats:
    """Points around a circle, clockwise from the top."""
    angles = start - 2 * np.pi * np.arange(count) / max(count, 1)
    return np.asarray(centre) + radius * np.column_stack([np.cos(angles), np.sin(angles)])
