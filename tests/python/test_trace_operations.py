"""Non-blocking collectives, one-sided communication and matched probes of OTF2: written, described, replayed."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fairlane import Scenario, Simulation
from fairlane.model.workload.trace import read_trace
from otf2_archive import Archive, Record, collective, isend, send
from otf2_archive import non_blocking as completion

RANKS = 4
BYTES = 4096


def simulated(trace: Path, **options: Any) -> Simulation:
    """The archive replayed to its end, without the time between its calls."""
    simulation = Simulation(
        Scenario(
            name="replay",
            fabric={"topology": "fat_tree", "hosts": 8},
            jobs=[{"trace": {"path": trace, "compute_scale": 0, "repeat": False, **options}}],
        )
    )
    assert simulation.run_for("1 s")
    assert simulation.table("ranks")["finished"].all()
    return simulation


def calls(simulation: Simulation) -> Counter[str]:
    table = simulation.table("calls")
    return Counter(dict(table.select("call", "count").iter_rows()))


def end(simulation: Simulation) -> int:
    return int(simulation.table("ranks")["finished_at_ps"].to_numpy().max())


SIZES = {
    "barrier": ("BARRIER", 0, 0),
    "bcast": ("BCAST", 0, BYTES),
    "reduce": ("REDUCE", BYTES, 0),
    "allreduce": ("ALLREDUCE", BYTES, BYTES),
    "gather": ("GATHER", BYTES, 0),
    "scatter": ("SCATTER", 0, BYTES),
    "allgather": ("ALLGATHER", BYTES, RANKS * BYTES),
    "allgatherv": ("ALLGATHERV", BYTES, RANKS * BYTES),
    "alltoall": ("ALLTOALL", RANKS * BYTES, RANKS * BYTES),
    "alltoallv": ("ALLTOALLV", RANKS * BYTES, RANKS * BYTES),
    "reduce_scatter": ("REDUCE_SCATTER", RANKS * BYTES, BYTES),
    "scan": ("SCAN", BYTES, BYTES),
}
"""OTF2's name of a collective, and the bytes that a rank which is not the root sends and receives."""
ROOTED = {"bcast", "reduce", "gather", "scatter"}
KINDS = {"allgatherv": "allgather", "alltoallv": "alltoall"}


@pytest.mark.parametrize("name", SIZES)
def test_a_non_blocking_collective_that_is_waited_for_at_once_takes_as_long_as_the_blocking_one(
    name: str, tmp_path: Path
) -> None:
    operation, sent, received = SIZES[name]
    blocking, non_blocking = Archive(tmp_path / "blocking", RANKS), Archive(tmp_path / "other", RANKS)
    root = 1 if name in ROOTED else 2**32 - 1
    for rank in range(RANKS):
        # A root sends what the others receive, and the other way round.
        own = (received * (RANKS - 1), sent * (RANKS - 1)) if rank == root else (sent, received)
        if name == "bcast":
            own = (sent, received)
        for number in range(3):
            blocking.call(rank, f"MPI_{name.capitalize()}", *collective(operation, blocking.world, *own, root))
            request, complete = completion(operation, non_blocking.world, *own, number, root)
            non_blocking.call(rank, f"MPI_I{name}", request)
            non_blocking.call(rank, "MPI_Wait", complete)
    first, second = simulated(blocking.close()), simulated(non_blocking.close())
    kind = KINDS.get(name, name)
    assert calls(first)[kind] == calls(second)[f"i{kind}"] == calls(second)["wait"] == 3 * RANKS
    assert end(first) == end(second) > 0
    described = read_trace(non_blocking.path).describe()
    assert described["collectives"].keys() == {f"MPI_I{name}"}
    assert described["iteration_collectives"] == {kind: {"calls": 3 * RANKS, "ranks": RANKS}}
    assert described["requests"] == {"non-blocking collective": 3 * RANKS}


