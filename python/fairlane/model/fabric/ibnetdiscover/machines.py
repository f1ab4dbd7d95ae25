"""Group adapters into hosts, and name hosts and switches.

In this order: a node name map; a description that names the machine and the adapter ("node17 HCA-1", "node17 mlx5_1");
the system image GUID, which adapters of one card share. A description that names only the card ("MT4129 ConnectX7
Mellanox Technologies"), or an unnamed machine ("localhost HCA-1"), does not identify a host, nor does one that
several cards have. Such an adapter belongs to the host of a named adapter of its card, else its card is a host,
called by the identifier of its first adapter ("H-e09d730300858468").

The adapters of a host are numbered by the names that descriptions or the map give them, as numbers count (mlx5_2 before
mlx5_10), then by GUID: listings come in the order in which switches were found, and rails would differ from host to
host.

A switch is called by its description if no other switch and no host has the same, else by its identifier.

Node name maps have a GUID and a name in quotes on each line, as infiniband-diags and OpenSM read them:
``0xe09d730300858468  "a08-p1-dgx-04-c01"  # comment``. The GUID is a node's or a system image's, or an identifier of
the dump (``H-e09d730300858468``); one that the dump does not have is ignored, for maps are kept for whole sites.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural, some
from fairlane.inputs.files import MOST_STORED, content_lines, read_text, reading
from fairlane.model.fabric.ibnetdiscover.sections import SHOWN, Vertex

_MAP_LINE = re.compile(r"""(0x[0-9a-fA-F]{1,16}|[SHR]-\S+)\s+(?:"([^"]+)"|'([^']+)'|([^\s"'#]+))\s*(?:#.*)?""")
MAX_ADAPTERS_PER_CARD = 16  # adapters that one system image GUID may hold together; more are taken for a masked GUID

_ADAPTER = r"((?:HCA-?\d*|(?:mlx|hfi|qib|ibp|ib|mthca|bnxt|cxgb|i40iw|irdma|ocrdma)\w*))"
_MACHINE = re.compile(rf"(\S+)\s+{_ADAPTER}", re.IGNORECASE)
_UNNAMED = re.compile(r"localhost(\..*)?|\(none\)|unknown|ubuntu|centos|rocky|debian", re.IGNORECASE)
_CARD_NAME = re.compile(r"MT\d{3,}|.*\b(Mellanox|NVIDIA|QLogic|Intel|Infini\w+|ConnectX\S*)\b", re.IGNORECASE)


