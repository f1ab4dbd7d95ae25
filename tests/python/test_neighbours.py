"""Jobs of a cluster that share cables: hand-computed estimates, counts against routes, and inputs that are wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from fairlane.cli.main import execute
from fairlane.core.errors import ScenarioError
from fairlane.learn.advice.allocations import NodeMap, moment, read_allocations
from fairlane.learn.advice.sharing import Bundles, neighbours

LEONARDO = Path(__file__).parent.parent.parent / "examples" / "leonardo"
MAP = "node,rack,cell,leaf_switch\n" + "".join(
    f"{cell}{number},1,{cell},{cell}-{(number - 1) // 4}\n" for cell in "ab" for number in range(1, 9)
)
"""Two cells of two leaves of four nodes, so two spines of a cell and two cables between the cells."""
JOBS = "job,hosts,nodes\nx,4,a1 a2 b1 b2\ny,4,a3 a4 b3 b4\nz,2,a1 a5\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    jobs, nodes = tmp_path / "jobs.csv", tmp_path / "map.csv"
    jobs.write_text(JOBS, encoding="utf-8")
    nodes.write_text(MAP, encoding="utf-8")
    return jobs, nodes


def test_waiting_and_slowdown_are_those_computed_by_hand(files: tuple[Path, Path]) -> None:
    """Each node sends 100 Gb/s; two thirds leave leaf and cell: 133 of 400 Gb/s on six bundles, a third of all.

    Alone a message waits 6 / 3 * (1/3) / (2 * 2/3) = 0.5 packets, with the other job 6 / 3 * (2/3) / (2 * 1/3) = 2.
    """
    found = neighbours(*files, moves=2)
    assert (found.jobs, found.left_out) == ({"x": 4, "y": 4}, 1)
    first, second = found.pairs
    assert {(first.victim, first.aggressor), (second.victim, second.aggressor)} == {("x", "y"), ("y", "x")}
    assert first.cables == {"up": 4, "down": 4, "global": 4}
    assert (first.utilisation, first.by_aggressor) == pytest.approx((2 / 3, 1 / 3))
    assert (first.harm.slowdown, first.harm.waiting) == pytest.approx((1.0, 1.5))
    assert (found.moves[0].all_before.slowdown, found.moves[0].all_before.waiting) == pytest.approx((1.0, 2.0))


def test_jobs_that_ask_for_more_than_there_is_are_slowed_down(files: tuple[Path, Path]) -> None:
    found = neighbours(*files, load=1.0)
    assert found.pairs[0].harm.slowdown == pytest.approx(4 / 3)
    # A level of its own guarantees half of a cable, of which the job asks for two thirds.
    assert found.moves[0].own_level.slowdown == pytest.approx(4 / 3)


def test_a_job_moved_to_one_leaf_needs_no_cables(files: tuple[Path, Path]) -> None:
    move = neighbours(*files).moves[0]
    assert move.place in (("a5", "a6", "a7", "a8"), ("b5", "b6", "b7", "b8"))
    assert move.all_after is not None
    assert (move.all_after.slowdown, move.all_after.waiting) == (1.0, 0.0)
    assert move.elsewhere == move.all_after


def test_nobody_is_moved_to_a_place_that_is_worse() -> None:
    found = neighbours(
        LEONARDO / "allocations.csv.xz", LEONARDO / "nodes.csv.xz", assignments=["preset=leonardo"], moves=40
    )
    assert len(found.moves) == 40
    kept = [move for move in found.moves if not move.place]
    assert kept
    assert all(move.all_after is None for move in kept)
    taken = {host for hosts in found.sharing.jobs.values() for host in hosts}
    rates, hosts = (
        found.sharing.bundles.rates,
        {name: at for at, name in enumerate(found.sharing.bundles.fabric.host_names)},
    )
    for move in found.moves:
        if move.place:
            before, after, there = move.all_before, move.all_after, [hosts[name] for name in move.place]
            assert after is not None
            assert (after.slowdown, after.waiting) < (before.slowdown, before.waiting)
            assert len(set(there) - taken) == found.jobs[move.pair.victim]
            assert {rates[at] for at in there} <= {rates[at] for at in found.sharing.jobs[move.pair.victim]}


def test_own_level_leaves_only_the_packet_in_transmission(files: tuple[Path, Path]) -> None:
    """(1/3) / 2 / (1 - 1/3) on each of six bundles, by a third of the messages."""
    assert neighbours(*files).moves[0].own_level.waiting == pytest.approx(6 / 3 * 0.25)


def test_moments_are_disjoint_and_together_all_jobs(files: tuple[Path, Path]) -> None:
    jobs, outside = read_allocations(LEONARDO / "allocations.csv.xz", NodeMap.read(LEONARDO / "nodes.csv.xz"))
    assert len(jobs) + len(outside) == 2215
    assert {node[:3] for job in outside for node in job.nodes} == {"viz"}
    first, second = moment(jobs), moment(jobs, 2)
    for chosen in (first, second):
        nodes = [node for job in chosen for node in job.nodes]
        assert len(nodes) == len(set(nodes))
    taken = {node for job in first for node in job.nodes}
    assert not {job.job for job in first} & {job.job for job in second}
    assert all(taken.intersection(job.nodes) for job in second)
    cluster = NodeMap.read(files[1])
    with pytest.raises(ScenarioError, match="--moment = 3: all jobs are in earlier ones; allowed: 1 to 2"):
        moment(read_allocations(files[0], cluster)[0], 3)


def test_a_job_may_have_all_nodes_of_a_large_cluster(tmp_path: Path) -> None:
    names = [f"frontier{number:05}" for number in range(10_000)]
    (tmp_path / "nodes.csv").write_text("node,cell,leaf_switch\n" + "".join(f"{name},1,1\n" for name in names))
    (tmp_path / "jobs.csv").write_text(f"job,nodes\n1,{' '.join(names)}\n")
    ((job,), outside) = read_allocations(tmp_path / "jobs.csv", NodeMap.read(tmp_path / "nodes.csv"))
    assert (job.nodes, outside) == (tuple(names), [])
    (tmp_path / "jobs.csv").write_text("job,nodes\r1,frontier00001\r")
    with pytest.raises(ScenarioError, match=r"jobs\.csv:1: not CSV: new-line character"):
        read_allocations(tmp_path / "jobs.csv", NodeMap.read(tmp_path / "nodes.csv"))


def test_bundles_carry_what_the_routes_of_all_messages_carry() -> None:
    """The sum over the cables of a bundle does not depend on which of them a route takes."""
    cluster = NodeMap.read(LEONARDO / "nodes.csv.xz")
    fabric = cluster.fabric(["preset=leonardo"])
    bundles = Bundles(fabric, list(cluster.cells))
    size, switches = fabric.plan["switches"], fabric.switches
    begin, end = (fabric.links[key].astype(np.int64) for key in ("from_switch", "to_switch"))
    level = np.array(list(fabric.levels))
    jobs = moment(read_allocations(LEONARDO / "allocations.csv.xz", cluster)[0])
    for job in sorted(jobs, key=lambda job: -len(job.nodes))[10:60:7]:
        hosts = [cluster.hosts[node] for node in job.nodes]
        sent = 0.5 * bundles.rates[hosts]
        traffic = np.repeat(sent[:, None], len(hosts), axis=1) / (len(hosts) - 1)
        np.fill_diagonal(traffic, 0)
        loads = fabric.loads(hosts, traffic)
        expected = np.zeros(bundles.count)
        for link in np.flatnonzero((loads > 0) & (begin >= 0) & (end >= 0)).tolist():
            a, b = int(begin[link]), int(end[link])
            if a // size != b // size:
                at = 2 * switches + a // size * bundles.cells + b // size
            else:
                at = a if level[a] == 1 else switches + b
            expected[at] += loads[link]
        found, total = bundles.traffic(hosts, 0.5)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        assert total == pytest.approx(sent.sum())


def test_the_command_prints_and_writes_the_same(
    files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["advise", "--allocations", str(files[0]), "--nodes", str(files[1])]
    assert execute([*arguments, "--out", str(tmp_path / "all.json")]) == 0
    text = capsys.readouterr().out
    assert "2 jobs on 8 of 16 nodes; 1 job of the file left out" in text
    assert "1 of 1 pairs of jobs share cables" in text
    assert execute([*arguments, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data == json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert data["assumed"]["load"] == 0.5
    assert [pair["harm"]["waiting"] for pair in data["pairs"]] == pytest.approx([1.5, 1.5])
    assert len(data["cables"]) == 6


@pytest.mark.parametrize(
    ("of", "text", "expected"),
    [
        ("jobs", "", "jobs.csv:1: the file is empty; allowed: job, nodes, hosts"),
        ("jobs", "job,nodes\n", "jobs.csv: lists no jobs"),
        ("jobs", "job,hosts\nx,4\n", "jobs.csv:1: nodes: missing column"),
        (
            "jobs",
            "job,node\nx,a1\n",
            'jobs.csv:1: node: unknown column; allowed: job, nodes, hosts; did you mean "nodes"?',
        ),
        ("jobs", "job,nodes\nx,a1 a33\n", 'jobs.csv:2: nodes = "a33": '),
        ("jobs", "job,nodes\nx,c1 c2\ny,c3\n", 'jobs.csv:2: nodes = "c1": '),
        ("jobs", "job,nodes\nx,a1 aa3\n", 'has no such node; did you mean "a3"?'),
        ("jobs", "job,nodes\nx,a1 a2 a1\n", 'jobs.csv:2: nodes = "a1": job x has the node twice'),
        ("jobs", "job,hosts,nodes\nx,3,a1 a2\n", 'jobs.csv:2: hosts = "3": the line has 2 nodes; allowed: 2'),
        ("jobs", "job,nodes\nx,a1\nx,a2\n", 'jobs.csv:3: job = "x": duplicate job name, as on line 2'),
        ("jobs", "job,nodes\nx,a1,a2\n", "jobs.csv:2: has 3 cells, and the header 2"),
        ("map", "", "map.csv:1: the file is empty"),
        ("map", "node,leaf_switch\na1,l\n", "map.csv:1: cell: missing column; allowed: node, cell, leaf_switch, rack"),
        ("map", "node,cell,leaf_switch\na1,,l\n", "map.csv:2: cell: a1 has none"),
        ("map", "node,cell,leaf_switch\na1,a,l\na1,a,l\n", 'map.csv:3: node = "a1": the node is on line 2 already'),
        ("map", "node,cell,leaf_switch\na1,a,l\na2,b,l\n", 'map.csv:3: cell = "b": the leaf switch is in cell a'),
    ],
)
def test_what_is_wrong_is_named(
    of: str, text: str, expected: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    files[of == "map"].write_text(text, encoding="utf-8")
    assert execute(["advise", "--allocations", str(files[0]), "--nodes", str(files[1])]) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "FILE: missing: a scenario, or --allocations with --nodes"),
        (["--nodes", "map.csv"], "--allocations: missing"),
        (["x.toml", "--load", "0.5"], "--load = 0.5: goes with --allocations"),
        (["--allocations", "a", "--nodes", "b", "--length", "1 ms"], '--length = "1 ms": goes with a scenario'),
    ],
)
def test_options_of_scenarios_and_of_clusters_are_apart(
    arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["advise", *arguments]) == 2
    assert expected in capsys.readouterr().err
