"""What a rank of a resolved job can inject."""

import numpy

from fairlane.fabric import Fabric
from fairlane.scenario.resolved import Resolved, ResolvedJob
from fairlane.workload.injection import Injection


def injection_of(resolved: Resolved, job: ResolvedJob) -> Injection:
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
