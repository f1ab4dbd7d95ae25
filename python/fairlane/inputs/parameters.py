"""Parameters of the simulator's names: topologies, routings, arbiters, transports, collective algorithms.

Parameters are validated by the JSON schema that the simulator gives for each, so a new topology or arbiter needs no
line of Python. A property is a quantity with a unit if its schema says so, by
``x-unit`` or ``format`` ("bits_per_second", "picoseconds", "bytes") or by the name of the type that it refers to. A
property with ``x-parameters-of-file`` names a JSON file that holds others, relative to the scenario's folder.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, PrivateAttr, model_validator

from fairlane.core import bridge
from fairlane.core.errors import Problem
from fairlane.core.units import BANDWIDTH, DURATION, SIZE, Kind
from fairlane.inputs.document import current_document
from fairlane.inputs.files import NestingError, parse_json
from fairlane.inputs.problems import Problems, unknown
from fairlane.inputs.table import TableModel

NODES = "nodes"
"""A key of files with parameters that is none: identifiers, GUIDs and LIDs of a fabric, which no simulation needs."""
_KINDS: dict[str, Kind] = {
    "bits_per_second": BANDWIDTH,
    "picoseconds": DURATION,
    "bytes": SIZE,
    "BitsPerSec": BANDWIDTH,
    "Picoseconds": DURATION,
    "Bytes": SIZE,
}

_TYPES = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}
_TYPES |= {"array": "a list", "object": "a table", "null": "nothing"}

Schema = Mapping[str, Any]
BUILT_IN = "built-in"  # the origin of what belongs to fairlane itself


@dataclass(frozen=True)
class Entry:
    """A thing that inputs name, as the simulator or a registry describes it."""

    name: str
    summary: str
    schema: dict[str, Any] = field(default_factory=dict)  # JSON schema of its parameters; empty if it has none
    routing: str = ""  # the routing that a topology is usually run with
    origin: str = BUILT_IN  # where it comes from: ``built-in``, a package with its version, or a file


def entries(table: str) -> dict[str, Entry]:
    """The entries of ``topology``, ``routing``, ``arbiter``, ``switch`` or ``transport`` by name."""
    return {row["name"]: _entry(row) for row in bridge.registries()[table]}


def collectives() -> dict[str, dict[str, Entry]]:
    """Collective algorithms by kind and name."""
    kinds: dict[str, dict[str, Entry]] = {}
    for row in bridge.registries()["collective"]:
        kinds.setdefault(row["kind"], {})[row["name"]] = _entry(row)
    return kinds


def _entry(row: Mapping[str, Any]) -> Entry:
    origin = f"from crate {row['crate']}" if "crate" in row else BUILT_IN
    return Entry(row["name"], row["summary"], row.get("schema") or {}, row.get("routing", ""), origin)


def named(table: str, name: str, key: str) -> Entry:
    """The entry called ``name``; ``Problems`` about ``key`` if there is none."""
    known = entries(table)
    if name not in known:
        raise Problems(Problem.unknown(key, table, name, list(known), name))
    return known[name]


def resolve_parameters(entry: Entry, given: Mapping[str, Any], other_keys: Collection[str] = ()) -> dict[str, Any]:
    """``given`` with every quantity in base units; ``Problems`` with everything that the schema does not allow.

    ``other_keys`` are the keys of the same table that are no parameters, for the nearest name of a misspelt one.
    """
    problems: list[Problem] = []
    given = _with_files(entry.schema, given)
    resolved = _convert(entry.schema, dict(given), "", entry.schema, problems)
    if not problems:
        problems = list(_judge(entry.schema, resolved, given, other_keys))
    if problems:
        raise Problems(*problems)
    return dict(resolved)


def _with_files(schema: Schema, given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` with the parameters that files hold; those given next to the file replace them."""
    merged = dict(given)
    for key, inner in schema.get("properties", {}).items():
        if inner.get("x-parameters-of-file") and isinstance(merged.get(key), str):
            of_file = {name: value for name, value in _file(key, merged[key]).items() if name != NODES}
            merged = {**of_file, **{name: value for name, value in merged.items() if name != key}}
    return merged


def _file(key: str, name: str) -> dict[str, Any]:
    path = current_document.get().folder / name
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise Problems(Problem(key, f"cannot be read: {error.strerror}", str(path))) from None
    except json.JSONDecodeError as error:
        message = f"not valid JSON: {error.msg}"
        allowed = "a file that fairlane fabric import wrote, from what ibnetdiscover prints or a CSV list of links"
        raise Problems(Problem.of_file(path, message, error.lineno, allowed=allowed)) from None
    except UnicodeDecodeError as error:
        raise Problems(Problem.of_file(path, f"is not UTF-8: {error.reason}")) from None
    except NestingError as error:
        raise Problems(Problem.of_file(path, str(error))) from None
    if not isinstance(content, dict):
        raise Problems(Problem(key, "not a JSON object with parameters", str(path)))
    return content


def _deref(schema: Any, root: Schema) -> tuple[Schema, str]:
    """A schema behind its reference, and the name of the type that it referred to."""
    if not isinstance(schema, Mapping):
        return {}, ""
    reference = schema.get("$ref", "")
    if not reference:
        return schema, ""
    target: Any = root
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}, reference.rpartition("/")[2]


