"""A network file of ibsim, the simulator of InfiniBand's management: a record for each switch and adapter.

A host is one adapter with as many ports as it has cables. The first port of the file is the one that OpenSM uses, so
hosts come first. ibsim assigns GUIDs of its own unless some are given, and reserves # and @: nodes whose names have one
get another name, and keep theirs as NodeDescription.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric.export.notes import Written, left_out, renumbered
from fairlane.fabric.ibsim_net import read_ibsim
from fairlane.fabric.identities import numbered
from fairlane.fabric.wiring import Wiring
from fairlane.slurm import unused
from fairlane.wording import renamed

LONGEST_NAME = 63
"""Bytes of a name: a NodeDescription has 64, with the one that ends it."""


def write_ibsim(wiring: Wiring, guids: Mapping[str, int] | None = None) -> Written:
    """The file. Raises ``ScenarioError`` for a name that it cannot hold.

    ``guids`` are the GUIDs of nodes by name; port n of an adapter has the GUID of its node + n.
    """
    for name in (*wiring.hosts, *wiring.switches):
        if '"' in name or not 0 < len(name.encode()) <= LONGEST_NAME or len(name.splitlines()) != 1:
            words = "cannot be in a network file of ibsim"
            raise ScenarioError(Problem("name", words, name, f'1 to {LONGEST_NAME} bytes without "'))
    names = _renamed((*wiring.hosts, *wiring.switches))
    far: dict[str, dict[int, tuple[str, int]]] = {name: {} for name in names}
    for one, other in numbered(wiring):
        far[one[0]][one[1]] = (names[other[0]], other[1])
        far[other[0]][other[1]] = (names[one[0]], one[1])
    hosts = set(wiring.hosts)
    kinds = {name: "Hca" if name in hosts else "Switch" for name in far}
    records = (
        "\n".join(_record(kinds[name], name, names[name], ports, (guids or {}).get(name)))
        for name, ports in far.items()
        if ports
    )
    text = "# network file of ibsim, written by fairlane fabric export\n\n" + "\n\n".join(records) + "\n"
    changed = renamed("node", names, names.values(), ", as ibsim reserves # and @")
    return Written(text, (*left_out(wiring), *renumbered(wiring, _read_again(text, names)), *changed))


def _read_again(text: str, names: Mapping[str, str]) -> Wiring:
    """What is read from the file, with the names that nodes have in the fabric."""
    found, known = read_ibsim(text, Path("what is written")), {written: name for name, written in names.items()}
    cables = (replace(cable, ends=(known[cable.ends[0]], known[cable.ends[1]])) for cable in found.cables)
    return replace(found, hosts=tuple(known[host] for host in found.hosts), cables=tuple(cables))


def _renamed(names: Sequence[str]) -> dict[str, str]:
    """The name that each has in the file."""
    used = set(names)
    return {name: unused(re.sub("[#@]", "_", name), used) if re.search("[#@]", name) else name for name in names}


def _record(kind: str, name: str, written: str, ports: dict[int, tuple[str, int]], guid: int | None) -> Iterator[str]:
    if guid is not None:
        yield f"{'caguid' if kind == 'Hca' else 'switchguid'}=0x{guid:016x}"
    yield f'{kind}\t{max(ports)} "{written}"' + (f'\t# "{name}"' if name != written else "")
    for port, (end, there) in sorted(ports.items()):
        yield f'[{port}]\t"{end}"[{there}]'
