"""QoS settings for OpenSM and from it: qos export, qos import, qos apply, and sm check by a real subnet manager."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import tomlkit
import typer
from typer import Argument, Option

from fairlane import Scenario
from fairlane.cli.command import Answer, ExitCode, completing, out_option, write_folder
from fairlane.cli.options import AllowCode, Assignments, fresh, one_of, quantity_of, refused, report
from fairlane.cluster.agent.apply import FILE, Applier, ApplyConfig, alone
from fairlane.cluster.opensm.check import ENGINES, PAIRS, Compared, check_lanes, compare_classes, find_programs
from fairlane.cluster.opensm.check import check as check_subnet
from fairlane.cluster.opensm.export import export as opensm_files
from fairlane.cluster.opensm.export import qos_table, share_notes
from fairlane.cluster.opensm.nodes import hosts_of_groups
from fairlane.cluster.opensm.options import read_options
from fairlane.cluster.opensm.policy import Policy, read_policy
from fairlane.core.signals import exit_on_sigterm, temporary_folder
from fairlane.core.units import whole_number
from fairlane.inputs.files import write_text
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.levels import MAX_LEVELS
from fairlane.model.stacks import export as spell
from fairlane.model.stacks import reached
from fairlane.results.run import SCENARIO, file_of_run
from fairlane.views import qos as views
from fairlane.views.model import View

_Source = Annotated[Path, Argument(metavar="SCENARIO|RUN", help="A scenario (.toml), or the folder of a run.")]


def export(
    source: _Source,
    opensm: Annotated[Path, Option("--opensm", metavar="DIR", help="A new or empty folder for the files.")],
    assignments: Assignments = None,
    guids: Annotated[
        Path | None,
        Option(
            metavar="DUMP",
            help="Name ports by GUID, not NodeDescription: output of ibnetdiscover, or fabric import's file.",
        ),
    ] = None,
    data_vls: Annotated[int, Option("--data-vls", min=1, max=15, help="Data lanes that the switches have.")] = 15,
    vlarb_entries: Annotated[
        int,
        Option(
            "--vlarb-entries",
            min=1,
            max=64,
            help="Entries of each VL arbitration table of a port: VLArbLowCap of smpquery portinfo.",
        ),
    ] = 64,
    policy_file: Annotated[
        str, Option("--policy-file", metavar="PATH", help="Path of the policy on OpenSM's machine.")
    ] = "/etc/opensm/qos-policy.conf",
    grants: Annotated[
        list[str] | None,
        Option(
            "--for",
            metavar="JOB=account:NAME[,qos:NAME][,partition:NAME]",
            help="Jobs of Slurm that get the level of this job; can be given many times.",
        ),
    ] = None,
    approximate: Annotated[
        bool, Option("--approximate", help="Approximate what a cluster cannot do, with a note, instead of refusing it.")
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Write the QoS of a scenario for OpenSM, MPI libraries and Slurm.

    The folder has opensm.conf (QoS options), qos-policy.conf, env/JOB.sh (lines that set a job's level) and scripts for
    Slurm. For example: fairlane qos export two-jobs.toml --opensm qos
    """
    fresh(opensm, "--opensm")
    exported = opensm_files(
        _resolved(source, assignments, allow_code=allow_code),
        approximate=approximate,
        data_lanes=data_vls,
        dump=read_wiring(guids) if guids else None,
        policy_file=policy_file,
        entries=vlarb_entries,
        grants=grants or (),
    )
    report(*exported.notes)
    write_folder(opensm, exported.files, "--opensm")
    paths = [opensm / name for name in exported.files]
    return Answer(
        {
            "levels": exported.levels,
            "settings": exported.settings,
            "shares": exported.shares,
            "notes": exported.notes,
            "files": paths,
        },
        [*views.exported(exported), *map(str, paths)],
        opensm,
    )


