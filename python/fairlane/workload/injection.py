"""What a rank can inject: its part of its host's links, and what a message takes on the wire."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy

from fairlane.fabric import Fabric

if TYPE_CHECKING:
    from fairlane.scenario.resolved import Resolved, ResolvedJob

__all__ = ["UNKNOWN", "Injection", "injection_of"]


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


def injection_of(resolved: "Resolved", job: "ResolvedJob") -> Injection:
    """That of the ranks of ``job``; ranks of a host share the links of the adapters that the job uses, evenly."""
    fabric = Fabric.build(resolved.tables["fabric"])
    policy = job.rails or {}
    own = numpy.flatnonzero(fabric.links["from_host"] >= 0)  # the adapters' links, those of a host in order of rail
    hosts, rates = fabric.links["from_host"][own], fabric.links["bandwidth"][own].astype(float)
    if policy.get("policy") == "only":
        order = numpy.argsort(hosts, kind="stable")
        first = numpy.searchsorted(hosts[order], numpy.arange(fabric.hosts))
        of_hosts = rates[order][first + policy["only"]]
    else:
        of_hosts = numpy.bincount(hosts, weights=rates, minlength=fabric.hosts)
    ranks = numpy.bincount(job.hosts, minlength=fabric.hosts)
    network = resolved.tables["network"]
    bandwidths = [float(of_hosts[host] / ranks[host]) for host in job.hosts]
    return Injection(bandwidths, network["mtu"], network["header"])
