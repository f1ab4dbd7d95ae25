"""Communication patterns: the matrix counted by hand, the verdict on workloads and recorded traces, the commands."""

import csv
import json
import os
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairlane import _core
from fairlane.cli.main import execute
from fairlane.core.errors import RunError
from fairlane.model.pattern import (
    Pattern,
    Traffic,
    analyse,
    communities,
    evidence,
    grids,
    judge,
    neighbour_bytes,
    observe,
    program_of,
    unit_rows,
)
from fairlane.model.scenario.models import Job

TRACES = Path(__file__).parents[1] / "data" / "traces"


def pattern(workload: Any, ranks: int) -> Pattern:
    return analyse(program_of(Job.model_validate({"workload": workload, "ranks": ranks}).source, ranks))


def recorded(path: Path) -> Pattern:
    return analyse(program_of(Job.model_validate({"trace": {"path": path}}).source, 0))


def traffic_of(matrix: np.ndarray[Any, Any]) -> Traffic:
    nothing = np.zeros_like(matrix)
    return Traffic(np.stack([matrix, nothing]), np.stack([matrix > 0, nothing]).astype(np.int64), {})


def test_every_message_is_counted_once_with_its_payload() -> None:
    builder = _core.ProgramBuilder(3)
    for size in (0, 100, 100, 2_000_000):  # the last is cut into packets, and waits for no rendezvous
        builder.send(0, 1, size)
        builder.recv(1, 0)
    builder.send(2, 0, 7, synchronous=True)
    builder.recv(0, 2)
    for rank in range(3):
        builder.collective(rank, "alltoall", 50)
    found = observe(builder.build())
    assert found.bytes[0].tolist() == [[0, 2_000_200, 0], [0, 0, 0], [7, 0, 0]]
    assert found.messages[0].tolist() == [[0, 4, 0], [0, 0, 0], [1, 0, 0]]
    assert found.sizes["point to point"] == {0: 1, 7: 1, 100: 2, 2_000_000: 1}
    assert found.bytes[1].sum() == 3 * 2 * 50
    assert found.sent.sum() == found.received.sum() == found.total.sum()
    assert found.collective_share == 300 / 2_000_507


def test_a_program_that_gets_stuck_is_told_so() -> None:
    builder = _core.ProgramBuilder(2)
    builder.recv(0, 1)
    with pytest.raises(RunError):
        observe(builder.build())


def test_one_rank_and_silence_are_unclear() -> None:
    assert analyse(_core.ProgramBuilder(1).build()).verdict.kind == "unclear"
    silent = analyse(_core.ProgramBuilder(9).build())
    assert (silent.verdict.kind, silent.verdict.reason, silent.evidence) == ("unclear", "no bytes are sent", None)


def test_grids_are_all_factorisations() -> None:
    assert set(grids(12, 3)) == {(12,), (2, 6), (6, 2), (3, 4), (4, 3), (2, 2, 3), (2, 3, 2), (3, 2, 2)}
    assert all(prod(sides) == 64 for sides in grids(64, 4))


@pytest.mark.parametrize(("sides", "periodic"), [((4, 4), False), ((6, 5), True), ((3, 4, 5), True)])
def test_grids_are_recognised_and_chance_is_the_share_of_pairs(sides: tuple[int, ...], periodic: bool) -> None:
    ranks = prod(sides)
    at = np.stack(np.unravel_index(np.arange(ranks), sides), axis=1)
    apart = np.abs(at[:, None] - at[None])
    near = (np.minimum(apart, np.array(sides) - apart) if periodic else apart).sum(axis=2) == 1
    verdict, found = judge(traffic_of(near * 1000))
    assert found is not None
    assert (verdict.kind, found.grid, found.grid_share) == ("nearest neighbour", sides, 1.0)
    around = np.minimum(apart, np.array(sides) - apart).sum(axis=2) == 1
    assert found.grid_chance == pytest.approx(around.sum() / (ranks * (ranks - 1)))


def test_units_within_and_pairs_beyond_are_hybrid_with_the_units_size() -> None:
    ranks, unit = 72, 8
    block = np.arange(ranks) // unit
    matrix = np.where(block[:, None] == block[None], 100, 1)
    matrix[np.arange(ranks), np.random.default_rng(1).permutation(ranks)] += 200
    np.fill_diagonal(matrix, 0)
    verdict, found = judge(traffic_of(matrix))
    assert (verdict.kind, verdict.unit) == ("hybrid", unit)
    assert found is not None
    inside = matrix[block[:, None] == block[None]].sum()
    assert found.unit_share == pytest.approx(inside / matrix.sum())
    assert found.unit_chance == pytest.approx((unit - 1) / (ranks - 1))


