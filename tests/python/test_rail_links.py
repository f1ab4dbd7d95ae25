"""The links of a job are those that its rail policy can use: in counters, allocations and predicted loads."""

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, run
from fairlane.cli.main import execute
from fairlane.model.fabric.compare import compare
from fairlane.model.fabric.view import Fabric
from fairlane.model.pattern import observe, program_of
from fairlane.model.placement import measure
from fairlane.model.placement.mapping import HopBytes, Slots
from fairlane.study.shipped.advice.question import ask

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


def fabric_of(wiring: str, hosts: int = 16) -> dict[str, Any]:
    return {**TREE, "hosts": hosts if wiring == "planes" else 4 * hosts, "rails": {"count": 4, "wiring": wiring}}


def job(name: str, hosts: list[Any], rails: Any, size: str = "64 KiB", ranks_per_host: int = 1) -> dict[str, Any]:
    load = {"name": "all_to_all", "message_size": size, "compute": "1 us"}
    placement = {"hosts": hosts, "ranks_per_host": ranks_per_host}
    return {"name": name, "workload": load, "placement": placement, "rails": rails}


def scenario(fabric: Mapping[str, Any], *jobs: dict[str, Any], duration: str = "200 us") -> Scenario:
    return Scenario.read({"fabric": fabric, "duration": duration, "jobs": list(jobs)})


@pytest.mark.parametrize(
    ("rails", "wiring"),
    [
        *product(POLICIES, ["planes", "shared", "rail_optimised"]),
        *product([{"only": 1, "to": 3}], ["shared", "rail_optimised"]),
    ],
    ids=str,
)
def test_the_links_of_a_job_are_exactly_those_that_carry_its_bytes(rails: Any, wiring: str) -> None:
    one = scenario(fabric_of(wiring), job("only", [0, 1, 2, 5, 9, 14], rails, ranks_per_host=2))
    resolved = one.resolve()
    fabric = resolved.fabric
    [placed] = resolved.jobs
    ports = run(one, isolated=False).ports.filter(pl.col("bytes") > 0)
    assert ports.height
    assert set(np.flatnonzero(fabric.job_links(placed.hosts, placed.rails))) == set(ports["link"])