def classes(
    source: _Source,
    library: Annotated[
        str,
        Option(
            metavar="NAME",
            help="Communication library: nccl, ucx, mooncake or cray_mpi.",
            autocompletion=completing("fairlane.model.stacks:LIBRARIES"),
        ),
    ],
    network: Annotated[
        str,
        Option(
            metavar="NAME",
            help="infiniband, roce or slingshot.",
            autocompletion=completing("fairlane.model.stacks:NETWORKS"),
        ),
    ],
    out: Annotated[Path, out_option("A new or empty folder for the files.")],
    assignments: Assignments = None,
    traffic_class: Annotated[
        list[str] | None,
        Option(
            "--traffic-class",
            metavar="LEVEL=NAME",
            help="Slingshot's traffic class of a service level, as 1=LOW_LATENCY; once for each level in use.",
        ),
    ] = None,
    profile: Annotated[str, Option(metavar="NAME", help="QoS profile of a Slingshot fabric.")] = "HPC",
    approximate: Annotated[
        bool, Option("--approximate", help="Leave out what library or network cannot say, with a note.")
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Write the service levels of jobs and communicators as a library and a network spell them.

    The folder has env/JOB.sh (environment variables), communicators.json for NCCL, and scripts that set DSCP,
    priorities, PFC and buffers of RoCE. For example: fairlane qos classes moe.toml --library nccl --network roce --out
    stack
    """
    fresh(out, "--out")
    resolved = _scenario(source, assignments, allow_code=allow_code).resolve()
    names = _traffic_classes(traffic_class or ())
    spelled = spell(resolved, library, network, approximate=approximate, names=names, profile=profile)
    report(*spelled.notes)
    write_folder(out, spelled.files, "--out")
    paths = [out / name for name in spelled.files]
    lanes = reached(spelled, resolved.tables["qos"]["sl2vl"], names)
    rows = [
        {**vars(spelling), "reached": [lanes[spelling.job, name] for name in spelling.communicators]}
        for spelling in spelled.spellings
    ]
    data = {"messages": rows, "notes": spelled.notes, "files": paths}
    return Answer(data, [*views.spelled(spelled), *map(str, paths)], out)


def _traffic_classes(given: Sequence[str]) -> dict[int, str]:
    """Slingshot's traffic classes by level."""
    names: dict[int, str] = {}
    for text in given:
        level, equals, name = text.partition("=")
        if not equals or not level.isdecimal() or whole_number(level) >= MAX_LEVELS:
            raise refused("--traffic-class", f"LEVEL=NAME with a level of 0 to {MAX_LEVELS - 1}", text)
        if whole_number(level) in names:
            raise refused("--traffic-class", "each level once", text)
        names[whole_number(level)] = name
    return names


def import_(
    file: Annotated[Path, Argument(metavar="OPENSM_CONF", help="OpenSM's options, as opensm.conf.")],
    policy: Annotated[Path | None, Option(metavar="FILE", help="The QoS policy, as qos-policy.conf.")] = None,
    fabric: Annotated[
        Path | None, Option(metavar="FILE", help="The fabric that the policy is for, as fabric import reads it.")
    ] = None,
    data_vls: Annotated[int, Option("--data-vls", min=1, max=15, help="Data lanes that the ports have.")] = 15,
    out: Annotated[Path | None, out_option("Where to write the table; by default it is printed.")] = None,
) -> Answer:
    """Read OpenSM's QoS options as the table [qos] of a scenario.

    With --policy its default level becomes qos.default, and comments list the levels of its port groups; with --fabric
    also their hosts. For example: fairlane qos import /etc/opensm/opensm.conf
    """
    settings, notes, _ = read_options(file)
    if fabric is not None and policy is None:
        raise refused("--fabric", "goes with --policy", str(fabric))
    rules = read_policy(policy) if policy else Policy((), {}, ())
    groups = list(rules.lines(hosts_of_groups(rules, read_wiring(fabric), policy) if policy and fabric else {}))
    table, changes = qos_table(settings, rules.default, data_vls)
    changes += share_notes(settings.in_force(data_vls))
    report(*notes, *rules.notes, *changes)
    arbiter = tomlkit.inline_table()
    arbiter.update(table["arbiter"])
    text = tomlkit.dumps({"qos": {**table, "arbiter": arbiter}})
    text = "".join(f"# {line}\n" for line in groups) + text
    if out is not None:
        write_text(out, text)
    data = {"qos": table, "groups": groups, "notes": [*notes, *rules.notes, *changes], "file": out}
    return Answer(data, [text.removesuffix("\n") if out is None else str(out)], out)


def apply(
    folder: Annotated[Path, Argument(metavar="DIR", help="The folder that qos export has written.")],
    once: Annotated[bool, Option("--once", help="Put in force what the jobs that run now have, and end.")] = False,
    undo: Annotated[bool, Option("--undo", help="Take all levels back, and end.")] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Keep the service levels of Slurm's jobs in OpenSM's policy: on the machine of OpenSM, as its user.

    Levels go by account, QOS and partition (levels.tsv); prolog.sh and epilog.sh report the jobs. Changes within
    `interval` of apply.toml are made together. SIGTERM ends it, and levels stay in force until the next start or
    --undo. For example: fairlane qos apply /etc/opensm/fairlane
    """
    config = ApplyConfig.from_file(folder / FILE, allow_code=allow_code)
    applier = Applier(config, report=typer.echo)
    applier.start()
    with alone(config.running):
        if undo:
            applier.withdraw()
        elif once:
            return Answer(code=ExitCode.RUN_FAILED if applier.look() else ExitCode.DONE)
        else:
            signal.signal(signal.SIGTERM, lambda *_: applier.stop())
            applier.run()
    return Answer()


def check(
    source: Annotated[
        Path,
        Argument(
            metavar="SCENARIO|DIR", help="A scenario (.toml), the folder of a run, or one that qos export has written."
        ),
    ],
    assignments: Assignments = None,
    engine: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="Routing engine of OpenSM, e.g. ftree; by default it loads the forwarding tables of the simulator.",
            autocompletion=completing("fairlane.cluster.opensm.check:ENGINES"),
        ),
    ] = None,
    routes_out: Annotated[
        Path | None,
        Option("--routes-out", metavar="FILE", help="Write OpenSM's forwarding tables for fabric import --tables."),
    ] = None,
    guids: Annotated[
        Path | None,
        Option(metavar="DUMP", help="GUIDs and LIDs of the fabric: output of ibnetdiscover, or fabric import's file."),
    ] = None,
    pairs: Annotated[
        int | None,
        Option(min=1, metavar="NUMBER", help="Path records to read at most, evenly spaced; by default 20,000."),
    ] = None,
    timeout: Annotated[str, Option(help="How long OpenSM may take to set up the subnet.")] = "30 min",
    keep: Annotated[
        Path | None, Option(metavar="DIR", help="A new or empty folder for the files and logs of ibsim and OpenSM.")
    ] = None,
    revert: Annotated[
        bool, Option("--revert", help="At the end revert the settings as revert/ does, and read the ports again.")
    ] = False,
    options: Annotated[
        Path | None,
        Option(metavar="FILE", help="Compare the lanes of classes and jobs with this opensm.conf, without a subnet."),
    ] = None,
    policy: Annotated[
        Path | None, Option(metavar="FILE", help="The QoS policy with --options; by default the one that they name.")
    ] = None,
    approximate: Annotated[
        bool, Option("--approximate", help="Approximate what a cluster cannot do, as qos export does.")
    ] = False,
    allow_code: AllowCode = False,
) -> Answer:
    """Have a real OpenSM read exported QoS settings, read back what it sets in every port, and compare.

    The subnet is simulated by ibsim. Compared are the shares of links, the tables of VL arbitration, SL2VL, service
    levels of path records and forwarding tables; the exit code is 1 if one differs. With --options a file of OpenSM is
    read instead: whether the service level of each traffic class and job reaches the lane of the scenario, with its
    share of links.
    For example: fairlane sm check two-jobs.toml
    """
    if options is not None:
        found = compare_classes(_resolved(source, assignments, allow_code=allow_code), options, policy)
        return _compared(found, views.classes(found, options))
    if policy is not None:
        raise refused("--policy", "is compared with classes", str(policy), "with --options")
    if engine is not None:
        one_of("--engine", engine, ENGINES)
    limit = quantity_of("--timeout", timeout) * 1e-12
    if keep is not None:
        fresh(keep, "--keep")
    find_programs()
    with _folder(keep) as folder:
        if (source / "opensm.conf").exists():
            given = {"--set": assignments, "--guids": guids, "--approximate": approximate, "--allow-code": allow_code}
            if option := next((option for option, value in given.items() if value), None):
                raise refused(option, "the folder has exported settings already", str(source), "with a scenario")
            exported = source.absolute()
        else:
            exported = folder / "exported"
            resolved = _resolved(source, assignments, allow_code=allow_code)
            files = opensm_files(resolved, approximate=approximate, dump=read_wiring(guids) if guids else None)
            check_lanes(files.settings, "qos.sl2vl")
            report(*files.notes)
            write_folder(exported, files.files, "--keep")
        checked = check_subnet(exported, folder, engine=engine, pairs=pairs or PAIRS, timeout_s=limit, revert=revert)
    if routes_out is not None:
        write_text(routes_out, checked.routes)
    of_subnet = {
        "routing_engine": checked.engine,
        "up_s": checked.up_s,
        "read_s": checked.read_s,
        "routes": routes_out,
    }
    return _compared(checked, views.checked(checked), [routes_out] if routes_out else [], **of_subnet)


def _compared(found: Compared, view: View, files: Sequence[Path] = (), **more: object) -> Answer:
    """What is equal and what differs, with ``more`` for programs."""
    report(*found.notes)
    data = {
        "equal": not found.differences,
        "compared": found.counts,
        "differences": found.differences,
        "notes": found.notes,
        **more,
    }
    code = ExitCode.RUN_FAILED if found.differences else ExitCode.DONE
    return Answer(data, [view], files=files, code=code)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """The folder of all files; SIGTERM ends the command as an error does, with its processes and temporary files."""
    with exit_on_sigterm():
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            yield keep.absolute()
        else:
            with temporary_folder("fairlane-sm-") as made:
                yield made


def _resolved(source: Path, assignments: list[str] | None, *, allow_code: bool) -> Resolved:
    """The scenario, or that of a run, with the hosts of its jobs; nothing is simulated."""
    return _scenario(source, assignments, allow_code=allow_code).decide()


def _scenario(source: Path, assignments: list[str] | None, *, allow_code: bool) -> Scenario:
    """The scenario, or that of a run."""
    if source.is_dir():
        if assignments:
            raise refused("--set", "a run has its settings already", ", ".join(assignments), "with a scenario")
        source = file_of_run(source, SCENARIO)
    return Scenario.load(source, set=assignments or (), allow_code=allow_code)
