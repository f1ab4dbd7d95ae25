"""Placements among some hosts, as those of a partition, and hosts of several jobs at one time."""

from typing import Any

import pytest

from fairlane import Run, Scenario, run
from fairlane.cluster.opensm.export import export
from fairlane.core.errors import ScenarioError

FABRIC = {"topology": "fat_tree", "hosts": 16, "levels": 2, "leaf_down": 4, "leaf_up": 4, "bandwidth": "100 Gb/s"}


def scenario(*jobs: dict[str, Any], **more: Any) -> Scenario:
    """Jobs of ``incast``, in which every rank sends to rank 0 without a pause."""
    workload = {"name": "incast", "message_size": "1 MiB"}
    tables = [{"name": f"job{number}", "workload": workload, **job} for number, job in enumerate(jobs)]
    return Scenario.read({"duration": "10 ms", "fabric": FABRIC, "jobs": tables, **more})


def placed(hosts: Any, shared: bool = True) -> dict[str, Any]:
    return {"placement": {"hosts": hosts, "shared": shared}}


def bytes_of(found: Run, host: int) -> tuple[int, int]:
    """What the link from the host and the one to it have carried."""
    name = f"host {host}"
    ports = found.ports
    return tuple(int(ports.filter(ports[end] == name)["bytes"].sum()) for end in ("from_vertex", "to_vertex"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("second", "host", "end"), [([2, 1], 1, 0), ([0, 2], 0, 1)], ids=["both send from host 1", "both receive at host 0"]
)
def test_jobs_on_one_host_share_its_adapter_equally(second: list[int], host: int, end: int) -> None:
    # Each job alone keeps the adapter's link busy, so of B bits per second both get B / 2, and W = 1/2 - 1.
    found = run(scenario(placed([0, 1]), placed(second)))
    for row in found.jobs.to_dicts():
        assert row["w"] == pytest.approx(-0.5, abs=0.01)
    capacity = 100e9 / 8 * 10e-3
    assert bytes_of(found, host)[end] == pytest.approx(capacity, rel=0.02)
    for other in {0, 1, *second} - {host}:
        assert bytes_of(found, other)[1 - end] == pytest.approx(capacity / 2, rel=0.02)


@pytest.mark.parametrize(
    ("first", "second", "refused"),
    [
        (True, True, False),
        (True, False, True),
        (False, True, True),
        (False, False, True),
    ],
)
def test_a_host_is_shared_only_where_both_say_so(first: bool, second: bool, refused: bool) -> None:
    jobs = placed([0, 1], first), placed(["host2", "host1"], second)  # by number and by name
    if refused:
        with pytest.raises(ScenarioError, match=r"host host1 is in jobs\[0\]\.placement\.hosts already") as raised:
            scenario(*jobs).decide()
        assert "unless the jobs run at different times or both placements are shared" in str(raised.value)
        return
    assert [job.hosts for job in scenario(*jobs).decide().jobs] == [(0, 1), (2, 1)]


def test_a_policy_takes_shared_hosts_only_where_it_is_shared() -> None:
    servers, everywhere = placed([3, 4]), {"ranks": 14, "placement": {"name": "linear"}}
    exclusive = scenario(servers, everywhere).decide().jobs[1].hosts
    assert set(exclusive) == set(range(16)) - {3, 4}
    both = {"ranks": 16, "placement": {"name": "linear", "shared": True}}
    assert scenario(servers, both).decide().jobs[1].hosts == tuple(range(16))
    with pytest.raises(ScenarioError, match="16 ranks need 16 hosts, 1 a host, and 14 are free"):
        scenario(placed([3, 4], shared=False), both).decide()
    with pytest.raises(ScenarioError, match=r"placement\.hosts: host 1 is listed twice"):
        scenario(placed([0, 1, 1])).decide()


@pytest.mark.parametrize(
    "policy",
    [
        {"name": "random"},
        {"name": "packed"},
        {"name": "spread"},
        {"name": "linear"},
        {"name": "fragmented"},
        {"name": "units", "size": 1},
        {"name": "domain"},
        {"name": "pattern"},
    ],
    ids=lambda policy: policy["name"],
)
def test_a_policy_chooses_among_the_hosts_of_a_partition(policy: dict[str, Any]) -> None:
    among = ["host[2-5]", 8, "host[10-12]"]
    allowed = {2, 3, 4, 5, 8, 10, 11, 12}
    jobs = [{"ranks": 4}, {"ranks": 3}]
    for seed in range(5):
        found = scenario(*jobs, placement={**policy, "among": among}, seed=seed).decide().jobs
        hosts = [host for job in found for host in job.hosts]
        assert set(hosts) <= allowed
        assert len(set(hosts)) == 7
    with pytest.raises(
        ScenarioError, match=r"9 ranks need 9 hosts, 1 a host, and 8 are free of those in placement\.among"
    ):
        scenario({"ranks": 9}, placement={**policy, "among": among}).decide()


def test_hosts_among_which_to_choose_are_checked() -> None:
    with pytest.raises(ScenarioError, match=r'placement\.among = "host16": the fabric has no host with this name'):
        scenario({"ranks": 2}, placement={"name": "random", "among": ["host1", "host16"]}).decide()
    with pytest.raises(ScenarioError, match=r"placement\.among: applies to placement policies"):
        scenario({"placement": {"hosts": [1, 2], "among": [1, 2, 3]}})


def test_an_export_notes_paths_that_belong_to_two_jobs() -> None:
    qos = {"sl2vl": [0, 1, 2]}
    jobs = [{**placed(hosts), "service_level": level} for hosts, level in (([0, 1, 2], 1), ([1, 2, 3], 2), ([2, 4], 1))]
    notes = export(scenario(*jobs, qos=qos).decide()).notes
    shared = [note for note in notes if "share" in note]
    assert shared == ["jobs job0 and job1 share host[1-2]: paths between these hosts have service level 1, of job0"]
