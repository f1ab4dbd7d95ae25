"""Which port of a fabric counters are of: by GUID, LID, or the name of a host or switch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane.counters.base import PortCounters
from fairlane.errors import Problem, ScenarioError, nearest
from fairlane.fabric import Wiring
from fairlane.fabric.identities import nodes_of, places
from fairlane.fabric.nodes import Node, Port

_IDENTITY = "a host in front (HOST: PATH:VALUE, or the label instance), or the files lid or node_guid of sysfs"


@dataclass(frozen=True)
class Located:
    """Counters of a port of a fabric."""

    name: str
    """The host or switch."""
    port: int
    """The port's number; a host's ports are numbered over its adapters."""
    counters: PortCounters


def located(ports: Iterable[PortCounters], wiring: Wiring, file: Path) -> list[Located]:
    """The ports with their places; those without a cable are left out.

    Raises ``ScenarioError`` for ports of nodes that the fabric does not have, and if no port has a cable.
    """
    at = places(nodes_of(wiring), wiring)
    by_guid, by_lid, by_description = _keys(at)
    names = {name for name, _ in at}
    found, problems = [], []
    for one in ports:
        host = one.name if one.name in names else one.name.partition(".")[0]  # an instance may have its domain
        keys = [
            by_guid.get((one.guid, one.number)),
            by_lid.get((one.lid, one.number)),
            by_description.get((f"{host} {one.device}" if one.device else one.name, one.number)),
            None if one.adapter is None else (host, one.adapter + one.number),
        ]
        key = next((key for key in keys if key in at), None)
        if key is not None:
            found.append(Located(*key, one))
        elif not (host in names or _known(one, by_guid, by_lid, by_description)):
            near = nearest(one.name, names) if one.name else None
            words, allowed = f"the fabric has no {one}", None
            if not (one.name or one.guid or one.lid):
                words, allowed = f"the host of {one} is not known", _IDENTITY
            problems.append(Problem("", words, allowed=allowed, nearest=near, file=str(file), line=one.line))
    if not found and not problems:
        problems.append(Problem.of_file(file, "none of its ports has a cable in the fabric"))
    if problems:
        raise ScenarioError(problems)
    return found


_Key = tuple[str, int]
_ByNumber = dict[tuple[int | None, int], _Key]


def _keys(at: Mapping[_Key, tuple[Node, Port]]) -> tuple[_ByNumber, _ByNumber, dict[tuple[str, int], _Key]]:
    """The ports by GUID of node or port, by LID, and by name or NodeDescription, each with the number on the node."""
    by_guid: _ByNumber = {}
    by_lid: _ByNumber = {}
    by_name: dict[tuple[str, int], _Key] = {}
    for key, (node, port) in at.items():
        for guid in (node.guid, port.guid):
            if guid is not None:
                by_guid[guid, port.number] = key
        lid = node.lid if node.is_switch else port.lid
        if lid:
            by_lid[lid, port.number] = key
        by_name.setdefault((node.description, port.number), key)
        by_name.setdefault(key, key)
    return by_guid, by_lid, by_name


def _known(one: PortCounters, by_guid: _ByNumber, by_lid: _ByNumber, by_name: dict[tuple[str, int], _Key]) -> bool:
    """Whether the fabric has the node, and not this port of it: a port without a cable, or port 0 of a switch."""
    nodes = ({guid for guid, _ in by_guid}, {lid for lid, _ in by_lid}, {name for name, _ in by_name})
    return one.guid in nodes[0] or one.lid in nodes[1] or (bool(one.name) and one.name in nodes[2])
