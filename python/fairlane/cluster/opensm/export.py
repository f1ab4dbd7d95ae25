"""The QoS of a scenario as files for OpenSM, MPI libraries and Slurm, and OpenSM's settings as a table ``qos``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from fairlane.cluster.opensm.arbiters import Ports, tables_of
from fairlane.cluster.opensm.jobs import SCRIPTS, check_names, environment, levels_of, read_grants, write_levels
from fairlane.cluster.opensm.nodes import apply_files, fabric_files, group_of, guids_of, names_of
from fairlane.cluster.opensm.options import revert_files, write_options
from fairlane.cluster.opensm.policy import DEFAULT, PORT_NAMES, Policy, Rule, can_name_port, write_policy
from fairlane.cluster.opensm.settings import (
    DATA_LANES,
    LEVELS,
    MOST_ENTRIES,
    SHARES_FILE,
    LaneShare,
    Settings,
    Table,
    largest_error,
    operational,
    shares_of,
    shares_of_tables,
    shown,
    write_shares,
)
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.wording import plural
from fairlane.inputs.hosts import shortened, slurm_names
from fairlane.model.fabric.view import Fabric
from fairlane.model.fabric.wiring import Wiring
from fairlane.model.scenario import Resolved
from fairlane.model.scenario.network import Network

PACKET = Network().mtu + Network().header
"""Wire size of a full packet of a scenario that sets neither, bytes."""
_NOTED = Fraction(1, 100)  # an error of a share that is worth a note


def qos_table(settings: Settings, default: int = 0, data_lanes: int = DATA_LANES) -> tuple[dict[str, Any], list[str]]:
    """The table, and notes on what is not the same; ``data_lanes`` is the number of data lanes that the ports have.

    A switch drops packets of a level that is mapped to VL15, which the simulator does not do: such levels are at the
    end left out of ``sl2vl``, so that a scenario that uses one is refused, and in the middle mapped to lane 0. Of lanes
    that ports do not have in operation OpenSM keeps the low bits of the number.
    """
    given, settings = settings, settings.in_force(data_lanes)
    lanes, notes = list(settings.sl2vl), []
    folded = [level for level, lane in enumerate(lanes) if lane != given.sl2vl[level]]
    if folded:
        reason = "max_op_vls" if given.operational_vls <= data_lanes else "the ports have no more"
        notes.append(
            f"{plural(settings.operational_vls, 'data lane')} in operation ({reason}): OpenSM sets the low bits of a "
            f"lane's number, here for service levels {', '.join(map(str, folded))}"
        )
    while len(lanes) > 1 and lanes[-1] == DATA_LANES:
        lanes.pop()
        notes.append(f"service level {len(lanes)} is mapped to VL15, which drops its packets: left out of sl2vl")
    for level, lane in enumerate(lanes):
        if lane == DATA_LANES:
            lanes[level] = 0
            notes.append(
                f"service level {level} is mapped to VL15, which drops its packets; here to lane 0: do not use it"
            )
    used = set(lanes)
    table = {
        "lanes": max(used) + 1,
        "sl2vl": lanes,
        "default": default,
        "arbiter": {
            "name": "vlarb",
            "high_limit": settings.high_limit,
            "vlarb_high": _used(settings.vlarb_high, used),
            "vlarb_low": _used(settings.vlarb_low, used),
        },
    }
    served = {lane for key in ("vlarb_high", "vlarb_low") for lane, _ in table["arbiter"][key]}  # type: ignore[index]
    if starved := sorted(used - served):
        remark = f"virtual lanes {starved} have no weight in either table: their packets would never be sent"
        notes.append(remark)
    return table, notes


def share_notes(settings: Settings, packet: int = PACKET) -> list[str]:
    """The shares of a link with packets of this many bytes, and a note if the weights seem to say others."""
    shares = shares_of(settings, packet)
    notes = [f"shares of a link on which all lanes always send packets of {packet} bytes: {shown(shares)}"]
    for name, table in (("vlarb_high", settings.vlarb_high), ("vlarb_low", settings.vlarb_low)):
        weights: dict[int, int] = {}
        for lane, weight in table:
            if lane in shares:
                weights[lane] = weights.get(lane, 0) + weight
        total = sum(weights.values())
        if not total:
            continue
        by_weight = {lane: Fraction(weight, total) for lane, weight in weights.items()}
        by_packet = shares_of_tables((), table, 0, dict.fromkeys(weights, packet))
        if largest_error(by_weight, by_packet) > _NOTED:
            remark = (
                f"an entry sends whole packets, so lanes of {name} do not share by its weights ({shown(by_weight)})"
            )
            notes.append(f"{remark} but by packets: {shown(by_packet)}")
    return notes


def _used(table: Table, lanes: Sequence[int] | set[int]) -> list[list[int]]:
    """The entries that count: of lanes in use, with a weight."""
    return [[lane, weight] for lane, weight in table if lane in lanes and weight]


_PLACE = (
    "Options of the same names for kinds of ports (qos_ca_, qos_sw0_, qos_swe_, qos_sw2sw_, qos_rtr_) take precedence:",
    "remove them. revert/opensm.conf takes these settings back.",
)
POLICY_FILE = "/etc/opensm/qos-policy.conf"
"""Path of the policy that OpenSM reads unless it is told otherwise."""


@dataclass(frozen=True)
class Exported:
    """Exported files and levels."""

    files: Mapping[str, str]
    """Text by file name, relative to the folder."""
    levels: Mapping[str, int]
    """Service level of each job."""
    settings: Settings
    shares: tuple[LaneShare, ...]
    """Share of a link by lane, as simulated and as exported."""
    policy: Policy
    notes: tuple[str, ...]
    """Differences on a cluster, one sentence each."""


def export(
    resolved: Resolved,
    *,
    approximate: bool = False,
    data_lanes: int = DATA_LANES,
    dump: Wiring | None = None,
    policy_file: str = POLICY_FILE,
    entries: int = MOST_ENTRIES,
    grants: Sequence[str] = (),
) -> Exported:
    """The files for a scenario whose jobs have hosts.

    ``data_lanes`` is the number of data VLs that the switches have, ``entries`` what each of their tables of VL
    arbitration has room for; ``dump`` the fabric as ``ibnetdiscover`` prints it,
    for port GUIDs; ``grants`` say to which jobs of Slurm a job's level belongs, as ``JOB=account:NAME``. Raises
    ``ScenarioError`` with the key of what a cluster cannot do.
    """
    if not policy_file.isascii() or not policy_file.isprintable() or set(" #") & set(policy_file):
        allowed = "printable ASCII characters without blanks and #"
        raise ScenarioError(Problem("--policy-file", "cannot be in opensm.conf", policy_file, allowed))
    levels, notes = levels_of(resolved, approximate=approximate)
    settings, shares, more = settings_of(resolved, approximate=approximate, data_lanes=data_lanes, entries=entries)
    check_names(list(levels))
    granted = read_grants(grants, levels)
    fabric = resolved.fabric
    notes += [*more, *_channels(fabric, settings)]
    ports = _ports(resolved, fabric, dump)
    if dump is None:
        notes.append(
            "ports are named HOST/P1 and so on: with other NodeDescriptions give --guids a dump of ibnetdiscover, or "
            "the file that fabric import has made of it"
        )
    policy = _policy(resolved, levels, ports)
    notes += _of_two_jobs(levels, ports)
    if not granted:
        notes.append("levels.tsv gives no job of Slurm a level: name them in the file, or by --for JOB=account:NAME")
    nodes, more = apply_files(fabric, dump, settings, resolved.tables["qos"]["default"], levels, policy_file)
    notes += more
    fabric_texts, more = fabric_files(fabric, resolved.tables["fabric"], dump)
    notes += more
    comments = (*(f"note: {note}" for note in notes), *_PLACE)
    name = " ".join(resolved.name.split())  # a comment is one line
    files = {
        "opensm.conf": write_options(settings, policy_file, (f"QoS options for {name}", *comments)),
        "qos-policy.conf": write_policy(policy, (f"QoS policy for {name}",)),
        "levels.tsv": write_levels(levels, granted),
        **nodes,
        SHARES_FILE: write_shares(shares, sum(resolved.tables["network"][key] for key in ("mtu", "header"))),
        **{f"env/{job}.sh": environment(level) for job, level in levels.items()},
        **SCRIPTS,
        **revert_files(policy_file),
        **fabric_texts,
    }
    return Exported(files, levels, settings, shares, policy, tuple(notes))


def settings_of(
    resolved: Resolved, *, approximate: bool, data_lanes: int, entries: int
) -> tuple[Settings, tuple[LaneShare, ...], list[str]]:
    """OpenSM's settings for a scenario, the shares of links that they give, and notes. Raises as ``export``."""
    qos, network = resolved.tables["qos"], resolved.tables["network"]
    sl2vl = tuple(qos["sl2vl"])
    lanes = max(sl2vl) + 1
    if lanes > (most := operational(min(data_lanes, DATA_LANES))):
        message = f"needs {lanes} virtual lanes"
        reason = "InfiniBand has VL0 to VL14 for data" if data_lanes >= DATA_LANES else f"--data-vls is {data_lanes}"
        raise ScenarioError(Problem("qos.sl2vl", message, list(sl2vl), f"at most {most}: {reason}"))
    ports = Ports(sorted(set(sl2vl)), network["mtu"], network["header"], approximate, entries)
    tables = tables_of(qos["arbiter"]["name"], qos["arbiter"]["params"], ports)
    full = (*sl2vl, *[0] * (LEVELS - len(sl2vl)))
    exported = tables.exported(ports)
    shares = tuple(
        LaneShare(
            lane,
            tuple(level for level, lane_of_level in enumerate(sl2vl) if lane_of_level == lane),
            float(tables.simulated[lane]),
            float(exported[lane]),
        )
        for lane in ports.lanes
    )
    return Settings(lanes, tables.high_limit, tables.high, tables.low, full), shares, list(tables.notes)


