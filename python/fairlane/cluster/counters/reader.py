"""Reads counters from a file, whatever of the known kinds it is, and finds the port of a fabric that they are of."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from fairlane.cluster.counters.base import COUNTERS, PortCounters, Reading
from fairlane.cluster.counters.diagnostics import is_ibqueryerrors, is_perfquery, read_ibqueryerrors, read_perfquery
from fairlane.cluster.counters.prometheus import is_prometheus, read_prometheus
from fairlane.cluster.counters.sysfs import is_sysfs, read_sysfs
from fairlane.core.errors import Problem, ScenarioError, nearest
from fairlane.inputs.files import MOST_STORED, read_bytes, reading
from fairlane.model.fabric.identities import nodes_of, places
from fairlane.model.fabric.nodes import Node, Port
from fairlane.model.fabric.wiring import Wiring

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
    placed, problems = [], []
    for port in ports:
        host = port.name if port.name in names else port.name.partition(".")[0]  # an instance may have its domain
        keys = [
            by_guid.get((port.guid, port.number)),
            by_lid.get((port.lid, port.number)),
            by_description.get((f"{host} {port.device}" if port.device else port.name, port.number)),
            None if port.adapter is None else (host, port.adapter + port.number),
        ]
        key = next((key for key in keys if key in at), None)
        if key is not None:
            placed.append(Located(*key, port))
        elif not (host in names or _known(port, by_guid, by_lid, by_description)):
            near = nearest(port.name, names) if port.name else None
            message, allowed = f"the fabric has no {port}", None
            if not (port.name or port.guid or port.lid):
                message, allowed = f"the host of {port} is not known", _IDENTITY
            problems.append(Problem("", message, allowed=allowed, nearest=near, file=str(file), line=port.line))
    if not placed and not problems:
        problems.append(Problem.of_file(file, "none of its ports has a cable in the fabric"))
    if problems:
        raise ScenarioError(problems)
    return placed


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


def _known(port: PortCounters, by_guid: _ByNumber, by_lid: _ByNumber, by_name: dict[tuple[str, int], _Key]) -> bool:
    """Whether the fabric has the node, and not this port of it: a port without a cable, or port 0 of a switch."""
    nodes = ({guid for guid, _ in by_guid}, {lid for lid, _ in by_lid}, {name for name, _ in by_name})
    return port.guid in nodes[0] or port.lid in nodes[1] or (bool(port.name) and port.name in nodes[2])


FORMATS: Mapping[str, tuple[Callable[[str], bool], Callable[[str, Path], Reading]]] = {
    "ibqueryerrors": (is_ibqueryerrors, read_ibqueryerrors),
    "perfquery": (is_perfquery, read_perfquery),
    "prometheus": (is_prometheus, read_prometheus),
    "sysfs": (is_sysfs, read_sysfs),
}
"""For each format whether a text is of it, and its reader."""
_LARGEST = 2**64 - 1
_KINDS = (
    "the output of perfquery, of ibqueryerrors --counters or of grep . /sys/class/infiniband/*/ports/*/counters/*, "
    "or Prometheus text of an InfiniBand exporter"
)
_OTHERS = {
    r"^# (Port\w+) counters: .* port \d+": ("{0}, which are parts of a port's counters", "perfquery -x"),
    r"^# (Port\w+): .* port \d+": ("{0}, which is no counter of data", "perfquery -x"),
    r"^# TYPE \w+ ": (
        "Prometheus text without a metric of an InfiniBand exporter",
        "the exporter's InfiniBand metrics",
    ),
}
"""Files of these tools that are no counters of ports: what they have, and what is meant."""


def read_counters(file: Path) -> Reading:
    """The counters of all ports of a file.

    Raises ``ScenarioError`` with the line of what is wrong, for a port that is there twice, and if there is no port.
    """
    with reading(file):
        # Names that devices report need not be UTF-8, and only what is read has to be.
        text = read_bytes(file, MOST_STORED).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
    read = next((reader for is_it, reader in FORMATS.values() if is_it(text)), None)
    if read is None:
        raise ScenarioError(_unknown(text, file))
    counters = read(text, file)
    first: dict[tuple[object, ...], PortCounters] = {}
    problems = []
    for port in counters.ports:
        if large := [name for name, value in port.values.items() if value > _LARGEST]:
            message = f"{large[0]} of {port} is no counter of 64 bits"
            problems.append(Problem.of_file(file, message, port.line))
        if first.setdefault(port.key, port) is not port:
            message = f"{port} has counters already, on line {first[port.key].line}; give one reading in a file"
            problems.append(Problem.of_file(file, message, port.line))
    if not counters.ports:
        problems.append(Problem.of_file(file, "has no counter of data, packets, waiting or errors of any port"))
    if problems:
        raise ScenarioError(problems)
    return counters


def _unknown(text: str, file: Path) -> Problem:
    for shape, (template, meant) in _OTHERS.items():
        if begins := re.search(shape, text, re.MULTILINE):
            return Problem.of_file(file, template.format(*begins.groups()), allowed=meant)
    return Problem.of_file(file, "no known format of counters", allowed=_KINDS)


def table_of(ports: Iterable[PortCounters | Located]) -> pl.DataFrame:
    """Name, device, port, GUID and LID of each port, and its counters in their own units.

    Empty where the source has none; a column without a value is left out, but for those that name a port.
    """
    rows = []
    for item in ports:
        values_of = item.counters if isinstance(item, Located) else item
        name, number = (item.name, item.port) if isinstance(item, Located) else (values_of.name, values_of.number)
        guid = None if values_of.guid is None else f"0x{values_of.guid:016x}"
        names = {"name": name, "device": values_of.device or None, "port": number}
        rows.append({**names, "guid": guid, "lid": values_of.lid, **_values(values_of)})
    kinds = {"name": pl.String, "port": pl.UInt32, "guid": pl.String, "lid": pl.UInt32}
    counters = dict.fromkeys(COUNTERS, pl.UInt64)
    table = pl.DataFrame(rows, schema={"name": pl.String, "device": pl.String, **kinds, **counters})
    return table.select(name for name in table.columns if name in kinds or table[name].count())


def _values(port: PortCounters) -> dict[str, int | None]:
    return {name: port.values.get(name) for name in COUNTERS}
