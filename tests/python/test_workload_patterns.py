"""Bytes and messages of each rank and iteration, as the engine counts them, against what the pattern says."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.model.fabric.graph import columns
from fairlane.model.workload import Fft, PingPong

FABRIC = {"topology": "fat_tree", "hosts": 64, "levels": 2, "radix": 16, "bandwidth": "100 Gb/s"}


def after(iterations: int, ranks: int, workload: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The table of ranks when a job, alone, has made this many iterations and ended."""
    job = {"name": "job", "ranks": ranks, "workload": {"jitter": 0, **workload}, "stop": iterations}
    simulation = Simulation(Scenario(fabric=FABRIC, jobs=[job]))
    assert simulation.run_for("1 s")
    return columns(simulation.engine.table("ranks"))


def per_iteration(ranks: int, **workload: Any) -> tuple[list[float], list[float]]:
    """Messages and bytes that each rank sends in an iteration: what five make more than two."""
    few, many = after(2, ranks, workload), after(5, ranks, workload)
    assert set(few["iterations"]) == {2}
    assert set(many["iterations"]) == {5}
    messages, size = (((many[key] - few[key]) / 3).tolist() for key in ("messages_sent", "bytes_sent"))
    return messages, size


def degrees(shape: tuple[int, ...]) -> list[int]:
    """How many neighbours each rank of a row-major grid without wraparound has."""
    inside = np.indices(shape)
    found = np.zeros(shape, int)
    for at, side in zip(inside, shape, strict=True):
        found += (at > 0).astype(int) + (at < side - 1)
    return [int(count) for count in found.ravel()]


def test_halo3d_sends_a_face_to_every_neighbour() -> None:
    messages, size = per_iteration(24, name="halo3d", message_size="20 KiB", messages_per_iteration=2)
    expected = degrees((2, 3, 4))
    assert messages == [2 * degree for degree in expected]
    assert size == [2 * 20 * 1024 * degree for degree in expected]


@pytest.mark.parametrize(("around", "edges", "corners"), [(6, 0, 0), (18, 12, 0), (26, 12, 8)])
def test_every_rank_of_a_periodic_halo_has_all_neighbours(around: int, edges: int, corners: int) -> None:
    halo = {"name": "halo3d", "periodic": True, "neighbours": around, "message_size": "8 KiB"}
    for grid in ([3, 3, 4], [2, 3, 6]):  # along a side of two, a rank meets the other in both directions
        messages, size = per_iteration(36, grid=grid, **halo)
        assert messages == [around] * 36
        # A face of 1024 cells of 8 bytes has 32 a side.
        assert size == [6 * 8192 + edges * 32 * 8 + corners * 8] * 36
    messages, _ = per_iteration(36, grid=[1, 6, 6], **halo)
    assert messages == [around - 2] * 36, "across the side of one, a rank is its own neighbour"


def test_a_halo_without_wraparound_ends_at_the_sides() -> None:
    grid = (2, 3, 4)
    offsets = [offset for offset in np.ndindex(3, 3, 3) if offset != (1, 1, 1)]
    # For each offset, as many ranks have a neighbour as there are places for the pair in the grid.
    pairs = sum(np.prod([side - abs(step - 1) for side, step in zip(grid, one, strict=True)]) for one in offsets)
    messages, _ = per_iteration(24, name="halo3d", neighbours=26, message_size="8 KiB")
    assert sum(messages) == pairs
    assert min(messages) == 7, "a corner of the grid sees a cube of eight"


def test_neighborhood_collectives_have_the_neighbours_of_a_grid() -> None:
    halo = {"name": "halo3d", "exchange": "neighbor_alltoall", "message_size": "8 KiB"}
    with pytest.raises(ScenarioError, match=r"workload.*neighbor_alltoall is among the 6 neighbours of a grid, not 26"):
        per_iteration(24, neighbours=26, **halo)
    messages, size = per_iteration(36, grid=[3, 3, 4], periodic=True, **halo)
    assert (messages, size) == ([6] * 36, [6 * 8192] * 36)


