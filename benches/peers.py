"""Packet-hops per second of processor time beside CODES and htsim: the same fabrics, traffic and routing, on one core.

The peers are built elsewhere: CODES with ``model-net-synthetic-fattree`` and ``model-net-synthetic-dragonfly-all``, and
``htsim_uec`` of Ultra Ethernet's htsim. One line of each generator of CODES is changed, so that messages have 4,096
bytes (``PAYLOAD_SZ`` of the fat-tree) and Poisson arrivals (``issue_event`` of the dragonfly, where the exponential
distribution stands as a comment).

Each run is simulated for a short and for a long time, and the difference counts: no set-up. Times are user times; runs
of both simulators alternate. A packet-hop is a packet crossing a link, the NIC's own included: of CODES the packets
delivered times (switches on their path + 1), of htsim data packets and acknowledgements times the links of a shortest
path, of fairlane its counter, which has acknowledgements too.

Usage: ``python benches/peers.py CODES_PROGRAMS HTSIM_UEC [CELL ...]``, the first a folder. Without cells, all are
measured and ``docs/data/peers-speed.csv`` is written.
"""

import csv
import json
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from string import Template
from typing import Any

from htsim import HEADER_US, LARGE, LINK_US, PAYLOAD
from rich.console import Console
from rich.table import Table

import fairlane

TABLE = Path(__file__).parent.parent / "docs" / "data" / "peers-speed.csv"
PAIRS = 5
HEADER = (
    "cell",
    "peer",
    "fairlane",
    "ratio",
    "links a packet: peer, fairlane",
    "latency or completion, us: peer, fairlane",
    "events a packet-hop",
)
"""Speeds are in millions of packet-hops a second."""

TREE = Template("""LPGROUPS { MODELNET_GRP {
repetitions="$leaves"; nw-lp="8"; modelnet_fattree="8"; fattree_switch="$levels";
} }
PARAMS {
modelnet_order=( "fattree" ); modelnet_scheduler="fcfs"; message_size="736"; packet_size="4096"; chunk_size="4096";
ft_type="0"; num_levels="$levels"; switch_count="$leaves"; switch_radix="16"; router_delay="200"; soft_delay="0";
vc_size="65536"; cn_vc_size="65536"; link_bandwidth="12.5"; cn_bandwidth="12.5"; routing="adaptive";
}
""")
"""A configuration of CODES: a fat-tree of 100 Gbit/s and 200 ns a switch."""
GROUPS = Template("""LPGROUPS { MODELNET_GRP {
repetitions="264"; nw-lp="4"; modelnet_dragonfly_dally="4"; modelnet_dragonfly_dally_router="1";
} }
PARAMS {
modelnet_order=( "dragonfly_dally", "dragonfly_dally_router" ); modelnet_scheduler="fcfs"; message_size="736";
packet_size="4096"; chunk_size="4096"; num_groups="33"; num_routers="8"; num_cns_per_router="4";
num_global_channels="4"; intra-group-connections="intra"; inter-group-connections="inter"; routing="$routing";
local_vc_size="65536"; global_vc_size="65536"; cn_vc_size="65536";
local_bandwidth="11.6415"; global_bandwidth="11.6415"; cn_bandwidth="11.6415";
cn_delay="200"; local_delay="200"; global_delay="200"; credit_delay="200"; router_delay="0";
}
""")
"""A configuration of CODES: a dragonfly of 1056 hosts, 100 Gbit/s (here in GiB/s) and 200 ns a link."""


@dataclass(frozen=True)
class Work:
    """What a run has simulated."""

    seconds: float
    """User time, s."""
    packets: int
    """Acknowledgements are packets too."""
    hops: float
    time: float
    """Mean latency of packets or, with htsim, completion of the last flow, us."""
    events: int = 0

    def since(self, short: "Work") -> "Work":
        """The work after a shorter run."""
        spans = (self.seconds - short.seconds, self.packets - short.packets, self.hops - short.hops)
        return Work(*spans, self.time, self.events - short.events)