def name_vertices(vertices: Mapping[str, Vertex], overrides: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The name of the switch or host that each identifier stands for, and remarks on adapters without a machine.

    ``overrides`` are names by identifier or GUID (16 hexadecimal digits), from a node name map.
    """
    adapters = [vertex for vertex in vertices.values() if not vertex.is_switch]
    cards = _cards(adapters)
    machines, remarks = _machines(adapters, cards, overrides)
    named_cards = {
        cards[adapter.name]: machines[adapter.name] for adapter in reversed(adapters) if machines[adapter.name]
    }
    first: dict[str, str] = {}
    names: dict[str, str] = {}
    for vertex in adapters:
        card = cards[vertex.name]
        names[vertex.name] = machines[vertex.name] or named_cards.get(card) or first.setdefault(card, vertex.name)
    if first:
        some = next(vertex for vertex in adapters if names[vertex.name] in first.values())
        count = sum(name in first.values() for name in names.values())
        remark = f"{count} adapters do not name their machine (line {some.line}: {some.description!r})"
        remark = (
            f"{remark}: grouped by system image GUID into {plural(len(first), 'host')}; --node-name-map overrides this"
        )
        remarks.append(remark)
    switches = [vertex for vertex in vertices.values() if vertex.is_switch]
    names.update(_switch_names(switches, set(names.values()), overrides))
    return names, remarks


def _cards(adapters: list[Vertex]) -> dict[str, str]:
    """Return what adapters of a card share, by identifier: the system image GUID, if it is one."""
    counts = Counter(vertex.card for vertex in adapters)
    return {
        adapter.name: adapter.card if adapter.card and counts[adapter.card] <= MAX_ADAPTERS_PER_CARD else adapter.name
        for adapter in adapters
    }


def _machines(
    adapters: list[Vertex], cards: Mapping[str, str], overrides: Mapping[str, str]
) -> tuple[dict[str, str | None], list[str]]:
    """The machine that each adapter is known to be in, and remarks on names that several machines have."""
    machine_by_adapter = {adapter.name: _override(adapter, overrides) or _described(adapter) for adapter in adapters}
    given = {adapter.name for adapter in adapters if _override(adapter, overrides)}
    at: dict[tuple[str, str], set[str]] = defaultdict(set)
    for vertex in adapters:
        if (machine := machine_by_adapter[vertex.name]) and vertex.name not in given:
            at[machine, vertex.description].add(cards[vertex.name])
    shared = {machine for (machine, _), several in at.items() if len(several) > 1}
    counts = {
        machine: len(
            {cards[name] for name, other in machine_by_adapter.items() if other == machine and name not in given}
        )
        for machine in sorted(shared)
    }
    names = some((f"{machine} ({count} cards)" for machine, count in counts.items()), SHOWN)
    remarks = [f"several cards name the same adapters of {names}: each card is a host"] if shared else []
    kept = {
        name: None if machine in shared and name not in given else machine
        for name, machine in machine_by_adapter.items()
    }
    return kept, remarks


def machine_of(description: str) -> tuple[str, str] | None:
    """The machine and the adapter that a description names, as ``node17 mlx5_0``; None if it names none."""
    match = _MACHINE.fullmatch(description.strip())
    return (match[1], match[2]) if match else None


def _described(adapter: Vertex) -> str | None:
    """The machine that an adapter's description names, if it does; a description that is no card's is a machine's."""
    description = adapter.description.strip()
    machine = _MACHINE.fullmatch(description)
    name = machine[1] if machine else description
    if not name or _UNNAMED.fullmatch(name) or (not machine and _CARD_NAME.match(description)):
        return None
    return name


def mapped(vertex: Vertex, overrides: Mapping[str, str]) -> str | None:
    """Return the description that a node name map gives to a node."""
    guids = [vertex.guid, int(vertex.card, 16) if vertex.card else None]
    keys = [vertex.name, *(f"{guid:016x}" for guid in guids if guid is not None)]
    return next((overrides[key] for key in keys if key in overrides), None)


def _override(vertex: Vertex, overrides: Mapping[str, str]) -> str | None:
    """The name that a node name map gives to a switch or to an adapter's machine."""
    name = mapped(vertex, overrides)
    machine = _MACHINE.fullmatch(name) if name and not vertex.is_switch else None
    return machine[1] if machine else name


def in_rail_order(
    vertices: Mapping[str, Vertex], names: Mapping[str, str], overrides: Mapping[str, str]
) -> tuple[dict[str, Vertex], list[str]]:
    """The vertices with each host's adapters in the order of its rails, and a remark on hosts that lack one.

    ``names`` are the names of hosts and switches by identifier. Hosts keep the places that they have in the dump.
    """
    adapters = [vertex for vertex in vertices.values() if not vertex.is_switch]
    called = {adapter.name: _adapter_name(adapter, overrides) for adapter in adapters}
    of_host: dict[str, list[Vertex]] = defaultdict(list)
    for vertex in sorted(
        adapters, key=lambda adapter: (as_numbers_count(called[adapter.name]), adapter.guid or 0, adapter.name)
    ):
        of_host[names[vertex.name]].append(vertex)
    following = {host: iter(members) for host, members in of_host.items()}
    order = (adapter if adapter.is_switch else next(following[names[adapter.name]]) for adapter in vertices.values())
    named = {host: members for host, members in of_host.items() if host not in vertices}
    sets = {
        host: tuple(name for adapter in members if (name := called[adapter.name])) for host, members in named.items()
    }
    return {vertex.name: vertex for vertex in order}, _lacking(sets)


def _adapter_name(adapter: Vertex, overrides: Mapping[str, str]) -> str:
    """Return the name of an adapter within its machine, as ``mlx5_0``, from the map or its description; or ""."""
    given = (
        _MACHINE.fullmatch(description.strip())
        for description in (mapped(adapter, overrides), adapter.description)
        if description
    )
    return next((match[2] for match in given if match), "")


def as_numbers_count(name: str) -> tuple[bool, list[tuple[int, str]]]:
    """A key that sorts names by their numbers, those without a name last."""
    parts = re.findall(r"(\d+)|(\D+)", name.lower())
    return not name, [(int(digits or -1), letters) for digits, letters in parts]


def _lacking(adapters: Mapping[str, tuple[str, ...]]) -> list[str]:
    """A remark on hosts that have some of the adapters of most, and not one in the middle: their rails are others."""
    counts = Counter(names for names in adapters.values() if len(names) > 1)
    if not counts:
        return []
    (usual, most), *_ = counts.most_common(1)
    lacking = {
        host: next(name for name in usual if name not in names)
        for host, names in adapters.items()
        if names and set(names) < set(usual) and names != usual[: len(names)]
    }
    if not lacking:
        return []
    shown = some((f"{host} ({name})" for host, name in lacking.items()), SHOWN)
    remark = f"{plural(len(lacking), 'host lacks', 'hosts lack')} an adapter that {most} others have: {shown}"
    return [f"{remark}; from there on their rails are other adapters"]


def _switch_names(switches: Iterable[Vertex], hosts: set[str], overrides: Mapping[str, str]) -> dict[str, str]:
    """The switches' names: those of the map, else descriptions that nothing else has, else identifiers."""
    wanted = {switch.name: _override(switch, overrides) or switch.description for switch in switches}
    counts = Counter(wanted.values())
    return {
        name: name_of if name_of and counts[name_of] == 1 and name_of not in hosts else name
        for name, name_of in wanted.items()
    }


def read_name_map(file: Path) -> dict[str, str]:
    """The names by GUID (16 hexadecimal digits) or identifier; ``ScenarioError`` names every line that is wrong."""
    with reading(file):
        text = read_text(file, MOST_STORED, "utf-8-sig")
    names: dict[str, str] = {}
    lines: dict[str, int] = {}
    problems = []
    for number, line in content_lines(text):
        match = _MAP_LINE.fullmatch(line)
        if match is None:
            message = f"not a line of a node name map: {line[:60]!r}"
            problems.append(Problem.of_file(file, message, number, allowed='0xGUID "name"'))
            continue
        key = f"{int(match[1], 16):016x}" if match[1].startswith("0x") else match[1]
        name = (match[2] or match[3] or match[4]).strip()
        if names.setdefault(key, name) != name:
            message = f"{match[1]} has another name on line {lines[key]}: {names[key]}"
            problems.append(Problem.of_file(file, message, number))
        lines.setdefault(key, number)
    if problems:
        raise ScenarioError(problems)
    return names
