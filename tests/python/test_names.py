"""Names of hosts, switches and links: in tables, on the terminal, in what Slurm reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane import Run, Scenario, load
from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.inputs import hosts
from fairlane.inputs.hosts import can_hold, expand, shortened, slurm_names
from fairlane.model.fabric.view import Fabric
from fairlane.results.views import by_link
from fairlane.views.drawing.parts import cut
from fairlane.views.kinds import view_of

LINKS = """from,to,from_port,to_port
cn01,leaf04,1,1
cn02,leaf04,1,2
cn03,leaf05,1,1
login node,leaf05,1,2
leaf04,spine02,7,1
leaf05,spine02,7,2
"""
SCENARIO = """duration = "200 us"
[fabric]
topology = "imported"
file = "cluster.fabric.json"
[placement]
name = "linear"
[[jobs]]
workload = "all_to_all"
ranks = 4
"""


@pytest.fixture
def cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A scenario on a small cluster with names, in a folder of its own."""
    (tmp_path / "cluster.csv").write_text(LINKS, encoding="utf-8")
    target = tmp_path / "cluster.fabric.json"
    assert execute(["fabric", "import", str(tmp_path / "cluster.csv"), "-o", str(target)]) == 0
    capsys.readouterr()
    scenario = tmp_path / "cluster.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    return scenario


def test_tables_name_hosts_switches_and_ports(cluster: Path, tmp_path: Path) -> None:
    assert execute(["run", str(cluster), "--out", str(tmp_path / "run"), "--quiet", "--no-isolated"]) == 0
    run = load(tmp_path / "run")
    ports = run.tables()["ports"]
    up = by_link(ports).filter(pl.col("from_name") == "leaf04", pl.col("to_name") == "spine02").row(0, named=True)
    assert (up["from_port"], up["to_port"], up["link_name"]) == (7, 1, "leaf04 port 7 to spine02")
    assert ports["link_name"].null_count() == 0
    # Sending end and receiving end of the two directions of a cable are each other's.
    ends = set(by_link(ports).select("from_name", "from_port", "to_name", "to_port").rows())
    assert {(c, d, a, b) for a, b, c, d in ends} == ends
    ranks = run.tables()["ranks"]
    assert ranks.select("host", "host_name").rows() == list(enumerate(["cn01", "cn02", "cn03", "login node"]))


def test_departures_and_the_figure_of_ports_name_links(cluster: Path, tmp_path: Path) -> None:
    options = ["--set", "observe.departures=true", "--no-isolated", "--quiet"]
    assert execute(["run", str(cluster), "--out", str(tmp_path / "run"), *options]) == 0
    run = load(tmp_path / "run")
    assert isinstance(run, Run)
    links = by_link(run.tables()["ports"])
    departures = run.tables()["departures"]
    names = dict(links.select("link", "link_name").iter_rows())
    assert departures["link_name"].to_list() == [names[link] for link in departures["link"]]
    busiest = links.sort("port_active_share", "link")["link_name"][-1]
    assert view_of([run]).pictures["utilisation"][0].sentence.endswith(f" (busiest: {busiest}).")


def test_names_that_are_too_long_for_a_picture_keep_what_tells_them_apart() -> None:
    spines = [f"MF0;B10-P1-IBSPINE-0{number}:MQM9701/U1" for number in (1, 2, 11)]
    # All begin with "MF0;B10-P1-IBSPINE-" and end with ":MQM9701/U1".
    assert cut(spines, 20) == ["01", "02", "011"]
    racks = ["MF0;A10-SPINE-01:Q/U1", "MF0;B10-SPINE-02:Q/U1"]
    assert cut(racks, 12) == ["A10-SPINE-01", "B10-SPINE-02"]
    assert cut(racks, 6) == ["…NE-01", "…NE-02"]
    assert cut(["leaf01", "leaf11"], 20) == ["leaf01", "leaf11"]
    assert cut(["S-0002c90300000010", "S-0002c90300000020"], 10) == ["…300000010", "…300000020"]


def test_generated_names_are_those_of_the_fabric() -> None:
    fabric = Fabric.build(
        {"topology": "fat_tree", "params": {"hosts": 16, "levels": 2, "radix": 8}, "routing": "d_mod_k"}
    )
    assert fabric.host_names == [f"host{at}" for at in range(16)]
    assert fabric.switch_names == [*(f"leaf{at}" for at in range(4)), *(f"spine{at}" for at in range(2))]
    first_up = fabric.route(5, 9)[1]
    assert fabric.link_name(first_up).startswith("leaf1 port ")
    assert fabric.link_name(0) == "host0 port 1 to leaf0"
    assert shortened(fabric.switch_names) == "leaf[0-3],spine[0-1]"
    assert fabric.describe().host_list == "host[0-15]"
    assert shortened([f"n{at}x" for at in range(99)], 20) == "n0x,n1x,n2x,n3x,n4x, ... (99 names)"


