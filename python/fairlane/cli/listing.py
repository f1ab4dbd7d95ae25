"""What there is to choose from: list, schema."""

import json
from typing import Annotated

import typer

from fairlane.cli.command import AsJson, add, completing, print_json
from fairlane.errors import Problem, ScenarioError

__all__ = ["add_to"]


def _tables() -> dict[str, dict[str, str]]:
    """One line about everything that has a name, by what it is."""
    from fairlane.controller import CONTROLLERS
    from fairlane.inputs.tables import collectives, entries
    from fairlane.placement import summaries
    from fairlane.placement.mapping import MAPPINGS
    from fairlane.qos import summaries as strategies
    from fairlane.workload import WORKLOADS

    simulator = {
        heading: {entry.name: entry.summary for entry in entries(table).values()}
        for heading, table in (("topologies", "topology"), ("routings", "routing"), ("arbiters", "arbiter"))
    }
    algorithms = {f"{kind} {name}": line for kind, names in collectives().items() for name, line in names.items()}
    workloads = {name: workload.summary() for name, workload in WORKLOADS.items()}
    controllers = {name: controller.summary() for name, controller in CONTROLLERS.items()}
    mappings = {name: mapping.summary() for name, mapping in MAPPINGS.items()}
    return {
        **simulator,
        "collectives": algorithms,
        "workloads": workloads,
        "placements": summaries(),
        "mappings": mappings,
        "strategies": strategies(),
        "controllers": controllers,
    }


def list_(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help="topologies, routings, arbiters, collectives, workloads, placements, mappings, strategies or "
            "controllers; by default all.",
            autocompletion=completing("fairlane.cli.listing:_tables"),
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List what a scenario can name, with a line about each."""
    tables = _tables()
    if what is not None and what not in tables:
        raise ScenarioError(Problem.unknown("list", "table", what, list(tables), what))
    chosen = {heading: entries for heading, entries in tables.items() if what in (None, heading)}
    if as_json:
        print_json(chosen)
        return
    for heading, entries in chosen.items():
        width = max(map(len, entries))
        typer.echo(f"{heading}:")
        for name, summary in entries.items():
            typer.echo(f"  {name:{width}}  {summary}")


def schema(as_json: Annotated[bool, typer.Option("--json", help="A schema is JSON in any case.")] = False) -> None:
    """Print the JSON schema of scenario files, for editors."""
    del as_json
    from fairlane.scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    add(app, list_, "list")
    add(app, schema)
