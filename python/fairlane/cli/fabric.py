"""Fabrics: fabric describe, draw, import, export and compare."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option
from fairlane.cli.options import Assignments, TopologyName, quantity_of, refused, report
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.units import BANDWIDTH
from fairlane.inputs.files import write_text
from fairlane.model.fabric.compare import compare as compare_fabrics
from fairlane.model.fabric.export import FORMATS, PLUGINS
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.survey import survey
from fairlane.model.fabric.view import Fabric
from fairlane.model.scenario.fabrics import fabric_named, spec_of, wiring_named
from fairlane.views import fabric as views

_SOURCE = "A scenario (.toml), a fabric's file as fabric import reads, a preset, or TOPOLOGY[:KEY=VALUE]..."
_ScenarioOrTopology = Annotated[
    Path | None,
    Argument(
        metavar="SCENARIO",
        help="A scenario (.toml), a fabric's file as fabric import reads, a preset, TOPOLOGY:KEY=VALUE; or --topology.",
    ),
]


def describe(
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
    description = Fabric.build(spec_of("fabric describe", scenario, topology, assignments or (), routing)).describe()
    return Answer(description, [views.described(description)])


def draw(
    scenario: _ScenarioOrTopology = None,
    topology: TopologyName = None,
    out: Annotated[Path, out_option("The picture: .png, .svg or .pdf.")] = Path("fabric.png"),
    assignments: Assignments = None,
) -> Answer:
    """Draw a fabric: small ones in full, large ones by groups with counts.

    For example: fairlane fabric draw --topology dragonfly --set preset=wilke2020 -o dragonfly.png
    """
    from fairlane.views.drawing.fabric import write_figure

    path = write_figure(Fabric.build(spec_of("fabric draw", scenario, topology, assignments or ())), out)
    return Answer({"figure": path}, [str(path)], path)


def import_(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="Output of ibnetdiscover, a CSV list of links, GraphML, a network file of ibsim, topology.conf or "
            "topology.yaml of Slurm, the cabling of a Cray Cascade, a topology file of htsim or ns-3, or a network "
            "file of ASTRA-sim; also packed by xz.",
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
    rate = None if bandwidth is None else quantity_of("--bandwidth", bandwidth, BANDWIDTH)
    wiring = read_wiring(file, tables, node_name_map, switches_only=switches_only, bandwidth=rate)
    surveyed = survey(wiring)
    if tables:
        wiring.fabric("tables")
    plain = file.with_suffix("") if file.suffix == ".xz" else file
    target = out or Path(f"{plain.stem}.fabric.json")
    wiring.save(target)
    shown = views.surveyed(surveyed, str(file))
    return Answer({**asdict(surveyed), "file": target}, [shown, f"Written: {target}"], target)


def export(
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
    wiring = wiring_named("fabric export", source, topology, assignments or ())
    written = form.write(wiring, merged=merged, plugin=plugin) if form.of_slurm else form.write(wiring)
    report(*(() if wiring.source else wiring.remarks), *written.notes)
    if out is not None:
        write_text(out, written.text)
    shown = written.text.removesuffix("\n") if out is None else str(out)
    return Answer({"format": chosen[0], "file": out, "lines": written.text.splitlines()}, [shown], out)


def compare(
    first: Annotated[str, Argument(metavar="FIRST", help=_SOURCE)],
    second: Annotated[str, Argument(metavar="SECOND", help="The other fabric, likewise.")],
) -> Answer:
    """Compare two fabrics cable by cable. Both must have the same number of switches; switches are compared by number.

    For example: fairlane fabric compare edison-links.txt.xz cascade:preset=edison
    """
    comparison = compare_fabrics(*(fabric_named("fabric compare", source) for source in (first, second)))
    return Answer(comparison, [views.compared(comparison, first, second)])