def _channels(fabric: Fabric, settings: Settings) -> list[str]:
    """A note if the routing needs lanes of its own against deadlocks."""
    pairs = fabric.required_virtual_lanes(settings.max_vls)
    if len(pairs) <= settings.max_vls:
        return []
    remark = f"the simulated routing uses {len(pairs)} pairs of virtual lane and virtual channel"
    return [
        f"{remark}; exported are the {settings.max_vls} lanes: OpenSM's routing engine must be free of deadlocks itself"
    ]


def _ports(resolved: Resolved, fabric: Fabric, dump: Wiring | None) -> dict[str, dict[str, tuple[str | int, ...]]]:
    """The ports of the hosts of each job: names, or GUIDs."""
    ports: dict[str, dict[str, tuple[str | int, ...]]] = {}
    for job in resolved.jobs:
        hosts: dict[str, tuple[str | int, ...]] = {}
        for host in dict.fromkeys(job.hosts):
            name = fabric.host_names[host]
            if dump is None:
                if not can_name_port(name):
                    message = "cannot name a port in a policy of OpenSM"
                    raise ScenarioError(
                        Problem("host", message, name, f"{PORT_NAMES}; or --guids, which needs no names")
                    )
                hosts[name] = names_of(fabric, host)
            else:
                hosts[name] = guids_of(dump, name, str(dump.source or "the dump"))
        ports[job.name] = hosts
    return ports


