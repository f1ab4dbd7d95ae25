"""Names in inputs: lines that are searched for words rather than read as a table.

JSON schemas in words: type, default and meaning of every key, for the terminal and for the reference pages.

Words are Markdown: values stand in backticks, and what is defined elsewhere is a link.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fairlane.core.units import BANDWIDTH, DURATION, SIZE, Kind
from fairlane.inputs.parameters import Entry, editor_schema

Schema = Mapping[str, Any]

QUANTITIES = {kind.example.strip('"'): kind for kind in (BANDWIDTH, DURATION, SIZE)}
"""Kinds of quantity by the example that the schema of each gives."""


@dataclass(frozen=True)
class Key:
    """A key of an object."""

    name: str
    type: str  # the type of its value, with its limits
    default: str  # the default as it would be written in a file, "required", or nothing
    meaning: str


def keys_of(schema: Schema, definitions: Mapping[str, Schema] | None = None) -> Iterator[Key]:
    """The keys of an object; one without a description has the first line of its definition's."""
    definitions = schema.get("$defs", {}) if definitions is None else definitions
    required = schema.get("required", [])
    for name, value in schema.get("properties", {}).items():
        defined = definitions.get(next(references(value), ""), {})
        meaning = value.get("description") or defined.get("description", "").partition("\n")[0]
        yield Key(name, type_of(value), "required" if name in required else default_of(value), meaning)


def title(name: str) -> str:
    """The heading of a definition: a word for readers, not for the code."""
    return name.removesuffix("Table")


def anchor(name: str) -> str:
    """The link target that the heading ``name`` gets."""
    return "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name.lower())


def code(value: object) -> str:
    """A value as it is written in a file."""
    return f"`{json.dumps(value)}`"


def quantity(schema: Schema) -> Kind | None:
    """Return the kind of a quantity, if a value is one."""
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
        return " or ".join(plain_type({**schema, "type": type_name}) for type_name in kind if type_name != "null")
    if kind == "array":
        items = schema.get("prefixItems")
        inner = ", ".join(type_of(item) for item in items) if items else type_of(schema.get("items", {}))
        return f"list of {inner}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"table of {type_of(schema['additionalProperties'])}"
    return "table" if kind == "object" else str(kind)


def limits(schema: Schema) -> str:
    """The range of a value in words, with a leading comma, or nothing."""
    templates = {
        "minimum": "at least {}",
        "exclusiveMinimum": "above {}",
        "maximum": "at most {}",
        "exclusiveMaximum": "below {}",
        "minItems": "at least {} of them",
        "maxItems": "at most {} of them",
        "pattern": "like `{}`",
    }
    return "".join(", " + text.format(schema[key]) for key, text in templates.items() if key in schema)


def default_of(schema: Schema) -> str:
    """The default as it would be written in a file; nothing if there is none."""
    default = schema.get("default")
    kind = quantity(schema)
    if default is None:
        return ""
    return code(kind.format(default) if kind and isinstance(default, int) else default)


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


def names_listed(kind: str, known: Mapping[str, Entry]) -> Iterator[str]:
    """The names of a kind, where each comes from and what it is."""
    if not known:
        return
    width = max(map(len, known))
    where = max(len(entry.origin) for entry in known.values())
    yield f"{kind}:"
    for name, entry in known.items():
        yield f"  {name:{width}}  {entry.origin:{where}}  {entry.summary}"


def described(entry: Entry, *, simulator: bool) -> Iterator[str]:
    """Describe a name and its parameters as in the reference, without Markdown's signs."""
    yield f"{entry.name} ({entry.origin}): {entry.summary}"
    if entry.routing:
        yield f"usual routing: {entry.routing}"
    rows = list(keys_of(editor_schema(entry.schema, entry.schema) if simulator else entry.schema))
    if not rows:
        yield "no parameters"
    for row in rows:
        value = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row.type).replace("`", "")
        default = f"default {row.default.strip('`')}" if row.default not in ("", "required") else row.default
        yield f"  {row.name}: {', '.join(filter(None, (value, default)))}"
        if row.meaning:
            yield f"      {' '.join(row.meaning.split())}"
