"""Programs that break MPI's rules end the run with exit code 1, and the error names ranks and operations."""

from pathlib import Path

import pytest

from fairlane.cli.main import execute

WORKLOAD = """
from fairlane.model.workload import Rank, Workload

class Broken(Workload):
    def communicate(self, rank: Rank, iteration: int) -> None:
        first, last = rank.index == 0, rank.index == rank.ranks - 1
        {body}
"""
SCENARIO = """
duration = "1 ms"
[fabric]
topology = "fat_tree"
hosts = 8
[[jobs]]
name = "sound"
ranks = 4
workload = {{ name = "flood_pairs", compute = "10 us" }}
[[jobs]]
name = "broken"
ranks = 4
workload = {{ name = "broken.py:Broken", {compute} }}
"""


@pytest.mark.parametrize("compute", ['compute = "10 us"', "compute_share = 0.5"])
@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "rank.send(0, 8, tag=8); rank.recv(1, tag=7) if first else rank.recv(0, tag=9)",
            ["broken", "rank 0 in Recv(from 1, tag 7", "rank 3 in Recv(from 0, tag 9"],
        ),
        (
            "rank.send(1, 1 << 20) if first else rank.recv(0, tag=5)",
            ["broken", "rank 0 in Send(1048576 bytes to 1, tag 0", "rank 1 in Recv(from 0, tag 5"],
        ),
        (
            "rank.wait_all([rank.irecv(None)]) if last else rank.collective('barrier')",
            ["broken", "rank 0 in barrier(", "rank 1 in barrier(", "rank 2 in barrier(", "rank 3 in WaitAll("],
        ),
        (
            "rank.collective('allreduce' if last else 'bcast', 8)",
            ["broken", "collective number 0", "called bcast(", "rank 3 called allreduce("],
        ),
        (
            "rank.collective('bcast', 8, root=int(first))",
            [
                "broken",
                "rank 0 called bcast(8 bytes, communicator 0, root 1)",
                "called bcast(8 bytes, communicator 0, root 0)",
            ],
        ),
        ("rank.collective('allreduce', 8 * (1 + first))", ["broken", "rank 0 called allreduce(", "but rank"]),
        (
            "rank.comm_create(7, [0, 1, 2] if first else [0, 1]) or first and rank.collective('barrier', comm=7)"
            " or rank.index == 1 and rank.collective('barrier', comm=7)",
            ["broken", "called barrier(0 bytes, communicator 7, root 0) among 3 ranks", "root 0) among 2 ranks"],
        ),
        ("rank.send(4, 8) if first else None", ["broken", "rank 0", "Send(8 bytes to 4", "4 ranks"]),
        ("rank.recv(1, comm=9) if first else None", ["broken", "rank 0", "communicator 9)", "no communicator 9"]),
    ],
    ids=[
        "receive",
        "send",
        "stuck collective",
        "kinds",
        "roots",
        "sizes",
        "lists of members",
        "no such rank",
        "no such communicator",
    ],
)
def test_a_broken_program_ends_the_run_with_ranks_and_operations(
    body: str, words: list[str], compute: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(WORKLOAD.format(body=body))
    (tmp_path / "scenario.toml").write_text(SCENARIO.format(compute=compute))
    folder = tmp_path / "run"
    assert execute(["run", str(tmp_path / "scenario.toml"), "--allow-code", "--out", str(folder), "--quiet"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    said = " ".join(err.split())
    assert [word for word in words if word not in said] == [], said
    assert not folder.exists()


def test_a_rank_that_others_leave_behind_does_not_hang_the_calibration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(
        WORKLOAD.format(body="rank.recv(1, tag=7) if first else rank.send(0, 8, tag=8)")
    )
    (tmp_path / "scenario.toml").write_text(SCENARIO.format(compute="compute_share = 0.5"))
    assert execute(["check", str(tmp_path / "scenario.toml"), "--allow-code"]) == 1
    assert "job broken, rank 0 stands still after 0 iterations" in capsys.readouterr().err


def test_an_error_in_a_workloads_own_code_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.py").write_text(WORKLOAD.format(body="rank.wait(5) if last else None"))
    (tmp_path / "scenario.toml").write_text(SCENARIO.format(compute="compute = '1 us'"))
    assert execute(["check", str(tmp_path / "scenario.toml"), "--allow-code"]) == 2
    told = capsys.readouterr().err
    assert "broken.py:7: jobs[1].workload: ValueError: rank 3 has no request 5 under way" in told
