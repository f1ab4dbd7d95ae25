"""Mappings: which rank of a job lives on which of the hosts that it has got.

A mapping is one file with one class; a line in ``MAPPINGS`` gives it a name.
"""

from typing import Annotated, Any

from pydantic import BeforeValidator, SerializeAsAny

from fairlane.errors import Problem
from fairlane.inputs.problems import Problems, validated
from fairlane.placement.mapping.base import Mapping, Slots
from fairlane.placement.mapping.blocked import Blocked
from fairlane.placement.mapping.hop_bytes import HopBytes, hop_bytes
from fairlane.placement.mapping.linear import Linear

__all__ = ["MAPPINGS", "Blocked", "HopBytes", "Linear", "Mapping", "MappingField", "Slots", "hop_bytes", "mapped"]

MAPPINGS: dict[str, type[Mapping]] = {"linear": Linear, "blocked": Blocked, "hop_bytes": HopBytes}
"""Every mapping that can be asked for by name."""


def _read(given: Any) -> Any:
    """A name, or a table with ``name`` and parameters; a mapping stays itself."""
    if isinstance(given, Mapping):
        return given
    table = {"name": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise ValueError("expected a mapping's name, or a table with its `name` and parameters")
    if table["name"] not in MAPPINGS:
        raise Problems(
            Problem.unknown(
                "" if given == table["name"] else "name", "mapping", table["name"], [*MAPPINGS], table["name"]
            )
        )
    return validated(MAPPINGS[table["name"]], table)


MappingField = Annotated[
    SerializeAsAny[Mapping], BeforeValidator(_read, json_schema_input_type=Linear | Blocked | HopBytes | str)
]
"""A model's field that takes a mapping's name, a table with its name and parameters, or a mapping."""


def mapped(mapping: Mapping, slots: Slots) -> list[int]:
    """The host of each rank."""
    return [slots.hosts[place] for place in mapping.places(slots)]
