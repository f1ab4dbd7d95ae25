"""The cells that TraceR and fairlane both simulate: records them, writes TraceR's input, and puts both into one table.

    python cells.py record DIR     archives of the scenarios beside this file, in DIR/archives
    python cells.py prepare DIR    TraceR's input of each cell, in DIR/tracer/CELL
    python cells.py table DIR CSV  fairlane's times, and those in DIR/tracer/CELL/log

TraceR runs in the folder of a cell: ``traceR --sync=1 --lp-io-dir=out -- network.conf tracer.conf > log``.
"""

import csv
import re
import struct
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

import fairlane
from fairlane import Scenario
from fairlane.lab.timeline.build import timelines
from fairlane.lab.timeline.otf2_archive import write_otf2

HERE = Path(__file__).parent
SIZES = ["1 KiB", "8 KiB", "32 KiB", "62 KiB", "64 KiB", "256 KiB", "1 MiB"]
PAIRS = {"one leaf": [0, 1], "two leaves": [0, 8]}
LEVELS = 16
TRIPS, ITERATIONS = 8, 20
ALIKE = [1] * LEVELS
PREFERRED = [2, *[7] * 8, *[1] * 7]
"""Weights by level where one rank of each job has a level of its own, 1 to 8, as Algorithm 1 would give it."""
CHOSEN = {"flood-0": 7, "flood-1": 0, "neighbor-0": 7, "neighbor-1": 0, "random-0": 4, "random-1": 4}
CHOSEN |= {"alltoall-0": 7, "alltoall-1": 0}
"""These ranks."""


@dataclass(frozen=True)
class Cell:
    """What is simulated once."""

    name: str
    jobs: Mapping[str, tuple[str, list[int]]]
    """By name, the archive of a job below the folder of archives, and its hosts."""
    count: int
    """Times of how many messages or iterations are in the time of a job."""
    levels: Mapping[str, Mapping[int, int] | int] = field(default_factory=dict)
    """The level of a job, or of its ranks; else 0."""
    weights: list[int] = field(default_factory=lambda: ALIKE)
    routing: str = "d_mod_k"
    computes: bool = True

    @property
    def folder(self) -> str:
        """Name of the folder of TraceR's input."""
        return re.sub(r"\W+", "-", self.name)


def cells() -> Iterator[Cell]:
    """All cells, the smallest first."""
    for pair, hosts in PAIRS.items():
        for size in SIZES:
            archive = f"{pair} {size}".replace(" ", "-")
            yield Cell(f"message on {pair}: {size}", {"message": (f"{archive}/message", hosts)}, TRIPS)
    jobs = {str(job.name): (f"{job.name}/{job.name}", _hosts(job)) for job in Scenario.load(HERE / "jobs.toml").jobs}
    for name, job in jobs.items():
        yield Cell(f"isolated: {name}", {name: job}, ITERATIONS)
    by_job = {name: number for number, name in enumerate(jobs)}
    by_rank = {name: {CHOSEN[name]: number} for number, name in enumerate(jobs, 1)}
    for load, computes in (("", True), (" without computation", False)):
        yield Cell(f"one level{load}", jobs, ITERATIONS, computes=computes)
        yield Cell(f"a level for each job{load}", jobs, ITERATIONS, by_job, computes=computes)
        yield Cell(f"levels of ranks{load}", jobs, ITERATIONS, by_rank, PREFERRED, computes=computes)
    yield Cell("one level with adaptive routing", jobs, ITERATIONS, routing="adaptive")
    yield Cell("a level for each job with adaptive routing", jobs, ITERATIONS, by_job, routing="adaptive")
    moved = {name: (archive, [(27 * host + 11) % 64 for host in hosts]) for name, (archive, hosts) in jobs.items()}
    yield Cell("one level on other hosts", moved, ITERATIONS, computes=False)
    yield Cell("levels of ranks on other hosts", moved, ITERATIONS, by_rank, PREFERRED, computes=False)


def _hosts(job: Any) -> list[int]:
    return [int(host.removeprefix("host")) for host in job.placement.hosts]


def record(folder: Path) -> None:
    """Simulates the scenarios beside this file and exports what their ranks did."""
    for number in range(len(Scenario.load(HERE / "jobs.toml").jobs)):
        job(folder, number)
    for pair in PAIRS:
        for size in SIZES:
            message(folder, pair, size)


def job(folder: Path, number: int) -> None:
    """The archive of one of the eight jobs."""
    tables = tomllib.loads((HERE / "jobs.toml").read_text(encoding="utf-8"))
    alone = tables["jobs"][number]
    _record(Scenario(**{**tables, "jobs": [alone]}), folder, alone["name"])


def message(folder: Path, pair: str, size: str) -> None:
    """The archive of one size between two hosts."""
    hosts = ", ".join(f'"host{number}"' for number in PAIRS[pair])
    changes = [f'jobs[0].workload.message_size="{size}"', f"jobs[0].placement.hosts=[{hosts}]"]
    _record(Scenario.load(HERE / "message.toml", set=changes), folder, f"{pair} {size}".replace(" ", "-"))


def _record(scenario: Scenario, folder: Path, name: str) -> None:
    fairlane.run(scenario, out=folder / "runs" / name, isolated=False)
    (folder / "archives").mkdir(exist_ok=True)
    write_otf2(timelines(folder / "runs" / name), folder / "archives" / name)


