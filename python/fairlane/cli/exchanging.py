"""Settings between the simulator and a cluster: qos export, qos import."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from fairlane.cli.command import Answer, out_option, write_text
from fairlane.cli.options import AllowCode, Assignments, fresh, refused, report

if TYPE_CHECKING:
    from fairlane.scenario import Resolved

Run = Annotated[Path, Argument(metavar="SCENARIO|RUN", help="A scenario (.toml), or the folder of a run.")]


def export_qos(
    source: Run,
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
    from fairlane.fabric import read_wiring
    from fairlane.opensm import export

    fresh(opensm, "--opensm")
    found = export(
        resolved_of(source, assignments, allow_code=allow_code),
        approximate=approximate,
        data_lanes=data_vls,
        dump=read_wiring(guids) if guids else None,
        policy_file=policy_file,
        entries=vlarb_entries,
        grants=grants or (),
    )
    for note in found.notes:
        report(note)
    write_folder(opensm, found.files, "--opensm")
    paths = [opensm / name for name in found.files]
    lines = [f"{job}: service level {level}" for job, level in found.levels.items()]
    lines += [
        f"VL{one.lane}: {one.exported:.1%} of a link on which all lanes always send, {one.simulated:.1%} simulated"
        for one in found.shares
    ]
    return Answer(
        {
            "levels": found.levels,
            "settings": found.settings,
            "shares": found.shares,
            "notes": found.notes,
            "files": paths,
        },
        [*lines, *map(str, paths)],
        opensm,
    )


def import_qos(
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
    import tomlkit

    from fairlane.opensm import qos_table, read_options, share_notes

    settings, notes, _ = read_options(file)
    groups, default, more = _groups(policy, fabric)
    table, changes = qos_table(settings, default, data_vls)
    changes += share_notes(settings.in_force(data_vls))
    for note in (*notes, *more, *changes):
        report(note)
    text = tomlkit.dumps({"qos": {**table, "arbiter": _inline(table["arbiter"])}})
    text = "".join(f"# {line}\n" for line in groups) + text
    if out is not None:
        write_text(out, text)
    data = {"qos": table, "groups": groups, "notes": [*notes, *more, *changes], "file": out}
    return Answer(data, [text.removesuffix("\n") if out is None else str(out)], out)


def _inline(table: Mapping[str, Any]) -> Any:
    import tomlkit

    found = tomlkit.inline_table()
    found.update(table)
    return found


def _groups(policy: Path | None, fabric: Path | None) -> tuple[list[str], int, list[str]]:
    """The level of each port group with its hosts, the default level, and notes."""
    from fairlane.fabric import read_wiring
    from fairlane.opensm import read_policy
    from fairlane.opensm.ports import hosts_of_groups
    from fairlane.slurm import shortened

    if policy is None:
        if fabric is not None:
            raise refused("--fabric", "goes with --policy", str(fabric))
        return [], 0, []
    found = read_policy(policy)
    hosts = hosts_of_groups(found, read_wiring(fabric), policy) if fabric else {}
    lines = []
    for rule in found.rules:
        ends = [name for name in dict.fromkeys((rule.source, rule.destination)) if name]
        where = " to ".join(f"{end} ({shortened(hosts[end])})" if end in hosts else end for end in ends)
        lines.append(f"service level {found.levels[rule.level]}: {where or 'all ports'}")
    return lines, found.default, list(found.notes)


def resolved_of(source: Path, assignments: list[str] | None, *, allow_code: bool) -> "Resolved":
    """The scenario, or that of a run, with the hosts of its jobs; nothing is simulated."""
    from fairlane import Scenario
    from fairlane.results.store import SCENARIO, file_of_run

    if source.is_dir():
        if assignments:
            raise refused("--set", "a run has its settings already", ", ".join(assignments), "with a scenario")
        source = file_of_run(source, SCENARIO)
    return Scenario.load(source, set=assignments or (), allow_code=allow_code).decide()


def write_folder(folder: Path, files: Mapping[str, str], option: str) -> None:
    """Writes all files or none; scripts are executable. Raises ``ScenarioError`` with the option."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise refused(option, f"cannot be written: {error.strerror}", str(folder)) from None
    try:
        for name, text in files.items():
            path = unfinished / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            path.chmod(0o755 if text.startswith("#!") else 0o644)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    except OSError as error:
        raise refused(option, f"cannot be written: {error.strerror}", str(folder)) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