def _of_two_jobs(levels: Mapping[str, int], ports: Mapping[str, Mapping[str, object]]) -> list[str]:
    """A note on each pair of jobs with different levels and paths between the same hosts: the first rule counts."""
    notes = []
    for first, second in combinations(levels, 2):
        both = [host for host in ports[first] if host in ports[second]]
        if levels[first] != levels[second] and len(both) > 1:
            shared = f"jobs {first} and {second} share {shortened(both)}: paths between these hosts have service level"
            notes.append(f"{shared} {levels[first]}, of {first}")
    return notes


def _policy(
    resolved: Resolved, levels: Mapping[str, int], ports: Mapping[str, Mapping[str, tuple[str | int, ...]]]
) -> Policy:
    """A group of ports and a rule for each job, and a level for each service level."""
    names = dict(zip(levels, slurm_names(list(levels), word="job"), strict=True))
    named = {f"sl{level}": level for level in sorted(set(levels.values()))}
    groups, rules = [], []
    for job, level in levels.items():
        groups.append(group_of(names[job], [port for ports_of_job in ports[job].values() for port in ports_of_job]))  # type: ignore[arg-type]
        rules.append(Rule(names[job], names[job], f"sl{level}", use=f"job {names[job]}"))
    return Policy(tuple(groups), {DEFAULT: resolved.tables["qos"]["default"], **named}, tuple(rules))
