"""Writes small OTF2 archives for tests, call by call, with the Python package of OTF2."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the package has old escape sequences in its texts
    import otf2
    from otf2.enums import CollectiveOp, GroupFlag, GroupType, LocationType, Paradigm, RegionRole

__all__ = ["GAP", "Archive", "Record", "collective", "isend", "non_blocking", "recv", "send"]

GAP = 100
"""Nanoseconds between two calls; each lasts ten."""
Record = tuple[str, dict[str, Any]]
"""The name of an event type and its fields."""


class Archive:
    """An archive of a few ranks in the making."""

    def __init__(self, folder: Path, ranks: int) -> None:
        self.path = folder / "traces.otf2"
        self.trace = otf2.writer.open(str(folder), timer_resolution=1_000_000_000).thing
        self.definitions = self.trace.definitions
        node = self.definitions.system_tree_node("node")
        self.locations = [
            self.definitions.location(
                f"rank {rank}",
                type=LocationType.CPU_THREAD,
                group=self.definitions.location_group(f"process {rank}", system_tree_parent=node),
            )
            for rank in range(ranks)
        ]
        self._group(GroupType.COMM_LOCATIONS, self.locations)
        self.world = self.comm("MPI_COMM_WORLD", range(ranks))
        self._writers = [self.trace.event_writer_from_location(location) for location in self.locations]
        self._now = [0] * ranks

    def _group(self, kind: Any, members: list[Any]) -> Any:
        return self.definitions.group(
            "", group_type=kind, paradigm=Paradigm.MPI, group_flags=GroupFlag.NONE, members=members
        )

    def group(self, members: Iterable[int]) -> Any:
        """A group of these ranks."""
        return self._group(GroupType.COMM_GROUP, [self.locations[member] for member in members])

    def comm(self, name: str, members: Iterable[int]) -> Any:
        """A communicator of these ranks."""
        return self.definitions.comm(name, group=self.group(members))

    def between(self, name: str, left: Iterable[int], right: Iterable[int]) -> Any:
        """A communicator between two groups."""
        writer = otf2.definition_writer.DefinitionWriter
        original = writer.write_inter_comm

        def write(this: Any, ref: Any, title: Any, *fields: Any) -> None:
            # The package's definition has the fields of a plain communicator before its own, its writer has not.
            original(this, ref, title, *fields[-4:])

        if original.__name__ != "write":
            writer.write_inter_comm = write
        groups = {"groupA": self.group(left), "groupB": self.group(right)}
        return self.definitions.inter_comm(name, group=groups["groupA"], **groups)

    def window(self, name: str, comm: Any) -> Any:
        """A window over a communicator."""
        return self.definitions.rma_win(name, comm=comm)

    def call(self, rank: int, name: str, *records: Record) -> None:
        """A call of MPI, with the records inside it."""
        region = self.definitions.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI)
        writer, start = self._writers[rank], self._now[rank] + GAP
        writer.enter(start, region)
        for kind, fields in records:
            writer(getattr(otf2.events, kind)(start + 5, **fields))
        writer.leave(start + 10, region)
        self._now[rank] = start + 10

    def thread(self, rank: int, *calls: tuple[str, Record]) -> None:
        """Another thread of a rank's process, and what it does: calls of MPI with one record each, and a region."""
        thread = self.definitions.location(
            f"thread of rank {rank}", type=LocationType.CPU_THREAD, group=self.locations[rank].group
        )
        writer, now = self.trace.event_writer_from_location(thread), 0
        parallel = self.definitions.region("loop", region_role=RegionRole.PARALLEL, paradigm=Paradigm.OPENMP)
        writer.enter(now, parallel)
        for name, (kind, fields) in calls:
            region = self.definitions.region(name, region_role=RegionRole.FUNCTION, paradigm=Paradigm.MPI)
            writer.enter(now + GAP, region)
            writer(getattr(otf2.events, kind)(now + GAP + 5, **fields))
            now += GAP + 10
            writer.leave(now, region)
        writer.leave(now + GAP, parallel)

    def everyone(self, name: str, *records: Record) -> None:
        """The same call of all ranks."""
        for rank in range(len(self.locations)):
            self.call(rank, name, *records)

    def close(self) -> Path:
        """Finishes the archive; its anchor file."""
        self.everyone("MPI_Finalize")
        self.trace.close()
        return self.path


def send(to: int, comm: Any, tag: int, length: int) -> Record:
    """A blocking send."""
    return "MpiSend", {"receiver": to, "communicator": comm, "msg_tag": tag, "msg_length": length}


def isend(to: int, comm: Any, tag: int, length: int, request: int) -> Record:
    """A non-blocking send."""
    return "MpiIsend", {
        "receiver": to,
        "communicator": comm,
        "msg_tag": tag,
        "msg_length": length,
        "request_id": request,
    }


def recv(sender: int, comm: Any, tag: int, length: int) -> Record:
    """A blocking receive."""
    return "MpiRecv", {"sender": sender, "communicator": comm, "msg_tag": tag, "msg_length": length}


def collective(operation: str, comm: Any, sent: int, received: int, root: int = 2**32 - 1) -> tuple[Record, Record]:
    """The begin and the end of a blocking collective."""
    end = {
        "collective_op": getattr(CollectiveOp, operation),
        "communicator": comm,
        "root": root,
        "size_sent": sent,
        "size_received": received,
    }
    return ("MpiCollectiveBegin", {}), ("MpiCollectiveEnd", end)


def non_blocking(
    operation: str, comm: Any, sent: int, received: int, request: int, root: int = 2**32 - 1
) -> tuple[Record, Record]:
    """The request and the completion of a non-blocking collective."""
    _, (_, end) = collective(operation, comm, sent, received, root)
    complete = ("NonBlockingCollectiveComplete", {**end, "request_id": request})
    return ("NonBlockingCollectiveRequest", {"request_id": request}), complete
