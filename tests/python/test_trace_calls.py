"""Traces with calls that cannot be simulated: described with counts, refused before a simulation by check and run."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.cli.main import execute
from fairlane.model.workload.trace import read_trace
from otf2_archive import Archive, collective, recv, send

TRACES = Path(__file__).parent.parent / "data" / "traces"


def scenario(folder: Path, trace: Path, more: str = "") -> Path:
    file = folder / "scenario.toml"
    file.write_text(f'[fabric]\ntopology = "fat_tree"\nhosts = 8\n[[jobs]]\ntrace.path = "{trace}"\n{more}\n')
    return file


def refusals(capsys: pytest.CaptureFixture[str], file: Path) -> list[str]:
    """What ``check`` and ``run`` have against a scenario, which is the same; nothing is written."""
    before = sorted(file.parent.rglob("*"))
    assert execute(["check", str(file)]) == 2
    checked = capsys.readouterr()
    assert execute(["run", str(file), "--out", str(file.parent / "run")]) == 2
    ran = capsys.readouterr()
    assert (checked.out, ran.out) == ("", "")
    assert checked.err == ran.err
    assert sorted(file.parent.rglob("*")) == before
    return checked.err.splitlines()


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """An archive of four ranks with calls of which OTF2 records no bytes, among others of which it does."""
    archive = Archive(tmp_path / "mixed", 4)
    archive.everyone("MPI_Init")
    for _ in range(3):
        archive.everyone("MPI_Allreduce", *collective("ALLREDUCE", archive.world, 64, 64))
        archive.everyone("MPI_Iallreduce")
        archive.everyone("MPI_Wait")
    archive.everyone("MPI_Neighbor_alltoall")
    archive.call(0, "MPI_Send", send(2, archive.world, 7, 1000))
    archive.call(2, "MPI_Recv", recv(0, archive.world, 7, 1000))
    archive.call(3, "MPI_File_open")
    archive.call(3, "MPI_Put")
    return archive.close()


def test_an_archive_with_calls_that_cannot_be_simulated_is_described(
    mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["trace", "describe", "--json", str(mixed)]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["ranks"], found["p2p_messages"], found["p2p_bytes"]) == (4, 1, 1000)
    assert found["iteration_collectives"] == {"allreduce": {"calls": 12, "ranks": 4}}
    keys = ("call", "count", "ranks", "first_rank", "first_record")
    # Init, Allreduce and the call itself: its enter is the seventh event of a rank.
    assert [tuple(entry[key] for key in keys) for entry in found["unsupported"]] == [
        ("MPI_Iallreduce", 12, 4, 0, 7),
        ("MPI_Neighbor_alltoall", 4, 4, 0, 27),
        ("MPI_File_open", 1, 1, 3, 29),
        ("MPI_Put", 1, 1, 3, 31),
    ]
    assert execute(["trace", "describe", str(mixed)]) == 0
    text = capsys.readouterr().out
    assert (
        "Cannot be simulated:\n  MPI_Iallreduce: 12 calls of 4 ranks, first in rank 0, record 7: the archive " in text
    )
    assert re.search(r"MPI_Iallreduce +12 +12 cannot be simulated", text)


def test_check_and_run_refuse_with_the_same_list(
    mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = refusals(capsys, scenario(tmp_path, mixed))
    assert len(lines) == 4
    assert all(
        'scenario.toml:5: jobs[0].trace.path = "' in line and ": cannot be simulated: MPI_" in line for line in lines
    )


def test_calls_that_cannot_be_simulated_are_left_out_on_demand(
    mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    some = scenario(tmp_path, mixed, 'trace.exclude = ["MPI_File_*", "MPI_Iallreduce"]')
    assert [line.partition("simulated: ")[2].split(":")[0] for line in refusals(capsys, some)] == [
        "MPI_Neighbor_alltoall",
        "MPI_Put",
    ]
    most = 'trace.exclude = ["MPI_File_*", "MPI_Iallreduce", "MPI_Neighbor_*", "MPI_Put"]'
    whole = scenario(tmp_path, mixed, f"{most}\ntrace.repeat = false")
    assert execute(["check", str(whole)]) == 0
    left_out = "12 MPI_Iallreduce, 4 MPI_Neighbor_alltoall, 1 MPI_File_open, 1 MPI_Put"
    note = f"note: job 'traces' leaves out of its trace: {left_out}\n"
    assert note in capsys.readouterr().out
    simulation = Simulation(Scenario.load(whole))
    assert simulation.run_for("10 ms")
    table = simulation.table("calls")
    counts = dict(table.select("call", "count").iter_rows())
    assert {call: count for call, count in counts.items() if count} == {"allreduce": 12, "recv": 1, "send": 1}


def test_what_need_not_be_left_out_is_refused(mixed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = '"MPI_File_open", "MPI_Iallreduce", "MPI_Neighbor_alltoall", "MPI_Put"'
    (line,) = refusals(capsys, scenario(tmp_path, mixed, f'trace.exclude = [{calls}, "MPI_Ialreduce"]'))
    assert (
        'jobs[0].trace.exclude[4] = "MPI_Ialreduce": the trace has no such call that cannot be simulated; allowed: '
        in line
    )
    assert 'did you mean "MPI_Iallreduce"?' in line


def test_a_trace_that_can_be_simulated_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["trace", "describe", str(TRACES / "testtrace-4.dumpi")]) == 0
    assert "Every recorded call can be simulated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("iteration", "words"),
    [
        (
            'collective = "bcast"',
            'jobs[0].trace.iteration.collective = "bcast": 4 of 4 ranks never call it, so they have no iterations; '
            "allowed: what all ranks have: allreduce (4 calls), barrier (4 calls)",
        ),
        (
            'region = "MPI_Sendrecv"',
            'jobs[0].trace.iteration.region = "MPI_Sendrecv": 4 of 4 ranks never enter it, so they have no iterations; '
            "allowed: what all ranks have: ",
        ),
        (
            'region = "MPI_Alreduce"',
            'jobs[0].trace.iteration.region = "MPI_Alreduce": 4 of 4 ranks never enter it, so they have no iterations; '
            "allowed: what all ranks have: MPI_Allreduce (4 calls), ",
        ),
    ],
)
def test_iterations_that_no_rank_has_are_refused_with_what_is_recorded(
    iteration: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TRACES / "testtrace-4.dumpi", tmp_path / "trace")
    (line,) = refusals(capsys, scenario(tmp_path, tmp_path / "trace", f"trace.iteration = {{ {iteration} }}"))
    assert words in line, line


def test_a_collective_that_some_ranks_never_call_bounds_no_iterations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = Archive(tmp_path / "some", 3)
    pair = archive.comm("pair", range(2))
    archive.everyone("MPI_Barrier", *collective("BARRIER", archive.world, 0, 0))
    for rank in range(2):
        archive.call(rank, "MPI_Allgather", *collective("ALLGATHER", pair, 16, 16))
    file = scenario(tmp_path, archive.close(), 'trace.iteration = { collective = "allgather" }')
    (line,) = refusals(capsys, file)
    assert "1 of 3 ranks never call it" in line
    assert "what all ranks have: barrier (3 calls)" in line
    file = scenario(tmp_path, file.parent / "some", 'trace.iteration = { region = "MPI_Algather" }')
    (line,) = refusals(capsys, file)
    assert "never enter it" in line
    assert "MPI_Allgather (" not in line, "not all ranks have it"


def test_messages_between_groups_are_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "between", 2)
    between = archive.between("between", [0], [1])
    archive.call(0, "MPI_Send", send(0, between, 7, 1000))
    archive.call(1, "MPI_Recv", recv(0, between, 7, 1000))
    refused = read_trace(archive.close()).describe()["unsupported"]
    assert [entry["call"] for entry in refused] == ["MPI_Recv", "MPI_Send"]
    assert all("is an intercommunicator" in entry["reason"] for entry in refused)


def test_ranks_that_a_communicator_does_not_have_are_named(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "outside", 3)
    nobody, others = archive.comm("nobody", []), archive.comm("others", [1, 2])
    archive.call(0, "MPI_Send", send(9, archive.world, 7, 1000))
    archive.call(0, "MPI_Recv", recv(3, archive.world, 7, 1000))
    archive.call(0, "MPI_Allgather", *collective("ALLGATHER", nobody, 8, 8))
    archive.everyone("MPI_Barrier", *collective("BARRIER", others, 0, 0))
    refused = {entry["call"]: entry for entry in read_trace(archive.close()).describe()["unsupported"]}
    assert {call: entry["count"] for call, entry in refused.items()} == {
        "MPI_Allgather": 1,
        "MPI_Barrier": 1,
        "MPI_Recv": 1,
        "MPI_Send": 1,
    }
    assert "rank 9 of communicator 0, which has 3 ranks" in refused["MPI_Send"]["reason"]
    assert "this rank is not in communicator" in refused["MPI_Allgather"]["reason"]


def test_communication_by_other_threads_of_a_rank_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = Archive(tmp_path / "threads", 2)
    archive.everyone("MPI_Barrier", *collective("BARRIER", archive.world, 0, 0))
    archive.thread(
        0, *[("MPI_Send", send(1, archive.world, 7, 1000))] * 3, ("MPI_Test", ("MpiRequestTest", {"request_id": 1}))
    )
    archive.thread(1)
    archive.call(1, "MPI_Recv", recv(0, archive.world, 7, 1000))
    trace = archive.close()
    (line,) = refusals(capsys, scenario(tmp_path, trace))
    assert "MPI_Send: 3 calls of 1 rank, first in rank 0, record 2: a thread other than the main" in line
    description = read_trace(trace).describe()
    assert description["p2p_messages"] == 0
    assert description["calls"]["MPI_Send"] == 3
    assert "MPI_Test" not in description["calls"], "it does not communicate"


def test_a_trace_without_operations_cannot_be_repeated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = Archive(tmp_path / "idle", 2)
    archive.call(0, "MPI_Send", send(0, archive.world, 7, 1000))
    archive.call(0, "MPI_Recv", recv(0, archive.world, 7, 1000))
    trace = archive.close()
    (line,) = refusals(capsys, scenario(tmp_path, trace))
    assert "1 of 2 ranks wait for nothing, so the trace would be repeated without end" in line
    assert execute(["check", str(scenario(tmp_path, trace, "trace.repeat = false"))]) == 0


def test_a_description_follows_the_files(tmp_path: Path) -> None:
    for messages in (1, 2):
        archive = Archive(tmp_path / "trace", 2)
        for _ in range(messages):
            archive.call(0, "MPI_Send", send(1, archive.world, 7, 1000))
            archive.call(1, "MPI_Recv", recv(0, archive.world, 7, 1000))
        assert read_trace(archive.close()).describe()["p2p_messages"] == messages
        shutil.rmtree(tmp_path / "trace")


def test_a_number_of_ranks_that_the_files_do_not_have_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(TRACES / "testtrace-4.dumpi", tmp_path / "trace")
    meta = tmp_path / "trace" / "testtrace.meta"
    meta.write_text("numprocs=4294967295\nfileprefix=testtrace\n")
    (line,) = refusals(capsys, scenario(tmp_path, tmp_path / "trace"))
    assert "testtrace-0004.bin: missing; " in line
    assert execute(["trace", "describe", str(meta)]) == 2
