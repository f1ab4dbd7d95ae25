"""GOAL schedules and Chakra execution traces: operations that depend on each other, several under way at once."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from fairlane import RunError, Scenario, ScenarioError, Simulation
from fairlane.cli.main import execute
from fairlane.model.workload.trace import read_trace
from otf2_archive import Archive, collective

TRACES = Path(__file__).parent.parent / "data" / "traces"
NS = 1000


def simulated(path: Path, until: str = "1 s", **options: Any) -> Simulation:
    """The trace once, a host for each rank."""
    simulation = Simulation(
        Scenario(
            name="replay",
            fabric={"topology": "fat_tree", "hosts": 8, "levels": 1, "radix": 8},
            mpi={"eager_threshold": "8 KiB"},
            jobs=[{"trace": {"path": path, "repeat": False, **options}}],
        )
    )
    assert simulation.run_for(until)
    return simulation


def ends(simulation: Simulation) -> list[int]:
    return simulation.table("ranks")["finished_at_ps"].to_list()


def goal(folder: Path, *ranks: Sequence[str]) -> Path:
    parts = [f"rank {rank} {{\n" + "\n".join(operations) + "\n}\n" for rank, operations in enumerate(ranks)]
    path = folder / "schedule.goal"
    path.write_text(f"num_ranks {len(ranks)}\n" + "".join(parts))
    return path


RECEIVER = ["m: recv 100000b from 0 tag 1"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How long the sender of 100,000 bytes takes, ps."""
    return ends(simulated(goal(tmp_path_factory.mktemp("alone"), ["m: send 100000b to 1 tag 1"], RECEIVER)))[0]


CALC = 1_000_000  # ns: far longer than the message


@pytest.mark.parametrize(
    ("operations", "calcs", "messages"),
    [
        ([f"a: calc {CALC}", "m: send 100000b to 1 tag 1"], 1, 0),
        ([f"a: calc {CALC}", "m: send 100000b to 1 tag 1", "m requires a"], 1, 1),
        ([f"a: calc {CALC}", "m: send 100000b to 1 tag 1", "a requires m"], 1, 1),
        ([f"a: calc {CALC}", "m: send 100000b to 1 tag 1", "m irequires a"], 1, 0),
        ([f"a: calc {CALC}", f"b: calc {CALC}", "m: send 100000b to 1 tag 1"], 2, 0),
        ([f"a: calc {CALC}", f"b: calc {CALC} cpu 1", "m: send 100000b to 1 tag 1"], 1, 0),
        ([f"a: calc {CALC}", f"b: calc {CALC} cpu 1", "b requires a", "m: send 100000b to 1 tag 1"], 2, 0),
        ([f"a: calc {CALC}", f"b: calc {CALC}", "m: send 100000b to 1 tag 1", "m irequires b"], 2, 0),
        ([f"a: calc {CALC}", "z: calc 0", "z requires a", "m: send 100000b to 1 tag 1", "m requires z"], 1, 1),
    ],
)
def test_work_and_messages_overlap_unless_they_depend(
    operations: list[str], calcs: int, messages: int, alone: int, tmp_path: Path
) -> None:
    sender, _ = ends(simulated(goal(tmp_path, operations, RECEIVER)))
    assert alone < CALC * NS
    # The call of the message takes its overhead from the CPU; the second calc of a stream is begun after it.
    overhead = sender - calcs * CALC * NS - messages * alone
    assert 0 <= overhead < 1000 * NS


def test_time_is_computation_while_a_device_works_else_waiting(alone: int, tmp_path: Path) -> None:
    simulation = simulated(goal(tmp_path, [f"a: calc {CALC}", "m: send 100000b to 1 tag 1", "m requires a"], RECEIVER))
    ranks = simulation.table("ranks")
    assert ranks["compute_ps"][0] == CALC * NS
    assert 0 < ranks["communication_ps"][0] <= alone
    assert (ranks["compute_ps"][1], ranks["communication_ps"][1]) == (0, ends(simulation)[1])


def test_a_chakra_collective_takes_as_long_as_the_mpi_call(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "mpi", 8)
    for rank in range(8):
        archive.call(rank, "MPI_Allreduce", *collective("ALLREDUCE", archive.world, 1 << 20, 1 << 20, 2**32 - 1))
    blocking = ends(simulated(archive.close(), compute_scale=0.0))
    assert ends(simulated(TRACES / "chakra_allreduce-8.tar.zst")) == blocking