def execute(command: list[str], folder: Path) -> tuple[str, float]:
    """Output and user time, s, of a command that runs in a folder."""
    output = folder / "output"
    with output.open("w") as file:
        process = subprocess.Popen(command, cwd=folder, stdout=file, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8", errors="replace")
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed: {text[-2000:]}")
    return text, usage.ru_utime


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers that the groups of a pattern capture in its first match."""
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"no {pattern!r} in: {text[-2000:]}")
    return [float(group) for group in match.groups()]


def codes(command: list[str], folder: Path) -> Work:
    """A sequential run of CODES."""
    text, seconds = execute([command[0], "--synch=1", *command[1:], "--", "peer.conf"], folder)
    pattern = r"hops traversed (\S+) average chunk latency (\S+) us .* finished chunks (\d+)"
    switches, latency, packets = numbers(pattern, text)
    events = numbers(r"Net Events Processed\s+(\d+)", text)[0]
    return Work(seconds, int(packets), packets * (switches + 1), latency, int(events))


@dataclass(frozen=True)
class Tree:
    """CODES on a fat-tree of switches of 16 ports, uniform random traffic."""

    levels: int
    leaves: int

    def peer(self, programs: Path, folder: Path, microseconds: float) -> Work:
        """A run of CODES; its generator takes bandwidths in GiB/s."""
        (folder / "peer.conf").write_text(TREE.substitute(levels=self.levels, leaves=self.leaves), encoding="utf-8")
        program = str(programs / "model-net-synthetic-fattree")
        return codes([program, f"--load={0.5e9 / 2**30}", f"--end={1e3 * microseconds}"], folder)

    def scenario(self) -> dict[str, Any]:
        """The scenario of fairlane."""
        fabric = {"topology": "fat_tree", "levels": self.levels, "radix": 16, "hosts": 8 * self.leaves}
        return uniform({**fabric, "routing": "adaptive"}, 8 * self.leaves)


@dataclass(frozen=True)
class Dragonfly:
    """CODES on a dragonfly of 33 groups of eight switches of four hosts, uniform random traffic."""

    peer_routing: str
    routing: str | dict[str, Any]

    def peer(self, programs: Path, folder: Path, microseconds: float) -> Work:
        """A run of CODES: all messages of each host are delivered."""
        switches = range(8)
        pairs = [(a, b) for a in switches for b in switches if a != b]
        (folder / "intra").write_bytes(b"".join(struct.pack("3i", *pair, 0) for pair in pairs))
        # Port p of group g leads to group g + p + 1, which is joined by its port 31 - p.
        cables = [(8 * g + p // 4, 8 * ((g + p + 1) % 33) + (31 - p) // 4) for g in range(33) for p in range(32)]
        (folder / "inter").write_bytes(b"".join(struct.pack("2i", *cable) for cable in cables))
        (folder / "peer.conf").write_text(GROUPS.substitute(routing=self.peer_routing), encoding="utf-8")
        messages = round(microseconds * 0.5 * 12.5e3 / 4096)
        program = str(programs / "model-net-synthetic-dragonfly-all")
        options = ["--load_per_svr=0.5", "--payload_sz=4096", "--traffic=1", f"--num_messages={messages}"]
        return codes([program, *options], folder)

    def scenario(self) -> dict[str, Any]:
        """The scenario of fairlane."""
        shape = {"groups": 33, "switches_per_group": 8, "hosts_per_switch": 4, "global_links": 4}
        return uniform({"topology": "dragonfly", **shape, "routing": self.routing}, 1056)


def uniform(fabric: dict[str, Any], hosts: int) -> dict[str, Any]:
    """Uniform random traffic at half the injection bandwidth, one packet a message."""
    return {
        "seed": 1,
        "duration": "1 s",
        "fabric": {**fabric, "bandwidth": "12.5 GB/s", "latency": "200 ns"},
        "network": {
            "mtu": "4 KiB",
            "header": 0,
            "buffer": "64 KiB",
            "switch_latency": 0,
            "switching": "store_and_forward",
        },
        "jobs": [
            {"name": "all", "ranks": hosts, "workload": {"name": "open_loop", "load": 0.5, "message_size": "4 KiB"}}
        ],
    }


@dataclass(frozen=True)
class Permutation:
    """htsim on a fat-tree of 1024 hosts, switches of 16 ports, each host sending to one other."""

    options: tuple[str, ...]
    routing: str | None
    """Of fairlane; packets are sprayed without it."""

    def peer(self, program: Path, folder: Path, size: float) -> Work:
        """A run of htsim with flows of some bytes."""
        hosts = list(range(1024))
        random.Random(1).shuffle(hosts)
        pairs = list(zip(hosts, hosts[1:] + hosts[:1], strict=True))
        flows = [
            f"{source}->{target} id {number} start 0 size {size:.0f}"
            for number, (source, target) in enumerate(pairs, 1)
        ]
        (folder / "peer.cm").write_text("\n".join(["Nodes 1024", "Connections 1024", *flows, ""]), encoding="utf-8")
        command = [
            str(program),
            "-tm",
            "peer.cm",
            "-nodes",
            "1024",
            "-sender_cc_algo",
            "nscc",
            "-sack_threshold",
            "1",
            *self.options,
        ]
        text, seconds = execute([*command, "-end", "20000"], folder)
        ends = [float(end) for end in re.findall(r"finished at (\S+)", text)]
        if len(ends) != len(pairs):
            raise SystemExit(f"{len(ends)} of {len(pairs)} flows of htsim have finished")
        data, again, acknowledgements = numbers(r"New: (\d+) Rtx: (\d+) .* ACKs: (\d+)", text)
        # Hosts of a leaf are two links apart, those of a pod four.
        links = sum(2 if a // 8 == b // 8 else 4 if a // 64 == b // 64 else 6 for a, b in pairs) / len(pairs)
        packets = int(data + again + acknowledgements)
        return Work(seconds, packets, packets * links, max(ends))

    def scenario(self, size: float) -> dict[str, Any]:
        """The scenario of fairlane, that of ``htsim.py``."""
        workload = {"name": "shift", "messages_per_iteration": 1, "message_size": f"{size:.0f} B"}
        document = LARGE.document(workload, spray=True, seed=1)
        if self.routing:
            document["fabric"]["routing"] = self.routing
        return document


@dataclass(frozen=True)
class Cell:
    """One comparison: what is simulated, and for how long."""

    system: Tree | Dragonfly | Permutation
    lengths: tuple[float, float]
    """Of short and long runs: microseconds of traffic, or bytes of a flow."""


CELLS = {
    "CODES, fat-tree of 64, adaptive": Cell(Tree(2, 8), (1_000, 10_000)),
    "CODES, fat-tree of 1024, adaptive": Cell(Tree(3, 128), (30, 200)),
    "CODES, dragonfly of 1056, minimal": Cell(Dragonfly("minimal", "minimal"), (30, 200)),
    "CODES, dragonfly of 1056, progressive": Cell(
        Dragonfly("prog-adaptive", {"name": "progressive", "bias": 0}), (30, 200)
    ),
    "htsim, permutation of 1024, spraying": Cell(
        Permutation(("-strat", "ecmp_host", "-load_balancing_algo", "oblivious"), None), (250_000, 1_000_000)
    ),
    "htsim, permutation of 1024, adaptive": Cell(Permutation(("-strat", "ecmp_ar"), "adaptive"), (250_000, 1_000_000)),
}


def simulated(cell: Cell) -> Iterator[Work]:
    """The work of fairlane for the short and the long length, simulated in this process by one thread."""
    if isinstance(cell.system, Permutation):
        for size in cell.lengths:
            simulation = fairlane.Simulation(fairlane.Scenario.read(cell.system.scenario(size)), threads=1)
            start = user_time()
            simulation.run_for("20 ms")
            seconds, totals = user_time() - start, simulation.totals()
            ends = simulation.table("ranks")["finished_at_ps"]
            completion = float(ends.max()) / 1e6 + LARGE.links * (LINK_US + HEADER_US)  # type: ignore[arg-type]
            packets = 1024 * -(-int(size) // PAYLOAD) + totals["packets_retransmitted"] + totals["control_packets"]
            yield Work(seconds, packets, totals["packet_hops"], completion)
        return
    simulation = fairlane.Simulation(fairlane.Scenario.read(cell.system.scenario()), threads=1)
    for microseconds in cell.lengths:
        simulation.run_until(f"{microseconds} us")
        seconds, delivered = user_time(), simulation.totals()["messages_delivered"]
        latency = simulation.latency().summary(["of"]).filter(of="packet")["mean"].item()
        yield Work(seconds, delivered, simulation.packet_hops, latency / 1e6)


def user_time() -> float:
    """User time of this process, s."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def pair(name: str, codes_programs: Path, htsim: Path) -> tuple[Work, Work]:
    """The work of the peer and of fairlane in one cell, one after the other."""
    cell = CELLS[name]
    program = htsim if isinstance(cell.system, Permutation) else codes_programs
    works = []
    for length in cell.lengths:
        with tempfile.TemporaryDirectory() as folder:
            works.append(cell.system.peer(program.resolve(), Path(folder), length))
    command = [sys.executable, __file__, "--fairlane", name]
    own = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    short, long = (Work(**work) for work in json.loads(own))
    return works[1].since(works[0]), long.since(short)


def row(name: str, pairs: list[tuple[Work, Work]]) -> list[str]:
    """Medians, in brackets extremes, of the speeds and their ratios; what was simulated, of the first pair."""
    speeds = [[work.hops / work.seconds / 1e6 for work in works] for works in pairs]
    columns = [*zip(*speeds, strict=True), [ours / theirs for theirs, ours in speeds]]
    medians = [f"{median(values):.3g} ({min(values):.3g} to {max(values):.3g})" for values in columns]
    links = [f"{work.hops / work.packets:.2f}" for work in pairs[0]]
    times = [f"{work.time:.3g}" for work in pairs[0]]
    peer = pairs[0][0]
    return [name, *medians, ", ".join(links), ", ".join(times), f"{peer.events / peer.hops:.1f}" if peer.events else ""]


def main(codes_programs: Path, htsim: Path, names: list[str]) -> None:
    """Measure cells and print them; all of them are also written."""
    measured: dict[str, list[tuple[Work, Work]]] = {name: [] for name in names or CELLS}
    for _ in range(PAIRS):
        for name, pairs in measured.items():
            pairs.append(pair(name, codes_programs, htsim))
    rows = [row(name, pairs) for name, pairs in measured.items()]
    table = Table(*HEADER)
    for columns in rows:
        table.add_row(*columns)
    Console().print(table)
    if not names:
        with TABLE.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    if unknown := set(sys.argv[3:]) - set(CELLS):
        raise SystemExit(f"no cell {', '.join(sorted(unknown))}; allowed: {'; '.join(CELLS)}")
    if sys.argv[1] == "--fairlane":
        print(json.dumps([vars(work) for work in simulated(CELLS[sys.argv[2]])]))
    else:
        main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
