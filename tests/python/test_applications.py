"""The workloads of applications against recordings of them on 64 ranks: who talks to whom, how often, how much.

A recording has its preparation too, and a last verification. So what belongs to the iterations is compared exactly, and
the rest within what the preparation adds, which is said at each comparison.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairlane import Scenario, Simulation, _core
from fairlane.model.fabric.graph import columns
from fairlane.model.pattern import KINDS, Traffic, observe
from fairlane.model.workload import WORKLOADS, JobScript, Kripke, Lu, Mg, Milc, Workload
from fairlane.model.workload.trace import Trace

TRACES = Path(__file__).parents[1] / "data" / "traces"
POINT_TO_POINT, COLLECTIVE = range(len(KINDS))


@cache
def recorded(name: str) -> Traffic:
    return observe(Trace(path=TRACES / f"{name}-64.tar.zst", compute_scale=0, repeat=False).program())


@cache
def written(name: str, iterations: int, ranks: int = 64, **parameters: Any) -> Traffic:
    workload = WORKLOADS[name](**parameters)
    return observe(program(workload, ranks, iterations))


def program(workload: Workload, ranks: int, iterations: int) -> _core.Program:
    return workload.program(JobScript(ranks, iterations=iterations), 0)


def partners(traffic: Traffic, kind: int = POINT_TO_POINT) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = traffic.messages[kind] > 0
    return found


def per_pair(found: Traffic, expected: Traffic, matrix: str) -> NDArray[np.float64]:
    """Ratios, where anything is sent, point to point."""
    a, b = (getattr(traffic, matrix)[POINT_TO_POINT] for traffic in (found, expected))
    ratios: NDArray[np.float64] = a[b > 0] / b[b > 0]
    return ratios


def test_lu_sends_what_the_recording_does() -> None:
    """The recording has ten iterations after one to warm up; the right-hand side is taken three times more."""
    lu, trace = written("lu", 11), recorded("npb_lu")
    assert (partners(lu) == partners(trace)).all()
    sizes = trace.sizes["point to point"]
    # Edges of a plane: as many; 64 ranks share 33 points, so that some have 5 and those at the rim 3 of the interior.
    edges = {size: count for size, count in sizes.items() if 112 < size < 256}
    assert lu.sizes["point to point"][160] == sum(edges.values())
    # Faces, of 4 or 5 points: as many in each evaluation.
    faces = sizes[10560] + sizes[13200]
    assert lu.sizes["point to point"][10560] * 14 == faces * 11
    # No pair is further off than 4 points of 5 in 11 faces of 14.
    ratios = per_pair(lu, trace, "bytes")
    assert ratios.min() > 0.8 * 11 / 14
    assert ratios.max() < 1
    assert per_pair(lu, trace, "messages").min() > 0.97
    assert per_pair(lu, trace, "messages").max() < 1
    assert trace.collective_share < 0.01


def test_ft_transposes_what_the_recording_does() -> None:
    """Six iterations, one to warm up and one before; each has two transposes, of which the warm-up has no checksum."""
    ft, trace = written("ft", 8), recorded("npb_ft")
    assert ft.bytes[POINT_TO_POINT].sum() == trace.bytes[POINT_TO_POINT].sum() == 0
    assert ft.sizes["collective"][8192] == trace.sizes["collective"][8192] == 8 * 2 * 64 * 7
    bulk = 8192 * 8
    a, b = (traffic.bytes[COLLECTIVE] >= bulk for traffic in (ft, trace))
    assert (a == b).all(), "rows and columns are the same ranks"
    assert ft.bytes[COLLECTIVE][a].sum() == pytest.approx(trace.bytes[COLLECTIVE][b].sum(), rel=1e-3)
    # The rest is trees: the checksums, and what the recording broadcasts and splits at first.
    assert ft.total[~a].sum() < 0.002 * ft.total.sum()
    assert trace.total[~b].sum() < 0.002 * trace.total.sum()


def test_mg_exchanges_what_the_recording_does() -> None:
    """Four cycles after one to warm up; the finest grid is exchanged four times more when it is made and measured."""
    mg, trace = written("mg", 5), recorded("npb_mg")
    assert (partners(mg) == partners(trace)).all()
    ours, theirs = mg.sizes["point to point"], trace.sizes["point to point"]
    for side in (16, 8, 4, 2, 1):  # of the cube of a rank: not the finest
        for face in (8 * side * side, 8 * (side + 2) * side, 8 * (side + 2) ** 2):
            if face not in (72, 144):
                assert ours[face] == theirs[face], (side, face)
    assert {ours[face] * 19 for face in (8192, 8704, 9248)} == {theirs[face] * 15 for face in (8192, 8704, 9248)}
    # Where ranks drop out the recording hands over 480 messages of 72 and of 144 bytes more.
    assert theirs[72] - ours[72] == theirs[144] == 480
    ratios = per_pair(mg, trace, "bytes")
    assert ratios.min() > 0.95 * 15 / 19 + 0.05
    assert ratios.max() <= 1
    assert trace.collective_share < 0.01


def test_comd_exchanges_what_the_recording_does() -> None:
    """Fifty steps and one exchange before them."""
    comd, trace = written("comd", 51), recorded("comd")
    assert (comd.bytes[POINT_TO_POINT] == trace.bytes[POINT_TO_POINT]).all()
    assert (comd.messages[POINT_TO_POINT] == trace.messages[POINT_TO_POINT]).all()
    assert comd.sizes["point to point"] == trace.sizes["point to point"]
    # 23 sums instead of 6, most of them before and after the steps.
    assert max(comd.collective_share, trace.collective_share) < 0.001


MILC_ITERATIONS = 8
"""Of the conjugate gradient with a sum of 8 bytes each, in the recording of MILC on 64 ranks."""
MILC_FACES = {1: 32, 2: 32, 4: 16, 12: 16, 16: 16, 48: 16}
"""Faces, of 1536 bytes, that rank 0 sends to its neighbours in these."""


def test_milc_exchanges_what_the_recording_does() -> None:
    """Counted in the recording, of 4 x 4 x 4 x 4 points a rank in double precision; it is too large to be here."""
    milc = observe(program(Milc(iterations=1, message_size="1536 B"), 64, MILC_ITERATIONS))
    assert milc.sizes["point to point"] == {1536: 8192, 3 * 1536: 8192}
    assert milc.messages[POINT_TO_POINT].sum(axis=1).tolist() == [2 * 128] * 64
    assert {rank: count // 2 for rank, count in enumerate(milc.messages[POINT_TO_POINT][0].tolist()) if count} == (
        MILC_FACES
    )
    # Sums of 8 bytes by recursive doubling: six messages a rank.
    assert milc.sizes["collective"] == {8: MILC_ITERATIONS * 64 * 6}


@pytest.mark.skipif("FAIRLANE_TRACES" not in os.environ, reason="FAIRLANE_TRACES names no folder of large traces")
def test_milc_has_the_neighbours_and_faces_of_the_recording() -> None:
    path = Path(os.environ["FAIRLANE_TRACES"]) / "milc-64.tar.zst"
    trace = observe(Trace(path=path, compute_scale=0, repeat=False).program())
    milc = observe(program(Milc(iterations=1, message_size="1536 B"), 64, MILC_ITERATIONS))
    assert (partners(milc) == partners(trace)).all()
    assert milc.sizes["point to point"][1536] == trace.sizes["point to point"][1536]
    assert milc.sizes["point to point"][4608] < trace.sizes["point to point"][4608], "other parts send such ones too"


def test_milc_waits_for_every_request_and_sums_once_an_iteration() -> None:
    ranks, iterations, timesteps = 16, 3, 2
    given = {"name": "milc", "iterations": iterations, "compute": "90 us", "jitter": 0}
    fabric = {"topology": "fat_tree", "hosts": ranks, "levels": 1}
    simulation = Simulation(
        Scenario(fabric=fabric, jobs=[{"ranks": ranks, "workload": given, "stop": timesteps}], duration="1 s")
    )
    assert simulation.run_for("1 s")
    calls = dict(simulation.table("calls").select("call", "count").iter_rows())
    per_rank = {call: count // (ranks * iterations * timesteps) for call, count in calls.items() if count}
    assert per_rank == {"isend": 32, "irecv": 32, "wait": 64, "allreduce": 1}
    # Two of its four dimensions are left with two ranks, both neighbours at once; all of its compute time is spent.
    compute = simulation.table("ranks")["compute_ps"].to_numpy()
    assert compute.max() - compute.min() == 0
    assert compute[0] == pytest.approx(timesteps * 90e6, rel=1e-4)


def test_milc_computes_more_in_every_fifteenth_timestep_after_the_warmup() -> None:
    given = {"name": "milc", "iterations": 2, "warmup": 2, "warmup_iterations": 1, "every": 3, "extra": 0.5}
    job = {"name": "milc", "ranks": 2, "workload": {**given, "compute": "1 ms", "jitter": 0}, "stop": 9}
    scenario = Scenario(
        fabric={"topology": "fat_tree", "hosts": 2, "levels": 1},
        jobs=[job],
        duration="1 s",
        observe={"iterations": ["milc"]},
    )
    simulation = Simulation(scenario)
    assert simulation.run_for("1 s")
    marks = columns(simulation.engine.table("marks"))
    times = np.diff(marks["time"][marks["rank"] == 0], prepend=0) / 1e9
    assert times.round(1).tolist() == [0.5, 0.5, 1.0, 1.0, 1.5, 1.0, 1.0, 1.5, 1.0]


@pytest.mark.parametrize(("ranks", "shape"), [(8, (2, 2, 2)), (24, (2, 3, 4)), (27, (3, 3, 3))])
def test_kripke_sweeps_every_face_in_four_octants_of_eight(ranks: int, shape: tuple[int, ...]) -> None:
    sets = 3 * 2
    found = observe(program(Kripke(group_sets=3, direction_sets=2), ranks, 1))
    pairs = sum(2 * ranks // side * (side - 1) for side in shape)
    # A face is crossed in the direction of a step by half of the octants, in each set.
    assert found.messages[POINT_TO_POINT].sum() == pairs * 4 * sets
    assert set(found.messages[POINT_TO_POINT].ravel().tolist()) == {0, 4 * sets}
    assert found.sizes["point to point"] == {8192: pairs * 4 * sets}
    assert (found.total == found.total.T).all(), "what goes down one way comes back the other"


def spans(workload: Workload, ranks: int, compute: int) -> int:
    """How long an iteration takes where messages cost next to nothing."""
    given = {"name": workload_name(workload), **workload.parameters(), "compute": f"{compute} ns", "jitter": 0}
    scenario = Scenario(
        fabric={"topology": "fat_tree", "hosts": ranks, "levels": 1, "bandwidth": "100 Tb/s", "latency": "1 ns"},
        network={"switch_latency": 0},
        mpi={"send_overhead": 0, "receive_overhead": 0},
        jobs=[{"ranks": ranks, "workload": given, "stop": 1}],
    )
    simulation = Simulation(scenario)
    assert simulation.run_for("1 s")
    return int(simulation.table("ranks")["finished_at_ps"].to_numpy().max())


def workload_name(workload: Workload) -> str:
    return next(name for name, kind in WORKLOADS.items() if kind is type(workload))


def test_lu_is_a_pipeline() -> None:
    """Both wavefronts fill as many stages as the grid has steps from corner to corner."""
    planes, ranks, compute = 22, 16, 600_000
    block = compute * 1000 // (3 * (planes - 2))
    stages = (planes - 2) + 2 * (4 - 1)
    expected = 2 * stages * block + (compute * 1000 - 2 * (planes - 2) * block)
    assert spans(Lu(planes=planes), ranks, compute) == pytest.approx(expected, rel=0.01)


def test_kripke_is_a_pipeline() -> None:
    """No sweep can be over before it has come from one corner to the other, and no rank before it has done its part."""
    compute, ranks = 800_000, 27
    block = compute * 1000 // 16
    time = spans(Kripke(), ranks, compute)
    assert time > compute * 1000 + 6 * block
    assert time < 16 * 7 * block, "sweeps overlap"


def test_sizes_follow_the_parameters_at_any_number_of_ranks() -> None:
    for ranks in (6, 12, 30):
        ft = written("ft", 1, ranks, points=6000)
        rows, columns = {6: (2, 3), 12: (3, 4), 30: (5, 6)}[ranks]
        blocks = {96_000 // columns: ranks * (columns - 1), 96_000 // rows: ranks * (rows - 1)}
        assert blocks.items() <= ft.sizes["collective"].items()
    comd = written("comd", 1, 27, cells=2, atoms=10)
    assert comd.sizes["point to point"] == {560 * cells: 2 * 27 for cells in (4, 8, 16)}
    assert Mg(points=24).problem_with(8) == "`points` as a power of 2"
    assert list(Mg(points=4).grids((8, 8, 8))) == [(4, 1), (2, 1), (1, 1), (1, 2), (1, 4)]
