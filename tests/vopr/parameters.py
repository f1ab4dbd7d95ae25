"""Parameters drawn from a JSON schema, so that a new topology, routing or arbiter is drawn once it is registered."""

from collections.abc import Mapping
from random import Random
from typing import Any

__all__ = ["BANDWIDTHS", "LATENCIES", "draw_parameters", "with_units"]

LATENCIES = ["10 ns", "100 ns", "70.001 ns", "333.333 ns", "1 us"]
BANDWIDTHS = ["3 Gbps", "7 Gbps", "25.6 Gbps", "40 Gbps", "100 Gbps"]
_QUANTITIES = {
    "Picoseconds": ("ps", LATENCIES),
    "BitsPerSec": ("bps", BANDWIDTHS),
    "Bytes": ("B", ["0 B", "700 B", "4096 B", "9000 B"]),
}
_LARGEST = 6
"""No count that is drawn is larger: fabrics are small."""

Schema = Mapping[str, Any]


def draw_parameters(rng: Random, schema: Schema, share: float = 0.4) -> dict[str, Any]:
    """An example of the schema, with about this share of its parameters drawn anew.

    What is drawn need not fit together: whoever builds it finds out.
    """
    found = with_units(rng.choice(schema.get("examples") or [{}]), schema, schema)
    for key, inner in schema.get("properties", {}).items():
        if rng.random() < share and (drawn := _draw(rng, inner, schema, found.get(key))) is not None:
            found[key] = drawn
    return dict(found)


def with_units(value: Any, schema: Schema, root: Schema) -> Any:
    """A value in base units as a scenario has it: quantities are strings."""
    quantity, inner = _quantity(schema), _inner(schema, root)
    if quantity is not None and isinstance(value, int):
        return f"{value} {quantity[0]}"
    if isinstance(value, dict):
        properties = inner.get("properties", {})
        return {key: with_units(item, properties.get(key, {}), root) for key, item in value.items()}
    if isinstance(value, list):
        return [with_units(item, inner.get("items", {}), root) for item in value]
    return value


def _draw(rng: Random, schema: Schema, root: Schema, given: Any) -> Any:
    """A value for a property; None to leave it as it is."""
    quantity, inner = _quantity(schema), _inner(schema, root)
    names = [one["const"] for one in inner.get("oneOf", ()) if "const" in one] or inner.get("enum")
    if quantity is not None:
        return rng.choice(quantity[1])
    if names:
        return rng.choice(names)
    kinds = inner.get("type", ())
    if "boolean" in kinds:
        return rng.random() < 0.5
    if "integer" in kinds:
        least = max(inner.get("minimum", 0), 0)
        return rng.randint(least, max(least, min(_LARGEST, inner.get("maximum", _LARGEST))))
    if isinstance(given, list) and given and all(isinstance(item, int) for item in given):
        return [rng.randint(1, 4) for _ in given]
    return None


def _inner(schema: Schema, root: Schema) -> Schema:
    """The schema itself, what it refers to, or the first of its choices that is not null."""
    if "$ref" in schema:
        return dict(root["$defs"][schema["$ref"].rpartition("/")[2]])
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return _inner(choices[0], root) if choices else schema


def _quantity(schema: Schema) -> tuple[str, list[str]] | None:
    """The unit and the values of a quantity."""
    references = [schema.get("$ref", ""), *(one.get("$ref", "") for one in schema.get("anyOf", ()))]
    return next((_QUANTITIES[name] for one in references if (name := one.rpartition("/")[2]) in _QUANTITIES), None)
