"""The output of ``ibnetdiscover``: a section for each switch and adapter, a line for each of their ports.

What is written is read again and compared: names, ports and bandwidths come back as they were, or it is an error.
"""

from collections.abc import Iterator
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.export.notes import Written, left_out, renumbered
from fairlane.fabric.export.speeds import speeds_of
from fairlane.fabric.ibnetdiscover import read_ibnetdiscover
from fairlane.fabric.identities import nodes_of, numbered, places
from fairlane.fabric.nodes import LARGEST_LID, Node, Port
from fairlane.fabric.wiring import Wiring

_Far = dict[tuple[str, int], tuple[tuple[str, int], str]]  # the other end of each port, and the port's speed


def write_ibnetdiscover(wiring: Wiring) -> Written:
    """The dump. Raises ``ScenarioError`` for names and bandwidths that a dump cannot hold."""
    _check(wiring)
    nodes = nodes_of(wiring)
    at = places(nodes, wiring)
    far: _Far = {}
    for (one, other), cable in zip(numbered(wiring), wiring.cables, strict=True):
        speeds = speeds_of(cable)
        far[one], far[other] = (other, speeds[0]), (one, speeds[1])
    own = {(node.identifier, port.number): key for key, (node, port) in at.items()}
    # Adapters first: hosts are numbered in the order of sections, switches in the order in which lines name them.
    order = nodes if wiring.nodes else sorted(nodes, key=lambda node: node.is_switch)
    sections = ("\n".join(_section(node, own, at, far)) for node in order)
    text = "#\n# Topology file: written by fairlane fabric export\n#\n\n" + "\n\n".join(sections) + "\n"
    notes = [*left_out(wiring, bandwidths=False), *renumbered(wiring, _read_again(wiring, text))]
    ranges = (lids for node in nodes for lids in (node.lids, *(port.lids for port in node.ports)))
    last = max((lids[-1] for lids in ranges if lids), default=0)
    if last > LARGEST_LID:
        notes.append(f"LIDs go up to {last:,}, and a subnet of InfiniBand has {LARGEST_LID:,}: more than one is needed")
    return Written(text, tuple(notes))


def _check(wiring: Wiring) -> None:
    for name in (*wiring.hosts, *wiring.switches):
        if '"' in name or len(name.splitlines()) != 1:
            words = "cannot be in a dump of ibnetdiscover"
            raise ScenarioError(Problem("name", words, name, "one line without quotation marks"))
    known = [bool(cable.bandwidth is not None or cable.kind) for cable in wiring.cables]
    if any(known) and not all(known):
        words = f"of {wiring.cables[known.index(False)]} is not known, and that of others is"
        raise ScenarioError(Problem("bandwidth", words, allowed="a bandwidth for every cable, or for none"))


def _section(
    node: Node, own: dict[tuple[str, int], tuple[str, int]], at: dict[tuple[str, int], tuple[Node, Port]], far: _Far
) -> Iterator[str]:
    guid = "" if node.guid is None else f"{node.guid:x}"
    if node.card:
        yield f"sysimgguid=0x{node.card}"
    if guid:
        yield f"switchguid=0x{guid}({guid})" if node.is_switch else f"caguid=0x{guid}"
    kind = f'Switch\t{node.size} "{node.identifier}"' if node.is_switch else f'Ca\t{node.size} "{node.identifier}"'
    management = "enhanced" if node.lmc else "base"
    rest = f" {management} port 0 lid {node.lid} lmc {node.lmc}" if node.is_switch and node.lid is not None else ""
    yield f'{kind}\t\t# "{node.description}"{rest}'
    for port in node.ports:
        if (key := own[node.identifier, port.number]) in far:
            (end, speed) = far[key]
            yield _line(port, *at[end], speed, node)


def _line(port: Port, far: Node, there: Port, speed: str, node: Node) -> str:
    here = f"[{port.number}]" + ("" if port.guid is None or node.is_switch else f"({port.guid:x}) ")
    end = f'"{far.identifier}"[{there.number}]' + ("" if there.guid is None or far.is_switch else f"({there.guid:x}) ")
    lid = far.lid if far.is_switch else there.lid
    mine = f"lid {port.lid} lmc {port.lmc} " if port.lid is not None and not node.is_switch else ""
    theirs = f" lid {lid}" if lid is not None else " lid 0"
    return f'{here}\t{end}\t\t# {mine}"{far.description}"{theirs}' + (f" {speed}" if speed else "")


def _read_again(wiring: Wiring, text: str) -> Wiring:
    """What is read from the dump. Raises ``ScenarioError`` if a name or a cable is another."""
    again = read_ibnetdiscover(text, Path("what is written"))
    for what, before, after in (
        ("hosts", set(wiring.hosts), set(again.hosts)),
        ("switches", set(wiring.switches), set(again.switches)),
        ("cables", set(_cables(wiring)), set(_cables(again))),
    ):
        if before != after:
            lost = min(map(str, before - after), default="nothing")
            words = f"{what} are others when the dump is read again: {lost} becomes {min(map(str, after - before))}"
            raise ScenarioError(Problem("fabric", words))
    return again


def _cables(wiring: Wiring) -> Iterator[tuple[tuple[str, int], ...]]:
    return (tuple(sorted(ends)) for ends in numbered(wiring))