def test_fft_sends_a_block_to_every_other_rank_of_its_row() -> None:
    messages, size = per_iteration(24, name="fft", message_size="33 KiB", grid=[2, 3, 4], axis=1)
    assert messages == [2] * 24
    assert size == [2 * 33 * 1024] * 24
    _, size = per_iteration(24, name="fft", contribution="64 KiB")
    assert size == [3 * 16 * 1024] * 24, "a quarter for each of the row, its own stays"


def test_rows_differ_in_one_coordinate() -> None:
    for axis in range(3):
        fft = Fft(grid=[2, 3, 4], axis=axis)
        place = [np.unravel_index(rank, (2, 3, 4)) for rank in range(24)]
        for a in range(24):
            for b in range(24):
                same = all(place[a][other] == place[b][other] for other in range(3) if other != axis)
                assert (fft.row(a, 24) == fft.row(b, 24)) == same


def test_sweep3d_sends_every_block_downwind_in_every_sweep() -> None:
    size = {"message_size": "20 KiB", "message_size_across": "3 KiB"}
    messages, sent = per_iteration(12, name="sweep3d", blocks=5, sweeps=4, **size)
    rows, columns = np.indices((3, 4))
    # The four corners send a rank's blocks twice each way along both sides, where there is somebody.
    along = 2 * ((rows > 0).astype(int) + (rows < 2)).ravel() * 5
    across = 2 * ((columns > 0).astype(int) + (columns < 3)).ravel() * 5
    assert messages == (along + across).tolist()
    assert sent == (along * 20 * 1024 + across * 3 * 1024).tolist()


def test_a_sweep_takes_a_step_for_every_rank_on_its_way_and_every_block() -> None:
    workload = {"sweeps": 1, "blocks": 3, "block_compute": "1 ms", "message_size": 0, "message_size_across": 0}
    ranks = after(1, 12, {"name": "sweep3d", **workload})
    # From corner to corner of 3 x 4 ranks are 2 + 3 steps before the last begins its three blocks.
    assert ranks["first_mark"].max() == pytest.approx((5 + 3) * 1e9, rel=0.01)
    assert ranks["first_mark"].min() == pytest.approx(3e9, rel=0.01)


def test_allreduce_sends_a_message_in_every_round() -> None:
    messages, size = per_iteration(16, name="allreduce")
    assert messages == [4] * 16, "recursive doubling: log2 of the ranks"
    assert size == [4 * 8] * 16


def test_incast_and_broadcast_by_puts_are_each_other_mirrored() -> None:
    table = {"message_size": "2 KiB", "messages_per_iteration": 3}
    messages, size = per_iteration(9, name="incast", **table)
    assert messages == [0, *[3] * 8]
    assert size == [0, *[3 * 2048] * 8]
    messages, size = per_iteration(9, name="put_broadcast", **table)
    assert messages == [8 * 3, *[0] * 8]
    assert size == [8 * 3 * 2048, *[0] * 8]


@pytest.mark.parametrize(("ranks", "peers"), [(2, 1), (3, 2), (16, 2)])
def test_a_ring_has_two_neighbours_a_rank(ranks: int, peers: int) -> None:
    messages, size = per_iteration(ranks, name="ring", message_size="2 KiB", messages_per_iteration=3)
    assert messages == [3 * peers] * ranks
    assert size == [3 * peers * 2048] * ranks


def test_ping_pong_goes_through_its_sizes() -> None:
    one, two, three = (after(count, 4, {"name": "ping_pong", "sizes": ["1 KiB", "5 KiB"]}) for count in (1, 2, 3))
    assert one["bytes_sent"].tolist() == [1024] * 4
    assert two["bytes_sent"].tolist() == [6 * 1024] * 4
    assert three["bytes_sent"].tolist() == [7 * 1024] * 4
    with pytest.raises(ValueError, match="multiple of the number of sizes, 2"):
        PingPong.model_validate({"sizes": ["1 KiB", "5 KiB"], "distinct_iterations": 3})


def test_a_grid_that_does_not_hold_the_ranks_is_refused() -> None:
    for grid in ([2, 2, 2], [3, 4]):
        job = {"name": "job", "ranks": 12, "workload": {"name": "halo3d", "grid": grid}}
        with pytest.raises(ScenarioError, match=r"3 sides whose product is the number of ranks, as 2 x 2 x 3"):
            Scenario(fabric=FABRIC, jobs=[job])
