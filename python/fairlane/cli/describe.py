"""Looking at fabrics and traces: fabric describe, draw, import, compare, topology-conf; trace describe."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairlane.cli.command import AsJson, add, out_option, print_json
from fairlane.cli.comparing import compare_fabrics
from fairlane.cli.options import Assignments, TopologyName
from fairlane.inputs import code

if TYPE_CHECKING:
    from fairlane.fabric import Fabric

__all__ = ["add_to"]

fabric_app = typer.Typer(help="Import, describe, draw and compare fabrics.", no_args_is_help=True)
trace_app = typer.Typer(help="Describe recorded traces and their communication patterns.", no_args_is_help=True)

_ScenarioOrTopology = Annotated[
    Path | None,
    typer.Argument(
        metavar="SCENARIO", help="A scenario (.toml), or a file of fabric import (.json); or give --topology."
    ),
]


def describe_fabric(
    scenario: _ScenarioOrTopology = None,
    topology: TopologyName = None,
    routing: Annotated[
        str | None, typer.Option(help="Name of a routing, with --topology; by default that of the topology.")
    ] = None,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Hosts, switches, links and bisection of a fabric.

    Switches are counted by level or group, links by class and role. The bisection is the greatest flow from one half
    of the hosts to the other. For example: fairlane fabric describe --topology fat_tree --set hosts=64
    """
    from dataclasses import asdict

    from fairlane.cli.fabric_text import fabric_lines

    description = _fabric("fabric describe", scenario, topology, routing, assignments).describe()
    if as_json:
        typer.echo(json.dumps(asdict(description), indent=2))
    else:
        _print(fabric_lines(description))


def draw_fabric(
    scenario: _ScenarioOrTopology = None,
    topology: TopologyName = None,
    out: Annotated[Path, out_option("The picture: .png, .svg or .pdf.")] = Path("fabric.png"),
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Draw a fabric: small ones in full, large ones by groups with counts.

    For example: fairlane fabric draw --topology dragonfly --set preset=wilke2020 -o dragonfly.png
    """
    from fairlane.plot.fabric import draw

    fabric = _fabric("fabric draw", scenario, topology, None, assignments)
    path = draw(fabric, out)
    if as_json:
        print_json({"figure": path})
    else:
        typer.echo(path)


def import_fabric(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Output of ibnetdiscover, a CSV list of links, or the cabling of a Cray Cascade; also packed by xz.",
            show_default=False,
        ),
    ],
    out: Annotated[Path | None, out_option("Where to write it; by default NAME.fabric.json here.")] = None,
    tables: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Forwarding tables, as dump_lfts or ibroute print them.")
    ] = None,
    node_name_map: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help='Names that override descriptions, one line 0xGUID "name" each.'),
    ] = None,
    switches_only: Annotated[
        bool, typer.Option("--switches-only", help="The dump of ibnetdiscover has the sections of switches only.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read the fabric of a real cluster, describe it, and write it as a file for scenarios.

    Reports levels, shape, hosts per leaf, oversubscription and anomalies of the cabling. In a scenario:
    [fabric] topology = "imported", file = "NAME.fabric.json".
    """
    from dataclasses import asdict

    from fairlane.cli.fabric_text import survey_lines
    from fairlane.fabric import read_wiring, survey

    wiring = read_wiring(file, tables, node_name_map, switches_only=switches_only)
    found = survey(wiring)
    if tables:
        wiring.fabric("tables")
    target = out or Path(f"{file.name.removesuffix(file.suffix)}.fabric.json")
    wiring.save(target)
    if as_json:
        typer.echo(json.dumps({**asdict(found), "file": str(target)}, indent=2))
    else:
        _print([*survey_lines(found), f"written    {target}"])


def write_topology_conf(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="SOURCE", help="A scenario (.toml), or a fabric's file as fabric import reads; or give --topology."
        ),
    ] = None,
    topology: TopologyName = None,
    assignments: Assignments = None,
    merged: Annotated[
        bool,
        typer.Option("--merged", help="One switch for all that join the same ones below, and a root: a strict tree."),
    ] = False,
    out: Annotated[Path | None, out_option("Where to write it; by default it is printed.")] = None,
    as_json: AsJson = False,
) -> None:
    """Write topology.conf for Slurm's tree plugin: switches, the hosts at each, and what is above them.

    For example: fairlane fabric topology-conf cluster.ibnetdiscover --merged -o topology.conf
    """
    from fairlane.errors import Problem, ScenarioError
    from fairlane.fabric import Fabric, read_wiring
    from fairlane.fabric.slurm_topology import of_wiring, topology_conf

    if source is not None and source.suffix != ".toml" and topology is None:
        if assignments:
            words = f"{source} is taken for a fabric's file, which has no parameters"
            raise ScenarioError(Problem("--set", words, ", ".join(assignments), "with a scenario or --topology"))
        text = of_wiring(read_wiring(source), merged=merged)
    else:
        spec = _chosen("fabric topology-conf", source, topology, None, assignments)
        fabric = Fabric.build(spec)
        text = topology_conf(fabric, fabric.host_names, fabric.switch_names, merged=merged)
    for line in text.splitlines():
        if line.startswith("# "):
            typer.echo(f"fairlane: {line.removeprefix('# ')}", err=True)
    if out is not None:
        from fairlane.inputs.writing import replacing

        try:
            with replacing(out) as scratch:
                scratch.write_text(text, encoding="utf-8")
        except OSError as error:
            raise ScenarioError(Problem("", f"cannot be written: {error.strerror}", file=str(out))) from None
    if as_json:
        print_json({"file": out, "lines": text.splitlines()})
    else:
        typer.echo(text if out is None else out, nl=out is not None)


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _fabric(
    command: str, scenario: Path | None, topology: str | None, routing: str | None, assignments: list[str] | None
) -> "Fabric":
    from fairlane.fabric import Fabric

    return Fabric.build(_chosen(command, scenario, topology, routing, assignments))


def _chosen(
    command: str, scenario: Path | None, topology: str | None, routing: str | None, assignments: list[str] | None
) -> dict[str, Any]:
    """The fabric of a scenario or of options, as the simulator takes it."""
    from fairlane.errors import Problem, ScenarioError

    if (scenario is None) == (topology is None):
        raise ScenarioError(Problem(command, "needs either a scenario or --topology"))
    if scenario is None:
        return _spec({"topology": topology, "routing": routing}, assignments)
    if scenario.suffix == ".json":
        return _spec({"topology": "imported", "file": str(scenario), "routing": routing}, assignments)
    return _spec_of_file(scenario, assignments)


def _spec_of_file(scenario: Path, assignments: list[str] | None) -> dict[str, Any]:
    from fairlane import Scenario

    with code.listing():  # the fabric is all that is looked at
        return Scenario.load(scenario, set=assignments or ()).fabric.spec


def _spec(table: dict[str, Any], assignments: list[str] | None) -> dict[str, Any]:
    from fairlane.fabric.table import FabricTable

    return FabricTable.read(table, assignments or ()).spec


def describe_trace(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An OTF2 or DUMPI archive, or a .tar.zst of one.", show_default=False)
    ],
    as_json: AsJson = False,
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
    for function, name in (
        (describe_fabric, "describe"),
        (draw_fabric, "draw"),
        (import_fabric, "import"),
        (compare_fabrics, "compare"),
        (write_topology_conf, "topology-conf"),
    ):
        add(fabric_app, function, name)
    add(trace_app, describe_trace, "describe")
    app.add_typer(fabric_app, name="fabric")
    app.add_typer(trace_app, name="trace")
