"""Everything that inputs can name: the simulator's tables, and the registries that plug-ins extend."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from fairlane.errors import Problem, ScenarioError
from fairlane.inputs.parameters import Entry, collectives, entries
from fairlane.inputs.problems import refusing
from fairlane.inputs.registry import Registry
from fairlane.placement import entries as placements
from fairlane.views.kinds import KINDS as VIEWED

REGISTRIES = {
    "workloads": "fairlane.workload:WORKLOADS",
    "imbalances": "fairlane.workload.imbalance:IMBALANCES",
    "patterns": "fairlane.workload.destinations:PATTERNS",
    "placements": "fairlane.placement:PLACEMENTS",
    "mappings": "fairlane.placement.mapping:MAPPINGS",
    "strategies": "fairlane.qos:STRATEGIES",
    "models": "fairlane.scenario.simulators:MODELS",
    "controllers": "fairlane.controller:CONTROLLERS",
    "allocators": "fairlane.placement:ALLOCATORS",
    "figures": "fairlane.plot:FIGURES",
    "papers": "fairlane.reproduce:PAPERS",
    "backends": "fairlane.agent.backends:BACKENDS",
}
"""The registry of each kind that plug-ins can extend."""
SIMULATOR = {
    "topologies": "topology",
    "routings": "routing",
    "arbiters": "arbiter",
    "switches": "switch",
    "switch_allocators": "allocator",
    "transports": "transport",
    "faults": "fault",
}
"""The simulator's table of each kind."""
KINDS = (*SIMULATOR, "collectives", *REGISTRIES)
"""Everything that can be listed."""


def entries_of(kind: str) -> Mapping[str, Entry]:
    """What there is of a kind, by name."""
    special: dict[str, Callable[[], Mapping[str, Entry]]] = {
        "collectives": lambda: {
            f"{call} {name}": Entry(f"{call} {name}", summary)
            for call, names in collectives().items()
            for name, summary in names.items()
        },
        "placements": placements,
        "figures": _figures,
    }
    if kind in special:
        return special[kind]()
    return entries(SIMULATOR[kind]) if kind in SIMULATOR else _registry(kind).entries()


def _figures() -> Mapping[str, Entry]:
    """The pictures of views, and what is drawn by Matplotlib or by plug-ins."""
    pictures = {name: Entry(name, summary) for one in VIEWED.values() for name, summary in one.pictures.items()}
    return {**_registry("figures").entries(), **pictures}


def entry_of(kind: str, name: str) -> Entry:
    """What there is by one name, also ``file.py:Name``. Raises ``ScenarioError`` if there is nothing."""
    known = entries_of(kind)
    if name in known:
        return known[name]
    if kind in REGISTRIES:
        with refusing("list"):
            return _registry(kind).entry(name)
    raise ScenarioError(Problem.unknown("list", kind, name, list(known), name))


def _registry(kind: str) -> Registry[Any]:
    found: Registry[Any] = resolve_name(REGISTRIES[kind])
    return found
