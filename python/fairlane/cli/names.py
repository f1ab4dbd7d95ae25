"""Names to choose from: list, schema."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from typer import Argument, Option

from fairlane.cli.command import Answer, completing
from fairlane.cli.options import AllowCode
from fairlane.cli.registries import KINDS, SIMULATOR, entries_of, entry_of
from fairlane.core.errors import Problem, ScenarioError
from fairlane.inputs.code import allow_code as permitting
from fairlane.views import names as views


def list_(
    kind: Annotated[
        str | None,
        Argument(
            metavar="KIND",
            help=f"{', '.join(KINDS[:-1])} or {KINDS[-1]}; by default all.",
            autocompletion=completing("fairlane.cli.registries:KINDS"),
        ),
    ] = None,
    name: Annotated[str | None, Argument(metavar="NAME", help="Show its parameters; also file.py:Name.")] = None,
    allow_code: AllowCode = False,
) -> Answer:
    """List what inputs can name, where it comes from, and what it is.

    Names are built in, or come from installed packages. With a NAME: its parameters, with types and defaults.
    """
    if kind is not None and kind not in KINDS:
        raise ScenarioError(Problem.unknown("list", "kind", kind, KINDS, kind))
    if kind is not None and name is not None:
        with permitting(allow_code):
            described = entry_of(kind, name)
        return Answer({"kind": kind, **asdict(described)}, views.described(described, simulator=kind in SIMULATOR))
    chosen = {kind_of: dict(entries_of(kind_of)) for kind_of in KINDS if kind in (None, kind_of)}
    if kind is None:  # every placement is an allocator, too
        chosen["allocators"] = {
            name: entry for name, entry in chosen["allocators"].items() if name not in chosen["placements"]
        }
    answer = {
        kind_of: {name: {"origin": entry.origin, "summary": entry.summary} for name, entry in known.items()}
        for kind_of, known in chosen.items()
    }
    return Answer(answer, (line for kind_of, known in chosen.items() for line in views.names_listed(kind_of, known)))


def schema(as_json: Annotated[bool, Option("--json", help="A schema is JSON in any case.")] = False) -> None:
    """Print the JSON schema of scenario files, for editors."""
    from fairlane.model.scenario import schema as scenario_schema

    del as_json
    typer.echo(json.dumps(scenario_schema(), indent=2))