def test_commands_print_names(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> Any:
        status = execute(list(arguments))
        found = capsys.readouterr()
        assert status == 0, found.err
        return found

    assert "4 ranks of all_to_all on cn[01-03],login_node" in printed("check", str(cluster)).out
    assert "hosts cn[01-03],login_node; switches leaf[04-05],spine02" in printed("fabric", "describe", str(cluster)).out
    place = printed("place", str(cluster))
    assert "cn[01-03],login_node" in place.out
    assert "host 'login node' is written as login_node for Slurm" in place.err
    row = json.loads(printed("place", str(cluster), "--json").out)["all_to_all"]
    assert row["host_names_of_ranks"] == ["cn01", "cn02", "cn03", "login node"]
    assert (row["switch_names"], row["node_list"]) == (["leaf04", "leaf05"], "cn[01-03],login_node")
    conf = printed("fabric", "export", str(cluster), "--topology-conf")
    assert conf.out.splitlines()[0] == "# host 'login node' is written as login_node"
    assert "SwitchName=leaf05 Nodes=cn03,login_node" in conf.out.splitlines()
    assert "is written as login_node" in conf.err


NAMES = st.lists(st.text(st.sampled_from("ab1 -_./é[]"), min_size=1, max_size=4), unique=True, max_size=12)


@given(names=NAMES, taken=st.sets(st.sampled_from(["a", "a_2", "host", "b_a"])))
def test_names_for_slurm_are_allowed_and_stay_unique(names: list[str], taken: set[str]) -> None:
    found = slurm_names(names, taken)
    assert len(found) == len(names) == len(set(found))
    assert all(map(can_hold, found))
    assert all(after == before for before, after in zip(names, found, strict=True) if can_hold(before))
    assert not {after for before, after in zip(names, found, strict=True) if after != before} & taken


def test_names_that_collide_get_a_number() -> None:
    assert slurm_names(["a b", "a_b", "a/b", "é"], word="switch") == ["a_b_2", "a_b", "a_b_3", "switch"]


def test_a_list_may_have_several_brackets() -> None:
    assert expand("r[0-1]n[08-09], login") == ["r0n08", "r0n09", "r1n08", "r1n09", "login"]
    for wrong in ("r[0-99999]n[0-99999]", "a[0-600000],b[0-600000]", "a[" + "9" * 30 + "]", "a[0-1]" * 9, "a" * 256):
        with pytest.raises(ValueError, match=r"too many names|no range|too long"):
            expand(wrong)


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ("cn[01-03]", (0, 1, 2)),
        (["cn03", 0, "login node"], (2, 0, 3)),
        (["cn03", 0, "login_node"], (2, 0, 3)),
        ("login_node,cn[02-03]", (3, 1, 2)),
        ("[1-3]", (1, 2, 3)),
        ([3, "cn[01-02]"], (3, 0, 1)),
    ],
)
def test_scenarios_name_hosts_in_any_way(cluster: Path, hosts: Any, expected: tuple[int, ...]) -> None:
    text = cluster.read_text(encoding="utf-8").replace("ranks = 4", f"ranks = 3\nplacement = {{ hosts = {hosts} }}")
    text = text.replace(f"hosts = {hosts}", f"hosts = {json.dumps(hosts)}")
    cluster.write_text(text, encoding="utf-8")
    assert Scenario.load(cluster).decide().jobs[0].hosts == expected


@pytest.mark.parametrize(
    ("hosts", "key", "words"),
    [
        (
            "cn[02-04]",
            "hosts",
            'cn04": the fabric has no host with this name; allowed: the 4 hosts of the fabric: cn[01-03]',
        ),
        (["cn01", "longin_node", 2], "hosts", 'did you mean "login node"?'),
        ([0, "cn[02-x]"], "hosts[1]", "no range of numbers: '02-x'"),
        ([0, 1, 4], "hosts", "there is no host 4; allowed: 0 to 3"),
        ([0, "cn01", 2], "hosts", "host cn01 is listed twice"),
        (["cn02", "cn02", 2], "hosts", "host cn02 is listed twice"),
        ("cn[01-02]", "hosts", "lists 2 hosts, but the job needs 3; allowed: exactly 3 hosts"),
        ([0, True, 2], "hosts[1]", "is no host"),
        ([-1, 1, 2], "hosts[0]", "hosts are numbered from 0"),
        ("", "hosts", "names no host"),
    ],
)
def test_hosts_that_are_none_are_refused(
    cluster: Path, capsys: pytest.CaptureFixture[str], hosts: Any, key: str, words: str
) -> None:
    text = cluster.read_text(encoding="utf-8")
    cluster.write_text(text.replace("ranks = 4", f"ranks = 3\nplacement = {{ hosts = {json.dumps(hosts)} }}"), "utf-8")
    assert execute(["check", str(cluster)]) == 2
    error = capsys.readouterr().err
    assert f"cluster.toml:10: jobs[0].placement.{key}" in error
    assert words in error


