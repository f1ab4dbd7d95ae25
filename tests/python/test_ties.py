"""Adaptive routings share equally loaded ports equally, whichever ports lie between them."""

from typing import Any

import pytest

from fairlane import Scenario, Simulation
from oracle.fabrics import decode

STREAM = {"ranks": 2, "ranks_per_host": 1}


def stream(name: str, level: int, hosts: list[int], load: float, size: str) -> dict[str, Any]:
    """An open-loop job from the first host to the second."""
    workload = {"name": "open_loop", "load": load, "pattern": {"name": "incast", "to": 1}, "message_size": size}
    return {**STREAM, "name": name, "service_level": level, "placement": {"hosts": hosts}, "workload": workload}


@pytest.mark.parametrize("busy", [(2, 3), (1, 3), (1, 2)])
def test_idle_ports_between_busy_ones_get_the_same(busy: tuple[int, int]) -> None:
    """Of four spines two are busy with traffic of fixed paths, by D-mod-k that of host 4 + n over spine n.

    The others share the probe's packets half and half, within four standard deviations.
    """
    fabric = {"topology": "fat_tree", "hosts": 8, "levels": 2, "radix": 8, "bandwidth": "100 Gb/s", "latency": "100 ns"}
    document = {
        "duration": "8 ms",
        "fabric": {**fabric, "routing": {"name": "per_lane", "lanes": ["adaptive", "d_mod_k"]}},
        "qos": {"service_levels": 2},
        "jobs": [
            stream("probe", 0, [0, 4], 0.05, "4 KiB"),
            *(stream(f"busy{spine}", 1, [spine, 4 + spine], 1.0, "64 KiB") for spine in busy),
        ],
    }
    scenario = Scenario.read(document)
    simulation = Simulation(scenario)
    simulation.run_until(8 * 10**9)
    links = scenario.resolve().fabric.links
    ports = decode(simulation.engine.table("ports"))
    probe = {
        link: packets
        for link, lane, packets in zip(ports["link"], ports["lane"], ports["packets"], strict=True)
        if lane == 0 and links["role"][link] == "up" and links["from_name"][link] == "leaf0"
    }
    first, second, *others = sorted(probe.values(), reverse=True)
    total = sum(probe.values())
    assert total > 1000
    assert sum(others) < 0.02 * total, probe
    assert first - second < 4 * total**0.5, probe
