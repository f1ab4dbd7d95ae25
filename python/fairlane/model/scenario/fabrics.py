"""Fabrics by what users call them: a scenario, a file, a preset, or a topology with its parameters."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs import code
from fairlane.inputs.parameters import entries
from fairlane.model.fabric.export import wiring_of
from fairlane.model.fabric.reader import read_wiring, refuse_others
from fairlane.model.fabric.table import FabricTable
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring
from fairlane.model.scenario.scenario import Scenario


def fabric_named(key: str, source: str) -> Fabric:
    """The fabric of a scenario, of a file of ``read_wiring``, of a preset, or of ``TOPOLOGY:KEY=VALUE``.

    ``key`` is how errors call it. Raises ``ScenarioError``.
    """
    path = Path(source)
    if path.suffix == ".toml":
        return Fabric.build(_of_scenario(path, ()))
    if path.exists():
        return read_wiring(path).fabric()
    table, parameters = _named(key, source)
    return Fabric.build(FabricTable.read(table, parameters).spec)


def wiring_named(key: str, source: Path | None, topology: str | None, assignments: Sequence[str]) -> Wiring:
    """The wiring of a fabric's file, or of a fabric that is built as ``spec_of`` says. Raises ``ScenarioError``."""
    if source is None or source.suffix == ".toml" or topology is not None:
        return wiring_of(Fabric.build(spec_of(key, source, topology, assignments)))
    if assignments:
        message = f"{source} is taken for a fabric's file, which has no parameters"
        raise ScenarioError(Problem("--set", message, ", ".join(assignments), "with a scenario or --topology"))
    return read_wiring(source)


def spec_of(
    key: str, source: Path | None, topology: str | None, assignments: Sequence[str] = (), routing: str | None = None
) -> dict[str, Any]:
    """A fabric as the simulator takes it: of a source, or of a topology, with assignments to its parameters.

    ``key`` is how errors call it. Raises ``ScenarioError``.
    """
    if (source is None) == (topology is None):
        raise ScenarioError(Problem(key, "needs either a scenario or --topology"))
    table: dict[str, Any] = {"topology": topology}
    if source is not None:
        if source.suffix not in (".toml", ".json") and not source.exists():
            table, parameters = _named(key, str(source))
            assignments = [*parameters, *assignments]
        elif source.suffix == ".json":
            refuse_others(source)
            table = {"topology": "imported", "file": str(source)}
        elif source.suffix == ".toml":
            return _of_scenario(source, assignments)
        else:
            table = read_wiring(source).table(routing)
            routing = table["routing"]
    return FabricTable.read({**table, "routing": routing}, assignments).spec


def _named(key: str, name: str) -> tuple[dict[str, Any], list[str]]:
    """The table of a fabric, and what is to be set in it: by the name of a preset, or as ``TOPOLOGY:KEY=VALUE``."""
    topology, *parameters = name.split(":")
    schemas = {kind: entry.schema.get("properties", {}) for kind, entry in entries("topology").items()}
    if parameters or topology in schemas:
        return {"topology": topology}, parameters
    presets = {kind: properties.get("preset", {}).get("enum", []) for kind, properties in schemas.items()}
    kinds = [kind for kind, names in presets.items() if name in names]
    if len(kinds) > 1:
        several = " or ".join(f"{kind}:preset={name}" for kind in kinds)
        raise ScenarioError(Problem(key, "is a preset of several topologies", name, several))
    if not kinds:
        known = [*schemas, *sorted({preset for names in presets.values() for preset in names})]
        raise ScenarioError(Problem.unknown(key, "file, topology or preset", name, known, name))
    return {"topology": kinds[0], "preset": name}, []


def _of_scenario(scenario: Path, assignments: Sequence[str]) -> dict[str, Any]:
    with code.listing():  # the fabric is all that is looked at
        return Scenario.load(scenario, set=assignments).fabric.spec
