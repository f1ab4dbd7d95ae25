"""Turns a JSON schema into Markdown: one table of keys for each object, in the order in which they are met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fairlane.views.names import Schema, keys_of, references, title, type_of

__all__ = ["Schema", "cell", "keys", "markdown", "type_of"]


def cell(text: str) -> str:
    """Text as it may stand in a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def keys(schema: Schema, definitions: Mapping[str, Schema]) -> str:
    """The table of an object's keys, or a sentence when it has none."""
    rows = [
        f"| `{key.name}` | {cell(key.type)} | {cell(key.default)} | {cell(key.meaning)} |"
        for key in keys_of(schema, definitions)
    ]
    if not rows:
        return "It takes no keys.\n"
    return "\n".join(["| key | value | default | meaning |", "|---|---|---|---|", *rows]) + "\n"


def variants(schema: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Name, description and own keys of each variant of an object that names what it is, as a topology does."""
    shared = schema.get("properties", {})
    for branch in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
        properties: Mapping[str, Schema] = branch.get("properties", {})
        for key, value in properties.items():
            if "const" in value:
                own = {other: inner for other, inner in properties.items() if other != key and other not in shared}
                summary, text = value.get("description", ""), branch.get("description", "")
                about = text if text.startswith(summary) else summary
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
