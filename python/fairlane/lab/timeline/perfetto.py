"""Timelines as a trace of Perfetto, in its native format: ranks as threads of their jobs, ports as counters.

Time stamps are whole nanoseconds, rounded down; the exact picoseconds of waits and messages are in arguments.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from fairlane.core.errors import require, writing
from fairlane.inputs.files import replacing
from fairlane.lab.timeline.build import COUNTERS, PortCounters, Timelines, port_counters
from fairlane.lab.timeline.recorded import mpi_name

MOST_PORTS = 64
"""The ports that are shown unless other numbers are asked for."""
_SEQUENCE = 1
_CLEARED, _NEEDED = 1, 2  # flags of packets: interned names begin here, or were defined before
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4  # types of events
_PORTS = 1  # track of all ports
_FIRST_JOB = 1 << 32  # tracks of jobs and ranks
_FIRST_ITERATIONS = 1 << 40
_FIRST_PORT = 1 << 48

_Key = tuple[int, ...]
_Values = dict[str, Any]


def write_perfetto(timelines: Timelines, file: str | Path, *, ports: int = MOST_PORTS) -> int:
    """Writes timelines as a trace for Perfetto, and returns the number of its events.

    The same timelines give the same bytes. ``ports`` is how many ports have counters: those with most queueing delay.
    Raises ``MissingExtraError`` without the library ``perfetto``, and ``ResultsError`` if the file cannot be written.
    """
    require("timeline")
    counters = list(port_counters(timelines, ports))
    path = Path(file)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as scratch, scratch.open("wb") as opened:
            writer = _Writer(opened)
            _tracks(writer, timelines, counters)
            events = sorted(_events(timelines, counters), key=lambda event: event[0])
            for key, kind, track, name, values, flow in events:
                writer.event(key[0], kind, track, name, values, flow)
    return len(events)


_Event = tuple[_Key, int, int, str, _Values, int]
"""Order, type, track, name, arguments, and a flow: positive where it begins, negative where it ends."""


def _events(timelines: Timelines, counters: Iterable[PortCounters]) -> Iterator[_Event]:
    yield from _operations(timelines)
    yield from _waits(timelines)
    yield from _messages(timelines)
    yield from _iterations(timelines)
    for number, port in enumerate(counters):
        for at, values in port.points:
            for place, value in enumerate(values):
                track = _port_track(number) + place
                yield (at, track), _COUNTER, track, "", {"value": value}, 0


# Events of one instant and rank are in the order of the operations. In each come first its beginning, then the waits in
# it one after another, messages, and its end.
_BEGINS, _WITHIN, _MESSAGE, _ENDS = range(4)


def _operations(timelines: Timelines) -> Iterator[_Event]:
    sent = {
        (row["job"], row["from_rank"], row["send_operation"]): row
        for row in timelines.messages.drop_nulls("send_operation").iter_rows(named=True)
    }
    for row in timelines.operations.iter_rows(named=True):
        job, rank, number, call = row["job"], row["rank"], row["number"], row["call"]
        if rank not in timelines.ranks_of(job):
            continue
        track = _rank_track(job, rank)
        since, end = (row["since_ps"], track, number, _BEGINS), (row["end_ps"], track, number, _ENDS)
        if call == "mark":
            continue
        message = sent.get((job, rank, number))
        values = _sent(timelines, message) if message else {}
        name = "compute" if call == "compute" else mpi_name(call, row["blocks"])
        yield since, _BEGIN, track, name, values, message["message"] + 1 if message else 0
        yield end, _END, track, "", {}, 0


def _sent(timelines: Timelines, message: Mapping[str, Any]) -> _Values:
    """Return the properties of a message at its send."""
    names = timelines.names
    causes = timelines.causes.get(message["message"], ())
    queueing = {"unknown" if job is None else names[job]: spent for job, spent in causes}
    values = {
        "to": message["to_rank"],
        "bytes": message["bytes"],
        "tag": message["tag"],
        "protocol": "eager" if message["eager"] else "rendezvous",
        "message": message["message"],
    }
    return {**values, "queueing_ps": queueing} if queueing else values


def _waits(timelines: Timelines) -> Iterator[_Event]:
    ends = {row[0]: row[1:] for row in timelines.messages.select("message", "from_rank", "to_rank").iter_rows()}
    for place, row in enumerate(timelines.waits.iter_rows(named=True)):
        job, rank, message, number = row["job"], row["rank"], row["message"], row["number"]
        if rank not in timelines.ranks_of(job) or number is None:
            continue
        track = _rank_track(job, rank)
        since, end = max(row["since_ps"], timelines.from_ps), row["end_ps"]
        middle = min(max(row["partner_at_ps"], since), end)
        values: _Values = {} if message is None else {"message": message}
        if message in ends:
            values["partner"] = ends[message][0 if row["receiver"] else 1]
        late = "late sender" if row["receiver"] else "late receiver"
        network, cause = "network", row["cause"]
        if cause is not None:
            network = f"network: {'itself' if cause == job else timelines.names[cause]}"
        causes = {} if cause is None else {"cause": timelines.names[cause]}
        parts: tuple[tuple[str, int, int, str, _Values], ...] = (
            (late, since, middle, "late_ps", {}),
            (network, middle, end, "network_ps", causes),
        )
        for part, (name, begin, over, key, more) in enumerate(parts):
            if over > begin:
                order = (track, number, _WITHIN, place, part)
                yield (begin, *order, 0), _BEGIN, track, name, {key: over - begin, **values, **more}, 0
                yield (over, *order, 1), _END, track, "", {}, 0


def _messages(timelines: Timelines) -> Iterator[_Event]:
    """Yield the sends of messages of collectives, and the receives of all: at the end of the receive."""
    begun = _Begun(timelines)
    for row in timelines.messages.iter_rows(named=True):
        job, sender, receiver, message = row["job"], row["from_rank"], row["to_rank"], row["message"]
        shown = timelines.ranks_of(job)
        at = row["sent_at_ps"]
        if row["send_operation"] is None and sender in shown and timelines.from_ps <= at < timelines.to_ps:
            track = _rank_track(job, sender)
            key = (at, track, begun.number(job, sender, at), _MESSAGE, message)
            yield key, _INSTANT, track, "send", _sent(timelines, row), message + 1
        at = row["received_at_ps"] if row["received_by_ps"] is None else row["received_by_ps"]
        if receiver in shown and at is not None and timelines.from_ps <= at < timelines.to_ps:
            track = _rank_track(job, receiver)
            number = row["receive_operation"]
            number = begun.number(job, receiver, at) if number is None else number
            values = {"from": sender, "bytes": row["bytes"], "tag": row["tag"], "message": message}
            if row["received_at_ps"] is not None:
                values["in_flight_ps"] = row["received_at_ps"] - row["sent_at_ps"]
            yield (at, track, number, _MESSAGE, message), _INSTANT, track, "receive", values, -message - 1


class _Begun:
    """The operation that a rank had begun last at an instant."""

    def __init__(self, timelines: Timelines) -> None:
        self._of: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        for job, rank, number, since in timelines.operations.select("job", "rank", "number", "since_ps").iter_rows():
            times, numbers = self._of.setdefault((job, rank), ([], []))
            times.append(since)
            numbers.append(number)

    def number(self, job: int, rank: int, at: int) -> int:
        times, numbers = self._of.get((job, rank), ([], []))
        place = bisect_right(times, at)
        return numbers[place - 1] if place else 0


def _iterations(timelines: Timelines) -> Iterator[_Event]:
    for job in timelines.jobs:
        track = _FIRST_ITERATIONS + job
        for iteration, since, end, elapsed in timelines.completions(job):
            values = {} if elapsed is None else {"elapsed_ps": elapsed}
            yield (since, track, iteration, 0), _BEGIN, track, f"iteration {iteration}", values, 0
            yield (end, track, iteration, 1), _END, track, "", {}, 0


def _job_track(job: int) -> int:
    return _FIRST_JOB + (job << 20)


def _rank_track(job: int, rank: int) -> int:
    return _job_track(job) + 1 + rank


def _port_track(number: int) -> int:
    return _FIRST_PORT + number * len(COUNTERS)


def _tracks(writer: "_Writer", timelines: Timelines, counters: Iterable[PortCounters]) -> None:
    """The tracks: a process for each job, a thread for each of its ranks, and the counters of ports."""
    first = 1
    for job in timelines.jobs:
        name = timelines.names[job]
        process = writer.track(_job_track(job))
        process.process.pid, process.process.process_name = first, name
        writer.write()
        iterations = writer.track(_FIRST_ITERATIONS + job)
        iterations.name, iterations.parent_uuid = "iterations", _job_track(job)
        writer.write()
        hosts = timelines.view.host_names(name)
        for rank in timelines.ranks_of(job):
            thread = writer.track(_rank_track(job, rank)).thread
            thread.pid, thread.tid, thread.thread_name = first, first + 1 + rank, f"rank {rank} on {hosts[rank]}"
            writer.write()
        first += len(hosts) + 1
    listed = list(enumerate(counters))
    if listed:
        writer.track(_PORTS).name = "ports"
        writer.write()
    for number, port in listed:
        for place, (name, unit) in enumerate(COUNTERS):
            track = writer.track(_port_track(number) + place)
            track.name, track.parent_uuid, track.counter.unit_name = f"{port.name}: {name}", _PORTS, unit
            writer.write()


class _Writer:
    """A trace in the making: its packets, with names that are written once and have numbers from then on."""

    def __init__(self, file: IO[bytes]) -> None:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._builder = StreamingTraceProtoBuilder(file)
        self._packet: Any = None
        self._events: dict[str, int] = {}
        self._arguments: dict[str, int] = {}
        self._begun = False

    def _new(self) -> Any:
        packet = self._packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = _NEEDED if self._begun else _CLEARED
        self._begun = True
        return packet

    def write(self) -> None:
        """Writes the packet that was begun last."""
        self._builder.write_packet(self._packet)

    def track(self, uuid: int) -> Any:
        """Begins the packet that describes a track."""
        track = self._new().track_descriptor
        track.uuid = uuid
        return track

    def event(self, ps: int, kind: int, track: int, name: str, values: _Values, flow: int) -> None:
        """Writes an event."""
        packet = self._new()
        packet.timestamp = ps // 1000
        event = packet.track_event
        event.type, event.track_uuid = kind, track
        if kind == _COUNTER:
            event.double_counter_value = values["value"]
        else:
            if name:
                event.name_iid = self._number(self._events, name, packet.interned_data.event_names)
            self._annotate(packet, event.debug_annotations, values)
        if flow > 0:
            event.flow_ids.append(flow)
        elif flow < 0:
            event.terminating_flow_ids.append(-flow)
        self.write()

    def _annotate(self, packet: Any, annotations: Any, values: _Values) -> None:
        for key, value in values.items():
            annotation = annotations.add()
            annotation.name_iid = self._number(self._arguments, key, packet.interned_data.debug_annotation_names)
            if isinstance(value, dict):
                self._annotate(packet, annotation.dict_entries, value)
            elif isinstance(value, str):
                annotation.string_value = value
            else:
                annotation.int_value = value

    @staticmethod
    def _number(known: dict[str, int], name: str, defined: Any) -> int:
        number = known.get(name)
        if number is None:
            number = known[name] = len(known) + 1
            entry = defined.add()
            entry.iid, entry.name = number, name
        return number