def test_a_ring_as_a_custom_collective_has_the_time_of_its_steps() -> None:
    """ASTRA-sim's ring: 7 steps of reduce-scatter, each followed by 7 us of work, and 7 of allgather, 128 KiB each."""
    simulation = simulated(TRACES / "chakra_ring-8.tar.zst")
    step = 131072 * 8 * 10  # ps at 100 Gb/s, without headers and latencies
    work = 7 * 7 * 10**6
    assert 14 * step + work < max(ends(simulation)) < 1.15 * (14 * step + work)
    assert simulation.table("ranks")["compute_ps"].to_list() == [work] * 8


def test_groups_are_given_or_recorded(tmp_path: Path) -> None:
    """One file for all: a collective of a group that its ranks are not in is named with rank and node."""
    groups = tmp_path / "groups.json"
    groups.write_text(json.dumps({"0": list(range(8))}))
    described = read_trace(TRACES / "chakra_allreduce-8.tar.zst").describe()
    assert described["communicators"] == {}
    simulation = simulated(TRACES / "chakra_allreduce-8.tar.zst", groups=groups)
    assert simulation.table("ranks")["finished"].all()
    groups.write_text(json.dumps({"0": [0, 8]}))
    with pytest.raises(ScenarioError, match="group 0 has rank 8, and there are 8 ranks"):
        simulated(TRACES / "chakra_allreduce-8.tar.zst", groups=groups)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"to 1 tag 1": "to 1 tag 2"}, "rank 1, line 7: messages to rank 1 from rank 0 with tag 1: 0 sent, 1 received"),
        ({"m: send": "a requires m\nm: send"}, 'line 4: no operation has the label "m"'),
        ({"tag 1\n}": "tag 1\na requires m\nm requires a\n}"}, "a cycle of dependencies: line 3 after 4 after 3"),
    ],
)
def test_what_cannot_end_is_named_before_the_run(
    change: Mapping[str, str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = goal(tmp_path, ["a: calc 5", "m: send 100000b to 1 tag 1"], RECEIVER)
    for old, new in change.items():
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new, 1))
    scenario = tmp_path / "job.toml"
    scenario.write_text(f'fabric = {{ topology = "fat_tree", hosts = 8 }}\njobs = [{{ trace.path = "{path.name}" }}]\n')
    assert execute(["check", str(scenario)]) == 2
    assert expected in capsys.readouterr().err.replace("\n", " ")


def test_iterations_repeat_and_a_fork_goes_on(tmp_path: Path) -> None:
    path = goal(tmp_path, [f"a: calc {CALC}", "m: send 100000b to 1 tag 1", "m requires a"], RECEIVER)
    scenario = Scenario(
        name="again", fabric={"topology": "fat_tree", "hosts": 8}, jobs=[{"trace": {"path": path}, "name": "job"}]
    )
    simulation = Simulation(scenario)
    simulation.run_for("5.5 ms")
    assert simulation.work()["job"] == 5
    other = simulation.fork()
    for one in (simulation, other):
        one.run_for("5 ms")
    assert simulation.digest() == other.digest()


def test_a_real_trace_of_pytorch_overlaps_what_runs_on_the_gpu() -> None:
    """One rank of a data-parallel step: what runs on the CPU and the streams of the GPU takes 344 ms one by one."""
    described = read_trace(TRACES / "chakra_pytorch-1.tar.zst").describe()
    simulation = simulated(TRACES / "chakra_pytorch-1.tar.zst")
    assert described["cpu_seconds"] == pytest.approx(0.343769)
    (end,) = ends(simulation)
    assert end < described["cpu_seconds"] * 1e12


MATRIX = """Nodes 4
Connections 4
0->1 id 1 start 0 size 2000000 send_done_trigger 7
2->1 id 2 start 0 size 2000000
0->3 id 3 trigger 7 size 2000000
3->2 id 4 start 500000000 size 2000000
trigger id 7 oneshot
"""


def test_flows_of_a_connection_matrix_share_links_and_begin_in_time(tmp_path: Path) -> None:
    """Two flows into host 1 share its link; the flow to host 3 begins when the first has come."""
    path = tmp_path / "flows.cm"
    path.write_text(MATRIX)
    simulation = simulated(path)
    flow = 2_000_000 * 8 * 10  # ps at 100 Gb/s, without headers and latencies
    zero, one, two, three = ends(simulation)
    assert simulation.table("ranks")["compute_ps"].to_list() == [0] * 4
    assert 2 * flow < one < 1.05 * 2 * flow
    # The first flow is there with the second one, half of whose packets it has let pass; then the third crosses alone.
    assert one - flow // 10 < zero < 1.05 * 2 * flow
    assert zero + 500 * NS < three
    start = 500_000_000
    assert start + flow < two < start + 1.05 * flow
    assert int(simulation.table("ranks")["bytes_sent"].sum()) == 4 * 2_000_000


