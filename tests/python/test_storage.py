"""Clients and servers of files: times by closed form, servers shared by jobs, throttling, and what is refused."""

import math
from typing import Any

import pytest

from fairlane import Run, Scenario, run
from fairlane.core.errors import ScenarioError
from fairlane.study.pinned import pin

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 4, "bandwidth": "100 Gb/s"}
MIB = 2**20
WIRE = (4096 + 26) / 4096 * 8 / 100e9 * 1e3
"""Milliseconds of a byte of full packets on a link."""


def job(name: str, ranks: int, servers: Any, **workload: Any) -> dict[str, Any]:
    return {"name": name, "ranks": ranks, "workload": {"name": "storage", "servers": servers, **workload}}


def scenario(*jobs: dict[str, Any], **more: Any) -> Scenario:
    placement = {"name": "linear"}
    return Scenario.read({"duration": "30 ms", "fabric": FABRIC, "placement": placement, "jobs": list(jobs), **more})


def shared(hosts: list[int]) -> dict[str, Any]:
    return {"hosts": hosts, "shared": True}


def iteration_ms(found: Run, name: str = "a") -> float:
    """Mean time of an iteration of a job, ms."""
    row = next(row for row in found.jobs.to_dicts() if row["name"] == name)
    return float(row["seconds_per_iteration"]) * 1e3


@pytest.mark.parametrize("size", ["write_size", "read_size"])
@pytest.mark.parametrize("layout", ["file_per_client", "shared_file"])
def test_clients_fill_the_links_of_the_servers(size: str, layout: str) -> None:
    # Six clients have 4 MiB each for two servers: 12 MiB over each server's link.
    found = run(
        scenario(job("a", 8, "14,15", **{"write_size": "0 B", size: "4 MiB", "layout": layout})), isolated=False
    )
    assert iteration_ms(found) == pytest.approx(12 * MIB * WIRE, rel=0.03)


def test_a_client_is_as_fast_as_its_own_link_and_computes_between() -> None:
    # One client, striped over four servers: its link carries all of it.
    once = job(
        "a",
        5,
        "12,13,14,15",
        write_size="8 MiB",
        stripes=4,
        compute="1 ms",
        jitter=0,
        imbalance={"kind": "uniform", "low": 1},
    )
    found = run(scenario(once), isolated=False)
    assert iteration_ms(found) == pytest.approx(8 * MIB * WIRE + 1, rel=0.03)


def test_requests_in_flight_bound_what_a_client_has_under_way() -> None:
    # One request of one packet at a time costs a round trip; with eight the link is better used.
    def time(in_flight: int) -> float:
        small = job("a", 2, "15", write_size="256 KiB", message_size="4 KiB", in_flight=in_flight)
        return iteration_ms(run(scenario(small, duration="5 ms"), isolated=False))

    assert time(1) > 4 * time(8) > 4 * 64 * 4096 * WIRE


def test_a_throttle_sets_the_rate() -> None:
    found = run(scenario(job("a", 3, "15", write_size="4 MiB", rate="10 Gb/s")), isolated=False)
    assert iteration_ms(found) == pytest.approx(4 * MIB * 8 / 10e9 * 1e3, rel=0.02)


def test_jobs_share_a_server_and_nobody_else_is_placed_there() -> None:
    # Two jobs with three clients each fill one server's link: both take twice as long as alone.
    write = {"write_size": "4 MiB"}
    other = {"name": "other", "ranks": 8, "workload": {"name": "all_to_all", "compute": "1 ms"}}
    both = scenario(job("a", 4, "host5", **write), job("b", 4, 5, **write), other)
    hosts = {one.name: one.hosts for one in both.decide().jobs}
    assert hosts["a"][-1] == hosts["b"][-1] == 5
    assert 5 not in {*hosts["a"][:-1], *hosts["b"][:-1], *hosts["other"]}
    assert len({*hosts["a"], *hosts["b"], *hosts["other"]}) == 3 + 3 + 8 + 1
    found = run(scenario(job("a", 4, 5, **write), job("b", 4, 5, **write), duration="60 ms"))
    for row in found.jobs.to_dicts():
        assert row["w"] == pytest.approx(-0.5, abs=0.03)


def test_files_are_loaded_before_the_first_iteration_and_not_timed() -> None:
    def job_of(load: str) -> dict[str, Any]:
        return job("a", 3, "15", load_size=load, read_size="1 MiB", write_size="0 B")

    loaded, unloaded = (run(scenario(job_of(load)), isolated=False) for load in ("64 MiB", "0 B"))
    assert iteration_ms(loaded) == pytest.approx(iteration_ms(unloaded), rel=0.01)
    iterations = [int(found.jobs["iterations"][0]) for found in (loaded, unloaded)]
    lost = 2 * 64 * MIB * WIRE / iteration_ms(unloaded)
    assert iterations[1] - iterations[0] == pytest.approx(lost, abs=1 + math.ceil(0.03 * lost))


def test_a_study_keeps_the_hosts() -> None:
    write = {"write_size": "1 MiB"}
    for both in (
        scenario(job("a", 4, 5, **write), job("b", 5, [5, 6], **write)),
        scenario(*({**job(f"on-{number}", 3, number, **write), "placement": shared([1, 2])} for number in (5, 6))),
    ):
        decided = both.decide()
        again = Scenario.read(pin(both, decided, ".", "default").scenario).decide()
        assert [one.hosts for one in again.jobs] == [one.hosts for one in decided.jobs]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (job("a", 1, None), r"jobs\[0\]\.ranks.*more than 1 server"),
        (job("a", 3, [1, 1], write_size="1 MiB"), "host 1 is listed twice"),
        (job("a", 2, [1], write_size="1 MiB", stripes=2), "stripes.*more than servers.*at most 1"),
        (job("a", 2, [1], rate="1 b/s"), r"workload\.rate.*1 b/s"),
        (job("a", 2, [1], write_size="0 B"), "neither write_size nor read_size"),
        (job("a", 2, [1], write_size="1 TiB"), "too many requests.*at most 64 GiB"),
        (job("a", 2, [1, 2], write_size="1 MiB"), r"jobs\[0\]\.ranks.*more than 2 servers"),
        (job("a", 2, ["hots1"], write_size="1 MiB"), r"workload\.servers.*hots1.*no host with this name.*host1"),
        (job("a", 2, [16], write_size="1 MiB"), "there is no host 16.*0 to 15"),
        (job("a", 17, [1], write_size="1 MiB"), "the jobs need 16 hosts.*15 hosts"),
        ({**job("a", 3, [1], write_size="1 MiB"), "placement": {"hosts": [1, 2]}}, "1 are free"),
        (
            {**job("a", 3, [1], write_size="1 MiB"), "placement": {"name": "linear", "mapping": "hop_bytes"}},
            "names the hosts of its last ranks.*linear",
        ),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=f"(?s){words}"):
        scenario(given).decide()
