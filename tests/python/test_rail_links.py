"""The links of a job are those that its rail policy can use: in counters, allocations and predicted loads."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, run
from fairlane.cli.main import execute
from fairlane.fabric import Fabric

TREE = {"topology": "fat_tree", "levels": 2, "leaf_down": 8, "leaf_up": 4, "bandwidth": "100 Gb/s"}
POLICIES = [
    "round_robin",
    "by_destination",
    "by_source",
    "by_rank",
    {"policy": "stripe", "above": "4 KiB"},
    {"policy": "by_source", "order": "random"},
    {"only": 2},
]
CROSSING = {"only": 1, "to": 3}


def fabric_of(wiring: str, hosts: int = 16) -> dict[str, Any]:
    return {**TREE, "hosts": hosts if wiring == "planes" else 4 * hosts, "rails": {"count": 4, "wiring": wiring}}


def job(name: str, hosts: list[int], rails: Any, size: str = "64 KiB", ranks_per_host: int = 1) -> dict[str, Any]:
    load = {"name": "all_to_all", "message_size": size, "compute": "1 us"}
    placement = {"hosts": hosts, "ranks_per_host": ranks_per_host}
    return {"name": name, "workload": load, "placement": placement, "rails": rails}


def scenario(fabric: Mapping[str, Any], *jobs: dict[str, Any]) -> Scenario:
    return Scenario.read({"fabric": fabric, "duration": "200 us", "jobs": list(jobs)})


@pytest.mark.parametrize("wiring", ["planes", "shared", "rail_optimised"])
@pytest.mark.parametrize("rails", [*POLICIES, CROSSING], ids=str)
def test_the_links_of_a_job_are_exactly_those_that_carry_its_bytes(rails: Any, wiring: str) -> None:
    if rails is CROSSING and wiring == "planes":
        pytest.skip("no path joins two planes")
    one = scenario(fabric_of(wiring), job("only", [0, 1, 2, 5, 9, 14], rails, ranks_per_host=2))
    resolved = one.resolve()
    fabric = Fabric.build(resolved.tables["fabric"])
    [placed] = resolved.jobs
    ports = run(one, isolated=False).ports.filter(pl.col("bytes") > 0)
    assert ports.height
    assert set(np.flatnonzero(fabric.job_links(placed.hosts, placed.rails))) == set(ports["link"])