@pytest.mark.parametrize("wiring", ["planes", "rail_optimised"])
def test_every_link_with_traffic_names_the_jobs_that_may_have_caused_it(
    wiring: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a real cluster, 1,531 of 2,483 links with traffic had no job: routes ended at first adapters only."""
    jobs = {
        "around": ([0, 2, 6], "round_robin"),
        "one": ([1, 3, 9, 11], {"only": 3}),
        "ranks": ([5, 7, 13], "by_rank"),
        "striped": ([8, 10, 12, 14], {"policy": "stripe", "above": "4 KiB"}),
        "received": ([4, 15], "by_destination"),
    }
    every = {name: job(name, *of, ranks_per_host=2) for name, of in jobs.items()}
    mixed = scenario(fabric_of(wiring), *every.values())
    run(mixed, isolated=False).save(tmp_path / "run")
    (tmp_path / "jobs.toml").write_text(mixed.text, encoding="utf-8")
    slurm = [f"{name} {','.join(f'host{host}' for host in hosts)}\n" for name, (hosts, _) in jobs.items()]
    (tmp_path / "jobs").write_text("".join(slurm), encoding="utf-8")
    assert execute(["fabric", "export", str(tmp_path / "jobs.toml"), "--ibnetdiscover", "-o", str(tmp_path / "d")]) == 0
    assert execute(["counters", "export", str(tmp_path / "run"), "-o", str(tmp_path / "c")]) == 0
    capsys.readouterr()

    def answer(allocation: str) -> dict[str, Any]:
        files = ["--counters", str(tmp_path / "c" / "perfquery.txt"), "--fabric", str(tmp_path / "d")]
        assert execute(["analyze", *files, "--allocation", str(tmp_path / allocation), "--json"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    known, unknown = answer("jobs.toml"), answer("jobs")
    assert known["links_without_job"] == unknown["links_without_job"] == 0
    assert sum(link["sent_bytes"] > 0 for link in known["links"]) > 100
    possible = {link["link"]: set(link["jobs"]) for link in unknown["links"]}
    by_job: dict[str, set[str]] = {name: set() for name in jobs}
    for link in known["links"]:
        assert set(link["jobs"]) <= possible[link["link"]], "all rails are possible where the policy is not known"
        for name in link["jobs"]:
            by_job[name].add(link["link"])
    ports = run(scenario(fabric_of(wiring), every["one"]), isolated=False).ports
    assert by_job["one"] == set(ports.filter(pl.col("bytes") > 0)["link_name"])


@pytest.mark.parametrize("wiring", ["planes", "rail_optimised"])
@pytest.mark.parametrize("rails", ["by_destination", "by_rank", {"only": 2}, {"policy": "stripe", "above": "1 KiB"}])
def test_predicted_loads_are_the_simulated_bytes(rails: Any, wiring: str) -> None:
    """Of eager messages, which have no control messages: one all-to-all, without headers."""
    load = {"name": "all_to_all", "message_size": "16 KiB", "compute": "1 us"}
    hosts = [0, 1, 2, 5, 9, 14]
    spread = {"name": "j", "workload": load, "placement": {"hosts": hosts}, "rails": rails, "stop": 1}
    settings = {"network": {"header": 0}, "mpi": {"eager_threshold": "1 MiB"}, "duration": "1 ms"}
    one = Scenario.read({"fabric": fabric_of(wiring), "jobs": [spread], **settings})
    resolved = one.resolve()
    fabric, [placed] = resolved.fabric, resolved.jobs
    source = placed.table.workload
    assert source is not None
    traffic = observe(program_of(source, placed.ranks, resolved.seed, placed.number)).total
    ports = run(one, isolated=False).ports.group_by("link").agg(pl.col("bytes").sum())
    simulated = np.zeros(len(fabric.links["link"]))
    simulated[ports["link"].to_numpy()] = ports["bytes"].to_numpy()
    predicted = fabric.loads(placed.hosts, traffic / source.distinct_iterations, placed.rails)
    assert predicted == pytest.approx(simulated, abs=8)
    assert predicted.sum() > 0


@pytest.mark.parametrize("wiring", ["planes", "rail_optimised"])
def test_ranks_that_communicate_are_placed_at_one_leaf_of_each_rail(wiring: str) -> None:
    """Two jobs of eight hosts on two leaves of each rail: packed ones have no packet between leaf and spine."""
    jobs = [
        {"name": name, "ranks": 8, "workload": {"name": "all_to_all", "message_size": "16 KiB", "compute": "1 us"}}
        for name in ("a", "b")
    ]
    shared = {"fabric": fabric_of(wiring), "duration": "100 us", "jobs": jobs}
    for name in ("pattern", "packed"):
        placed = Scenario.read({**shared, "placement": name}).resolve()
        fabric = placed.fabric
        hosts = {job.name: job.hosts for job in placed.jobs}
        assert sorted(host for some in hosts.values() for host in some) == list(range(16)), "each host once"
        found = measure(fabric, hosts, {job.name: job.rails for job in placed.jobs})
        assert {one.switches for one in found.values()} == {4}, "a leaf of each rail"
        assert {(one.average_distance, one.links, one.shared, one.pieces) for one in found.values()} == {(0, 0, 0, 1)}
        ports = run(Scenario.read({**shared, "placement": name}), isolated=False).ports
        assert ports.filter(pl.col("role") != "host")["bytes"].sum() == 0


def test_a_mapping_goes_by_the_adapters_that_messages_use() -> None:
    """Rail 0 of the four hosts is at two leaves, rail 1 at two others: neighbours depend on the rail."""
    pairs = {0: [(0, 1), (2, 3)], 1: [(0, 2), (1, 3)]}
    links = [
        {"ends": [f"h{host}", f"leaf{rail}{leaf}"]}
        for rail in (0, 1)
        for leaf, some in enumerate(pairs[rail])
        for host in some
    ]
    # The adapters of a host are numbered in the order of its cables here.
    links.sort(key=lambda link: link["ends"])
    links += [{"ends": [f"leaf{rail}{leaf}", "spine"]} for rail in (0, 1) for leaf in (0, 1)]
    names = [f"h{host}" for host in range(4)]
    fabric = Fabric.build({"topology": "imported", "params": {"hosts": names, "links": links}, "routing": "up_down"})
    for rail, near in pairs.items():
        apart = fabric.distances(range(4), {"policy": "only", "only": rail})
        assert {(a, b) for a in range(4) for b in range(a + 1, 4) if apart[a, b] == 0} == set(near)
    both = fabric.distances(range(4))
    assert (both[0, 1], both[0, 2], both[0, 3]) == (1, 1, 2), "the mean over two rails"
    traffic = np.zeros((4, 4))
    traffic[0, 1] = traffic[1, 0] = traffic[2, 3] = traffic[3, 2] = 1.0
    slots = Slots(range(4), lambda: fabric.distances(range(4), {"policy": "only", "only": 1}), lambda: traffic)
    places = HopBytes().places(slots)
    assert {frozenset(places[:2]), frozenset(places[2:])} == {frozenset({0, 2}), frozenset({1, 3})}


@pytest.fixture
def mixed(tmp_path: Path) -> dict[str, Any]:
    """Four hosts with eight adapters, a storage host with one; all but one have one more in another subnet."""
    rows = [f"gpu{host},leaf{rail},host,switch" for host in range(4) for rail in range(8)]
    rows += ["storage,leaf0,host,switch"]
    rows += [f"leaf{rail},spine{spine},switch,switch" for rail in range(8) for spine in range(2)]
    rows += [f"{host},management,host,switch" for host in ("gpu0", "gpu1", "gpu2", "storage", "login")]
    (tmp_path / "f.csv").write_text("\n".join(["from,to,from_kind,to_kind", *rows, ""]), encoding="utf-8")
    assert execute(["fabric", "import", str(tmp_path / "f.csv"), "-o", str(tmp_path / "f.json")]) == 0
    return {"topology": "imported", "file": str(tmp_path / "f.json"), "bandwidth": "100 Gb/s", "latency": "100 ns"}


@pytest.mark.parametrize("rails", [*(one for one in POLICIES if one != {"only": 2}), {"only": 0}], ids=str)
def test_messages_arrive_between_hosts_that_differ_in_their_adapters(rails: Any, mixed: dict[str, Any]) -> None:
    io = {**job("io", ["gpu0", "gpu3", "storage"], rails, ranks_per_host=2), "stop": 2}
    one = scenario(mixed, io, duration="2 ms")
    found, [placed] = run(one, isolated=False), one.resolve().jobs
    assert found.jobs["iterations"].to_list() == [2]
    possible = Fabric.build(one.fabric.spec).job_links(placed.hosts, placed.rails)
    assert possible[found.ports.filter(pl.col("bytes") > 0)["link"].to_numpy()].all()


@pytest.mark.parametrize(
    ("hosts", "rails", "words"),
    [
        (["gpu0", "storage"], {"only": 3}, "jobs[0].rails.only = 3: storage has no such adapter; allowed: 0 to 1"),
        (["gpu0", "login", "storage"], {"only": 3}, "login,storage have no such adapter; allowed: 0"),
        (["gpu0", "gpu1"], {"only": 0, "to": 9}, "rails.to = 9: gpu[0-1] have no such adapter; allowed: 0 to 8"),
        (["gpu3", "login"], "round_robin", 'no path between switches joins the adapters of "gpu3" and "login"'),
    ],
)
def test_a_policy_that_hosts_cannot_follow_names_them(
    hosts: list[str], rails: Any, words: str, mixed: dict[str, Any]
) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(mixed, job("j", hosts, rails)).resolve()
    assert words in str(caught.value)


def test_advice_compares_the_adapters_that_an_imported_fabric_has(tmp_path: Path) -> None:
    """Without ``fabric.rails`` the only alternative was the first adapter."""
    rows = [f"h{host},leaf{rail},host,switch" for host in range(4) for rail in range(host + 1 if host < 2 else 2)]
    rows += [f"leaf{rail},spine,switch,switch" for rail in range(2)]
    (tmp_path / "f.csv").write_text("\n".join(["from,to,from_kind,to_kind", *rows, ""]), encoding="utf-8")
    assert execute(["fabric", "import", str(tmp_path / "f.csv"), "-o", str(tmp_path / "f.json")]) == 0
    load = 'workload = { name = "ring", compute = "1 us" }'
    file = tmp_path / "s.toml"
    fabric = '[fabric]\ntopology = "imported"\nfile = "f.json"\nbandwidth = "1 GB/s"\nlatency = "100 ns"\n'
    file.write_text(f'duration = "1 us"\n{fabric}[[jobs]]\nranks = 2\n{load}\n', encoding="utf-8")
    question = ask(file, None, None, [0], [])
    assert list(dict.fromkeys(choice.rails for choice in question.choices)) == ["all", "only 0"]
    assert question.rails == 2


def test_fabrics_are_compared_by_all_adapters() -> None:
    """Second adapters at other leaves made no difference."""

    def fabric(*second: int) -> Fabric:
        links = [{"ends": [f"h{host}", "leaf0"]} for host in range(4)]
        links += [{"ends": [f"h{host}", f"leaf{leaf}"]} for host, leaf in enumerate(second)]
        links += [{"ends": [f"leaf{leaf}", "spine"]} for leaf in range(3)]
        params = {"hosts": [f"h{host}" for host in range(4)], "links": links}
        return Fabric.build({"topology": "imported", "params": params, "routing": "up_down"})

    assert compare(fabric(1, 1, 2, 2), fabric(2, 1, 1, 2)).switches_with_as_many_hosts == 4
    assert compare(fabric(1, 1, 2, 2), fabric(1, 1, 1, 2)).switches_with_as_many_hosts == 2


def test_a_fabric_with_subnets_that_are_not_joined_is_described(mixed: dict[str, Any]) -> None:
    """The distance of leaves that no cable between switches joins was infinite, and could not be an integer."""
    found = Fabric.build(scenario(mixed, job("j", ["gpu0", "gpu1"], "round_robin")).fabric.spec).describe()
    assert (found.hosts, found.diameter, found.adapters) == (6, 4, {9: 3, 8: 1, 2: 1, 1: 1})


@pytest.mark.parametrize("workload", ["all_to_all", "nearest_neighbor"])
@pytest.mark.parametrize("rails", [{"policy": "stripe"}, "by_rank"], ids=str)
def test_estimates_know_the_adapters_that_a_job_uses(rails: Any, workload: str) -> None:
    """Of a job that stripes its messages over four rails a quarter of its packets was expected."""

    def packet_hops(policy: Any) -> tuple[float, float]:
        load = {"name": workload, "message_size": "256 KiB", "compute": 0, "messages_per_iteration": 1}
        jobs = [{"name": "j", "ranks": 8, "workload": load, "rails": policy}]
        one = Scenario.read({"fabric": fabric_of("rail_optimised"), "duration": "2 ms", "jobs": jobs})
        expected = one.decide().estimate
        assert expected is not None
        return expected.packet_hops, run(one, isolated=False).meta.packet_hops

    several, single = packet_hops(rails), packet_hops({"only": 1})
    assert several[0] / single[0] == pytest.approx(several[1] / single[1], rel=0.3)


@pytest.mark.parametrize("rails", ["round_robin", "by_rank", "by_source", {"only": 2}], ids=str)
def test_offered_load_is_a_share_of_the_adapters_that_ranks_use(rails: Any) -> None:
    """A rank that uses one adapter of four was offered the load of four."""
    load = {"name": "open_loop", "load": 0.4, "message_size": "4 KiB", "arrivals": "fixed"}
    jobs = [{"name": "j", "ranks": 16, "workload": load, "rails": rails}]
    one = Scenario.read({"fabric": fabric_of("rail_optimised"), "duration": "500 us", "jobs": jobs})
    ports = run(one, isolated=False).ports.filter(pl.col("role") == "host", pl.col("from_level") == 0)
    used = ports.group_by("link").agg(pl.col("bytes").sum(), pl.col("port_active_share").max())
    busy = used.filter(pl.col("bytes") > 0)["port_active_share"]
    assert len(busy) == (64 if rails == "round_robin" else 16)
    assert busy.mean() == pytest.approx(0.4, rel=0.1)
