"""What there is to choose from: list, schema."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, completing
from fairlane.cli.options import AllowCode
from fairlane.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from fairlane.inputs.parameters import Entry
    from fairlane.inputs.registry import Registry

REGISTRIES = {
    "workloads": "fairlane.workload:WORKLOADS",
    "imbalances": "fairlane.workload.imbalance:IMBALANCES",
    "patterns": "fairlane.workload.destinations:PATTERNS",
    "placements": "fairlane.placement:PLACEMENTS",
    "mappings": "fairlane.placement.mapping:MAPPINGS",
    "strategies": "fairlane.qos:STRATEGIES",
    "models": "fairlane.scenario.simulators:MODELS",
    "controllers": "fairlane.controller:CONTROLLERS",
    "allocators": "fairlane.placement:ALLOCATORS",
    "figures": "fairlane.plot:FIGURES",
    "papers": "fairlane.reproduce:PAPERS",
    "backends": "fairlane.agent.backends:BACKENDS",
}
"""The registry of each kind that plug-ins can extend."""
SIMULATOR = {
    "topologies": "topology",
    "routings": "routing",
    "arbiters": "arbiter",
    "switches": "switch",
    "switch_allocators": "allocator",
    "transports": "transport",
    "faults": "fault",
}
"""The simulator's table of each kind."""
KINDS = (*SIMULATOR, "collectives", *REGISTRIES)  # everything that can be listed


def _registry(kind: str) -> "Registry[Any]":
    from pkgutil import resolve_name

    found: Registry[Any] = resolve_name(REGISTRIES[kind])
    return found


def entries_of(kind: str) -> "Mapping[str, Entry]":
    """What there is of a kind, by name."""
    from fairlane.inputs.parameters import Entry, collectives, entries
    from fairlane.placement import entries as placements

    special: dict[str, Callable[[], Mapping[str, Entry]]] = {
        "collectives": lambda: {
            f"{call} {name}": Entry(f"{call} {name}", summary)
            for call, names in collectives().items()
            for name, summary in names.items()
        },
        "placements": placements,
        "figures": _figures,
    }
    if kind in special:
        return special[kind]()
    return entries(SIMULATOR[kind]) if kind in SIMULATOR else _registry(kind).entries()


def _figures() -> "Mapping[str, Entry]":
    """The pictures of views, and what is drawn by Matplotlib or by plug-ins."""
    from fairlane.inputs.parameters import Entry
    from fairlane.views.kinds import KINDS as VIEWED

    pictures = {name: Entry(name, summary) for one in VIEWED.values() for name, summary in one.pictures.items()}
    return {**_registry("figures").entries(), **pictures}


def _entry(kind: str, name: str) -> "Entry":
    """What there is by one name, also ``file.py:Name``. Raises ``ScenarioError`` if there is nothing."""
    from fairlane.inputs.problems import refusing

    known = entries_of(kind)
    if name in known:
        return known[name]
    if kind in REGISTRIES:
        with refusing("list"):
            return _registry(kind).entry(name)
    raise ScenarioError(Problem.unknown("list", kind, name, list(known), name))


def list_(
    kind: Annotated[
        str | None,
        Argument(
            metavar="KIND",
            help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}; by default all.",
            autocompletion=completing("fairlane.cli.listing:KINDS"),
        ),
    ] = None,
    name: Annotated[str | None, Argument(metavar="NAME", help="Show its parameters; also file.py:Name.")] = None,
    allow_code: AllowCode = False,
) -> Answer:
    """List what inputs can name, where it comes from, and what it is.

    Names are built in, or come from installed packages. With a NAME: its parameters, with types and defaults.
    """
    from dataclasses import asdict

    from fairlane.inputs.code import allow_code as permitting

    if kind is not None and kind not in KINDS:
        raise ScenarioError(Problem.unknown("list", "kind", kind, KINDS, kind))
    if kind is not None and name is not None:
        with permitting(allow_code):
            found = _entry(kind, name)
        return Answer({"kind": kind, **asdict(found)}, _described(found, simulator=kind in SIMULATOR))
    chosen = {one: dict(entries_of(one)) for one in KINDS if kind in (None, one)}
    if kind is None:  # every placement is an allocator, too
        chosen["allocators"] = {
            name: entry for name, entry in chosen["allocators"].items() if name not in chosen["placements"]
        }
    answer = {
        one: {name: {"origin": entry.origin, "summary": entry.summary} for name, entry in known.items()}
        for one, known in chosen.items()
    }
    return Answer(answer, (line for one, known in chosen.items() for line in _lines(one, known)))


def _lines(kind: str, known: "Mapping[str, Entry]") -> Iterator[str]:
    if not known:
        return
    width = max(map(len, known))
    where = max(len(entry.origin) for entry in known.values())
    yield f"{kind}:"
    for name, entry in known.items():
        yield f"  {name:{width}}  {entry.origin:{where}}  {entry.summary}"


def _described(found: "Entry", *, simulator: bool) -> Iterator[str]:
    """What it is, and its parameters as in the reference, without Markdown's signs."""
    import re

    from fairlane.inputs.described import keys_of
    from fairlane.inputs.parameters import editor_schema

    yield f"{found.name} ({found.origin}): {found.summary}"
    if found.routing:
        yield f"usual routing: {found.routing}"
    rows = list(keys_of(editor_schema(found.schema, found.schema) if simulator else found.schema))
    if not rows:
        yield "no parameters"
    for row in rows:
        value = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", row.type).replace("`", "")
        default = f"default {row.default.strip('`')}" if row.default not in ("", "required") else row.default
        yield f"  {row.name}: {', '.join(filter(None, (value, default)))}"
        if row.meaning:
            yield f"      {' '.join(row.meaning.split())}"


def schema(as_json: Annotated[bool, Option("--json", help="A schema is JSON in any case.")] = False) -> None:
    """Print the JSON schema of scenario files, for editors."""
    del as_json
    from fairlane.scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))
