"""Forwarding tables of the routes that the simulator uses: at each switch the port for each endpoint.

They exist for routings that choose the next link by switch and destination alone. Adaptive routings, and those by
source or virtual channel, have none. Endpoints are the adapters of all hosts, host by host.
"""

from collections.abc import Mapping
from typing import Any

from fairlane.fabric.view import Fabric

BY_DESTINATION = ("d_mod_k", "dimension_order", "minimal", "up_down")
"""Routings that do not look at loads, sources or flows."""
TABLES = "tables"
"""The routing by an imported fabric's own forwarding tables."""


def tables_of(fabric: Fabric, spec: Mapping[str, Any]) -> dict[str, tuple[int, ...]] | None:
    """The port for each endpoint by switch, 0 where no route passes; None if the routing has no such tables.

    ``spec`` is the specification that the fabric was built from.
    """
    if spec["routing"] == TABLES:
        return {switch: tuple(ports) for switch, ports in spec["params"]["tables"].items()}
    ports = fabric.forwarding() if spec["routing"] in BY_DESTINATION else None
    if ports is None:
        return None
    return {name: tuple(row) for name, row in zip(fabric.switch_names, ports.tolist(), strict=True)}