def _kind(schema: Schema, root: Schema) -> Kind | None:
    """The kind of quantity that a schema asks for, also through ``anyOf`` (an optional quantity)."""
    inner, type_name = _deref(schema, root)
    for word in (inner.get("x-unit"), inner.get("format"), type_name):
        if word in _KINDS:
            return _KINDS[word]
    kinds = (_kind(choice, root) for choice in (*inner.get("anyOf", ()), *inner.get("allOf", ())))
    return next((kind for kind in kinds if kind), None)


def _convert(schema: Any, value: Any, path: str, root: Schema, problems: list[Problem]) -> Any:
    """``value`` with the quantities in it parsed; what cannot be parsed goes to ``problems``."""
    if value is None:
        return None
    kind = _kind(schema, root)
    if kind and not isinstance(value, list | dict):
        try:
            return kind.parse(value)
        except ValueError as error:
            problems.append(Problem(path, str(error), value))
            return value
    inner, _ = _deref(schema, root)
    if isinstance(value, dict):
        known, rest = inner.get("properties", {}), inner.get("additionalProperties", {})
        return {
            key: _convert(known.get(key, rest), item, f"{path}.{key}".lstrip("."), root, problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        items = inner.get("items", {})
        return [_convert(items, item, f"{path}[{at}]", root, problems) for at, item in enumerate(value)]
    return value


def _judge(schema: Schema, resolved: Any, given: Mapping[str, Any], other_keys: Collection[str]) -> Iterator[Problem]:
    """Validation errors of the parameters, as problems."""
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema).iter_errors(resolved):
        path = error.json_path.removeprefix("$").removeprefix(".")
        if error.validator == "additionalProperties":
            allowed = [*(() if path else other_keys), *error.schema.get("properties", {})]
            for key in sorted(set(error.instance) - set(error.schema.get("properties", {}))):
                yield unknown(f"{path}.{key}".lstrip("."), "key", key, allowed, error.instance[key])
        elif error.validator == "required":
            missing = [key for key in error.validator_value if key not in error.instance]
            if error.message.startswith(f"{missing[0]!r} "):  # there is an error for each key: one is enough
                yield Problem(path, f"missing: {', '.join(missing)}", allowed=_described(error.schema, missing))
        elif error.validator == "type" and not path.endswith("]"):
            asked, _ = _deref(error.schema, schema)
            kinds = " or ".join(_TYPES.get(kind, kind) for kind in _listed(error.validator_value))
            message = ". ".join(filter(None, (kinds, asked.get("description"))))
            yield Problem(path, "of another type", _at(given, list(error.absolute_path)), message)
        else:
            value = _at(given, list(error.absolute_path))
            names = _names(error.schema, schema)
            if names and isinstance(value, str):
                yield unknown(path, "name", value, names, value)
            else:
                yield Problem(path, error.message, value)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _names(schema: Any, root: Schema) -> list[str]:
    """The names among which a schema lets one choose, if it does."""
    inner, _ = _deref(schema, root)
    allowed = [*inner.get("enum", ()), *([inner["const"]] if "const" in inner else [])]
    parts = (*inner.get("anyOf", ()), *inner.get("oneOf", ()), *inner.get("allOf", ()))
    return [name for name in allowed if isinstance(name, str)] + [name for part in parts for name in _names(part, root)]


def _described(schema: Any, keys: list[str]) -> str | None:
    descriptions = (schema.get("properties", {}).get(key, {}).get("description") for key in keys)
    return "; ".join(f"{key}: {word}" for key, word in zip(keys, descriptions, strict=True) if word) or None


def _at(given: Any, path: list[Any]) -> Any:
    """The value as it was written, before its unit was parsed."""
    for step in path:
        given = given[step]
    return given


def editor_schema(schema: Any, root: Schema) -> Any:
    """A parameter schema for editors: references inlined, and quantities as strings with units."""
    kind = _kind(schema, root)
    inner, _ = _deref(schema, root)
    if kind and inner.get("type") not in ("array", "object"):
        quantity = {"type": "string", "examples": [kind.example.strip('"')]}
        kept = {key: inner[key] for key in ("description", "title") if key in inner}
        default = inner.get("default")
        return {**kept, **quantity, **({"default": kind.format(default)} if isinstance(default, int) else {})}
    result = {key: value for key, value in inner.items() if key not in ("$defs", "$schema")}
    for key in ("properties", "$defs"):
        if key in result:
            result[key] = {name: editor_schema(value, root) for name, value in result[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), Mapping):
            result[key] = editor_schema(result[key], root)
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        if key in result:
            result[key] = [editor_schema(value, root) for value in result[key]]
    return result


class Parameterised(TableModel):
    """A table that names something of the simulator, such as a topology, and holds its parameters next to the name."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)
    of_table: ClassVar[str]
    """The simulator's table that has it: ``topology``."""
    name_key: ClassVar[str] = "name"
    """The key of its name."""
    _resolved: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in base units, as the simulator takes them."""
        return self._resolved

    @model_validator(mode="after")
    def _known(self) -> Self:
        entry = named(self.of_table, getattr(self, self.name_key), self.name_key)
        self._resolved = resolve_parameters(entry, self.model_extra or {}, type(self).model_fields)
        return self


def table_of_name(given: Any) -> Any:
    """A name alone is a table with that name and no parameters."""
    return {"name": given} if isinstance(given, str) else given
