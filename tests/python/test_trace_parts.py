"""Parts of recordings: iterations from one to another, what crosses their ends, and cuts that are refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fairlane import Scenario, ScenarioError, Simulation
from fairlane.model.workload.trace import Trace, read_trace
from otf2_archive import Archive, collective, isend, recv, send

TRACES = Path(__file__).parents[1] / "data" / "traces"
RANKS, ITERATIONS = 4, 6
SENDING, RECEIVING, PLAIN = 1_000, 100_000, 10_000_000
"""Bytes of the messages of an iteration, times its number: no two sums are equal."""


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def replayed(path: Path, ranks: int = RANKS, span: str = "1 s", **options: Any) -> Simulation:
    """The trace alone, a host for every rank."""
    hosts = 18 * -(-ranks // 18)
    trace = {"path": path, "repeat": False, "compute_scale": 0.01, **options}
    simulation = Simulation(
        Scenario(
            fabric={"topology": "fat_tree", "hosts": hosts, "radix": 36, "levels": 2},
            observe={"iterations": ["job"]},
            jobs=[{"name": "job", "trace": trace}],
        )
    )
    simulation.run_for(span)
    return simulation


def finished(simulation: Simulation) -> pl.DataFrame:
    ranks = simulation.table("ranks")
    assert ranks["finished"].all()
    return ranks


def marks(simulation: Simulation) -> pl.DataFrame:
    """When the first and the last rank completed each iteration."""
    by_iteration = simulation.table("iterations").group_by("iteration")
    return by_iteration.agg(first=pl.col("at_ps").min(), last=pl.col("at_ps").max()).sort("iteration")


ALLREDUCE = {"collective": "allreduce"}
RECORDED = [
    ("comd-64.tar.zst", 64, 2, 3),
    ("amg-27.tar.zst", 27, 20, 24),
    ("otf2-amg-27.tar.zst", 27, 20, 24),
    ("lulesh-64.tar.zst", 64, 5, 7),
]


@pytest.mark.parametrize(("name", "ranks", "first", "last"), RECORDED)
def test_a_part_takes_the_time_that_it_takes_in_the_whole_run(name: str, ranks: int, first: int, last: int) -> None:
    whole = marks(replayed(TRACES / name, ranks, iteration=ALLREDUCE))
    part = replayed(TRACES / name, ranks, iteration=ALLREDUCE, iterations=f"{first}..{last}")
    finished(part)
    found = marks(part)
    assert found["iteration"].to_list() == list(range(1, last - first + 2))
    # In the whole run ranks come to the first boundary one after the other, and in the part together: what the early
    # ones do until the last one comes is done at its beginning.
    before = whole.row(first - 2, named=True)
    skew = before["last"] - before["first"]
    expected = whole["last"][last - 1] - before["last"]
    assert abs(found["last"][-1] - expected) <= skew < 0.2 * expected
    if "amg" in name:  # nothing is under way at its boundaries
        own, same = (table["last"].diff().drop_nulls().to_list() for table in (found, whole[first - 1 : last]))
        assert own == same


def test_parts_add_up_to_the_whole() -> None:
    def totals(iterations: str) -> tuple[int, int]:
        simulation = replayed(TRACES / "lulesh-64.tar.zst", 64, iteration=ALLREDUCE, iterations=iterations)
        calls = dict(simulation.table("calls").select("call", "count").iter_rows())
        return int(finished(simulation)["bytes_sent"].sum()), calls["isend"] + calls.get("send", 0)

    whole, head, tail = totals("1.."), totals("..9"), totals("10..")
    assert (head[0] + tail[0], head[1] + tail[1]) == whole
    assert head[0] > 0 < tail[0]


def test_a_part_is_repeated_with_its_iterations() -> None:
    options: dict[str, Any] = {"iteration": ALLREDUCE, "iterations": "5..7"}
    once = replayed(TRACES / "lulesh-64.tar.zst", 64, **options)
    sent = int(finished(once)["bytes_sent"].sum())
    often = replayed(TRACES / "lulesh-64.tar.zst", 64, span="400 us", repeat=True, **options)
    passes = often.table("ranks")["iterations"].to_numpy().min() // 3
    assert passes >= 3
    assert int(often.table("ranks")["bytes_sent"].sum()) == pytest.approx(
        sent * (passes + 0.5), rel=0.5 / passes + 0.05
    )


def sendrecv(archive: Archive, rank: int, number: int) -> None:
    """A message to the right that is received in the same iteration."""
    comm, to, source = archive.world, (rank + 1) % RANKS, (rank - 1) % RANKS
    archive.call(rank, "MPI_Isend", isend(to, comm, 1, number * PLAIN, 10 * number))
    archive.call(rank, "MPI_Recv", recv(source, comm, 1, number * PLAIN))
    archive.call(rank, "MPI_Wait", ("MpiIsendComplete", {"request_id": 10 * number}))


def crossing(archive: Archive, rank: int, number: int) -> None:
    """Messages that are sent in an iteration and received in the next one, and receives that are started one before."""
    comm, to, source = archive.world, (rank + 1) % RANKS, (rank - 1) % RANKS
    late, early = 10 * number + 1, 10 * number + 2
    archive.call(rank, "MPI_Isend", isend(to, comm, 2, number * SENDING, late))
    archive.call(rank, "MPI_Irecv", ("MpiIrecvRequest", {"request_id": early}))
    if number > 1:
        archive.call(rank, "MPI_Recv", recv(source, comm, 2, (number - 1) * SENDING))
        archive.call(rank, "MPI_Wait", ("MpiIsendComplete", {"request_id": late - 10}))
        archive.call(rank, "MPI_Send", send(to, comm, 3, number * RECEIVING))
        _, fields = recv(source, comm, 3, number * RECEIVING)
        archive.call(rank, "MPI_Wait", ("MpiIrecv", {**fields, "request_id": early - 10}))


def recording(folder: Path, *bodies: Callable[[Archive, int, int], None]) -> Path:
    """Iterations of all bodies, each after a barrier; the last one completes what is open."""
    archive = Archive(folder, RANKS)
    for number in range(1, ITERATIONS + 1):
        archive.everyone("MPI_Barrier", *collective("BARRIER", archive.world, 0, 0))
        for rank in range(RANKS):
            for body in bodies:
                body(archive, rank, number)
    return archive.close()


BARRIER = {"collective": "barrier"}


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 3), (2, 3), (3, 3), (4, 5)])
def test_a_message_belongs_to_the_iteration_in_which_it_is_received(first: int, last: int, tmp_path: Path) -> None:
    path = recording(tmp_path / "trace", sendrecv, crossing)
    ranks = finished(replayed(path, iteration=BARRIER, iterations=f"{first}..{last}"))
    # Sent in an iteration and received in the next one; sent and received in it for a receive of the one before.
    sending = sum(SENDING * (number - 1) for number in range(max(first, 2), last + 1))
    receiving = sum(RECEIVING * number for number in range(max(first, 2), last + 1))
    plain = sum(PLAIN * number for number in range(first, last + 1))
    assert ranks["bytes_sent"].to_list() == [sending + receiving + plain] * RANKS
    assert ranks["iterations"].to_list() == [last - first + 1] * RANKS


def test_what_crosses_is_there_again_in_every_pass(tmp_path: Path) -> None:
    path = recording(tmp_path / "trace", crossing)
    ranks = replayed(path, span="2 ms", iteration=BARRIER, iterations="3..4", repeat=True).table("ranks")
    assert not ranks["finished"].any()
    passes = ranks["iterations"].to_numpy() // 2
    assert passes.min() > 5
    a_pass = SENDING * (2 + 3) + RECEIVING * (3 + 4)
    for done, sent in zip(passes, ranks["bytes_sent"], strict=True):
        assert done * a_pass <= sent <= (done + 1) * a_pass


def test_a_cut_that_is_at_no_instant_of_the_run_is_refused(tmp_path: Path) -> None:
    # With a broadcast, rank 1 may go on before rank 0 comes: here it has received what rank 0 sends behind the cut.
    archive = Archive(tmp_path / "trace", RANKS)
    for number in range(1, 4):
        root = collective("BCAST", archive.world, 0, 8, root=1)
        for rank in range(RANKS):
            if rank == 0:
                archive.call(rank, "MPI_Bcast", *root)
                archive.call(rank, "MPI_Send", send(2, archive.world, number, 100))
            elif rank == 2:
                archive.call(rank, "MPI_Recv", recv(0, archive.world, number, 100))
                archive.call(rank, "MPI_Bcast", *root)
            else:
                archive.call(rank, "MPI_Bcast", *root)
    path = archive.close()
    words = (
        r"trace.iterations = \"2..\": the part cannot be cut out there: rank 2 has received a message with tag 2 that"
    )
    with pytest.raises(ScenarioError, match=words):
        replayed(path, iteration={"collective": "bcast"}, iterations="2..")


def test_iterations_of_a_communicator_of_some_ranks_are_no_cut(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "trace", RANKS)
    halves = [archive.comm(f"half {number}", (2 * number, 2 * number + 1)) for number in range(2)]
    for number in range(4):
        for rank in range(RANKS):
            for _ in range(1 if rank < 2 else 2):  # the second half has done twice as many
                archive.call(rank, "MPI_Barrier", *collective("BARRIER", halves[rank // 2], 0, 0))
            if number % 2:
                archive.call(rank, "MPI_Barrier", *collective("BARRIER", archive.world, 0, 0))
    path = archive.close()
    words = (
        "on a communicator of 4 ranks: [0-9] of rank 0, [0-9] of rank [23]; allowed: iterations of a collective of all"
    )
    with pytest.raises(ScenarioError, match=words):
        replayed(path, iteration=BARRIER, iterations="4..5")
    world = {**BARRIER, "communicator": "world"}
    assert finished(replayed(path, iteration=world, iterations="1..1"))["iterations"].to_list() == [1] * RANKS


def test_iterations_are_bounded_by_every_nth_call_or_those_of_a_size(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "trace", RANKS)
    for number in range(12):
        size = 64 if number % 4 == 0 else 8
        archive.everyone("MPI_Allreduce", *collective("ALLREDUCE", archive.world, size, size))
    path = archive.close()

    def iterations(**bound: Any) -> int:
        (count,) = finished(replayed(path, iteration={**ALLREDUCE, **bound}))["iterations"].unique()
        return int(count)

    # A mark at each boundary but the first.
    assert iterations() == 11
    assert iterations(every=3) == 3
    assert iterations(every=5) == 2
    assert iterations(bytes="64 B") == 2
    assert iterations(bytes="8 B", every=2) == 4
    assert iterations(communicator="world") == 11
    with pytest.raises(ScenarioError, match=r"iteration.collective = \"allreduce\": 4 of 4 ranks never call it"):
        replayed(path, iteration={**ALLREDUCE, "bytes": "9 B"})


def test_communicators_from_before_the_part_are_there() -> None:
    # A communicator of the multigrid's last ranks, made in front of the part, and duplicates of the world's.
    for name, ranks, bound, part in (
        ("npb_ft-64.tar.zst", 64, {"collective": "alltoall", "every": 2}, "3..4"),
        ("boxlib_mg-125.tar.zst", 125, {**ALLREDUCE, "communicator": "world"}, "8..9"),
    ):
        simulation = replayed(TRACES / name, ranks, iteration=bound, iterations=part)
        assert finished(simulation)["iterations"].to_list() == [2] * ranks


def test_a_part_begins_after_a_time_of_the_recording(tmp_path: Path) -> None:
    path = recording(tmp_path / "trace", sendrecv)
    description = Trace.model_validate({"path": path, "iteration": BARRIER}).describe()
    starts = description["iteration_starts"]
    assert len(starts) == ITERATIONS
    assert starts == sorted(starts)
    by_time = replayed(path, iteration=BARRIER, after=f"{starts[2] * 1e9:.0f} ns")
    by_number = replayed(path, iteration=BARRIER, iterations="3..")
    assert finished(by_time).equals(finished(by_number))
    with pytest.raises(ScenarioError, match=r"trace.after.*: no iteration begins then: the last one does after"):
        replayed(path, iteration=BARRIER, after="1 s")
    assert "iteration_starts" not in read_trace(path).describe()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"iterations": "2..3"}, r"iterations = \"2..3\": a part of a trace takes a definition of iterations"),
        ({"iteration": BARRIER, "iterations": "3..2"}, r"no range of iterations from 1; allowed: FIRST..LAST"),
        ({"iteration": BARRIER, "iterations": 0}, "no range of iterations from 1"),
        ({"iteration": BARRIER, "iterations": "some"}, "no range of iterations from 1"),
        ({"iteration": BARRIER, "iterations": "9.."}, r"iterations = \"9..\": the trace has 6 iterations in rank 0"),
        ({"iteration": BARRIER, "iterations": 6}, r"iterations = \"6\": the trace has 5 whole iterations in rank 0"),
        ({"iteration": BARRIER, "iterations": 2, "after": "1 us"}, "after and iterations exclude each other"),
        ({"iteration": {"region": "MPI_Send", "every": 2}}, "every choose among the calls of a collective"),
        ({"iteration": {**BARRIER, "every": 0}}, "every"),
        ({"iteration": {**BARRIER, "communicator": "self"}}, "communicator"),
    ],
)
def test_what_is_no_part_is_refused(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = recording(tmp_path / "trace", sendrecv)
    with pytest.raises(ScenarioError, match=words):
        replayed(path, **options)
