"""Forwarding tables of the routes that the simulator uses: at each switch the port for each host.

They exist for routings that choose the next link by switch and destination alone. Adaptive routings, and those by
source or virtual channel, have none. Only a host's first adapter is a destination.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy

from fairlane.fabric.view import Fabric

BY_DESTINATION = ("d_mod_k", "dimension_order", "minimal", "up_down")
"""Routings that do not look at loads, sources or flows."""
TABLES = "tables"
"""The routing by an imported fabric's own forwarding tables."""
_SOURCES = 2  # hosts of each leaf switch whose routes are followed: with two, each is a destination of the other


def tables_of(fabric: Fabric, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]] | None:
    """The port for each host by switch, 0 where no route passes; None if the routing has no such tables.

    ``spec`` is the specification that the fabric was built from.
    """
    if spec["routing"] == TABLES:
        return {switch: tuple(ports) for switch, ports in spec["params"]["tables"].items()}
    if spec["routing"] not in BY_DESTINATION or fabric.rails > 1:
        return None
    at, out = fabric.links["from_switch"].tolist(), fabric.links["from_port"].tolist()
    found = numpy.zeros((fabric.switches, fabric.hosts), dtype=numpy.int64)
    for source in _sources(fabric):
        for host in range(fabric.hosts):
            for link in fabric.route(source, host)[1:] if host != source else ():
                if found[at[link], host] not in (0, out[link]):
                    return None
                found[at[link], host] = out[link]
    return {name: tuple(row) for name, row in zip(fabric.switch_names, found.tolist(), strict=True)}


def _sources(fabric: Fabric) -> list[int]:
    by_leaf: dict[int, list[int]] = defaultdict(list)
    for host, leaf in enumerate(fabric.leaf_of):
        if leaf >= 0:
            by_leaf[leaf].append(host)
    return [host for hosts in by_leaf.values() for host in hosts[:_SOURCES]]
