"""Fabrics from lists of cables: CSV, GraphML, network files of ibsim.

The first line names the columns. ``from`` and ``to`` are required; ``from_port`` and ``to_port``, ``bandwidth`` and
``latency`` (with units), ``cables`` (how many in parallel) and ``from_kind`` and ``to_kind`` ("host" or "switch") are
optional. Names whose kind is not given are hosts if they have a single cable. Lines that begin with ``#`` are skipped.

Hosts and switches are numbered in order of first appearance. A line without ``to`` and with ``cables`` = 0 has no
cable: it gives the host in ``from`` its number.

*GraphML files, read by networkx: an edge for each cable.* Edges may have ``bandwidth``, ``latency``, ``from_port`` and
``to_port``, nodes ``kind`` ("host" or "switch"), as ``from_networkx`` takes them. ``number`` and ``from``, which
``fairlane fabric export`` writes, give cables their order and direction; without them the rails of a host are numbered
by port.

*Network files of ibsim: a record for each switch and adapter, a line for each of its ports.* An adapter (``Hca``) is a
host, and its rails are numbered by port. The format has no bandwidths and no latencies.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError, require
from fairlane.core.units import BANDWIDTH, DURATION, Kind, whole_number
from fairlane.core.wording import plural, some
from fairlane.inputs.csv_rows import rows_of
from fairlane.inputs.files import content_lines
from fairlane.model.fabric.wiring import Cable, Wiring, by_ports, by_rails, from_networkx, with_one_cable

_REQUIRED = ("from", "to")
_OPTIONAL = ("from_port", "to_port", "bandwidth", "latency", "cables", "from_kind", "to_kind")
_KINDS = ("host", "switch")
_MOST = {"from_port": 65_535, "to_port": 65_535, "cables": 4096}  # the largest numbers that there may be
_MOST_CABLES = 4_000_000  # more cables than any fabric has; they are kept in memory one by one


def is_csv(text: str) -> bool:
    """Whether a file begins like one of these."""
    _, first = next(content_lines(text), (0, ""))
    return set(_REQUIRED) <= {cell.strip() for cell in first.split(",")}


def read_csv(text: str, file: Path) -> Wiring:
    """The wiring that a CSV file lists; ``ScenarioError`` names every line that is wrong."""
    problems: list[Problem] = []
    cables: list[Cable] = []
    kinds: dict[str, str] = {}
    named: dict[str, int] = {}
    for row in rows_of(text, file, _REQUIRED, _OPTIONAL):
        line = row.line
        try:
            if _names_one(row):
                named.setdefault(row["from"], line)
                _kind(row, "from", row["from"], kinds)
                continue
            cables += _cables(row, line)
            for side, end in zip(_REQUIRED, (row["from"], row["to"]), strict=True):
                _kind(row, side, end, kinds)
        except ValueError as error:
            problems.append(Problem.of_file(file, str(error), line))
        if len(cables) > _MOST_CABLES:
            raise ScenarioError(Problem.of_file(file, f"more than {_MOST_CABLES:,} cables up to here", line))
    problems += _twice(cables, file)
    joined = dict.fromkeys(end for cable in cables for end in cable.ends)
    problems += [
        Problem.of_file(file, f"{place} has no cable", at) for place, at in named.items() if place not in joined
    ]
    if problems:
        raise ScenarioError(problems)
    single = with_one_cable(cables)
    names = dict.fromkeys((*named, *joined))
    hosts = tuple(name for name in names if (kinds[name] == "host" if name in kinds else name in single))
    return Wiring(hosts, tuple(cables), remarks=tuple(_guesses(names, hosts, kinds)), source=file)


def _guesses(names: Iterable[str], hosts: Collection[str], kinds: Mapping[str, str]) -> Iterator[str]:
    """Remarks on the names whose kind is not given."""
    guessed = [name for name in names if name not in kinds]
    there = [name for name in guessed if name in hosts]
    others = [name for name in guessed if name not in hosts]
    if there or not kinds:
        remark = f"{plural(len(there), 'name')} with a single cable {'is' if len(there) == 1 else 'are'} assumed to be"
        yield f"{remark} {'a host' if len(there) == 1 else 'hosts'}; set from_kind and to_kind"
    if kinds and others:
        remark = f"{plural(len(others), 'name')} of no kind, with several cables: {some(others, 3)}"
        yield f"{remark}; assumed to be {'a switch' if len(others) == 1 else 'switches'}; set from_kind and to_kind"


def _names_one(row: dict[str, str]) -> bool:
    """Whether a line has a name and no cable."""
    return bool(row["from"]) and not row["to"] and row.get("cables") == "0"


def _cables(row: dict[str, str], line: int) -> list[Cable]:
    if not row["from"] or not row["to"]:
        raise ValueError("a cable needs two ends")
    ports = tuple(_number(row, key) for key in ("from_port", "to_port"))
    count = _number(row, "cables") or 1
    known = None if ports[0] is None or ports[1] is None else (ports[0], ports[1])
    if known and count > 1:
        raise ValueError("several cables cannot share two ports: give each a line, or no ports")
    rate, delay = _quantity(row, "bandwidth", BANDWIDTH), _quantity(row, "latency", DURATION)
    return [Cable((row["from"], row["to"]), known, rate, delay, line=line)] * count


def _number(row: dict[str, str], key: str) -> int | None:
    given = row.get(key, "")
    if given and not (given.isdecimal() and len(given) <= 9 and 0 < int(given) <= _MOST[key]):
        raise ValueError(f"{key} = {given[:40]}: not a number from 1 to {_MOST[key]}")
    return int(given) if given else None


def _quantity(row: dict[str, str], key: str, kind: Kind) -> int | None:
    try:
        return kind.parse(row[key]) if row.get(key) else None
    except ValueError as error:
        raise ValueError(f"{key} = {row[key]}: {error}") from None


def _kind(row: dict[str, str], side: str, name: str, kinds: dict[str, str]) -> None:
    if f"{side}_kind" not in row:
        return
    kind = row[f"{side}_kind"]
    if kind not in _KINDS:
        raise ValueError(f"{side}_kind = {kind}: allowed: {', '.join(_KINDS)}")
    if kinds.setdefault(name, kind) != kind:
        raise ValueError(f"{name} is a {kind} here and a {kinds[name]} before")


def _twice(cables: list[Cable], file: Path) -> Iterator[Problem]:
    used: dict[tuple[str, int], int | None] = {}
    for cable in cables:
        for end in zip(cable.ends, cable.ports or (), strict=False):
            if end in used:
                message = f"port {end[1]} of {end[0]} has a cable already, on line {used[end]}"
                yield Problem.of_file(file, message, cable.line)
            used[end] = cable.line


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
        wiring = from_networkx(graph)
        edges = [data for _, _, data in graph.edges(data=True)]
        cables = [_directed(cable, data) for cable, data in zip(wiring.cables, edges, strict=True)]
    except ScenarioError as error:
        raise ScenarioError(replace(problem, file=str(file)) for problem in error.problems) from None
    if all(isinstance(data.get("number"), int) for data in edges):
        order = sorted(range(len(cables)), key=lambda at: edges[at]["number"])
        return replace(wiring, cables=tuple(cables[at] for at in order), source=file)
    return replace(wiring, cables=by_rails(cables, wiring.hosts), source=file)


def _directed(cable: Any, data: dict[str, Any]) -> Any:
    """The cable with the direction and the ports that its edge states."""
    ends = cable.ends[::-1] if data.get("from") == cable.ends[1] else cable.ends
    ports = (data.get("from_port"), data.get("to_port"))
    if ports == (None, None):
        return replace(cable, ends=ends)
    if not all(isinstance(port, int) and not isinstance(port, bool) and 0 < port <= 65_535 for port in ports):
        message = f"edge {' - '.join(ends)}: not two numbers from 1 to 65535"
        raise ScenarioError(Problem("from_port, to_port", message, list(ports)))
    return replace(cable, ends=ends, ports=ports)


_RECORD = re.compile(r'(Switch|Hca|Ca)\s+(\d{1,9})\s+"([^"]+)"\s*(?:#.*)?')
_PORT = re.compile(r'\[(\d{1,9})\]\s*"([^"]+)"\s*\[(\d{1,9})\]\s*(?:[sw]=\d+\s*)*(?:#.*)?')
_GUID = re.compile(r"(?:switchguid|caguid|hcaguids?)\s*[=+].*")  # of the next record
_End = tuple[str, int]


def is_ibsim(text: str) -> bool:
    """Whether a file begins like one of these, and not like a dump of ibnetdiscover."""
    first = next((line for _, line in content_lines(text) if not _GUID.fullmatch(line)), "")
    return _RECORD.fullmatch(first) is not None and re.search(r"^\s*Hca\s+\d", text, re.MULTILINE) is not None


def read_ibsim(text: str, file: Path) -> Wiring:
    """The wiring; ``ScenarioError`` names every line that is wrong or lacks its counterpart."""
    hosts: list[str] = []
    switches: list[str] = []
    far: dict[_End, tuple[_End, int]] = {}
    problems: list[Problem] = []
    name, size = "", 0
    names: set[str] = set()
    for number, line in content_lines(text):
        if _GUID.fullmatch(line):
            continue
        if begins := _RECORD.fullmatch(line):
            name, size = begins[3], whole_number(begins[2])
            if name in names:
                problems.append(Problem.of_file(file, f"{name} has a record already", number))
            names.add(name)
            (switches if begins[1] == "Switch" else hosts).append(name)
        elif (port := _PORT.fullmatch(line)) and name:
            here = (name, whole_number(port[1]))
            if here in far or not 1 <= here[1] <= size:
                reason = "is used twice" if here in far else f"is not one of its {size}"
                problems.append(Problem.of_file(file, f"port {here[1]} of {name} {reason}", number))
            far[here] = ((port[2], whole_number(port[3])), number)
        else:
            problems.append(Problem.of_file(file, f"not a line of a network file of ibsim: {line[:60]!r}", number))
    problems += _counterparts(far, file)
    if problems:
        raise ScenarioError(problems)
    cables, seen = [], set[_End]()
    for here, (end, number) in far.items():
        if here not in seen:
            seen.add(end)
            cables.append(Cable((here[0], end[0]), (here[1], end[1]), line=number))
    cabled = {end for cable in cables for end in cable.ends}
    return Wiring(tuple(host for host in hosts if host in cabled), by_ports(cables, hosts, switches), source=file)


def _counterparts(far: dict[_End, tuple[_End, int]], file: Path) -> list[Problem]:
    """Lines whose other end leads elsewhere, or nowhere."""
    return [
        Problem.of_file(file, f"{here[0]}[{here[1]}] leads to {end[0]}[{end[1]}], which does not lead back", number)
        for here, (end, number) in far.items()
        if end not in far or far[end][0] != here
    ]
