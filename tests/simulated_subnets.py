"""Subnets for tests: scenarios with two jobs on a fat-tree, and a subnet that answers as one was recorded."""

import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from fairlane import Scenario
from fairlane.cli.command import write_folder
from fairlane.cluster.opensm.check import Subnet
from fairlane.cluster.opensm.check.query import PORT_INFO, SL_TO_VL
from fairlane.cluster.opensm.export import export
from fairlane.model.fabric.identities import nodes_of
from fairlane.model.fabric.wiring import Cable, Wiring
from waiting import HANG_S

RECORDED = Path(__file__).parent / "data" / "opensm"
QOS: dict[str, Any] = {
    "sl2vl": [0, 1, 2, 3],
    "arbiter": {"name": "vlarb", "high_limit": 10, "vlarb_high": [[3, 64]], "vlarb_low": [[0, 8], [1, 16], [2, 32]]},
}
TREES: Mapping[int, dict[str, Any]] = {
    16: {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 4},
    64: {"topology": "fat_tree", "hosts": 64, "levels": 2, "leaf_down": 8, "leaf_up": 8},
    648: {"topology": "fat_tree", "hosts": 648, "levels": 2, "leaf_down": 18, "leaf_up": 18},
}


def scenario(fabric: Mapping[str, Any], qos: Mapping[str, Any] = QOS, hosts: int = 64) -> dict[str, Any]:
    """Two jobs with service levels 3 and 2 that have all hosts together."""
    first = hosts // 4
    jobs = [
        {"name": "latency", "ranks": first, "workload": "ping_pong", "service_level": 3, "placement": "linear"},
        {"name": "bulk", "ranks": hosts - first, "workload": "ring", "service_level": 2, "placement": "linear"},
    ]
    return {"name": "two", "duration": "20 us", "fabric": {**fabric}, "qos": {**qos}, "jobs": jobs}


def exported(folder: Path, of: Mapping[str, Any]) -> Path:
    """The folder that ``fairlane qos export`` writes for a scenario."""
    write_folder(folder, export(Scenario.read(dict(of)).decide(), approximate=True).files, "--opensm")
    return folder


def lid_tree(lmc: int, rails: int = 1) -> Wiring:
    """Two leaves of two hosts each and two spines; every adapter has 2^lmc LIDs from a multiple of them on."""
    cables = [Cable((f"n{host}", f"leaf{host // 2}")) for host in range(4) for _ in range(rails)]
    cables += [Cable((f"leaf{leaf}", f"spine{spine}")) for leaf in range(2) for spine in range(2)]
    cables = [replace(cable, bandwidth=100 * 10**9) for cable in cables]
    wiring = Wiring(tuple(f"n{host}" for host in range(4)), tuple(cables))
    adapters = [node for node in nodes_of(wiring) if not node.is_switch]
    lids = {node.identifier: (16 + at) << lmc for at, node in enumerate(adapters)}
    nodes = (
        replace(node, ports=(replace(node.ports[0], lid=lids[node.identifier], lmc=lmc),))
        if node.identifier in lids
        else replace(node, lid=1 + int(node.identifier[2:], 16) % 8)
        for node in nodes_of(wiring)
    )
    switches = {node.guid: node.owner for node in nodes_of(wiring) if node.is_switch and node.guid is not None}
    return replace(wiring, nodes=tuple(nodes), guids=switches)


def answers() -> dict[str, bytes]:
    """The recorded answers."""
    found = json.loads((RECORDED / "answers.json").read_text())
    return {name: bytes.fromhex(digits) for name, digits in found.items()}


class RecordedSubnet(Subnet):
    """Every port answers as the recorded one; ``change`` may replace an answer by its kind and query."""

    def __init__(self, change: Callable[[str, int, int], bytes | None] | None = None) -> None:
        super().__init__(Path(), 0, {}, 0.0)
        object.__setattr__(self, "change", change)

    @override
    def run(self, command: Sequence[str], given: bytes = b"", timeout_s: float = HANG_S) -> bytes:
        size = 8 if "smp" in command else 32
        return b"".join(self._answer(given[at : at + size]) for at in range(0, len(given), size))

    def _answer(self, query: bytes) -> bytes:
        if len(query) == 32:
            kind, lid, modifier = "path_record", query[15], query[31]
        else:
            lid, attribute, modifier = struct.unpack("<HHI", query)
            table = "vlarb_low" if modifier >> 16 == 1 else "vlarb_high"
            kind = {PORT_INFO: "port_info", SL_TO_VL: "sl2vl"}.get(attribute, table)
        change = self.change  # type: ignore[attr-defined]
        other = change(kind, lid, modifier) if change else None
        found = answers()[kind] if other is None else other
        return b"\x01" + found if found else bytes(65)