def test_communities_are_found_whatever_the_numbers_of_their_ranks() -> None:
    of = np.arange(24) % 3
    matrix = np.where(of[:, None] == of[None], 50, 1)
    np.fill_diagonal(matrix, 0)
    found = communities(traffic_of(matrix))
    assert [set(members) for members in found.members] == [set(range(first, 24, 3)) for first in range(3)]
    assert found.inside == pytest.approx(3 * 8 * 7 * 50 / matrix.sum())
    assert found.modularity > 0.5


def test_the_median_ranks_partners_are_those_that_carry_the_bulk() -> None:
    matrix = np.zeros((10, 10), np.int64)
    for rank in range(10):
        matrix[rank, (rank + 1) % 10] = 90
        matrix[rank, (rank + 5) % 10] = 10
    found = evidence(traffic_of(matrix))
    # Of 200 bytes 90 go to each side and 20 to the opposite rank: the two at the sides have exactly nine tenths.
    assert (found.partners, found.bulk_partners) == (3, 2)


WORKLOADS = [
    ("flood_pairs", 64, "nearest neighbour", 2),
    ("ping_pong", 64, "nearest neighbour", 2),
    ("random_pairs", 64, "nearest neighbour", 2),
    ("nearest_neighbor", 64, "nearest neighbour", 5),
    ("mini_paradis", 100, "nearest neighbour", 5),
    ("mini_amg", 64, "nearest neighbour", None),
    ("pf3d", 64, "hybrid", 8),
    ("pf3d", 100, "hybrid", 10),
    ("all_to_all", 64, "many-to-many", None),
    ("uniform_random", 64, "many-to-many", None),
]


@pytest.mark.parametrize(("name", "ranks", "kind", "unit"), WORKLOADS)
def test_verdicts_on_the_workloads(name: str, ranks: int, kind: str, unit: int | None) -> None:
    verdict = pattern(name, ranks).verdict
    assert verdict.kind == kind
    assert unit is None or verdict.unit == unit


RECORDED = {
    "amg-27.tar.zst": ("nearest neighbour", 11),
    "boxlib_mg-125.tar.zst": ("hybrid", 16),
    "comd-64.tar.zst": ("nearest neighbour", 6),
    "crystal-100.tar.zst": ("hybrid", 25),
    "crystal_test-100.tar.zst": ("hybrid", 25),
    "gpcnet_congestors-32.tar.zst": ("nearest neighbour", 5),
    "lulesh-64.tar.zst": ("nearest neighbour", 7),
    "npb_ft-64.tar.zst": ("hybrid", 8),
    "npb_lu-64.tar.zst": ("nearest neighbour", 5),
    "npb_mg-64.tar.zst": ("nearest neighbour", 7),
    "osu_alltoall-32.tar.zst": ("many-to-many", None),
    "otf2-amg-27.tar.zst": ("nearest neighbour", 11),
    "stencil4d-32.otf2": ("nearest neighbour", 6),
    "stencil4d-64.otf2": ("nearest neighbour", 7),
    "testtrace-4.dumpi": ("unclear", None),
}
"""What docs/data/patterns.csv records, the verdicts that were not expected among them."""
LARGE = {"amg-216.tar.zst": ("nearest neighbour", 26), "milc-64.tar.zst": ("nearest neighbour", 7)}


@pytest.mark.parametrize("name", RECORDED)
def test_verdicts_on_the_recorded_traces(name: str) -> None:
    verdict = recorded(TRACES / name).verdict
    assert (verdict.kind, verdict.unit) == RECORDED[name]


def test_every_recording_of_mpi_has_its_verdict_in_the_documentation() -> None:
    names = {path.name for path in TRACES.iterdir() if path.suffix in (".zst", ".otf2", ".dumpi")}
    assert {name for name in names if not name.startswith("chakra_")} == set(RECORDED)
    with (Path(__file__).parents[2] / "docs" / "data" / "patterns.csv").open(encoding="utf-8") as file:
        verdicts = {row["recording"].strip("`"): row["class, local unit"] for row in csv.DictReader(file)}
    for name, (kind, unit) in {**RECORDED, **LARGE}.items():
        assert verdicts[name.partition(".")[0]] == f"{kind}{f', {unit}' if unit else ''}"


