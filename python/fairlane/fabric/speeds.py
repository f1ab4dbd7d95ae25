"""Links and hosts that are slower than what they are used with: often the root of congestion.

A link is compared with its peers, the links of its class, role and levels; a host of a job with the job's other hosts.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy
from numpy.typing import NDArray

from fairlane.wording import bit_rate, plural, some

PEERS = ("class", "role", "from_level", "to_level")
"""What links have in common with their peers."""
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


def slow_links(links: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """A sentence for each role of links between switches of which some are slower than most of their peers."""
    usual = usual_bandwidth(links)
    switches = (links["from_level"] > 0) & (links["to_level"] > 0) & (links["from_host"] < 0) & (links["to_host"] < 0)
    slow = numpy.flatnonzero(switches & (links["bandwidth"] < usual))
    by_role: dict[tuple[Any, ...], list[int]] = {}
    for link in slow.tolist():
        by_role.setdefault((*(links[name][link] for name in PEERS), links["bandwidth"][link]), []).append(link)
    for (*_, rate), found in by_role.items():
        first = found[0]
        role, most = links["role"][first], bit_rate(int(usual[first]))
        names = (f"{links['from_name'][at]} port {links['from_port'][at]} to {links['to_name'][at]}" for at in found)
        verb = "has" if len(found) == 1 else "have"
        rates = f"{bit_rate(int(rate))}, most of their role {most}"
        yield f"{plural(len(found), f'{role} link')} {verb} {rates}: {some(names, _NAMED)}"


def mixed_speeds(job: str, hosts: Sequence[int], bandwidths: NDArray[Any], names: Sequence[str]) -> str | None:
    """That some hosts of a job have less bandwidth than its others; None if all have the same.

    ``bandwidths`` are those of all hosts of the fabric, bits per second.
    """
    from fairlane.slurm import shortened

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