@pytest.mark.parametrize("name", ["chakra_ring-8.tar.zst", "binary_tree-32.goal"])
def test_the_commands_read_graphs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = TRACES / name
    assert execute(["trace", "describe", "--json", str(path)]) == 0
    described = json.loads(capsys.readouterr().out)
    assert execute(["trace", "pattern", "--json", str(path)]) == 0
    pattern = json.loads(capsys.readouterr().out)
    assert pattern["ranks"] == described["ranks"]
    assert (pattern["messages"], pattern["bytes"]) == (described["p2p_messages"], described["p2p_bytes"])


def test_sends_that_wait_for_each_other_are_named(tmp_path: Path) -> None:
    """Above the eager limit a send ends when its receive is posted: here each receive is posted after the send."""
    exchange = ["s: send 100000b to {other}", "r: recv 100000b from {other}", "r requires s"]
    ranks = [[line.format(other=other) for line in exchange] for other in (1, 0)]
    words = r"rank 0 in WaitReport\(send \(line 3\) to 1 with tag 0\); rank 1 in WaitReport\(send \(line 8\)"
    with pytest.raises(RunError, match=words):
        simulated(goal(tmp_path, *ranks))
    assert ends(simulated(goal(tmp_path, *ranks), message_scale=0.01))


def test_work_begins_before_messages_and_a_send_delays_what_follows_it(tmp_path: Path) -> None:
    """A hundred sends take 100 overheads of the CPU; the work of all that time is under way beside them."""
    sends = [f"s{number}: send 100b to 1 tag {number}" for number in range(100)]
    receives = [f"recv 100b from 0 tag {number}" for number in range(100)]
    alone = ends(simulated(goal(tmp_path, sends, receives)))[0]
    assert 10_000 * NS < alone < 30_000 * NS
    assert ends(simulated(goal(tmp_path, [*sends, "a: calc 30000"], receives)))[0] == 30_000 * NS


def test_a_list_of_flows_is_run_once_and_who_only_sends_does_not_repeat(tmp_path: Path) -> None:
    path = tmp_path / "flows.cm"
    path.write_text(MATRIX)
    simulation = Simulation(
        Scenario(name="once", fabric={"topology": "fat_tree", "hosts": 8}, jobs=[{"trace": {"path": path}}])
    )
    assert simulation.run_for("1 s")
    schedule = goal(tmp_path, ["send 5b to 1"], ["recv 5b from 0"])
    again = Scenario(name="again", fabric={"topology": "fat_tree", "hosts": 8}, jobs=[{"trace": {"path": schedule}}])
    with pytest.raises(ScenarioError, match="1 of 2 ranks wait for nothing"):
        again.resolve()


def test_a_group_has_each_rank_once(tmp_path: Path) -> None:
    (tmp_path / "groups.json").write_text(json.dumps({"0": [1, 1]}))
    with pytest.raises(ScenarioError, match="group 0 has a rank twice"):
        simulated(TRACES / "chakra_allreduce-8.tar.zst", groups=tmp_path / "groups.json")


def test_groups_of_a_study_are_found_from_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "sub"
    folder.mkdir()
    (folder / "groups.json").write_text(json.dumps({"0": list(range(8))}))
    (folder / "job.toml").write_text(
        'fabric = { topology = "fat_tree", hosts = 8 }\nduration = "2 ms"\n'
        f'jobs = [{{ trace = {{ path = "{TRACES / "chakra_allreduce-8.tar.zst"}", groups = "groups.json" }} }}]\n'
    )
    (tmp_path / "study.toml").write_text('scenario = "sub/job.toml"\nplacements = 2\n[treatments]\n')
    assert execute(["study", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--quiet"]) == 0


def test_two_schedules_in_a_folder_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a", "b"):
        goal(tmp_path, ["calc 5"]).rename(tmp_path / f"{name}.goal")
    assert execute(["trace", "describe", str(tmp_path)]) == 2
    assert "holds several traces: a.goal and b.goal" in capsys.readouterr().err