def test_a_job_has_as_many_ranks_as_fit_on_the_hosts_that_are_listed_for_it(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = cluster.read_text(encoding="utf-8")
    for listed, ranks in (("", 3), ("\nranks_per_host = 2", 6), ("\nranks = 2\nranks_per_host = 2", 2)):
        hosts = "cn01" if "ranks = 2" in listed else "cn[01-03]"
        given = text.replace("ranks = 4", f'placement = {{ hosts = "{hosts}" }}{listed}')
        cluster.write_text(given, encoding="utf-8")
        assert Scenario.load(cluster).decide().jobs[0].ranks == ranks
    cluster.write_text(text.replace("ranks = 4", 'placement = { hosts = "cn[04-07]" }'), encoding="utf-8")
    assert execute(["check", str(cluster)]) == 2
    words = '"cn[04-07]": the fabric has no hosts with these 4 names; allowed: the 4 hosts'
    assert words in capsys.readouterr().err
    cluster.write_text(text.replace("ranks = 4", 'hosts = "cn[01-03]"'), encoding="utf-8")
    assert execute(["check", str(cluster)]) == 2
    assert "is a key of placement: placement = { hosts = ... }" in capsys.readouterr().err


def test_options_and_studies_name_hosts_too(cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain = cluster.read_text(encoding="utf-8").replace('[placement]\nname = "linear"\n', "")
    cluster.write_text(plain, encoding="utf-8")
    assert execute(["place", str(cluster), "--slurm", "--set", "placement.hosts=login_node,cn[01-03]"]) == 0
    assert capsys.readouterr().out == "all_to_all login_node,cn[01-03]\n"
    assert execute(["place", str(cluster), "--slurm", "--set", "placement.hosts=cn[01-04]"]) == 2
    assert "--set placement.hosts=cn[01-04]: placement.hosts" in capsys.readouterr().err
    study = tmp_path / "study.toml"
    study.write_text(
        'scenario = "cluster.toml"\nplacements = [{ hosts = "cn[01-03],login_node" }, { hosts = ["cn09", 1, 2, 3] }]\n',
        encoding="utf-8",
    )
    assert execute(["study", str(study), "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert 'study.toml:2: placements[1].hosts = "cn09": the fabric has no host with this name' in error


def test_python_takes_names_where_it_takes_numbers() -> None:
    fabric = Fabric.build({"topology": "torus", "params": {"sides": [4, 4]}, "routing": "dimension_order"})
    assert fabric.route("host3", "host12") == fabric.route(3, 12)
    assert fabric.host_numbers(["host[2-4]", 7]) == [2, 3, 4, 7]
    with pytest.raises(ScenarioError, match=r'hosts = "host16": the fabric has no host with this name'):
        fabric.host_numbers("host16")


def test_background_jobs_share_the_hosts_of_a_list() -> None:
    tables: dict[str, Any] = {
        "fabric": {"topology": "fat_tree", "hosts": 32},
        "jobs": [{"workload": "all_to_all", "ranks": 4, "placement": {"hosts": "host[0-2],host5"}}],
    }
    kinds = [{"workload": "uniform_random", "hosts": 4}]
    background = {"fill": 0.5, "jobs": kinds, "placement": {"hosts": "host[8-31]"}}
    jobs = Scenario(**tables, background=background).decide().jobs
    taken = [host for job in jobs[1:] for host in job.hosts]
    assert jobs[0].hosts == (0, 1, 2, 5)
    assert set(taken) <= set(range(8, 32))
    assert len(taken) == len(set(taken)) == 14
    with pytest.raises(ScenarioError, match=r'background\.placement\.hosts = "host32"'):
        Scenario(**tables, background={**background, "placement": {"hosts": "host[8-32]"}}).decide()
    with pytest.raises(ScenarioError, match=r"background\.placement\.hosts: host host5 is in jobs\[0\]"):
        Scenario(**tables, background={**background, "placement": {"hosts": "host[5-31]"}}).decide()


def test_names_of_a_fabric_are_prepared_once_for_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each job's own preparation took most of the time to set up hundreds of jobs on a large fabric."""
    prepared = [Mock(wraps=getattr(hosts, name)) for name in ("slurm_names", "shortened")]
    for name, mock in zip(("slurm_names", "shortened"), prepared, strict=True):
        monkeypatch.setattr(hosts, name, mock)
    hosts._numbers.cache_clear()
    workload = {"name": "all_to_all", "compute": "1 us", "message_size": "1 KiB"}
    jobs = [
        {"name": f"job{at}", "ranks": 2, "workload": workload, "placement": {"hosts": [2 * at, f"host{2 * at + 1}"]}}
        for at in range(8)
    ]
    Scenario(duration="1 us", fabric={"topology": "fat_tree", "hosts": 16}, jobs=jobs).resolve()
    assert [mock.call_count for mock in prepared] == [1, 0]
