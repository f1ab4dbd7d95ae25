"""What a routing uses of a fabric: links that no route takes, and how many of the minimal paths are left."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane import _core

_BUDGET = 50_000_000  # hops that are followed, and links that are walked, before destinations and sources are sampled
_LOW = 0.75  # a smaller share of minimal routes, or of minimal paths, gets a warning
_NAMED = 3  # links of a class that are named


@dataclass(frozen=True)
class IdleLinks:
    """Links of one class that no route takes."""

    name: str
    """Of the class."""
    role: str
    links: int
    """How many no route takes."""
    total: int
    """How many the class has."""
    first: tuple[str, ...]
    """Some of them, by name."""


@dataclass(frozen=True)
class Coverage:
    """What the routes between all pairs of endpoints (adapters) use of a fabric, whatever the loads."""

    idle: tuple[IdleLinks, ...]
    """Links that no route takes, by class."""
    idle_is_exact: bool
    """Whether every route was followed; else there may be fewer idle links."""
    minimal_paths: float
    """Of the minimal paths between two switches with hosts, the share all of whose links are on routes: the mean over
    all pairs of endpoints at different switches."""
    minimal_routes: float | None
    """Of the pairs of endpoints at different switches, the share whose route is a minimal path; None for a routing
    that goes by loads."""
    sources: tuple[int, int]
    """From how many switches the two shares were measured, and how many have hosts."""
    warnings: tuple[str, ...]
    """Idle links between switches, and shares that are low, as sentences."""


def measure(
    core: _core.Fabric, links: Mapping[str, NDArray[Any]], name_of: Callable[[int], str]
) -> tuple[Coverage, NDArray[numpy.bool_]]:
    """Follows the routes of a fabric; also returns by link whether a route takes it. ``name_of`` names a link."""
    used, _, is_exact, paths, routes, sources = core.coverage(_BUDGET)
    flags = numpy.frombuffer(used, dtype=numpy.uint8).astype(bool)
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    totals: dict[tuple[int, str], int] = defaultdict(int)
    kinds = zip(links["class"].tolist(), links["role"].tolist(), flags.tolist(), strict=True)
    for link, (number, role, is_used) in enumerate(kinds):
        totals[number, role] += 1
        if not is_used:
            found[number, role].append(link)
    names = core.classes()
    idle = tuple(
        IdleLinks(names[number], role, len(some), totals[number, role], tuple(map(name_of, some[:_NAMED])))
        for (number, role), some in sorted(found.items())
    )
    warnings = tuple(_warnings(idle, is_exact, paths, routes))
    return Coverage(idle, is_exact, paths, routes, sources, warnings), flags


def _warnings(idle: Sequence[IdleLinks], is_exact: bool, paths: float, routes: float | None) -> Iterator[str]:
    bound = "" if is_exact else "up to "
    for some in idle:
        if some.role != "host":
            yield f"{bound}{some.links} of {some.total} {some.name} links are used by no route"
    if paths < _LOW:
        yield f"of only {share_text(paths)} of the minimal paths every link is used by some route"
    if routes is not None and routes < _LOW:
        yield f"only {share_text(routes)} of host pairs have a minimal route"


def share_text(share: float) -> str:
    """A share in percent, which is 100% only if it is exactly that."""
    if share == 1:
        return "100%"
    if share > 0.99:
        return "over 99%"
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{100 * share:.2g}%"
