"""A real OpenSM reads exported settings on a subnet that ibsim simulates, and they are read back from its ports."""

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from fairlane.cluster.opensm.check.classes import compare_classes
from fairlane.cluster.opensm.check.layout import Layout, layout_of
from fairlane.cluster.opensm.check.paths import compare_paths, compare_routes, for_subnet, members, read_routes
from fairlane.cluster.opensm.check.ports import EXPORTED, OPENSM, Compared, Difference, compare_ports
from fairlane.cluster.opensm.check.simulated import Sizes, Subnet, find_programs, missing_programs, simulated_subnet
from fairlane.cluster.opensm.export import PACKET
from fairlane.cluster.opensm.nodes import FABRIC_FILE, ROUTES_FILE
from fairlane.cluster.opensm.options import REVERT, read_options
from fairlane.cluster.opensm.policy import read_policy, write_policy
from fairlane.cluster.opensm.settings import SHARES_FILE, Settings, differ, read_shares, shares_of, shown
from fairlane.core.errors import Problem, ScenarioError
from fairlane.core.signals import HANG_S
from fairlane.inputs.files import read_text, reading
from fairlane.model.fabric.forwarding import read_entries
from fairlane.model.fabric.reader import read_wiring

__all__ = [
    "DATA_VLS",
    "ENGINES",
    "PAIRS",
    "Checked",
    "Compared",
    "Difference",
    "Sizes",
    "Subnet",
    "check",
    "check_lanes",
    "compare_classes",
    "find_programs",
    "missing_programs",
    "simulated_subnet",
]


def compare_shares(settings: Settings, exported: Path) -> tuple[int, Compared]:
    """Wire size of a full packet, bytes, and what differs.

    Exported is a folder of ``fairlane qos export``. Shares that its tables were known not to give exactly are a note;
    those that are others than it says are a difference: the options are not the ones that it has written.
    """
    file = exported / SHARES_FILE
    if not file.exists():
        message = f"shares of links are not compared: there is no {SHARES_FILE}, which qos export writes"
        return PACKET, Compared({}, (), (message,))
    packet, rows = read_shares(file)
    simulated = {row.lane: row.simulated for row in rows}
    stated = {row.lane: row.exported for row in rows}
    shares = shares_of(settings.in_force(), packet)
    differences, notes = [], []
    if differ(shares, stated):
        message = "shares of a link"
        differences.append(Difference("opensm.conf", "all", message, shown(simulated), shown(shares), EXPORTED))
    elif differ(shares, simulated):
        notes.append(f"shares of a link are approximated: simulated {shown(simulated)}, exported {shown(shares)}")
    return packet, Compared({"lanes with a share of links": len(rows)}, tuple(differences), tuple(notes))


OPTIONS_FILE, POLICY_FILE = "opensm.conf", "qos-policy.conf"
ENGINES = ("minhop", "updn", "dnup", "ftree", "dor", "lash", "torus-2QoS", "nue", "dfsssp", "sssp")
"""Routing engines of OpenSM 3.3.23."""
DATA_VLS = 8
"""Data lanes of the ports that ibsim simulates: VL0 to VL7."""
PAIRS = 20_000
"""Path records that are read unless another number is given."""
_CONFIGURED = ("torus-2QoS",)  # engines with a configuration of their own, which a check does not have
_LOADED = "file"
_SHOWN = 3  # errors of OpenSM's log in a message
_OVERRIDES = ("dfsssp", "lash", "torus-2QoS")  # engines that choose service levels themselves


@dataclass(frozen=True, kw_only=True)
class Checked(Compared):
    """Settings that were read back, and differences from those exported."""

    engine: str
    """The routing engine whose tables OpenSM has set; ``file`` if it has loaded those of the simulator."""
    routes: str
    """The forwarding tables as ``dump_fts`` prints them."""
    up_s: float
    """Seconds until OpenSM had set up the subnet."""
    read_s: float
    """Seconds for reading and comparing."""


