"""How soon large fabrics are ready, and the memory that they take: a rank of ping-pong on every host.

Each in a process of its own: processor time from the scenario until the simulation can start, the largest memory of
the process then and after some simulated time, and what Python alone took before. Usage: ``python benches/ready.py``.
"""

import json
import resource
import subprocess
import sys
import time
from typing import Any

FABRICS: dict[str, tuple[int, dict[str, Any]]] = {
    "fat-tree": (8192, {"topology": "fat_tree", "preset": "wilke2020"}),
    "dragonfly, minimal": (8192, {"topology": "dragonfly", "preset": "wilke2020"}),
    "dragonfly, PAR, 4 levels": (8192, {"topology": "dragonfly", "preset": "wilke2020", "routing": "progressive"}),
    "torus": (8192, {"topology": "torus", "sides": [8, 8, 8, 4, 4]}),
    "large dragonfly, minimal": (
        196 * 32 * 16,
        {
            "topology": "dragonfly",
            "groups": 196,
            "switches_per_group": 32,
            "hosts_per_switch": 16,
            "global_links": 16,
        },
    ),
}
"""Hosts, and the fabric that has them."""
SIMULATED = "100 us"


def peak() -> float:
    """The largest memory of this process so far, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(fabric: dict[str, Any], ranks: int) -> None:
    """Prints what one fabric takes, in this process."""
    from fairlane import Scenario, Simulation

    before, start = peak(), time.process_time()
    levels = {"service_levels": 4} if fabric.get("routing") else {}
    job = {"name": "all", "ranks": ranks, "workload": {"name": "ping_pong", "compute": "1 us"}}
    simulation = Simulation(Scenario(fabric=fabric, qos=levels, placement="packed", jobs=[job]))
    ready, memory = time.process_time() - start, peak()
    simulation.run_for(SIMULATED)
    print(json.dumps([before, ready, memory, time.process_time() - start - ready, peak()]))


def main() -> None:
    """Prints a row for each fabric."""
    print(f"{'':24} {'hosts':>7} {'ready':>8} {'memory':>9} {SIMULATED:>10} {'memory':>9} {'Python':>9}")
    for name, (hosts, fabric) in FABRICS.items():
        command = [sys.executable, __file__, json.dumps(fabric), str(hosts)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        before, ready, memory, running, most = found
        row = f"{name:24} {hosts:7} {ready:6.2f} s {memory:5.0f} MiB {running:8.2f} s {most:5.0f} MiB {before:5.0f} MiB"
        print(row)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(json.loads(sys.argv[1]), int(sys.argv[2]))
    else:
        main()
