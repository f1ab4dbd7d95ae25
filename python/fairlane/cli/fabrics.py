"""Looking at fabrics: fabric describe, draw, import, export, compare."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_text
from fairlane.cli.options import Assignments, TopologyName, refused, report
from fairlane.errors import Problem, ScenarioError

if TYPE_CHECKING:
    from fairlane.fabric import Fabric, Wiring

_SOURCE = "A scenario (.toml), a fabric's file as fabric import reads, a preset, or TOPOLOGY[:KEY=VALUE]..."

_ScenarioOrTopology = Annotated[
    Path | None,
    Argument(
        metavar="SCENARIO",
        help="A scenario (.toml), a file of fabric import (.json), a preset, TOPOLOGY:KEY=VALUE; or --topology.",
    ),
]


def describe_fabric(
    scenario: _ScenarioOrTopology = None,
    topology: TopologyName = None,
    routing: Annotated[str | None, Option(help="A routing, with --topology; by default that of the topology.")] = None,
    assignments: Assignments = None,
) -> Answer:
    """Hosts, switches, links and bisection of a fabric.

    Switches are counted by level or group, links by class and role. The bisection is the greatest flow from one half
    of the hosts to the other. For example: fairlane fabric describe --topology fat_tree --set hosts=64, or
    fairlane fabric describe edison, a preset
    """
    from fairlane.cli.terminal import parts_of
    from fairlane.views.fabric import described

    found = _built(_chosen("fabric describe", scenario, topology, routing, assignments)).describe()
    return Answer(found, parts_of(described(found), None))


def draw_fabric(
    scenario: _ScenarioOrTopology = None,
    topology: TopologyName = None,
    out: Annotated[Path, out_option("The picture: .png, .svg or .pdf.")] = Path("fabric.png"),
    assignments: Assignments = None,
) -> Answer:
    """Draw a fabric: small ones in full, large ones by groups with counts.

    For example: fairlane fabric draw --topology dragonfly --set preset=wilke2020 -o dragonfly.png
    """
    from fairlane.plot.fabric import write_figure

    path = write_figure(_built(_chosen("fabric draw", scenario, topology, None, assignments)), out)
    return Answer({"figure": path}, [str(path)], path)


def import_fabric(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="Output of ibnetdiscover, a CSV list of links, GraphML, a network file of ibsim, topology.conf or "
            "topology.yaml of Slurm, or the cabling of a Cray Cascade; also packed by xz.",
        ),
    ],
    out: Annotated[Path | None, out_option("Where to write it; by default NAME.fabric.json here.")] = None,
    tables: Annotated[
        Path | None, Option(metavar="FILE", help="Forwarding tables of dump_lfts, ibroute or OpenSM.")
    ] = None,
    node_name_map: Annotated[
        Path | None, Option(metavar="FILE", help='Names that override descriptions, one line 0xGUID "name" each.')
    ] = None,
    switches_only: Annotated[
        bool, Option("--switches-only", help="The dump of ibnetdiscover has the sections of switches only.")
    ] = False,
    bandwidth: Annotated[
        str | None, Option(metavar="BANDWIDTH", help='Bandwidth of cables that have none in the file, as "200 Gb/s".')
    ] = None,
) -> Answer:
    """Read the fabric of a real cluster, describe it, and write it as a file for scenarios.

    Reports levels, shape, hosts per leaf, oversubscription and anomalies of the cabling. In a scenario:
    [fabric] topology = "imported", file = "NAME.fabric.json".
    """
    from fairlane.cli.terminal import parts_of
    from fairlane.fabric import read_wiring, survey
    from fairlane.units import BANDWIDTH
    from fairlane.views.fabric import surveyed

    try:
        rate = None if bandwidth is None else BANDWIDTH.parse(bandwidth)
    except ValueError as error:
        raise ScenarioError(Problem("--bandwidth", str(error), bandwidth)) from None
    wiring = read_wiring(file, tables, node_name_map, switches_only=switches_only, bandwidth=rate)
    found = survey(wiring)
    if tables:
        wiring.fabric("tables")
    plain = file.with_suffix("") if file.suffix == ".xz" else file
    target = out or Path(f"{plain.stem}.fabric.json")
    wiring.save(target)
    return Answer(
        {**asdict(found), "file": target}, [*parts_of(surveyed(found, str(file)), None), f"Written: {target}"], target
    )


def export_fabric(
    source: Annotated[
        Path | None,
        Argument(
            metavar="SOURCE", help="A scenario (.toml), or a fabric's file as fabric import reads; or give --topology."
        ),
    ] = None,
    topology: TopologyName = None,
    assignments: Assignments = None,
    ibnetdiscover: Annotated[bool, Option("--ibnetdiscover", help="As ibnetdiscover prints it.")] = False,
    ibsim: Annotated[bool, Option("--ibsim", help="A network file of ibsim.")] = False,
    topology_conf: Annotated[bool, Option("--topology-conf", help="topology.conf of Slurm.")] = False,
    topology_yaml: Annotated[bool, Option("--topology-yaml", help="topology.yaml of Slurm 25.05 and later.")] = False,
    graphml: Annotated[bool, Option("--graphml", help="GraphML.")] = False,
    csv: Annotated[bool, Option("--csv", help="A CSV file with a line for each cable.")] = False,
    plugin: Annotated[
        str, Option(metavar="NAME", help="In Slurm's files, the topology plugin: tree, block, ring or torus3d.")
    ] = "tree",
    merged: Annotated[
        bool,
        Option(
            "--merged",
            help="In Slurm's files: one switch for all that join the same ones below, and a root: a strict tree.",
        ),
    ] = False,
    out: Annotated[Path | None, out_option("Where to write it; by default it is printed.")] = None,
) -> Answer:
    """Write a fabric in the format of another tool. Give exactly one format.

    What the format has no place for is reported on standard error. All formats can be imported again, those of
    Slurm with single cables. For example: fairlane fabric export --topology fat_tree --set hosts=64 --ibsim -o net
    """
    from fairlane.fabric.export import FORMATS, PLUGINS

    given = (ibnetdiscover, ibsim, topology_conf, topology_yaml, graphml, csv)
    chosen = [name for name, on in zip(FORMATS, given, strict=True) if on]
    if len(chosen) != 1:
        formats = ", ".join(f"--{name}" for name in FORMATS)
        raise refused("fabric export", "needs one format", allowed=formats)
    form = FORMATS[chosen[0]]
    for option, is_given in (("--merged", merged), ("--plugin", plugin != "tree")):
        if is_given and not form.of_slurm:
            raise refused(option, "is an option of Slurm's files only", f"--{chosen[0]}", "with Slurm's files")
    if plugin not in PLUGINS:
        raise ScenarioError(Problem.unknown("--plugin", "plugin", plugin, PLUGINS, plugin))
    wiring = _wiring("fabric export", source, topology, assignments)
    written = form.write(wiring, merged=merged, plugin=plugin) if form.of_slurm else form.write(wiring)
    for note in written.notes:
        report(note)
    if out is not None:
        write_text(out, written.text)
    shown = written.text.removesuffix("\n") if out is None else str(out)
    return Answer({"format": chosen[0], "file": out, "lines": written.text.splitlines()}, [shown], out)


def compare_fabrics(
    first: Annotated[str, Argument(metavar="FIRST", help=_SOURCE)],
    second: Annotated[str, Argument(metavar="SECOND", help="The other fabric, likewise.")],
) -> Answer:
    """Compare two fabrics cable by cable. Both must have the same number of switches; switches are compared by number.

    For example: fairlane fabric compare edison-links.txt.xz cascade:preset=edison
    """
    from fairlane.cli.terminal import parts_of
    from fairlane.fabric import compare
    from fairlane.views.fabric import compared

    found = compare(_of_source(first), _of_source(second))
    return Answer(found, parts_of(compared(found, first, second), None))


def _built(spec: dict[str, Any]) -> "Fabric":
    from fairlane.fabric import Fabric

    return Fabric.build(spec)


def _wiring(command: str, source: Path | None, topology: str | None, assignments: list[str] | None) -> "Wiring":
    """The wiring of a fabric's file, or of a fabric that is built from a scenario or from options."""
    from fairlane.fabric import read_wiring
    from fairlane.fabric.export import wiring_of

    if source is not None and source.suffix != ".toml" and topology is None:
        if assignments:
            words = f"{source} is taken for a fabric's file, which has no parameters"
            raise refused("--set", words, ", ".join(assignments), "with a scenario or --topology")
        return read_wiring(source)
    wiring = wiring_of(_built(_chosen(command, source, topology, None, assignments)))
    for remark in wiring.remarks:
        report(remark)
    return wiring


