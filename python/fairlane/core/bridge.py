"""The compiled simulator with specifications as tables; no other file imports ``fairlane._core``."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from fairlane import _core
from fairlane._core import (
    Fabric,
    Program,
    ProgramBuilder,
    Simulation,
    build_info,
    describe_trace,
    footprint,
    is_graph,
    open_trace,
    stepped,
)

__all__ = [
    "LIBRARY",
    "Fabric",
    "Program",
    "ProgramBuilder",
    "RawTable",
    "Simulation",
    "build_info",
    "describe_trace",
    "fabric",
    "fabric_size",
    "footprint",
    "is_graph",
    "open_loop",
    "open_trace",
    "registries",
    "simulation",
    "stepped",
]

LIBRARY = _core.__file__ or ""
"""Path of the compiled module."""

RawTable = Mapping[str, tuple[str, bytes]]
"""A table of the simulator: column name to (NumPy type, raw bytes), text as ("json", UTF-8 JSON list)."""


def fabric(spec: Mapping[str, Any]) -> Fabric:
    """Build a fabric from its resolved specification; raise ``BuildError`` if that is not possible."""
    return Fabric(json.dumps(spec))


def fabric_size(spec: Mapping[str, Any]) -> tuple[int, int, int]:
    """Count the hosts, switches and links of a fabric without building it."""
    return _core.fabric_size(json.dumps(spec))


def simulation(
    spec: Mapping[str, Any],
    programs: Sequence[Program],
    *,
    fabric: Fabric | None = None,
    threads: int = 1,
    automatic: bool = False,
) -> Simulation:
    """Set up a simulation; ``fabric``: that of ``spec``, built; ``automatic``: fewer threads where more do not help."""
    return Simulation(json.dumps(spec), list(programs), fabric=fabric, threads=threads, automatic=automatic)


def open_loop(spec: Mapping[str, Any]) -> Program:
    """Return the program of a job whose messages do not wait for each other."""
    return _core.open_loop(json.dumps(spec))


@cache
def registries() -> dict[str, list[dict[str, Any]]]:
    """Return the simulator's tables of topologies, routings, arbiters and so on, by kind."""
    tables: dict[str, list[dict[str, Any]]] = json.loads(_core.tables())
    return tables
