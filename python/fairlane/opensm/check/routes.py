"""Reads the forwarding tables that OpenSM has set, and compares them with those that the simulator uses."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fairlane.errors import BuildError, ScenarioError
from fairlane.fabric.forwarding import with_tables
from fairlane.fabric.identities import endpoints_of
from fairlane.fabric.wiring import Wiring
from fairlane.opensm.check.difference import Compared, Difference
from fairlane.opensm.check.simulated import Subnet

READ_FILE = "read.lfts"
"""The tables as ``dump_fts`` prints them."""
_NO_PATH = "no path"
_DEADLOCK = "can deadlock"


@dataclass(frozen=True)
class Read:
    """Forwarding tables that were read."""

    text: str
    """As ``dump_fts`` prints them: for ``fairlane fabric import --tables``."""
    wiring: Wiring
    """The fabric with these tables."""


def read_routes(subnet: Subnet, wiring: Wiring) -> Read:
    """The forwarding tables of all switches, by ``dump_fts``."""
    file = subnet.folder / READ_FILE
    text = subnet.run(["dump_fts"]).decode(errors="replace")
    file.write_text(text, encoding="utf-8")
    return Read(text, with_tables(wiring, file))


def compare_routes(read: Read, expected: Mapping[str, Sequence[int]] | None, *, loaded: bool) -> Compared:
    """Compares entries for ports of hosts, and follows the routes between all pairs of hosts.

    ``expected`` are the simulator's tables; entries of 0 are not used by a route. Only if OpenSM was asked to load them
    (``loaded``) is another port a difference; other routing engines choose other ports, which a note counts.
    """
    tables, ends = read.wiring.tables, endpoints_of(read.wiring)
    several = {host for host, count in Counter(host for host, _ in ends).items() if count > 1}
    counts = {"forwarding table entries": len(tables) * len(ends)}
    differences, notes = [], []
    same = total = 0
    for switch, ports in (expected or {}).items():
        found = tables.get(switch, (0,) * len(ends))
        for (host, number), port, there in zip(ends, ports, found, strict=True):
            total += port != 0
            same += port != 0 and port == there
            if loaded and port not in (0, there):
                shown = f"port {there}" if there else _NO_PATH
                end = f"{host} port {number}" if host in several else host
                differences.append(Difference(switch, f"to {end}", "forwarding table", f"port {port}", shown))
    if expected is not None and not loaded:
        words = f"{same:,} of {total:,} entries of forwarding tables are those of the simulated routing"
        notes.append(f"{words}; the others are OpenSM's own choice")
    if problem := _unusable(read.wiring):
        if _DEADLOCK in problem:
            notes.append(f"the routes reach all hosts, but cannot be simulated in one virtual lane: {problem}")
        else:
            differences.append(Difference("all switches", "all hosts", "routes", "every host is reached", problem))
    return Compared(counts, tuple(differences), tuple(notes))


def _unusable(wiring: Wiring) -> str:
    """Why the simulator cannot use the tables; empty if a packet of every host arrives at every other."""
    try:
        replace(wiring, source=None).fabric("tables")
    except BuildError as error:
        return (error.allowed or str(error)).partition(";")[0]
    except ScenarioError as error:
        return str(error)
    return ""
