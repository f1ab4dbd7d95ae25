"""Roots of congestion trees: the links that are busy themselves, to which ports that stall upstream lead.

A port that stalls has packets and no credits, because the switch at its end cannot send on what it has received. So the
cause is downstream: the walk goes from each stalled port to the outputs of that switch at which most packets wait, and
on from those that stall themselves. It ends at links that transmit nearly all the time that they have packets: the
roots. Links that are saturated without a stalled port upstream, as those of hosts that send more than their adapter
takes, are roots, too. For which output a stalled port's packets wait is not measured; the walk takes all those with at
least half as much as the output with most.

*Links and hosts that are slower than what they are used with: often the root of congestion.* A link is compared with
its peers, the links of its class, role and levels; a host of a job with the job's other hosts.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.core.wording import bit_rate, plural, some
from fairlane.inputs.hosts import shortened
from fairlane.model.fabric.graph import Graph

STALLED = 0.05
"""A port stalls if it does for this share of the time."""
BUSY = 0.5
"""A root at which stalled ports end transmits for at least this share of the time."""
SATURATED = 0.7
"""A link without stalled ports upstream is a root if it transmits for at least this share."""
SIMILAR = 0.5
"""The walk goes on to outputs with this share of the largest queue of a switch."""


@dataclass(frozen=True)
class Port:
    """Measurements of the port that sends over a link."""

    link: int
    """The link's number."""
    start: str
    end: str
    """The host or switch at each end."""
    active_share: float
    """The share of the time in which it transmits."""
    stalled_share: float
    """The share in which it has packets and no credits."""
    queue: float
    """Amount that waits at it, in any unit."""

    @property
    def stalls(self) -> bool:
        """Whether it is held up by what is downstream."""
        return self.stalled_share >= STALLED


def trees(ports: Iterable[Port]) -> dict[int, list[int]]:
    """The roots by link number, each with the stalled ports that lead to it."""
    every = list(ports)
    outputs: dict[str, list[Port]] = defaultdict(list)
    for port in every:
        outputs[port.start].append(port)
    links_by_root: dict[int, list[int]] = {
        port.link: [] for port in every if port.active_share >= SATURATED and not port.stalls
    }
    for port in filter(lambda port: port.stalls, every):
        for root in _downstream(port, outputs):
            links_by_root.setdefault(root, []).append(port.link)
    return links_by_root


def _downstream(stalled: Port, outputs: dict[str, list[Port]]) -> list[int]:
    """The roots to which a stalled port leads."""
    roots: list[int] = []
    seen, open_ = {stalled.link}, [stalled]
    while open_:
        port = open_.pop()
        others = [output for output in outputs[port.end] if output.end != port.start]
        most = max((output.queue for output in others), default=0.0)
        for output in others:
            if output.link in seen or not most or output.queue < SIMILAR * most:
                continue
            seen.add(output.link)
            if output.stalls:
                open_.append(output)
            elif output.active_share >= BUSY:
                roots.append(output.link)
    return roots


@dataclass(frozen=True)
class Root:
    """The root of a congestion tree."""

    link: str
    """The link's name, as ``leaf4 port 7 to spine2``."""
    active_share: float
    """The share of the time in which it transmits."""
    bandwidth_bps: int
    """Bits per second."""
    usual_bps: int
    """The bandwidth of most of its peers."""
    upstream: int
    """Number of stalled ports that lead to it."""
    jobs: tuple[str, ...]
    """The jobs that use it, where that is known."""

    @property
    def slow(self) -> bool:
        """Whether it is slower than most of its peers."""
        return self.bandwidth_bps < self.usual_bps


PEERS = ("class", "role", "from_level", "to_level")
"""Columns in which links equal their peers."""
_NAMED = 4  # hosts or links that a sentence names


def usual_bandwidth(links: Mapping[str, NDArray[Any]], bandwidth: str = "bandwidth") -> NDArray[Any]:
    """Of each link the bandwidth that most of its peers have, bits per second; the highest of equally frequent ones."""
    rates = links[bandwidth]
    groups: dict[tuple[Any, ...], Counter[int]] = {}
    keys = list(zip(*(links[name].tolist() for name in PEERS), strict=True))
    for key, rate in zip(keys, rates.tolist(), strict=True):
        groups.setdefault(key, Counter())[rate] += 1
    usual = {key: max(rates, key=lambda rate: (rates[rate], rate)) for key, rates in groups.items()}
    return numpy.array([usual[key] for key in keys])


def slow_links(fabric: Graph) -> Iterator[str]:
    """A sentence for each role of links between switches of which some are slower than most of their peers."""
    kinds = zip(*(fabric.link_kinds[name].tolist() for name in (*PEERS, "bandwidth")), strict=True)
    of_switches = {(tuple(peers), rate) for *peers, rate in kinds if min(peers[2:]) > 0}
    if len(of_switches) == len({peers for peers, _ in of_switches}):
        return
    links = fabric.links
    usual = usual_bandwidth(links)
    switches = (links["from_level"] > 0) & (links["to_level"] > 0) & (links["from_host"] < 0) & (links["to_host"] < 0)
    slow = numpy.flatnonzero(switches & (links["bandwidth"] < usual))
    by_role: dict[tuple[Any, ...], list[int]] = {}
    for link in slow.tolist():
        by_role.setdefault((*(links[name][link] for name in PEERS), links["bandwidth"][link]), []).append(link)
    for (*_, rate), of_rate in by_role.items():
        first = of_rate[0]
        role, most = links["role"][first], bit_rate(int(usual[first]))
        names = (f"{links['from_name'][at]} port {links['from_port'][at]} to {links['to_name'][at]}" for at in of_rate)
        verb = "has" if len(of_rate) == 1 else "have"
        rates = f"{bit_rate(int(rate))}, most of their role {most}"
        yield f"{plural(len(of_rate), f'{role} link')} {verb} {rates}: {some(names, _NAMED)}"


def mixed_speeds(job: str, hosts: Sequence[int], bandwidths: NDArray[Any], names: Sequence[str]) -> str | None:
    """Say that some hosts of a job have less bandwidth than its others; None if all have the same.

    ``bandwidths`` are those of all hosts of the fabric, bits per second.
    """
    used = sorted(set(hosts))
    rates = Counter(int(bandwidths[host]) for host in used)
    if len(rates) < 2:
        return None
    fastest = max(rates)
    slow = [host for host in used if bandwidths[host] < fastest]
    lower = " or ".join(bit_rate(rate) for rate in sorted(rates)[:-1])
    which = f"{len(slow)} of its {len(used)} hosts ({shortened([names[host] for host in slow])})"
    verb = "has" if len(slow) == 1 else "have"
    others = f"{lower}, the others {bit_rate(fastest)}"
    return f"job {job!r}: {which} {verb} {others}: operations of all ranks run at the pace of the slowest"