def _of_source(source: str) -> "Fabric":
    """The fabric that an argument of ``compare`` names."""
    from fairlane.fabric import read_wiring

    path = Path(source)
    if path.suffix == ".toml":
        return _built(_of_scenario(path, None))
    if path.exists():
        return read_wiring(path).fabric()
    return _built(_of_table(*_named("fabric compare", source)))


def _chosen(
    command: str, scenario: Path | None, topology: str | None, routing: str | None, assignments: list[str] | None
) -> dict[str, Any]:
    """The fabric of a scenario or of options, as the simulator takes it."""
    if (scenario is None) == (topology is None):
        raise refused(command, "needs either a scenario or --topology")
    if scenario is None:
        return _of_table({"topology": topology, "routing": routing}, assignments)
    if scenario.suffix not in (".toml", ".json") and not scenario.exists():
        table, parameters = _named(command, str(scenario))
        return _of_table({**table, "routing": routing}, [*parameters, *(assignments or ())])
    if scenario.suffix == ".json":
        return _of_table({"topology": "imported", "file": str(scenario), "routing": routing}, assignments)
    return _of_scenario(scenario, assignments)


def _named(command: str, name: str) -> tuple[dict[str, Any], list[str]]:
    """The table of a fabric, and what is to be set in it: by the name of a preset, or as ``TOPOLOGY:KEY=VALUE``."""
    from fairlane.errors import Problem, ScenarioError
    from fairlane.inputs.parameters import entries

    topology, *parameters = name.split(":")
    schemas = {kind: entry.schema.get("properties", {}) for kind, entry in entries("topology").items()}
    if parameters or topology in schemas:
        return {"topology": topology}, parameters
    presets = {kind: properties.get("preset", {}).get("enum", []) for kind, properties in schemas.items()}
    kinds = [kind for kind, names in presets.items() if name in names]
    if len(kinds) > 1:
        several = " or ".join(f"{kind}:preset={name}" for kind in kinds)
        raise refused(command, "is a preset of several topologies", name, several)
    if not kinds:
        known = [*schemas, *sorted({preset for names in presets.values() for preset in names})]
        raise ScenarioError(Problem.unknown(command, "file, topology or preset", name, known, name))
    return {"topology": kinds[0], "preset": name}, []


def _of_scenario(scenario: Path, assignments: list[str] | None) -> dict[str, Any]:
    from fairlane import Scenario
    from fairlane.inputs import code

    with code.listing():  # the fabric is all that is looked at
        return Scenario.load(scenario, set=assignments or ()).fabric.spec


def _of_table(table: dict[str, Any], assignments: list[str] | None) -> dict[str, Any]:
    from fairlane.fabric.table import FabricTable

    return FabricTable.read(table, assignments or ()).spec
