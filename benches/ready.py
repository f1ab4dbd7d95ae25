"""How soon large fabrics are ready, and the memory that they take: a rank of ping-pong on every host.

Each in a process of its own: CPU time of each phase from the scenario until the simulation can start, and for some
simulated time; the packet-hops of that time, and the largest memory of the process after each.

Usage: ``python benches/ready.py`` for fabrics up to 100,000 hosts, ``python benches/ready.py million`` for dragonflies
of a thousand to a million hosts, which takes 4 GiB of memory and some minutes.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

Fabric = dict[str, Any]


def dragonfly(groups: int, switches: int, hosts: int, links: int) -> tuple[int, Fabric]:
    """A dragonfly, and its hosts."""
    fabric = {
        "topology": "dragonfly",
        "groups": groups,
        "switches_per_group": switches,
        "hosts_per_switch": hosts,
        "global_links": links,
    }
    return groups * switches * hosts, fabric


FABRICS: dict[str, tuple[int, Fabric]] = {
    "fat-tree": (8192, {"topology": "fat_tree", "preset": "wilke2020"}),
    "dragonfly, minimal": (8192, {"topology": "dragonfly", "preset": "wilke2020"}),
    "dragonfly, PAR, 4 levels": (8192, {"topology": "dragonfly", "preset": "wilke2020", "routing": "progressive"}),
    "torus": (8192, {"topology": "torus", "sides": [8, 8, 8, 4, 4]}),
    "large dragonfly, minimal": dragonfly(196, 32, 16, 16),
}
"""Hosts, and the fabric that has them."""
SIZES: dict[str, tuple[int, Fabric]] = {
    "dragonfly, thousand": dragonfly(33, 8, 4, 4),
    "dragonfly, ten thousand": dragonfly(80, 16, 8, 8),
    "dragonfly, hundred thousand": dragonfly(196, 32, 16, 16),
    "dragonfly, million": dragonfly(512, 64, 32, 16),
}
SIMULATED = "100 us"
PHASES = ("placement and checks", "programs", "engine")


def peak() -> float:
    """The largest memory of this process so far, MiB."""
    # What getrusage reports of a new process on Linux is at least what its parent had.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(fabric: Fabric, ranks: int) -> None:
    """Prints what one fabric takes, in this process."""
    from fairlane import Scenario
    from fairlane.model.scenario import resolve as resolving

    before, start = peak(), time.process_time()
    rows: list[tuple[float, float]] = []

    def end_phase() -> None:
        rows.append((time.process_time(), peak()))

    levels = {"service_levels": 4} if fabric.get("routing") else {}
    job = {"name": "all", "ranks": ranks, "workload": {"name": "ping_pong", "compute": "1 us"}}
    scenario = Scenario(fabric=fabric, qos=levels, placement="packed", jobs=[job])
    programmed = resolving._programmed

    def counted(*given: Any) -> Any:
        end_phase()
        return programmed(*given)

    with patch.object(resolving, "_programmed", counted):
        resolved = scenario.resolve()
    end_phase()
    engine = resolved.engine()
    end_phase()
    engine.run_until(100_000_000)
    end_phase()
    times = [end - begun for begun, (end, _) in zip([start, *(end for end, _ in rows)], rows, strict=False)]
    print(json.dumps({"before": before, "times": times, "peaks": [top for _, top in rows], "hops": engine.packet_hops}))


def main(fabrics: dict[str, tuple[int, Fabric]]) -> None:
    """Prints a row for each fabric."""
    phases = "".join(f"{phase:>22}" for phase in PHASES)
    print(
        f"{'':28} {'hosts':>9}{phases} {'ready':>9} {'memory':>10} {SIMULATED:>10} {'Mhops':>7} {'memory':>10}  Python"
    )
    for name, (hosts, fabric) in fabrics.items():
        command = [sys.executable, __file__, json.dumps(fabric), str(hosts)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        *setup, running = found["times"]
        row = f"{name:28} {hosts:9,}" + "".join(f"{span:20.2f} s" for span in setup)
        row += f" {sum(setup):7.2f} s {found['peaks'][-2]:6.0f} MiB {running:8.2f} s {found['hops'] / 1e6:7.1f}"
        print(f"{row} {found['peaks'][-1]:6.0f} MiB {found['before']:3.0f} MiB", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        measure(json.loads(sys.argv[1]), int(sys.argv[2]))
    else:
        main(SIZES if sys.argv[1:] == ["million"] else FABRICS)
