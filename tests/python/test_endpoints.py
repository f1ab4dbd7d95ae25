"""Adapters are the destinations of routes, on built-in and on imported fabrics alike."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import Scenario, run
from fairlane.cli.main import execute
from fairlane.model.fabric.reader import read_wiring
from fairlane.model.fabric.view import Fabric

DATA = Path(__file__).parents[1] / "data" / "fabrics"


def jobs(*policies: Any) -> list[dict[str, Any]]:
    """A ring on every second host and an all-to-all on the others."""
    workloads = ({"name": "ring", "message_size": "256 KiB"}, {"name": "all_to_all", "message_size": "8 KiB"})
    return [
        {"name": load["name"], "workload": {**load, "compute": "1 us"}, "placement": {"hosts": hosts}, "rails": policy}
        for load, hosts, policy in zip(workloads, ([0, 2, 4, 6], [1, 3, 5, 7]), policies, strict=True)
    ]


@pytest.mark.parametrize("wiring", ["planes", "shared", "rail_optimised"])
@pytest.mark.parametrize("format_", ["ibnetdiscover", "ibsim", "csv", "graphml"])
def test_a_fabric_with_rails_gives_the_same_results_after_export_and_import(
    wiring: str, format_: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts = 16 if wiring == "planes" else 32
    tree = {"topology": "fat_tree", "hosts": hosts, "levels": 2, "leaf_down": 4, "leaf_up": 4, "bandwidth": "100 Gb/s"}
    built = {**tree, "rails": {"count": 2, "wiring": wiring}}
    policies = ("round_robin", {"policy": "stripe", "above": "4 KiB"})

    def measured(fabric: Mapping[str, Any]) -> tuple[str | None, Any]:
        scenario = Scenario.read({"fabric": fabric, "duration": "200 us", "jobs": jobs(*policies)})
        found = run(scenario, isolated=False)
        return found.meta.digest, found.ports.select("link_name", "lane", "bytes", "packets", "queueing_ps").rows()

    (tmp_path / "s.toml").write_text(
        Scenario.read({"fabric": built, "duration": "200 us", "jobs": jobs(*policies)}).text, encoding="utf-8"
    )
    out = tmp_path / "out"
    assert execute(["fabric", "export", str(tmp_path / "s.toml"), f"--{format_}", "-o", str(out)]) == 0
    assert execute(["fabric", "import", str(out), "-o", str(tmp_path / "again.json")]) == 0
    capsys.readouterr()
    again = {"topology": "imported", "file": str(tmp_path / "again.json"), "latency": "100 ns"}
    assert measured(again) == measured(built)


@pytest.mark.parametrize("rails", [2, 4])
@pytest.mark.parametrize("size", ["8 KiB", "64 KiB"])
@pytest.mark.parametrize("workload", ["all_to_all", "nearest_neighbor", "ring"])
def test_payloads_are_balanced_over_rails(workload: str, size: str, rails: int) -> None:
    """A rendezvous has four messages, and one has the payload: counted one by one that was always on one rail."""
    tree = {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 4, "rails": rails}
    load = {"name": workload, "message_size": size, "compute": 0}
    scenario = Scenario.read({"fabric": tree, "duration": "300 us", "jobs": [{"ranks": 16, "workload": load}]})
    ports = run(scenario, isolated=False).ports
    of_hosts = ports.filter(pl.col("role") == "host", pl.col("from_level") == 0)
    sent = of_hosts.group_by("rail").agg(pl.col("bytes").sum())
    assert sent.height == rails
    assert sent["bytes"].max() <= 1.1 * sent["bytes"].mean()  # type: ignore[operator]


def test_adapters_of_a_real_cluster_meet_at_their_leaves() -> None:
    """DGX hosts with four adapters each: rail k of two hosts of a unit is at one leaf, so no path crosses a spine."""
    wiring = read_wiring(DATA / "ndr-dgx.ibnetdiscover.xz")
    fabric = wiring.fabric()
    one, other = (wiring.hosts.index(f"b05-p1-dgx-05-c{number}") for number in (17, 18))
    assert fabric.rail_pairs(one, other) == [(rail, rail) for rail in range(4)]
    for rail in range(4):
        path = fabric.route(one, other, rail)
        assert len(path) == 2
        assert fabric.links["to_port"][path[0]] > 0
    assert len(fabric.route(one, other, 0, 1)) == 4, "from one rail to another over a spine"


def test_the_routing_uses_all_of_a_cluster_with_several_adapters() -> None:
    """Only the first adapters counted as destinations: a remark said that routing can use 12%."""
    four = range(4)
    links = [{"ends": [f"g{host}", f"unit{host // 4}-rail{rail}"]} for host in range(16) for rail in four]
    links += [{"ends": [f"unit{unit}-rail{rail}", f"spine{up}"]} for unit in four for rail in four for up in four]
    params = {"hosts": [f"g{host}" for host in range(16)], "links": links}
    fabric = Fabric.build({"topology": "imported", "params": params, "routing": "up_down"})
    found = fabric.describe()
    assert (found.rails, found.adapters) == (4, {4: 16})
    assert found.usable_bisection == found.bisection
    assert not found.coverage.warnings


def test_one_rail_of_a_cluster_whose_hosts_differ_in_their_adapters(tmp_path: Path) -> None:
    """The last host has one adapter: that of number 1 of the hosts before it is another's of all adapters."""
    adapters = {"a": ["12.5 GB/s", "25 GB/s"], "b": ["50 GB/s"], "c": ["12.5 GB/s", "25 GB/s"], "d": ["50 GB/s"]}
    rows = [f"{host},s{number},{rate}" for host, rates in adapters.items() for number, rate in enumerate(rates)]
    lines = ["from,to,bandwidth,from_kind,to_kind", *(f"{row},host,switch" for row in rows), "s0,s1,,switch,switch"]
    (tmp_path / "net.csv").write_text("\n".join(lines))
    wiring = read_wiring(tmp_path / "net.csv")
    fabric = wiring.fabric("up_down")
    assert (fabric.bandwidths_of_hosts(1) / 8e9).tolist() == [25, 0, 25, 0]
    assert (fabric.bandwidths_of_hosts(0) / 8e9).tolist() == [12.5, 50, 12.5, 50]
    wiring.save(tmp_path / "net.json")
    job = {"placement": {"hosts": ["a", "c"]}, "rails": {"only": 1}, "workload": {"name": "ring", "compute": 0}}
    imported = {"topology": "imported", "file": str(tmp_path / "net.json")}
    scenario = Scenario.read({"duration": "500 us", "fabric": imported, "jobs": [job]})
    sent = run(scenario, isolated=False).ports.filter(pl.col("bytes") > 0)
    assert {name for name in sent["link_name"] if name.startswith(("a ", "c "))} == {"a port 2 to s1", "c port 2 to s1"}
