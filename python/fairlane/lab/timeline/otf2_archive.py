"""Timelines as OTF2 archives, one for each job: for Vampir, Scalasca, Score-P's tools, and for replay as a trace.

Time stamps are exact: an archive has a resolution of one picosecond. A message is written if its send and its receive
are both in the range; a replay of the archive then has the same messages. Collectives have their communicator and bytes
in the form that Score-P records.
"""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from fairlane.core.errors import ResultsError, writing
from fairlane.lab.timeline.build import SENDS, Timelines
from fairlane.lab.timeline.recorded import mpi_name

RESOLUTION = 10**12
"""Ticks of an archive's clock in a second."""
ARCHIVE = "traces"
"""The name of an archive's files, as that of Score-P."""
_COLLECTIVES = {
    "barrier": "BARRIER",
    "bcast": "BCAST",
    "reduce": "REDUCE",
    "allreduce": "ALLREDUCE",
    "gather": "GATHER",
    "scatter": "SCATTER",
    "allgather": "ALLGATHER",
    "alltoall": "ALLTOALL",
    "reduce_scatter": "REDUCE_SCATTER",
    "scan": "SCAN",
}
_SELF = 2
"""The context of the communicator that a rank has for itself; its members are others for each rank."""
_COMMUNICATORS = {0: "MPI_COMM_WORLD", _SELF: "MPI_COMM_SELF"}
_MAKING = ("comm_dup", "comm_split", "comm_create", "comm_topology")
_ROOTED = ("bcast", "reduce", "gather", "scatter")


@dataclass(frozen=True)
class Written:
    """Written archives."""

    archives: Mapping[str, Path]
    """The anchor file of each job's archive."""
    events: int
    """The number of events of all archives."""
    notes: tuple[str, ...]
    """Contents that the archives lack, one sentence each."""


def write_otf2(timelines: Timelines, folder: str | Path) -> Written:
    """Writes an archive for each job into a folder of its name within ``folder``, which must be new or empty.

    The same timelines give the same bytes. Every rank of a job is written. Raises ``ResultsError`` if an archive cannot
    be written.
    """
    target = Path(folder)
    with writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            events = 0
            notes: list[str] = []
            archives: dict[str, Path] = {}
            for job in timelines.jobs:
                name = timelines.names[job]
                job_events = _Job.of(timelines, job)
                place = folder_of(name)
                events += _write(job_events, unfinished / place)
                notes += job_events.notes()
                archives[name] = target / place / f"{ARCHIVE}.otf2"
            unfinished.chmod(0o755)
            unfinished.rename(target)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)
    return Written(archives, events, tuple(notes))


def folder_of(name: str) -> str:
    """The folder of a job within that of all: one name, whatever the job's is."""
    return quote(name, safe=" ") if name.strip(".") else name.replace(".", "%2E")


