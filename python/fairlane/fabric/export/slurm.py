"""Slurm's descriptions of a fabric for its tree plugin: ``topology.conf`` and, from Slurm 25.05 on, ``topology.yaml``.

Both have a line or entry for each switch, with the hosts or the switches below it; cables have no place in them.
"""

import json
import re

from fairlane.fabric.export.notes import Written
from fairlane.fabric.slurm_topology import of_wiring
from fairlane.fabric.wiring import Wiring

_LINE = re.compile(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)")
_KEYS = {"Nodes": "nodes", "Switches": "children"}


def write_topology_conf(wiring: Wiring, *, merged: bool = False) -> Written:
    """The file; names that Slurm does not take are changed, with a note on each.

    With ``merged`` one switch stands for all that join the same ones below, so that each is below one other.
    """
    text = of_wiring(wiring, merged=merged)
    return Written(text, _notes(text))


def write_topology_yaml(wiring: Wiring, *, merged: bool = False) -> Written:
    """The same as YAML: one topology, ``default``, with a tree. Strings are quoted as in JSON, which YAML includes."""
    text = of_wiring(wiring, merged=merged)
    lines = ["---", "- topology: default", "  cluster_default: true", "  tree:", "    switches:"]
    for row in filter(None, map(_LINE.fullmatch, text.splitlines())):
        lines += [f"      - switch: {json.dumps(row[1])}", f"        {_KEYS[row[2]]}: {json.dumps(row[3])}"]
    return Written("\n".join(lines) + "\n", _notes(text))


def _notes(text: str) -> tuple[str, ...]:
    return tuple(line.removeprefix("# ") for line in text.splitlines() if line.startswith("# "))