def check(
    exported: Path,
    folder: Path,
    *,
    engine: str | None = None,
    pairs: int = PAIRS,
    timeout_s: float = HANG_S,
    revert: bool = False,
) -> Checked:
    """Checks what ``fairlane qos export`` has written into the folder ``exported``.

    ``folder`` takes the files and logs of ibsim and OpenSM. ``engine`` is a routing engine of OpenSM; without one it
    loads the simulator's forwarding tables, where there are some. ``pairs`` is the number of path records that are read
    at most. ``revert`` takes the settings back at the end by the files in ``revert``, and reads all ports again. Raises
    ``ScenarioError`` for wrong input, and for what OpenSM refuses.
    """
    programs, folder = find_programs(), folder.absolute()  # OpenSM runs in the folder
    settings, notes, _ = read_options(_file(exported, OPTIONS_FILE))
    check_lanes(settings, "qos_sl2vl", exported / OPTIONS_FILE)
    packet, shares = compare_shares(settings, exported)
    policy = read_policy(_file(exported, POLICY_FILE))
    layout = layout_of(read_wiring(_file(exported, FABRIC_FILE)))
    groups = members(policy, layout.ends, exported / POLICY_FILE)
    inside, more = for_subnet(policy, groups)
    notes += more
    routes = exported / ROUTES_FILE if (exported / ROUTES_FILE).exists() else None
    if routes is not None and layout.notes:
        routes, notes = None, [*notes, f"{ROUTES_FILE} is not used: it has other GUIDs and LIDs"]
    if routes is None and engine is None:
        notes.append("the simulated routing has no forwarding tables: OpenSM routes by minhop, which is not compared")
    expected = read_entries(layout.wiring, routes) if routes else None
    wanted = engine or (_LOADED if routes else "minhop")
    _write(folder, exported, layout, wanted, routes if wanted == _LOADED else None)
    if revert:
        _file(exported / REVERT, OPTIONS_FILE)
    if inside is not policy:
        (folder / POLICY_FILE).write_text(write_policy(inside), encoding="utf-8")
    with simulated_subnet(folder, layout.hosts, layout.sizes, timeout_s, programs) as subnet:
        _check_engine(subnet, wanted)
        if lanes_change := settings.operational_vls < DATA_VLS:
            # OpenSM 3.3.23 first sets tables of switches for the lanes that they had in operation before.
            subnet.read_again(timeout_s)
        began = time.monotonic()
        read = read_routes(subnet, layout.wiring)
        parts = [
            shares,
            compare_ports(subnet, layout.ends, settings, packet),
            compare_paths(subnet, policy, groups, layout.manager, pairs, _cause(wanted)),
            compare_routes(read, expected, loaded=wanted == _LOADED),
        ]
        if revert:
            _take_back(subnet, exported)
            for _ in range(1 + lanes_change):
                subnet.read_again(timeout_s)
            parts.append(_reverted(subnet, exported, layout, packet))
        read_s = time.monotonic() - began
        notes += [f"OpenSM reports: {line}" for line in subnet.errors[:_SHOWN]]
    notes = [*notes, *policy.notes, *layout.notes, *(note for part in parts for note in part.notes)]
    if wanted in _OVERRIDES and parts[2].differences:
        notes.append(f"the routing engine {wanted} chooses service levels itself, whatever the policy says")
    return Checked(
        {what: count for part in parts for what, count in part.counts.items()},
        tuple(difference for part in parts for difference in part.differences),
        tuple(notes),
        engine=wanted,
        routes=read.text,
        up_s=subnet.seconds,
        read_s=read_s,
    )


def _cause(engine: str) -> str:
    """Return the cause of service levels of paths that are not those of the policy."""
    return f"routing engine {engine}" if engine in _OVERRIDES else OPENSM


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        message = f"has no {name}"
        raise ScenarioError(Problem.of_file(folder, message, allowed="a folder that fairlane qos export has written"))
    return folder / name