@dataclass
class _Job:
    """Events of a job in its archive."""

    found: Timelines
    number: int
    operations: pl.DataFrame
    communicators: Mapping[int, tuple[int, ...]]
    """The members of each communicator by its context, as ranks of the job."""
    sent: Mapping[tuple[int, int], Mapping[str, Any]]
    """Messages that are written, by sender and number of its operation."""
    received: Mapping[int, Mapping[str, Any]]
    """The same by number."""
    ends: Mapping[tuple[int, int], list[tuple[int, int, bool, int | None]]]
    """The requests that an operation ended, by rank and operation: instant, slot, whether a receive, message."""
    bare: set[str] = field(default_factory=set)
    """Calls of which only the time is written."""
    cut: int = 0
    """Messages that are not written."""

    @classmethod
    def of(cls, timelines: Timelines, number: int) -> "_Job":
        of_job = pl.col("job") == number
        operations = timelines.operations.filter(of_job)
        known = operations.filter(pl.col("call").is_in(SENDS)).select("rank", "number", "context")
        messages = timelines.messages.filter(of_job, ~pl.col("collective")).join(
            known, left_on=["from_rank", "send_operation"], right_on=["rank", "number"], how="left"
        )
        whole = messages.drop_nulls(["send_operation", "receive_operation"])
        whole = whole.join(
            operations.select(pl.col("rank").alias("to_rank"), pl.col("number").alias("receive_operation")),
            on=["to_rank", "receive_operation"],
            how="semi",
        )
        members: dict[int, list[int]] = {}
        for context, rank in (
            timelines.communicators.filter(of_job).sort("context", "place").select("context", "rank").iter_rows()
        ):
            members.setdefault(context, []).append(rank)
        ends: dict[tuple[int, int], list[tuple[int, int, bool, int | None]]] = {}
        listed = timelines.request_ends.filter(of_job).select(
            "rank", "operation", "at_ps", "slot", "receive", "message"
        )
        for rank, operation, *rest in listed.iter_rows():
            ends.setdefault((rank, operation), []).append((rest[0], rest[1], rest[2], rest[3]))
        return cls(
            timelines,
            number,
            operations,
            {context: tuple(ranks) for context, ranks in members.items()},
            {(row["from_rank"], row["send_operation"]): row for row in whole.iter_rows(named=True)},
            {row["message"]: row for row in whole.iter_rows(named=True)},
            ends,
            cut=messages.height - whole.height,
        )

    @property
    def name(self) -> str:
        return self.found.names[self.number]

    @property
    def ranks(self) -> int:
        return len(self.found.view.hosts[self.number])

    def notes(self) -> Iterator[str]:
        if self.operations.is_empty():
            yield f"{self.name}: no MPI calls in the time range, and so no messages; open-loop load has none"
        elif self.cut:
            yield f"{self.name}: without {self.cut} messages that are not sent and received within the time range"
        if self.bare:
            calls = ", ".join(sorted(self.bare))
            yield f"{self.name}: of {calls} only the time, so that the archive cannot be replayed"


def _write(job: _Job, folder: Path) -> int:
    import otf2
    from otf2.enums import GroupFlag, GroupType, LocationGroupType, LocationType, Paradigm, RegionRole

    with otf2.writer.open(str(folder), archive_name=ARCHIVE, timer_resolution=RESOLUTION) as archive:
        archive.creator = "fairlane"
        archive.description = f"job {job.name} of {job.found.run.meta.scenario}, seed {job.found.run.meta.seed}"
        define = archive.definitions
        hosts = job.found.view.host_names(job.name)
        root = define.system_tree_node(job.found.run.meta.scenario, class_name="machine")
        nodes = {name: define.system_tree_node(name, class_name="node", parent=root) for name in dict.fromkeys(hosts)}
        locations = []
        for rank, host in enumerate(hosts):
            process = define.location_group(
                f"rank {rank}", location_group_type=LocationGroupType.PROCESS, system_tree_parent=nodes[host]
            )
            locations.append(define.location("main thread", type=LocationType.CPU_THREAD, group=process))
        define.group(
            "MPI locations", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=tuple(locations)
        )
        comms = {}
        for context, members in sorted({0: tuple(range(job.ranks)), **job.communicators}.items()):
            name = _COMMUNICATORS.get(context, f"communicator {context}")
            # Members are ranks of the group of all locations; that of MPI_COMM_SELF lists none.
            group = define.group(
                name,
                group_type=GroupType.COMM_SELF if context == _SELF else GroupType.COMM_GROUP,
                paradigm=Paradigm.MPI,
                group_flags=GroupFlag.NONE,
                members=() if context == _SELF else members,
            )
            comms[context] = define.comm(name, group=group)
        regions: dict[str, Any] = {}

        def region(name: str) -> Any:
            if name not in regions:
                role = getattr(RegionRole, _role(name))
                paradigm = Paradigm.MPI if name.startswith("MPI_") else Paradigm.USER
                regions[name] = define.region(name, region_role=role, paradigm=paradigm)
            return regions[name]

        count = 0
        for rank, location in enumerate(locations):
            count += _Rank(job, rank, archive.event_writer_from_location(location), region, comms).write()
        archive._realtime_timestamp = 0.0  # the library takes the time of day, with which no two archives are the same
    _identify(folder)
    return count