def test_several_are_open_at_once_on_several_communicators(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "several", RANKS)
    halves = [archive.comm("low", range(2)), archive.comm("high", range(2, 4))]
    for rank in range(RANKS):
        half = halves[rank // 2]
        world = [completion("ALLREDUCE", archive.world, 64, 64, number) for number in range(2)]
        own = completion("ALLTOALL", half, 2 * BYTES, 2 * BYTES, 2)
        archive.call(rank, "MPI_Iallreduce", world[0][0])
        archive.call(rank, "MPI_Ialltoall", own[0])
        archive.call(rank, "MPI_Iallreduce", world[1][0])
        archive.call(rank, "MPI_Isend", isend(rank ^ 1, archive.world, 5, BYTES, 3))
        archive.call(rank, "MPI_Irecv", ("MpiIrecvRequest", {"request_id": 4}))
        archive.call(rank, "MPI_Test", ("MpiRequestTest", {"request_id": 0}))
        got = {"sender": rank ^ 1, "communicator": archive.world, "msg_tag": 5, "msg_length": BYTES, "request_id": 4}
        # They complete in another order than they started.
        archive.call(
            rank, "MPI_Waitall", own[1], ("MpiIrecv", got), ("MpiIsendComplete", {"request_id": 3}), world[1][1]
        )
        archive.call(rank, "MPI_Wait", world[0][1])
    trace = archive.close()
    described = read_trace(trace).describe()
    assert described["unsupported"] == []
    assert described["failed_polls"] == {"MPI_Test": RANKS}
    assert described["requests"] == {"non-blocking collective": 3 * RANKS, "receive": RANKS, "send": RANKS}
    found = calls(simulated(trace))
    assert (found["iallreduce"], found["ialltoall"], found["wait_all"], found["wait"]) == (8, 4, 4, 4)
    # Iterations are bounded by non-blocking calls as well; from the second call on, each ends one.
    simulation = simulated(trace, iteration={"collective": "allreduce"})
    assert simulation.table("ranks")["iterations"].to_list() == [1] * RANKS


def test_a_non_blocking_duplicate_of_a_communicator(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "idup", RANKS)
    copy = archive.comm("copy", range(RANKS))
    for rank in range(RANKS):
        request, complete = completion("CREATE_HANDLE", copy, 0, 0, 9)
        archive.call(rank, "MPI_Comm_idup", request)
        archive.call(rank, "MPI_Wait", complete)
        archive.call(rank, "MPI_Barrier", *collective("BARRIER", copy, 0, 0))
    found = calls(simulated(archive.close()))
    assert (found["iallreduce"], found["barrier"]) == (RANKS, RANKS)


def start(win: Any, target: int, matching: int, kind: str = "RmaPut") -> Record:
    return kind, {"win": win, "remote": target, "bytes": BYTES, "matching_id": matching}


def complete(win: Any, matching: int, kind: str = "Remote") -> Record:
    return f"RmaOpComplete{kind}", {"win": win, "matching_id": matching}


def atomic(win: Any, target: int, matching: int, kind: str, sent: int, received: int) -> Record:
    from otf2.enums import RmaAtomicType

    fields = {"win": win, "remote": target, "type": getattr(RmaAtomicType, kind), "matching_id": matching}
    return "RmaAtomic", {**fields, "bytes_sent": sent, "bytes_received": received}


def on_window(win: Any, operation: str) -> tuple[Record, Record]:
    """A collective call on a window."""
    from otf2.enums import CollectiveOp, RmaSyncLevel

    fields = {"sync_level": RmaSyncLevel.MEMORY, "win": win, "root": 2**32 - 1, "bytes_sent": 0, "bytes_received": 0}
    return ("RmaCollectiveBegin", {}), (
        "RmaCollectiveEnd",
        {"collective_op": getattr(CollectiveOp, operation), **fields},
    )


def lock(win: Any, target: int, kind: str, record: str = "RmaAcquireLock") -> Record:
    from otf2.enums import LockType

    return record, {"win": win, "remote": target, "lock_id": 0, "lock_type": getattr(LockType, kind)}


def release(win: Any, target: int) -> Record:
    return "RmaReleaseLock", {"win": win, "remote": target, "lock_id": 0}


def group_sync(win: Any, group: Any, level: str = "PROCESS") -> Record:
    from otf2.enums import RmaSyncLevel

    return "RmaGroupSync", {"sync_level": getattr(RmaSyncLevel, level), "win": win, "group": group}


class Windowed(Archive):
    """An archive with a window over all its ranks."""

    def __init__(self, folder: Path, ranks: int = RANKS) -> None:
        super().__init__(folder, ranks)
        self.win = self.window("halo", self.world)
        begin, end = on_window(self.win, "CREATE_HANDLE")
        self.everyone("MPI_Win_create", begin, ("RmaWinCreate", {"win": self.win}), end)

    def finish(self) -> Path:
        """Frees the window and closes the archive."""
        begin, end = on_window(self.win, "DESTROY_HANDLE")
        self.everyone("MPI_Win_free", begin, end, ("RmaWinDestroy", {"win": self.win}))
        return self.close()


def test_fences_and_operations(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "fence")
    archive.everyone("MPI_Win_fence", *on_window(archive.win, "BARRIER"))
    for rank in range(RANKS):
        right = (rank + 1) % RANKS
        archive.call(rank, "MPI_Put", start(archive.win, right, 1))
        archive.call(rank, "MPI_Get", start(archive.win, right, 2, "RmaGet"))
        archive.call(rank, "MPI_Accumulate", atomic(archive.win, right, 3, "ACCUMULATE", 512, 0))
        archive.call(rank, "MPI_Fetch_and_op", atomic(archive.win, right, 4, "FETCH_AND_ACCUMULATE", 8, 8))
        archive.call(rank, "MPI_Compare_and_swap", atomic(archive.win, right, 5, "COMPARE_AND_SWAP", 16, 8))
        archive.call(rank, "MPI_Put")  # to MPI_PROC_NULL: no record
    for rank in range(RANKS):
        begin, end = on_window(archive.win, "BARRIER")
        done = [complete(archive.win, matching) for matching in range(1, 6)]
        archive.call(rank, "MPI_Win_fence", begin, *done, end)
    trace = archive.finish()
    described = read_trace(trace).describe()
    assert described["unsupported"] == []
    assert described["windows"] == {"halo(4)": 1}
    assert described["one_sided"] == {
        "put": {"calls": RANKS, "bytes": RANKS * BYTES},
        "get": {"calls": RANKS, "bytes": RANKS * BYTES},
        "accumulate": {"calls": RANKS, "bytes": RANKS * 512},
        "get_accumulate": {"calls": RANKS, "bytes": RANKS * 8},
        "compare_and_swap": {"calls": RANKS, "bytes": RANKS * 8},
    }
    found = calls(simulated(trace))
    once = ("put", "get", "accumulate", "get_accumulate", "compare_and_swap", "win_create", "win_free")
    assert {name: found[name] for name in once} == dict.fromkeys(once, RANKS)
    assert found["win_fence"] == 2 * RANKS


def test_locks_and_flushes(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "lock")
    win = archive.win
    for rank in range(RANKS):
        # Requested first and granted with the first operation: one lock.
        archive.call(rank, "MPI_Win_lock", lock(win, 0, "EXCLUSIVE", "RmaRequestLock"))
        archive.call(rank, "MPI_Put", lock(win, 0, "EXCLUSIVE"), start(win, 0, 1))
        archive.call(rank, "MPI_Win_flush", complete(win, 1))
        archive.call(rank, "MPI_Win_flush")  # nothing is open
        archive.call(rank, "MPI_Put", start(win, 0, 2))
        archive.call(rank, "MPI_Win_unlock", complete(win, 2), release(win, 0))
        archive.call(rank, "MPI_Win_lock_all", *(lock(win, target, "SHARED") for target in range(RANKS)))
        archive.call(rank, "MPI_Rput", start(win, 1, 3))
        archive.call(rank, "MPI_Rget", start(win, 2, 4, "RmaGet"))
        archive.call(rank, "MPI_Put", start(win, 3, 5))
        archive.call(rank, "MPI_Waitall", complete(win, 3, "NonBlocking"), complete(win, 4, "NonBlocking"))
        # Complete at the origin already, now at the target.
        archive.call(rank, "MPI_Win_flush", complete(win, 3))
        archive.call(rank, "MPI_Win_flush_all", complete(win, 5))
        archive.call(rank, "MPI_Win_unlock_all", *(release(win, target) for target in range(RANKS)))
        nobody = 2**32 - 2  # MPI_PROC_NULL
        archive.call(rank, "MPI_Win_lock", lock(win, nobody, "SHARED"))
        archive.call(rank, "MPI_Win_unlock", release(win, nobody))
    trace = archive.finish()
    assert read_trace(trace).describe()["unsupported"] == []
    found = calls(simulated(trace))
    once = ("win_lock", "win_unlock", "win_lock_all", "win_unlock_all", "wait_all")
    assert {name: found[name] for name in once} == dict.fromkeys(once, RANKS)
    assert found["put"] + found["rput"] + found["get"] + found["rget"] == 5 * RANKS
    assert found["win_flush"] + found["win_flush_all"] == 3 * RANKS


def test_post_start_complete_wait(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "pscw")
    win, origins, targets = archive.win, archive.group([0, 1]), archive.group([3, 2])
    for rank in range(RANKS):
        if rank < 2:
            archive.call(rank, "MPI_Win_start", group_sync(win, targets))
            archive.call(rank, "MPI_Put", start(win, 2 + rank, 1))
            archive.call(rank, "MPI_Win_complete", complete(win, 1), group_sync(win, targets))
        else:
            archive.call(rank, "MPI_Win_post", group_sync(win, origins))
            archive.call(rank, "MPI_Win_test", group_sync(win, origins, "NONE"))  # found the operations incomplete
            archive.call(rank, "MPI_Win_test" if rank == 2 else "MPI_Win_wait", group_sync(win, origins))
    trace = archive.finish()
    assert read_trace(trace).describe()["failed_polls"] == {"MPI_Win_test": 2}
    found = calls(simulated(trace))
    assert [found[f"win_{name}"] for name in ("start", "complete", "post", "wait")] == [2] * 4


def test_windows_that_a_trace_leaves_open_are_made_anew_in_every_pass(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "open")
    for rank in range(RANKS):
        archive.call(rank, "MPI_Put", start(archive.win, rank ^ 1, 1))
    archive.everyone("MPI_Win_fence", *on_window(archive.win, "BARRIER"))
    job = {"trace": {"path": archive.close()}}
    simulation = Simulation(Scenario(name="open", fabric={"topology": "fat_tree", "hosts": 8}, jobs=[job]))
    simulation.run_for("2 ms")
    assert min(simulation.progress()["traces"]) > 3
    fork = simulation.fork()
    for run in (simulation, fork):
        run.run_for("1 ms")
    assert simulation.digest() == fork.digest()


def test_what_a_trace_leaves_locked_or_exposed_ends_with_it(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "held")
    for rank in range(RANKS):
        archive.call(rank, "MPI_Win_lock", lock(archive.win, 0, "EXCLUSIVE"))
        archive.call(rank, "MPI_Put", start(archive.win, 0, 1))
    found = calls(simulated(archive.close()))
    assert [found[f"win_{name}"] for name in ("lock", "unlock", "free")] == [RANKS] * 3

    archive = Windowed(tmp_path / "exposed")
    everybody = archive.group(range(RANKS))
    for call in ("post", "start"):
        archive.everyone(f"MPI_Win_{call}", group_sync(archive.win, everybody))
    found = calls(simulated(archive.close()))
    assert [found[f"win_{name}"] for name in ("post", "start", "complete", "wait")] == [RANKS] * 4


def test_targets_that_a_window_does_not_have_are_named(tmp_path: Path) -> None:
    archive = Windowed(tmp_path / "outside")
    archive.call(0, "MPI_Put", start(archive.win, RANKS, 1))
    archive.call(0, "MPI_Win_lock", lock(archive.win, 9, "SHARED"))
    archive.call(1, "MPI_Get", start(archive.win, 2**32 - 2, 1, "RmaGet"))  # MPI_PROC_NULL of some libraries
    description = read_trace(archive.finish()).describe()
    reasons = {entry["call"]: entry["reason"] for entry in description["unsupported"]}
    assert reasons == {
        "MPI_Put": f"rank {RANKS} of window 0, which has {RANKS} ranks",
        "MPI_Win_lock": f"rank 9 of window 0, which has {RANKS} ranks",
    }
    assert description["one_sided"] == {}


def test_messages_that_a_matched_probe_found(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "mprobe", 2)
    for number in range(2):
        archive.call(0, "MPI_Send", send(1, archive.world, number, BYTES))
    found = [{"sender": 0, "communicator": archive.world, "tag": tag, "message_id": 70 + tag} for tag in range(2)]
    archive.call(1, "MPI_Mprobe", ("MpiProbe", found[0]))
    archive.call(1, "MPI_Mrecv", ("MpiMrecv", {"message_id": 70, "msg_length": BYTES}))
    archive.call(1, "MPI_Improbe")
    archive.call(1, "MPI_Improbe", ("MpiProbe", found[1]))
    archive.call(1, "MPI_Imrecv", ("MpiImrecvRequest", {"message_id": 71, "request_id": 5}))
    archive.call(1, "MPI_Wait", ("MpiImrecv", {"request_id": 5, "msg_length": BYTES}))
    trace = archive.close()
    assert read_trace(trace).describe()["unsupported"] == []
    counted = calls(simulated(trace))
    assert [counted[name] for name in ("send", "probe", "recv", "irecv", "wait")] == [2, 2, 1, 1, 1]


def test_a_non_blocking_collective_that_never_completes_cannot_be_simulated(tmp_path: Path) -> None:
    archive = Archive(tmp_path / "never", 2)
    archive.everyone("MPI_Iallreduce", completion("ALLREDUCE", archive.world, 8, 8, 1)[0])
    (refused,) = read_trace(archive.close()).describe()["unsupported"]
    assert (refused["call"], refused["count"], refused["first_record"]) == ("MPI_Iallreduce", 2, 2)
    assert "completion" in refused["reason"]
