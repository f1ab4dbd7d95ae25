"""Starts ibsim with a fabric and OpenSM with exported settings, reads back what OpenSM has set, and compares it."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from fairlane.errors import Problem, ScenarioError
from fairlane.fabric import read_wiring
from fairlane.fabric.forwarding import with_tables
from fairlane.inputs.files import read_text, reading
from fairlane.limits import HANG_S
from fairlane.opensm.check.difference import Difference
from fairlane.opensm.check.layout import Layout, layout_of
from fairlane.opensm.check.paths import compare_paths, for_subnet, members
from fairlane.opensm.check.ports import compare_ports
from fairlane.opensm.check.programs import find_programs
from fairlane.opensm.check.routes import compare_routes, read_routes
from fairlane.opensm.check.simulated import Subnet, simulated_subnet
from fairlane.opensm.fabric_files import FABRIC_FILE, ROUTES_FILE
from fairlane.opensm.options import read_options
from fairlane.opensm.policy import read_policy, write_policy
from fairlane.opensm.settings import Settings

OPTIONS_FILE, POLICY_FILE = "opensm.conf", "qos-policy.conf"
ENGINES = ("minhop", "updn", "dnup", "ftree", "dor", "lash", "torus-2QoS", "nue", "dfsssp", "sssp")
"""Routing engines of OpenSM 3.3.23."""
DATA_VLS = 8
"""Data lanes of the ports that ibsim simulates: VL0 to VL7."""
PAIRS = 20_000
"""Path records that are read unless another number is given."""
_LOADED = "file"
_SHOWN = 3  # errors of OpenSM's log in a message
_OVERRIDES = ("dfsssp", "lash", "torus-2QoS")  # engines that choose service levels themselves


@dataclass(frozen=True)
class Checked:
    """What was read back, and where it is other than exported."""

    counts: dict[str, int]
    """How many were compared, by what."""
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    engine: str
    """The routing engine whose tables OpenSM has set; ``file`` if it has loaded those of the simulator."""
    routes: str
    """The forwarding tables as ``dump_fts`` prints them."""
    up_s: float
    """Seconds until OpenSM had set up the subnet."""
    read_s: float
    """Seconds for reading and comparing."""


def check(
    exported: Path, folder: Path, *, engine: str | None = None, pairs: int = PAIRS, timeout_s: float = HANG_S
) -> Checked:
    """Checks what ``fairlane qos export`` has written into the folder ``exported``.

    ``folder`` takes the files and logs of ibsim and OpenSM. ``engine`` is a routing engine of OpenSM; without one it
    loads the simulator's forwarding tables, where there are some. ``pairs`` is the number of path records that are read
    at most. Raises ``ScenarioError`` for wrong input, and for what OpenSM refuses.
    """
    programs, folder = find_programs(), folder.absolute()  # OpenSM runs in the folder
    settings, notes, _ = read_options(_file(exported, OPTIONS_FILE))
    check_lanes(settings, "qos_sl2vl", exported / OPTIONS_FILE)
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
    expected = with_tables(layout.wiring, routes).tables if routes else None
    wanted = engine or (_LOADED if routes else "minhop")
    _write(folder, exported, layout, wanted, routes if wanted == _LOADED else None)
    if inside is not policy:
        (folder / POLICY_FILE).write_text(write_policy(inside), encoding="utf-8")
    with simulated_subnet(folder, layout.hosts, layout.sizes, timeout_s, programs) as subnet:
        _check_engine(subnet, wanted)
        began = time.monotonic()
        read = read_routes(subnet, layout.wiring)
        parts = [
            compare_ports(subnet, layout.ends, settings),
            compare_paths(subnet, policy, groups, layout.manager, pairs),
            compare_routes(read, expected, loaded=wanted == _LOADED),
        ]
        read_s = time.monotonic() - began
        notes += [f"OpenSM reports: {words}" for words in subnet.errors[:_SHOWN]]
    notes = [*notes, *policy.notes, *layout.notes, *(note for part in parts for note in part.notes)]
    if wanted in _OVERRIDES and parts[1].differences:
        notes.append(f"the routing engine {wanted} chooses service levels itself, whatever the policy says")
    return Checked(
        {what: count for part in parts for what, count in part.counts.items()},
        tuple(one for part in parts for one in part.differences),
        tuple(notes),
        wanted,
        read.text,
        subnet.seconds,
        read_s,
    )


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        words = f"has no {name}"
        raise ScenarioError(Problem.of_file(folder, words, allowed="a folder that fairlane qos export has written"))
    return folder / name


def check_lanes(settings: Settings, key: str, file: Path | None = None) -> None:
    """Raises ``ScenarioError`` if levels need more lanes than simulated ports have.

    OpenSM would map such levels to the low bits of their lane, without a word.
    """
    if (lanes := max(settings.sl2vl) + 1) > DATA_VLS:
        words = f"needs {lanes} data lanes"
        allowed = f"at most {DATA_VLS}: the ports that ibsim simulates have VL0 to VL{DATA_VLS - 1}"
        place = None if file is None else str(file)
        raise ScenarioError(Problem(key, words, list(settings.sl2vl), allowed, file=place))


def _write(folder: Path, exported: Path, layout: Layout, engine: str, routes: Path | None) -> None:
    """The files of ibsim and OpenSM: the exported options, with the places of files on this machine."""
    with reading(exported / OPTIONS_FILE):
        lines = read_text(exported / OPTIONS_FILE).splitlines()
    own = {
        "qos_policy_file": str(folder / POLICY_FILE),
        "routing_engine": engine,
        "force_log_flush": "TRUE",
        "honor_guid2lid_file": "TRUE",
        "no_partition_enforcement": "TRUE",
        "sweep_interval": "0",
        "dump_files_dir": str(folder),
    }
    if routes is not None:
        own["lfts_file"] = str(folder / ROUTES_FILE)
        shutil.copyfile(routes, folder / ROUTES_FILE)
    kept = [line for line in lines if line.split(" ")[0] not in own]
    texts = {
        OPTIONS_FILE: "\n".join([*kept, *(f"{key} {value}" for key, value in own.items())]) + "\n",
        POLICY_FILE: read_text(exported / POLICY_FILE),
        "fabric.net": layout.network,
        "guid2lid": layout.guid2lid,
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _check_engine(subnet: Subnet, wanted: str) -> None:
    """OpenSM takes minhop where an engine cannot route a fabric: refused, because routes of another were asked for."""
    if subnet.engine != wanted:
        reasons = " / ".join(subnet.errors[:_SHOWN])
        words = f"OpenSM cannot route this fabric with it, and has used {subnet.engine}: {reasons}"
        raise ScenarioError(Problem("--engine", words, wanted, ", ".join(ENGINES)))