def _role(name: str) -> str:
    """OTF2's role of a region."""
    call = name.removeprefix("MPI_").lower()
    if not name.startswith("MPI_"):
        return "LOOP"
    if call.removeprefix("i") == "barrier":
        return "BARRIER"
    if call.startswith(("wait", "send", "recv", "isend", "irecv", "probe")):
        return "POINT2POINT"
    return "FUNCTION" if call in ("init", "finalize") else "RMA" if call.startswith("win_") else "COLL_OTHER"


def _identify(folder: Path) -> None:
    """Replaces the identifier of an archive, which the library draws at random, by one made from its content."""
    import _otf2

    anchor = folder / f"{ARCHIVE}.otf2"
    reader = _otf2.Reader_Open(str(anchor))
    drawn = _otf2.Reader_GetTraceId(reader)
    _otf2.Reader_Close(reader)
    data = anchor.read_bytes()
    places = [at for order in ("little", "big") if data.count(at := drawn.to_bytes(8, order)) == 1]
    if len(places) != 1:
        raise ResultsError(f"{anchor}: the OTF2 library has not written the identifier of the archive as expected")
    content = sha256(data.replace(places[0], b""))
    for file in sorted(path for path in folder.rglob("*") if path.is_file() and path != anchor):
        content.update(file.read_bytes())
    anchor.write_bytes(data.replace(places[0], content.digest()[:8]))