@pytest.mark.skipif("FAIRLANE_TRACES" not in os.environ, reason="FAIRLANE_TRACES names no folder of large traces")
@pytest.mark.parametrize("name", LARGE)
def test_verdicts_on_large_traces(name: str) -> None:
    verdict = recorded(Path(os.environ["FAIRLANE_TRACES"]) / name).verdict
    assert (verdict.kind, verdict.unit) == LARGE[name]


def test_a_traces_matrix_has_the_messages_that_an_independent_reader_counted() -> None:
    # check.json of the recording: point-to-point messages and bytes, as another program counts them.
    from fairlane.model.workload.trace import unpack

    for name in ("crystal-100", "lulesh-64"):
        folder = unpack(TRACES / f"{name}.tar.zst")
        check = json.loads(next((folder if folder.is_dir() else folder.parent).glob("check.json")).read_text())
        found = recorded(TRACES / f"{name}.tar.zst").traffic
        assert found.messages[0].sum() == check["p2p_messages"]
        assert found.bytes[0].sum() == check["p2p_bytes"]


def test_the_commands_print_draw_and_refuse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "matrix.svg"
    assert execute(["trace", "pattern", str(TRACES / "stencil4d-32.otf2"), "-o", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "nearest neighbour, local unit of 6 ranks" in printed
    assert "receiver" in picture.read_text(encoding="utf-8")
    assert execute(["workload", "pattern", "pf3d", "--ranks", "64", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"]["kind"] == "hybrid"
    assert sum(map(sum, found["matrix"])) == found["bytes"]
    for arguments, words in (
        (["workload", "pattern", "pf4d"], 'did you mean "pf3d"?'),
        (["workload", "pattern", "flood_pairs", "--ranks", "7"], "allowed: an even number of ranks"),
        (["workload", "pattern", "flood_pairs", "--set", "mesage_size=3"], "unknown key"),
        (["workload", "pattern", "flood_pairs", "--ranks", "5000"], "too many for a communication matrix"),
        (["trace", "pattern", str(tmp_path / "none.tar.zst")], "there is no"),
        (["workload", "pattern", "pf3d", "-o", str(tmp_path / "m.gif")], "allowed: .png, .svg, .pdf"),
    ):
        assert execute(arguments) == 2
        assert words in capsys.readouterr().err


def test_neighbours_and_units_are_summed_as_they_are_defined() -> None:
    """Grids and units pair by pair, on random bytes: sides of two, three and more, and units that do not divide."""
    for ranks, seed in ((12, 1), (18, 2), (30, 3)):
        bytes_ = np.random.default_rng(seed).integers(0, 100, (ranks, ranks))
        np.fill_diagonal(bytes_, 0)
        both = (bytes_ + bytes_.T).astype(float)
        for sides in set(grids(ranks, 4)):
            at = np.stack(np.unravel_index(np.arange(ranks), sides))
            apart = np.abs(at[:, :, None] - at[:, None, :])
            around = np.minimum(apart, np.array(sides)[:, None, None] - apart)
            near = (around.sum(axis=0) == 1, apart.max(axis=0) == 1, around.max(axis=0) == 1)
            assert neighbour_bytes(both, sides) == pytest.approx([both[one].sum() for one in near])
        for size, share, _ in unit_rows(both):
            of = np.arange(ranks) // size
            assert share == pytest.approx(both[of[:, None] == of].sum() / both.sum())


def test_names_of_messages_that_are_used_again_are_told_apart() -> None:
    """Many messages of several packets one after the other: each is counted once, with its size."""
    builder = _core.ProgramBuilder(3)
    sizes = [1, 3 * 2**19, 700_000, 2**19, 5]
    for size in sizes * 3:
        for rank in range(3):
            builder.isend(rank, (rank + 1) % 3, size, 0)
            builder.irecv(rank, (rank - 1) % 3, 1)
            builder.wait_all(rank, [0, 1])
    traffic = observe(builder.build())
    ring = np.roll(np.eye(3, dtype=int), 1, axis=1)
    assert (traffic.total == ring * 3 * sum(sizes)).all()
    assert (traffic.messages[0] == ring * 15).all()
    assert traffic.sizes["point to point"] == dict.fromkeys(sorted(sizes), 9)
