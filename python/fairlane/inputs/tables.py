"""What the simulator knows by name: topologies, routings, arbiters, collective algorithms, with their parameters."""

import json
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from fairlane import _core

BUILT_IN = "built-in"
"""The origin of what belongs to fairlane itself."""


@dataclass(frozen=True)
class Entry:
    """A thing that inputs name, as the simulator or a registry describes it."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=dict)
    """JSON schema of its parameters; empty if it has none."""
    routing: str = ""
    """The routing that a topology is usually run with."""
    origin: str = BUILT_IN
    """Where it comes from: ``built-in``, a package with its version, or a file."""


@cache
def _tables() -> dict[str, list[dict[str, Any]]]:
    tables: dict[str, list[dict[str, Any]]] = json.loads(_core.tables())
    return tables


def entries(table: str) -> dict[str, Entry]:
    """The entries of ``topology``, ``routing`` or ``arbiter`` by name."""
    rows = _tables()[table]
    return {
        row["name"]: Entry(row["name"], row["summary"], row.get("schema") or {}, row.get("routing", "")) for row in rows
    }


def collectives() -> dict[str, dict[str, str]]:
    """Collective algorithms: name to summary, by kind."""
    kinds: dict[str, dict[str, str]] = {}
    for row in _tables()["collective"]:
        kinds.setdefault(row["kind"], {})[row["name"]] = row["summary"]
    return kinds
