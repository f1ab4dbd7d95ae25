"""Reads the forwarding tables that OpenSM has set, and compares them with those that the simulator uses."""

from collections import Counter
from dataclasses import dataclass, replace

from fairlane.errors import BuildError, ScenarioError
from fairlane.fabric.forwarding import by_endpoint, read_entries
from fairlane.fabric.identities import endpoint_lids, endpoints_of
from fairlane.fabric.lid_paths import Entries, misled, summary
from fairlane.fabric.wiring import Wiring
from fairlane.opensm.check.difference import EXPORTED, OPENSM, Compared, Difference
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
    """The fabric, with the LIDs of the subnet."""
    entries: Entries
    """The port for each LID of an adapter."""


def read_routes(subnet: Subnet, wiring: Wiring) -> Read:
    """The forwarding tables of all switches, by ``dump_fts``."""
    file = subnet.folder / READ_FILE
    text = subnet.run(["dump_fts"]).decode(errors="replace")
    file.write_text(text, encoding="utf-8")
    return Read(text, wiring, read_entries(wiring, file))


def compare_routes(read: Read, expected: Entries | None, *, loaded: bool) -> Compared:
    """Compares entries for all LIDs of adapters, follows each to its end, and routes between all pairs of hosts.

    ``expected`` are the simulator's tables; entries of 0 are not used by a route. Only if OpenSM was asked to load them
    (``loaded``) is another port a difference; other routing engines choose other ports, which a note counts.
    """
    owners, endpoints = endpoint_lids(read.wiring), endpoints_of(read.wiring)
    of_host = Counter(endpoints[endpoint][0] for endpoint in owners.values())
    counts = {"forwarding table entries": len(read.entries) * len(owners)}
    differences, notes = [], []
    same = total = 0
    for switch, ports in (expected or {}).items():
        for lid, port in ports.items():
            there = read.entries.get(switch, {}).get(lid, 0)
            total += port != 0
            same += port != 0 and port == there
            if loaded and port not in (0, there):
                host, number = endpoints[owners[lid]]
                to = f"to {host}" + (f" port {number} (LID {lid})" if of_host[host] > 1 else "")
                shown = f"port {there}" if there else _NO_PATH
                differences.append(Difference(switch, to, "forwarding table", f"port {port}", shown))
    if expected is not None and not loaded:
        words = f"{same:,} of {total:,} entries of forwarding tables are those of the simulated routing"
        notes.append(f"{words}; the others are OpenSM's own choice")
    if elsewhere := misled(read.wiring, read.entries):
        cause = EXPORTED if loaded and expected and misled(read.wiring, expected) else OPENSM
        words = summary(elsewhere, len(owners))
        differences.append(Difference("all switches", "all hosts", "routes", "each LID ends at its port", words, cause))
    elif problem := _unusable(read):
        if _DEADLOCK in problem:
            notes.append(f"the routes reach all hosts, but cannot be simulated in one virtual lane: {problem}")
        else:
            differences.append(Difference("all switches", "all hosts", "routes", "every host is reached", problem))
    return Compared(counts, tuple(differences), tuple(notes))


def _unusable(read: Read) -> str:
    """Why the simulator cannot use the tables; empty if a packet of every host arrives at every other."""
    try:
        replace(read.wiring, source=None, tables=by_endpoint(read.wiring, read.entries)).fabric("tables")
    except BuildError as error:
        return (error.allowed or str(error)).partition(";")[0]
    except ScenarioError as error:
        return str(error)
    return ""
