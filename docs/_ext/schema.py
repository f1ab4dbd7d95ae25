"""Turns a JSON schema into Markdown: one table of keys for each object, in the order in which they are met."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fairlane.units import BANDWIDTH, DURATION, SIZE, Kind

Schema = Mapping[str, Any]

QUANTITIES = {kind.example.strip('"'): kind for kind in (BANDWIDTH, DURATION, SIZE)}
"""Kinds of quantity by the example that the schema of each gives."""


def title(name: str) -> str:
    """The heading of a definition: a word for readers, not for the code."""
    return name.removesuffix("Table")


def anchor(name: str) -> str:
    """The link target that the heading ``name`` gets."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name.lower())


def cell(text: str) -> str:
    """Text as it may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def code(value: object) -> str:
    """A value as it is written in a file."""
    return f"`{json.dumps(value)}`"


def quantity(schema: Schema) -> Kind | None:
    """What kind of quantity a value is, if it is one."""
    examples = schema.get("examples")
    return QUANTITIES.get(examples[0]) if isinstance(examples, list) and isinstance(examples[0], str) else None


def type_of(schema: Schema) -> str:
    """The type of a value in words, with its limits; what is defined elsewhere is linked."""
    if kind := quantity(schema):
        return kind.name
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return f"[{title(name)}](#{anchor(title(name))})"
    if "const" in schema:
        return code(schema["const"])
    if "enum" in schema:
        return " or ".join(code(value) for value in schema["enum"])
    for union in ("anyOf", "oneOf", "allOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(type_of(part) for part in schema[union] if part != {"type": "null"}))
    return plain_type(schema) + limits(schema)


def plain_type(schema: Schema) -> str:
    """The type of a value whose schema is neither a reference nor a union."""
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(plain_type({**schema, "type": one}) for one in kind if one != "null")
    if kind == "array":
        items = schema.get("prefixItems")
        inner = ", ".join(type_of(item) for item in items) if items else type_of(schema.get("items", {}))
        return f"list of {inner}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"table of {type_of(schema['additionalProperties'])}"
    return "table" if kind == "object" else str(kind)


def limits(schema: Schema) -> str:
    """The range of a value in words, with a leading comma, or nothing."""
    words = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "minItems": "at least {} of them",
        "maxItems": "at most {} of them",
        "pattern": "like `{}`",
    }
    return "".join(", " + text.format(schema[key]) for key, text in words.items() if key in schema)


def default_of(schema: Schema) -> str:
    """The default as it would be written in a file; nothing if there is none."""
    default = schema.get("default")
    kind = quantity(schema)
    if default is None:
        return ""
    return code(kind.format(default) if kind and isinstance(default, int) else default)


def row(key: str, schema: Schema, required: bool, definitions: Mapping[str, Schema]) -> str:
    """A key's row of the table; a key without a description has the first line of its definition's."""
    defined = definitions.get(next(references(schema), ""), {})
    meaning = schema.get("description") or defined.get("description", "").partition("\n")[0]
    default = "required" if required else default_of(schema)
    return f"| `{key}` | {cell(type_of(schema))} | {cell(default)} | {cell(meaning)} |"


def keys(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """The table of an object's keys, or a sentence when it has none."""
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if not properties:
        return "It takes no keys.\n"
    required = schema.get("required", [])
    rows = [row(key, value, key in required, definitions) for key, value in properties.items()]
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def references(schema: object) -> Iterator[str]:
    """The names of the definitions that a schema refers to, in the order in which they are met."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rsplit("/", 1)[-1]
        for key, value in schema.items():
            if key != "$defs":
                yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def variants(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Name, description and own keys of each variant of an object that names what it is, as a topology does."""
    shared = schema.get("properties", {})
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        properties: Mapping[str, Schema] = branch.get("properties", {})
        for key, value in properties.items():
            if "const" in value:
                own = {other: inner for other, inner in properties.items() if other != key and other not in shared}
                about = value.get("description") or branch.get("description", "")
                yield str(value["const"]), about, {**branch, "properties": own}
                break


def definition(schema: Schema, level: int, definitions: Mapping[str, Schema]) -> str:
    """What stands below the heading, of depth ``level``, of a definition."""
    parts = [schema["description"].strip() + "\n"] if schema.get("description") else []
    if "properties" in schema or (schema.get("type") == "object" and "additionalProperties" not in schema):
        parts.append(keys(schema, definitions))
    else:
        parts.append(f"One of: {type_of(schema)}.\n")
    for name, about, own in variants(schema):
        parts.append(f"{'#' * (level + 1)} `{name}`\n\n{about}\n\n{keys(own, definitions)}")
    return "\n".join(parts)


def markdown(schema: Schema, level: int = 2) -> str:
    """The keys of a schema, then a section of heading depth ``level`` for each definition it refers to."""
    definitions: Mapping[str, Schema] = schema.get("$defs", {})
    order = list(dict.fromkeys(references(schema)))
    for name in order:  # grows while it is walked
        order += [found for found in dict.fromkeys(references(definitions[name])) if found not in order]
    sections = [f"{'#' * level} {title(name)}\n\n{definition(definitions[name], level, definitions)}" for name in order]
    return "\n".join([keys(schema, definitions), *sections])
