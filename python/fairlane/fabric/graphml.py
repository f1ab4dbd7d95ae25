"""GraphML files, read by networkx: an edge for each cable.

Edges may have ``bandwidth``, ``latency``, ``from_port`` and ``to_port``, nodes ``kind`` ("host" or "switch"), as
``from_networkx`` takes them. ``number`` and ``from``, which ``fairlane fabric export`` writes, give cables their order
and direction; without them the rails of a host are numbered by port.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane.errors import Problem, ScenarioError, require
from fairlane.fabric.wiring import Wiring, by_rails, from_networkx


def is_graphml(text: str) -> bool:
    """Whether a file is GraphML."""
    return text.lstrip().startswith("<") and "<graphml" in text[:4000]


def read_graphml(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` for what is no graph of cables. Raises ``MissingExtraError`` without networkx."""
    require("schedule")
    import networkx

    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ScenarioError(Problem.of_file(file, "declares a document type or entities, which are not read"))
    try:
        graph: networkx.Graph[Any] = networkx.parse_graphml(text, force_multigraph=True)
    except (networkx.NetworkXError, SyntaxError, KeyError, ValueError, TypeError) as error:
        raise ScenarioError(Problem.of_file(file, f"no GraphML that can be read: {error}")) from None
    try:
        found = from_networkx(graph)
        edges = [data for _, _, data in graph.edges(data=True)]
        cables = [_directed(cable, data) for cable, data in zip(found.cables, edges, strict=True)]
    except ScenarioError as error:
        raise ScenarioError(replace(one, file=str(file)) for one in error.problems) from None
    if all(isinstance(data.get("number"), int) for data in edges):
        order = sorted(range(len(cables)), key=lambda at: edges[at]["number"])
        return replace(found, cables=tuple(cables[at] for at in order), source=file)
    return replace(found, cables=by_rails(cables, found.hosts), source=file)


def _directed(cable: Any, data: dict[str, Any]) -> Any:
    """The cable with the direction and the ports that its edge states."""
    ends = cable.ends[::-1] if data.get("from") == cable.ends[1] else cable.ends
    ports = (data.get("from_port"), data.get("to_port"))
    if ports == (None, None):
        return replace(cable, ends=ends)
    if not all(isinstance(port, int) and not isinstance(port, bool) and 0 < port <= 65_535 for port in ports):
        words = f"edge {' - '.join(ends)}: not two numbers from 1 to 65535"
        raise ScenarioError(Problem("from_port, to_port", words, list(ports)))
    return replace(cable, ends=ends, ports=ports)
