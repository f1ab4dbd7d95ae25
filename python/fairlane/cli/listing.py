"""What there is to choose from: list, schema."""

import json
from typing import Annotated

import typer

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
            "controllers; "
            "by default all.",
        ),
    ] = None,
) -> None:
    """List what a scenario can name, with a line about each."""
    tables = _tables()
    if what is not None and what not in tables:
        raise ScenarioError(Problem.unknown("list", "table", what, list(tables), what))
    for heading, entries in tables.items():
        if what in (None, heading):
            width = max(map(len, entries))
            typer.echo(f"{heading}:")
            for name, summary in entries.items():
                typer.echo(f"  {name:{width}}  {summary}")


def schema() -> None:
    """Print the JSON schema of scenario files, for editors."""
    from fairlane.scenario import schema as scenario_schema

    typer.echo(json.dumps(scenario_schema(), indent=2))


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    app.command("list")(list_)
    app.command()(schema)
