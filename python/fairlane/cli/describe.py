"""Looking at one thing before anything is simulated: fabric describe, trace describe."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlane.cli.options import Assignments

if TYPE_CHECKING:
    from fairlane.fabric import FabricDescription

__all__ = ["add_to"]

fabric_app = typer.Typer(help="Look at a fabric.", no_args_is_help=True)
trace_app = typer.Typer(help="Look at a recorded trace.", no_args_is_help=True)

_AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@fabric_app.command("describe")
def describe_fabric(
    scenario: Annotated[
        Path | None, typer.Argument(metavar="SCENARIO", help="A scenario, a TOML file; or give --topology.")
    ] = None,
    topology: Annotated[str | None, typer.Option(help="Name of a topology; its parameters come by --set.")] = None,
    routing: Annotated[str, typer.Option(help="Name of a routing, with --topology.")] = "d_mod_k",
    assignments: Assignments = None,
    as_json: _AsJson = False,
) -> None:
    """Hosts, switches, links and bisection of a fabric.

    Switches are counted by level, links by class. The bisection is the greatest flow from the first half of the hosts
    to the second. For example: fairlane fabric describe --topology fat_tree --set hosts=64
    """
    from dataclasses import asdict

    from fairlane.errors import Problem, ScenarioError
    from fairlane.fabric import Fabric

    if (scenario is None) == (topology is None):
        raise ScenarioError(Problem("fabric describe", "needs either a scenario or --topology"))
    spec = _spec_of_file(scenario, assignments) if scenario else _spec(topology or "", routing, assignments)
    description = Fabric.build(spec).describe()
    if as_json:
        typer.echo(json.dumps(asdict(description), indent=2))
    else:
        _print_fabric(description)


def _spec_of_file(scenario: Path, assignments: list[str] | None) -> dict[str, Any]:
    from fairlane import Scenario
    from fairlane.scenario.resolve import fabric_spec

    return fabric_spec(Scenario.load(scenario, set=assignments or ()).fabric)


def _spec(topology: str, routing: str, assignments: list[str] | None) -> dict[str, Any]:
    from fairlane.scenario.models import FabricTable
    from fairlane.scenario.resolve import fabric_spec
    from fairlane.scenario.scenario import read_table

    return fabric_spec(read_table(FabricTable, {"topology": topology, "routing": routing}, assignments or ()))


def _print_fabric(fabric: "FabricDescription") -> None:
    from fairlane.units import BANDWIDTH, DURATION

    switches = ", ".join(f"{count} at level {level}" for level, count in fabric.switches.items())
    typer.echo(f"hosts      {fabric.hosts}")
    typer.echo(f"switches   {sum(fabric.switches.values())}: {switches}")
    typer.echo(f"links      {sum(kind.links for kind in fabric.links)}")
    for kind in fabric.links:
        rate, latency = BANDWIDTH.format(kind.bandwidth), DURATION.format(kind.latency)
        typer.echo(f"  {kind.name:18} {kind.links:8}  {rate}, {latency}")
    typer.echo(f"diameter   {fabric.diameter} links")
    share = (
        f", {fabric.bisection / fabric.full_bisection:.0%} of what the hosts can send" if fabric.full_bisection else ""
    )
    typer.echo(f"bisection  {BANDWIDTH.format(fabric.bisection)}{share}")


@trace_app.command("describe")
def describe_trace(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An OTF2 or DUMPI archive, or a .tar.zst of one.", show_default=False)
    ],
    as_json: _AsJson = False,
) -> None:
    """Ranks, events, calls and bytes of a recorded trace.

    Also its collectives, communicators and neighbours, and how much of its CPU time was computation.
    """
    from fairlane.cli.trace_text import trace_lines
    from fairlane.workload.trace import read_trace

    description = read_trace(file).describe()
    if as_json:
        typer.echo(json.dumps(description, indent=2))
        return
    for line in trace_lines(description):
        typer.echo(line)


def add_to(app: typer.Typer) -> None:
    """Adds these commands."""
    app.add_typer(fabric_app, name="fabric")
    app.add_typer(trace_app, name="trace")
