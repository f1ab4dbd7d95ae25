"""Everything that inputs can name: the simulator's tables, and the registries that plug-ins extend."""

from collections.abc import Mapping
from dataclasses import replace
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from fairlane.core.errors import Problem, ScenarioError

if TYPE_CHECKING:  # the help of commands has the kinds
    from fairlane.inputs.parameters import Entry
    from fairlane.inputs.registry import Registry

REGISTRIES = {
    "workloads": "fairlane.model.workload:WORKLOADS",
    "imbalances": "fairlane.model.workload.imbalance:IMBALANCES",
    "patterns": "fairlane.model.workload.destinations:PATTERNS",
    "placements": "fairlane.model.placement:PLACEMENTS",
    "mappings": "fairlane.model.placement.mapping:MAPPINGS",
    "strategies": "fairlane.model.qos:STRATEGIES",
    "models": "fairlane.model.scenario.simulators:MODELS",
    "controllers": "fairlane.sim.controller:CONTROLLERS",
    "allocators": "fairlane.model.placement:ALLOCATORS",
    "figures": "fairlane.views.drawing:FIGURES",
    "papers": "fairlane.papers.reproduce:PAPERS",
    "backends": "fairlane.cluster.agent.backends:BACKENDS",
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


def entries_of(kind: str) -> "Mapping[str, Entry]":
    """Return the entries of a kind, by name."""
    from fairlane.inputs.parameters import Entry, collectives, entries

    if kind == "collectives":
        algorithms = [(call, one) for call, names in collectives().items() for one in names.values()]
        return {f"{call} {one.name}": replace(one, name=f"{call} {one.name}", schema={}) for call, one in algorithms}
    if kind in SIMULATOR:
        return entries(SIMULATOR[kind])
    found: Mapping[str, Entry] = _registry(kind).entries()
    if kind == "placements":
        found = resolve_name("fairlane.model.placement:entries")()
    if kind == "figures":  # those that Matplotlib or plug-ins draw, and the pictures of views
        pictures = [
            pictures_of_kind.pictures for pictures_of_kind in resolve_name("fairlane.views.kinds:KINDS").values()
        ]
        found = {
            **found,
            **{name: Entry(name, words) for pictures_of_kind in pictures for name, words in pictures_of_kind.items()},
        }
    return found


def entry_of(kind: str, name: str) -> "Entry":
    """Return the entry of a name, also ``file.py:Name``. Raises ``ScenarioError`` if there is none."""
    from fairlane.inputs.problems import refusing

    known = entries_of(kind)
    if name in known:
        return known[name]
    if kind in REGISTRIES:
        with refusing("list"):
            return _registry(kind).entry(name)
    raise ScenarioError(Problem.unknown("list", kind, name, list(known), name))


def _registry(kind: str) -> "Registry[Any]":
    registry: Registry[Any] = resolve_name(REGISTRIES[kind])
    return registry