def times(cell: Cell, folder: Path, *, rules: bool, **tables: Any) -> dict[str, float]:
    """By job, what a message or an iteration takes in fairlane: microseconds, with its defaults or TraceR's rules."""
    fabric = tomllib.loads((HERE / "jobs.toml").read_text(encoding="utf-8"))["fabric"]
    # TraceR's links have no latency; fairlane's need one.
    fabric |= {"routing": cell.routing, "latency": "10 ns" if rules else "100 ns"}
    jobs = [
        {
            "name": name,
            "trace": {"path": folder / "archives" / archive, "repeat": False, "compute_scale": float(cell.computes)},
            "placement": {"hosts": hosts},
            **_levels(cell.levels.get(name, 0)),
        }
        for name, (archive, hosts) in cell.jobs.items()
    ]
    qos = {"service_levels": LEVELS, "arbiter": {"name": "weighted_round_robin", "weights": cell.weights}}
    scenario = {"fabric": fabric, "qos": qos, "jobs": jobs, "duration": "1 s", "observe": {"counters": False}, **tables}
    run = fairlane.run(Scenario(**scenario, **({"model": "tracer"} if rules else {})), isolated=False)
    ends = run.completions.group_by("name").agg(pl.col("at_ps").max())
    return {name: at / 1e6 / cell.count for name, at in ends.iter_rows()}


def _levels(levels: Mapping[int, int] | int) -> dict[str, Any]:
    if isinstance(levels, int):
        return {"service_level": levels}
    return {"service_levels": {"default": 0, "ranks": {str(rank): level for rank, level in levels.items()}}}


def prepare(folder: Path) -> None:
    """Writes TraceR's input of every cell."""
    _routes(folder / "tracer" / "routes")
    template = (HERE / "network.conf").read_text()
    for cell in cells():
        target = folder / "tracer" / cell.folder
        target.mkdir(parents=True)
        weights = ",".join(f'"{weight}"' for weight in cell.weights)
        routing = "static" if cell.routing == "d_mod_k" else cell.routing
        (target / "network.conf").write_text(template.replace("@WEIGHTS@", weights).replace("@ROUTING@", routing))
        lines = ["ranks.bin", str(len(cell.jobs))]
        ranks = b""
        for number, (name, (archive, hosts)) in enumerate(cell.jobs.items()):
            levels = cell.levels.get(name, 0)
            listed = {} if isinstance(levels, int) else levels
            text = f"{levels if isinstance(levels, int) else 0}\n" + "".join(f"{r} {sl}\n" for r, sl in listed.items())
            (target / f"{name}.levels").write_text(text)
            (target / f"{name}.bin").write_bytes(struct.pack(f"{len(hosts)}i", *hosts))
            ranks += b"".join(struct.pack("3i", host, rank, number) for rank, host in enumerate(hosts))
            path = folder.resolve() / "archives" / archive / "traces.otf2"
            lines.append(f"{path} {name}.bin {len(hosts)} 1 {name}.levels")
        if not cell.computes:
            lines += [f"E {number} user_code 0" for number in range(len(cell.jobs))]
        (target / "ranks.bin").write_bytes(ranks)
        (target / "tracer.conf").write_text("\n".join(lines) + "\n")


def _routes(folder: Path) -> None:
    """D-mod-k as forwarding tables: TraceR numbers the two cables from a leaf to a spine one after the other."""
    folder.mkdir(parents=True)
    hosts, down = 64, 8
    for leaf in range(8):
        up = [down + 2 * (host % 4) + host // 4 % 2 for host in range(hosts)]
        ports = [host % down if host // down == leaf else up[host] for host in range(hosts)]
        _table(folder, (1 << 32) + leaf, ports)
    for spine in range(4):
        _table(folder, (2 << 32) + 8 + spine, [2 * (host // down) + host // 4 % 2 for host in range(hosts)])


def _table(folder: Path, switch: int, ports: list[int]) -> None:
    lines = [f"0x{(64 << 32) + host:016x} {port + 1}\n" for host, port in enumerate(ports)]
    (folder / f"0x{switch:016x}.lft").write_text("".join(lines))


def table(folder: Path, target: Path) -> None:
    """Simulates every cell in fairlane and writes its times beside TraceR's."""
    with target.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["cell", "quantity", "unit", "peer", "fairlane_rules", "fairlane_default"])
        for cell in cells():
            log = (folder / "tracer" / cell.folder / "log").read_text()
            peer = [float(time) for time in re.findall(r"^Job \d+ Time ([\d.]+) s$", log, re.MULTILINE)]
            rules, default = times(cell, folder, rules=True), times(cell, folder, rules=False)
            for name, seconds in zip(cell.jobs, peer, strict=True):
                quantity = "time per message" if cell.count == TRIPS else "time per iteration"
                label = cell.name if ":" in cell.name else f"{cell.name}: {name}"
                own = [f"{found[name]:.10g}" for found in (rules, default)]
                rows.writerow([label, quantity, "us", f"{seconds * 1e6 / cell.count:.5f}", *own])


if __name__ == "__main__":
    step, where = sys.argv[1], Path(sys.argv[2])
    if step == "table":
        table(where, Path(sys.argv[3]))
    else:
        {"record": record, "prepare": prepare}[step](where)
