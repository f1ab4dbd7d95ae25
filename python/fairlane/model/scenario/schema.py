"""A JSON schema of scenario files, for editors: with the parameters of every topology, arbiter and workload."""

from typing import Any

from fairlane.inputs.parameters import Entry, collectives, editor_schema, entries
from fairlane.inputs.registry import Registry
from fairlane.model.placement import entries as placements
from fairlane.model.placement.mapping import MAPPINGS
from fairlane.model.qos import STRATEGIES as QOS_STRATEGIES
from fairlane.model.scenario.scenario import Scenario
from fairlane.model.scenario.simulators import MODELS
from fairlane.model.workload import WORKLOADS
from fairlane.model.workload.destinations import PATTERNS
from fairlane.model.workload.imbalance import IMBALANCES

_OWN = {"type": "string", "pattern": r"\.py:[A-Za-z_]\w*$", "description": "one of your own: file.py:Name"}


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of a scenario's TOML."""
    result = Scenario.model_json_schema(mode="validation")
    tables = result["$defs"]
    tables["Routing"] = _choice(tables["Routing"], "name", entries("routing"))
    tables["FabricTable"] = _choice(tables["FabricTable"], "topology", entries("topology"))
    tables["Arbiter"] = _choice(tables["Arbiter"], "name", entries("arbiter"))
    tables["Switch"] = _choice(tables["Switch"], "name", entries("switch"))
    tables["Transport"] = _choice(tables["Transport"], "name", entries("transport"))
    tables["Fault"] = _choice(tables["Fault"], "kind", entries("fault"))
    tables["Mpi"]["properties"]["collectives"] = {
        "type": "object",
        "properties": {kind: {"enum": list(names)} for kind, names in collectives().items()},
        "additionalProperties": False,
    }
    tables["Placement"] = _placement(tables["Placement"])
    tables["Qos"]["properties"]["strategy"] |= {"anyOf": [{"enum": [*QOS_STRATEGIES]}, _OWN, {"type": "null"}]}
    result["properties"]["model"] |= {"anyOf": [{"enum": [*MODELS]}, _OWN, {"type": "null"}]}
    choices: dict[str, Registry[Any]] = {"Workload": WORKLOADS, "Mapping": MAPPINGS}
    choices |= {"Destinations": PATTERNS, "Imbalance": IMBALANCES}
    tables.update({name: _named(tables, registry) for name, registry in choices.items()})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A fairlane scenario",
        **{key: value for key, value in result.items() if key != "title"},
    }


def _choice(table: dict[str, Any], key: str, known: dict[str, Entry]) -> dict[str, Any]:
    """A table that has the parameters of whatever its ``key`` names."""
    properties: dict[str, Any] = table["properties"]
    branches = []
    for entry in known.values():
        inner = editor_schema(entry.schema, entry.schema)
        name = {"const": entry.name, "description": entry.summary}
        branches.append(
            {
                "properties": {**properties, **inner.get("properties", {}), key: name},
                "required": [key, *inner.get("required", ())],
                "additionalProperties": False,
            }
        )
    return {
        "type": "object",
        "description": table.get("description", ""),
        "properties": properties,
        "required": [key],
        "oneOf": branches,
    }


def _placement(table: dict[str, Any]) -> dict[str, Any]:
    """A placement policy's name with its parameters; the name of the default policy may be omitted."""
    default = table["properties"]["name"]["default"]
    choice = _choice(table, "name", placements())
    choice["oneOf"].append({"properties": {**table["properties"], "name": _OWN}, "required": ["name"]})
    for branch in choice["oneOf"][:-1]:
        if branch["properties"]["name"]["const"] == default:
            branch["required"].remove("name")
    return {key: value for key, value in choice.items() if key != "required"}


def _named(tables: dict[str, Any], registry: Registry[Any]) -> dict[str, Any]:
    """A name, or a table with the name and its parameters."""
    branches: list[dict[str, Any]] = []
    for entry in registry.entries().values():
        inner = dict(entry.schema)
        tables.update(inner.pop("$defs", {}))
        name = {"const": entry.name, "description": entry.summary}
        inner["properties"] = {registry.key: name, **inner.get("properties", {})}
        inner["required"] = [registry.key, *inner.get("required", ())]
        branches.append(inner)
    table = {"type": "object", "properties": {registry.key: _OWN}, "required": [registry.key]}
    return {"anyOf": [{"enum": list(registry)}, _OWN, *branches, table]}