class _Rank:
    """The events of one rank."""

    def __init__(self, job: _Job, rank: int, events: Any, region: Any, comms: Mapping[int, Any]) -> None:
        self._job, self._rank, self._events, self._region, self._comms = job, rank, events, region, comms
        self._requests: dict[int, tuple[int, Mapping[str, Any] | None]] = {}  # by slot: its number, a collective
        self._begun = 0
        self._count = 0

    def write(self) -> int:
        """Writes all, and returns how many."""
        rows = self._job.operations.filter(pl.col("rank") == self._rank)
        # A rank computes before its first call and after its last one only as long as it was recorded to.
        first, last = rows["since_ps"].min(), rows["end_ps"].max()
        begin = first if isinstance(first, int) else self._job.found.from_ps
        self._call("MPI_Init", begin, begin)
        for row in rows.iter_rows(named=True):
            if row["call"] == "mark":
                self._call("iteration", row["since_ps"], row["since_ps"])
            elif row["call"] != "compute":
                self._operation(row)
        end = last if isinstance(last, int) else begin
        self._call("MPI_Finalize", end, end)
        return self._count

    def _put(self, kind: str, *values: Any) -> None:
        getattr(self._events, kind)(*values)
        self._count += 1

    def _call(self, name: str, since: int, end: int) -> None:
        self._put("enter", since, self._region(name))
        self._put("leave", end, self._region(name))

    def _operation(self, row: Mapping[str, Any]) -> None:
        since, end, call = row["since_ps"], row["end_ps"], row["call"]
        region = self._region(mpi_name(call, row["blocks"]))
        self._put("enter", since, region)
        if call in SENDS:
            self._send(row)
        elif call == "irecv":
            self._start_receive(row)
        elif call in _COLLECTIVES or call in _MAKING:
            self._put("mpi_collective_begin", since)
            self._put("mpi_collective_end", end, *self._sizes(row))
        elif call.startswith("i") and call[1:] in _COLLECTIVES:
            self._begun += 1
            self._requests[row["slot"]] = (self._begun, row)
            self._put("non_blocking_collective_request", since, self._begun)
        elif call not in ("recv", "probe") and not call.startswith("wait"):
            self._job.bare.add(mpi_name(call, row["blocks"]))
        for at, slot, receive, message in self._job.ends.get((self._rank, row["number"]), ()):
            self._end(row, min(max(at, since), end), slot, receive, message)
        self._put("leave", end, region)

    def _send(self, row: Mapping[str, Any]) -> None:
        message = self._job.sent.get((self._rank, row["number"]))
        if message is None:
            self._requests.pop(row["slot"], None)
            return
        values = (message["to_rank"], message["context"], message["tag"], message["bytes"])
        if row["call"] == "send":
            self._put("mpi_send", row["since_ps"], *self._partner(*values))
            return
        self._begun += 1
        self._requests[row["slot"]] = (self._begun, None)
        self._put("mpi_isend", row["since_ps"], *self._partner(*values), self._begun)

    def _partner(self, rank: int, context: int, tag: int, size: int) -> tuple[Any, ...]:
        """Partner, communicator, tag and bytes of a message; the partner as a rank of the communicator."""
        place = self._members(context).index(rank) if context else rank
        return place, self._comms[context], tag, size

    def _members(self, context: int) -> tuple[int, ...]:
        """The members of a communicator of this rank, as ranks of the job."""
        return (self._rank,) if context == _SELF else self._job.communicators[context]

    def _start_receive(self, row: Mapping[str, Any]) -> None:
        self._begun += 1
        self._requests[row["slot"]] = (self._begun, None)
        self._put("mpi_irecv_request", row["since_ps"], self._begun)

    def _end(self, row: Mapping[str, Any], at: int, slot: int, receive: bool, number: int | None) -> None:
        """A request has ended in an operation."""
        call = row["call"]
        message = None if number is None else self._job.received.get(number)
        if call == "recv":
            if message is not None:
                self._put("mpi_recv", at, *self._source(message))
            return
        if not call.startswith("wait"):
            return
        request, collective = self._requests.pop(slot, (0, None))
        if not request:
            return
        if collective is not None:
            kind, comm, root, sent, received = self._sizes(collective)
            self._put("non_blocking_collective_complete", at, kind, comm, root, sent, received, request)
        elif not receive:
            self._put("mpi_isend_complete", at, request)
        elif message is not None:
            self._put("mpi_irecv", at, *self._source(message), request)

    def _source(self, message: Mapping[str, Any]) -> tuple[Any, ...]:
        return self._partner(message["from_rank"], message["context"], message["tag"], message["bytes"])

    def _sizes(self, row: Mapping[str, Any]) -> tuple[Any, ...]:
        """Operation, communicator, root, and bytes sent and received of a collective."""
        from otf2.enums import CollectiveOp, CollectiveRoot

        call, context = row["call"], row["context"]
        if call in _MAKING:
            return CollectiveOp.CREATE_HANDLE, self._comms[context], CollectiveRoot.NONE, 0, 0
        kind = call if call in _COLLECTIVES else call[1:]
        members = self._members(context)
        name = _COLLECTIVES[kind]
        if row["blocks"] and kind in ("gather", "scatter", "allgather", "alltoall"):
            name += "V"
        if kind == "reduce_scatter" and not row["blocks"]:
            name += "_BLOCK"
        place = members.index(self._rank)
        sent, received = bytes_of(kind, row["bytes"], row["blocks"], len(members), place, row["peer"] == place)
        root = row["peer"] if kind in _ROOTED else CollectiveRoot.NONE
        return getattr(CollectiveOp, name), self._comms[context], root, sent, received


def bytes_of(kind: str, size: int, blocks: int, members: int, place: int, at_root: bool) -> tuple[int, int]:
    """The bytes that a member sends and receives in a collective, as Score-P counts them.

    ``size`` is the block that is the same for every member, or the sum of ``blocks``.
    """
    if blocks:
        part = size // members + (place < size % members)
        return {
            "gather": (part, size) if at_root else (size, 0),
            "scatter": (size, part) if at_root else (0, size),
            "allgather": (part, size),
            "reduce_scatter": (size, part),
        }.get(kind, (size, size))
    each = size * members
    return {
        "barrier": (0, 0),
        "bcast": (each if at_root else 0, size),
        "reduce": (size, each if at_root else 0),
        "gather": (size, each if at_root else 0),
        "scatter": (each if at_root else 0, size),
        "allgather": (size, each),
        "alltoall": (each, each),
        "reduce_scatter": (each, size),
    }.get(kind, (size, size))
