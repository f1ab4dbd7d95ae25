"""The file of port GUIDs by host."""

import re
from collections.abc import Collection
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.files import content_lines, read_text, reading


def read_guids(file: Path, hosts: Collection[str]) -> dict[str, tuple[str, ...]]:
    """GUIDs by host. Raises ``ScenarioError`` with file and line."""
    known = set(hosts)
    with reading(file):
        text = read_text(file)
    found: dict[str, tuple[str, ...]] = {}
    taken: set[str] = set()
    for number, line in content_lines(text):
        host, *words = line.split()
        if not words or not all(re.fullmatch(r"0x[0-9a-fA-F]{1,16}", word) for word in words):
            allowed = "as host0 0x0002c90300000001, with a GUID for each port"
            raise ScenarioError(Problem("", "not a host and its GUIDs", line, allowed, None, str(file), number))
        if host not in known:
            wrong = Problem.unknown("host", "host of the fabric", host, list(hosts)[:20], host)
            raise ScenarioError(wrong.at(str(file), number))
        guids = tuple(f"0x{int(word, 16):016x}" for word in words)
        if host in found or len({*taken, *guids}) < len(taken) + len(guids):
            reason = "the host has GUIDs already" if host in found else "another port has this GUID"
            allowed = "one line of each host, with all its ports"
            raise ScenarioError(Problem("", reason, line, allowed, None, str(file), number))
        found[host] = guids
        taken.update(guids)
    return found
