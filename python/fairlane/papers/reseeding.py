"""The seeds of replicates: what a paper leaves to chance is drawn again, everything else stays as its folder has it.

In replicate r every seed is larger by ``STRIDE`` times r - 1: the seeds of a study and of its scenario, of placements,
of the background, of controllers, and those that rules compare with or that functions get as arguments. A seed of the
scenario also decides programs, variants, adapters and sockets. Replicate 1 is the folder as it stands.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.core.seeds import LARGEST_SEED
from fairlane.inputs.document import Document, KeyPath, dotted, undotted
from fairlane.sim.controller import CONTROLLERS

STRIDE = 1_000_000
"""By how much a seed differs from that of the replicate before."""
MOST_REPLICATES = 1000
"""Largest number of replicates: seeds of 32 bits stay in their range."""
SEED = "seed"
"""The last part of every key that is a seed."""
_KEPT = ("design", "cluster")
"""Tables of a study that decide what is run and where, and leave nothing to chance."""


def shift(replicate: int) -> int:
    """Return the number that is added to every seed."""
    return (replicate - 1) * STRIDE


def reseed(document: Document, replicate: int) -> None:
    """Shifts all seeds of a study file, with those that it leaves to defaults; its placements are a list.

    Raises ``ScenarioError``.
    """
    if replicate == 1:
        return
    data = document.data
    _written_out(document)
    for key in [key for key in data if key not in _KEPT]:
        data[key] = moved({key: data[key]}, shift(replicate))[key]
    data["seeds"] = _moved_seeds(data["seeds"], shift(replicate))


def _moved_seeds(seeds: Any, by: int) -> Any:
    """The same for the key ``seeds`` of a study: a list, or the first seed of many."""
    if isinstance(seeds, Mapping):
        return {**seeds, "first": _added(seeds.get("first", 1), by)}
    return _shifted(seeds, by)


def moved(value: Any, by: int) -> Any:
    """The same with larger seeds: the integers, or the lists of integers, of keys whose last part is ``seed``."""
    if isinstance(value, Mapping):
        return {key: _shifted(inner, by) if _is_seed(key) else moved(inner, by) for key, inner in value.items()}
    return [moved(inner, by) for inner in value] if isinstance(value, list) else value


def _is_seed(key: str) -> bool:
    return undotted(key.strip())[-1:] == (SEED,)


def _shifted(value: Any, by: int) -> Any:
    if isinstance(value, list):
        return [_added(seed, by) for seed in value]
    return _added(value, by)


def _added(seed: Any, by: int) -> Any:
    return (seed + by) % (LARGEST_SEED + 1) if type(seed) is int else seed


def _written_out(document: Document) -> None:
    """Sets the seeds that are defaults, or that a scenario file of its own has, in the study file's data."""
    data = document.data
    scenario = data.get("scenario", {})
    if isinstance(scenario, str):
        scenario = Document.read(document.folder / scenario).data
        seeds = {dotted(path): seed for path, seed in _seeds(scenario) if len(path) > 1}
        data["set"] = {**seeds, **data.get("set", {})}
    data.setdefault("seeds", [scenario.get(SEED, 1)])
    for treatment in data.get("treatments", {}).values():
        if "controller" in treatment:
            treatment["controller"] = _controller(treatment["controller"])


def _controller(given: Any) -> Any:
    """A controller with its seed, if it has one."""
    table = {"name": given} if isinstance(given, str) else given
    name = table.get("name")
    fields = CONTROLLERS[name].model_fields if name in [*CONTROLLERS] else {}
    return {SEED: fields[SEED].default, **table} if SEED in fields else given


def _seeds(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every seed in a scenario, with its path."""
    parts = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in parts:
        if step == SEED:
            yield (*path, step), inner
        else:
            yield from _seeds(inner, (*path, step))
