"""Check specifications of Vega-Lite: by its schema, and by the columns that there are."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import altair

from fairlane.core.errors import Problem, nearest

_DEFINITIONS = {
    "layer": "LayerSpec",
    "facet": "FacetSpec",
    "repeat": "RepeatSpec",
    "concat": "ConcatSpec<GenericSpec>",
    "hconcat": "HConcatSpec<GenericSpec>",
    "vconcat": "VConcatSpec<GenericSpec>",
    "mark": "FacetedUnitSpec",
}
"""Definitions of the schema by the key that such a specification has."""
_KINDS = {
    "string": "a string",
    "object": "a table",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
}


def problems_of(spec: Mapping[str, Any]) -> list[Problem]:
    """Return the faults of a specification that has no data, by the path of the key."""
    return [_problem(_meant(error)) for error in _validator(spec).iter_errors(spec)]


def _problem(leaves: Sequence[Any]) -> Problem:
    """The problem of a key, by what each alternative of the schema says of it."""
    first = leaves[0]
    path = [*first.absolute_path]
    if extra := _extra(first):
        allowed = sorted(first.schema.get("properties", {}))
        return Problem.unknown(_dotted([*path, extra[0]]), "key of Vega-Lite", str(extra[0]), allowed)
    if first.validator == "required":
        return Problem(
            _dotted([*path, *(name for name in first.validator_value if name not in first.instance)]), "missing"
        )
    values = [str(value) for leaf in leaves for value in _values(leaf)]
    kinds = [
        f"{_KINDS[leaf.validator_value]}"
        for leaf in leaves
        if leaf.validator == "type"
        if leaf.validator_value in _KINDS
    ]
    guess = nearest(first.instance, values) if isinstance(first.instance, str) else None
    allowed_values = ", ".join(dict.fromkeys([*values, *kinds])) or None
    return Problem(_dotted(path), "is not Vega-Lite", first.instance, allowed_values, guess)


def unknown_fields(spec: Mapping[str, Any], columns: Sequence[str]) -> list[Problem]:
    """Fields that are no columns of the query, nor made by a transform of the specification."""
    made = {
        name for _, key, value in walk(spec) if key == "as" for name in ([value] if isinstance(value, str) else value)
    }
    if any(key in ("fold", "density") for _, key, _ in walk(spec)):
        made |= {"key", "value", "density"}  # their names if there is no "as"
    return [
        Problem.unknown(path, "column of the query", name, columns, name)
        for path, key, name in walk(spec)
        if key == "field" and isinstance(name, str) and name not in columns and name not in made
    ]


def walk(of: Any, path: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every key in nested tables and lists: its path, its name and its value."""
    pairs = of.items() if isinstance(of, Mapping) else enumerate(of) if isinstance(of, list) else ()
    for key, value in pairs:
        where = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else str(key)
        if isinstance(key, str):
            yield where, key, value
        yield from walk(value, where)


def _dotted(path: Sequence[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _meant(error: Any) -> list[Any]:
    """Return the errors of the alternatives that were probably meant: those with the fewest and deepest errors."""
    if not error.context:
        return [error]
    groups: dict[Any, list[list[Any]]] = {}
    for inner in error.context:
        groups.setdefault(inner.relative_schema_path[0], []).append(_meant(inner))
    errors_by_depth: dict[tuple[int, int, int], list[Any]] = {}
    for errors in groups.values():
        leaves = [leaf for of in errors for leaf in of]
        depth = max(len(leaf.absolute_path) for leaf in leaves)
        errors_by_depth.setdefault((len(errors), -depth, sum(map(len, map(_extra, leaves)))), []).extend(leaves)
    return errors_by_depth[min(errors_by_depth)]


def _extra(error: Any) -> list[str]:
    """The keys that a table has too many."""
    if error.validator != "additionalProperties":
        return []
    return [key for key in error.instance if key not in error.schema.get("properties", {})]


def _values(error: Any) -> list[Any]:
    """The values that are allowed in place of another."""
    if error.validator == "enum":
        return list(error.validator_value)
    return [error.validator_value] if error.validator == "const" else []


def _validator(spec: Mapping[str, Any]) -> Any:
    """The schema of a specification of this kind."""
    return _validators()[next((kind for kind in _DEFINITIONS if kind in spec), "mark")]


@cache
def _validators() -> Mapping[str, Any]:
    from jsonschema import Draft7Validator

    schema = altair.load_schema()
    return {kind: Draft7Validator({**schema, "$ref": f"#/definitions/{name}"}) for kind, name in _DEFINITIONS.items()}