def check_lanes(settings: Settings, key: str, file: Path | None = None) -> None:
    """Raises ``ScenarioError`` if levels need more lanes than simulated ports have.

    OpenSM would map such levels to the low bits of their lane, without a word.
    """
    if (lanes := max(settings.in_force().sl2vl) + 1) > DATA_VLS:
        message = f"needs {lanes} data lanes"
        allowed = f"at most {DATA_VLS}: the ports that ibsim simulates have VL0 to VL{DATA_VLS - 1}"
        place = None if file is None else str(file)
        raise ScenarioError(Problem(key, message, list(settings.sl2vl), allowed, file=place))


def _write(folder: Path, exported: Path, layout: Layout, engine: str, routes: Path | None) -> None:
    """The files of ibsim and OpenSM: the exported options, with the places of files on this machine."""
    with reading(exported / OPTIONS_FILE):
        lines = read_text(exported / OPTIONS_FILE).splitlines()
    options = {
        "qos_policy_file": str(folder / POLICY_FILE),
        "routing_engine": engine,
        "force_log_flush": "TRUE",
        "honor_guid2lid_file": "TRUE",
        "no_partition_enforcement": "TRUE",
        "sweep_interval": "0",
        "lmc": str(layout.lmc),
        "dump_files_dir": str(folder),
    }
    if routes is not None:
        options["lfts_file"] = str(folder / ROUTES_FILE)
        shutil.copyfile(routes, folder / ROUTES_FILE)
    kept = [line for line in lines if line.split(" ")[0] not in options]
    texts = {
        OPTIONS_FILE: "\n".join([*kept, *(f"{key} {value}" for key, value in options.items())]) + "\n",
        POLICY_FILE: read_text(exported / POLICY_FILE),
        "fabric.net": layout.network,
        "guid2lid": layout.guid2lid,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _take_back(subnet: Subnet, exported: Path) -> None:
    """Writes the options and the policy that take the exported ones back."""
    written = (subnet.folder / OPTIONS_FILE).read_text(encoding="utf-8")
    kept = "".join(f"{line}\n" for line in written.splitlines() if not _exported_option(line))
    text = read_text(exported / REVERT / OPTIONS_FILE) + kept
    (subnet.folder / OPTIONS_FILE).write_text(text, encoding="utf-8")
    shutil.copyfile(_file(exported / REVERT, POLICY_FILE), subnet.folder / POLICY_FILE)


def _reverted(subnet: Subnet, exported: Path, layout: Layout, packet: int) -> Compared:
    """The ports, compared with the options that have taken the exported ones back."""
    settings = read_options(exported / REVERT / OPTIONS_FILE)[0].in_force(DATA_VLS)
    compared = compare_ports(subnet, layout.ends, settings, packet)
    counts = {f"{what} after {REVERT}": count for what, count in compared.counts.items()}
    differences = (
        replace(difference, what=f"{difference.what}, after {REVERT}") for difference in compared.differences
    )
    return Compared(counts, tuple(differences), tuple(f"after {REVERT}: {note}" for note in compared.notes))


def _exported_option(line: str) -> bool:
    """Whether a line is replaced when settings are taken back; the place of the policy here is not."""
    return line.startswith(("#", "qos ", "max_op_vls ")) or (
        line.startswith("qos_") and not line.startswith("qos_policy_file ")
    )


def _check_engine(subnet: Subnet, wanted: str) -> None:
    """OpenSM takes minhop where an engine cannot route a fabric: refused, because routes of another were asked for."""
    if subnet.engine != wanted:
        reasons = " / ".join(subnet.errors[:_SHOWN])
        message = f"OpenSM cannot route this fabric with it, and has used {subnet.engine}: {reasons}"
        others = ", ".join(engine for engine in ENGINES if engine not in (wanted, *_CONFIGURED))
        if wanted == _LOADED:
            raise ScenarioError(Problem("sm check", f"{ROUTES_FILE}: {message}", allowed=f"--engine: {others}"))
        raise ScenarioError(Problem("--engine", message, wanted, f"another engine: {others}"))
