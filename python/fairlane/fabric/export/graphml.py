"""GraphML by networkx: nodes with their kind, edges with ports, bandwidth and latency.

Edges carry their number, because GraphML orders them by node; cables and switches keep their numbers when it is read.
"""

import re
from typing import Any

from fairlane.errors import Problem, ScenarioError, require
from fairlane.fabric.export.notes import Written, left_out
from fairlane.fabric.wiring import Wiring
from fairlane.units import BANDWIDTH, DURATION

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML 1.0, production 2


def write_graphml(wiring: Wiring) -> Written:
    """The file. Raises ``ScenarioError`` for names that XML cannot hold, ``MissingExtraError`` without networkx."""
    require("schedule")
    import networkx

    for name in (*wiring.hosts, *wiring.switches):
        if _NO_XML.search(name):
            words = "cannot be in a GraphML file"
            raise ScenarioError(Problem("name", words, name, "no control characters, which XML cannot hold"))
    graph: networkx.MultiGraph[str] = networkx.MultiGraph()
    for name in wiring.hosts:
        graph.add_node(name, kind="host")
    for name in wiring.switches:
        graph.add_node(name, kind="switch")
    for number, cable in enumerate(wiring.cables):
        data: dict[str, Any] = {
            "number": number,
            "from": cable.ends[0],
            "from_port": None if cable.ports is None else cable.ports[0],
            "to_port": None if cable.ports is None else cable.ports[1],
            "bandwidth": None if cable.bandwidth is None else BANDWIDTH.format(cable.bandwidth),
            "latency": None if cable.latency is None else DURATION.format(cable.latency),
        }
        graph.add_edge(*cable.ends, key=number, **{key: value for key, value in data.items() if value is not None})
    text = "\n".join(networkx.generate_graphml(graph)) + "\n"
    return Written(text, tuple(left_out(wiring, bandwidths=False, latencies=False)))
