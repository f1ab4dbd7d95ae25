"""The scripts of a job's ranks, written by typed calls of the simulator's program builder.

A workload writes to a ``Rank``. Times are picoseconds, sizes bytes, other ranks numbers in the job.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Event
from typing import TYPE_CHECKING, Any, TypeVar
from zlib import crc32

import numpy

from fairlane.core import bridge
from fairlane.core.seeds import Purpose, stream
from fairlane.model.workload.one_sided import OneSidedCalls
from fairlane.model.workload.writer import CollectiveCalls, PersistentCalls, Request

if TYPE_CHECKING:
    from fairlane.model.power import Pace

_T = TypeVar("_T")
WORLD = "world"
"""Name of the communicator of all ranks of a job."""
_FIRST_KIND = 16
"""Name of the first communicator of a kind; 0 and 1 are all ranks and the rank itself."""


@dataclass(frozen=True)
class Injection:
    """Injection bandwidth of a job's ranks, and packets. By default links of 100 Gbit/s."""

    bandwidths: Sequence[float] = (1e11,)
    """Injection bandwidth of each rank, bit/s; a single value is that of every rank."""
    mtu: int = 4096
    """Payload of the largest packet, bytes."""
    header: int = 26
    """Header of each packet, bytes."""

    def bandwidth(self, rank: int) -> float:
        """The injection bandwidth of a rank, bits per second."""
        return self.bandwidths[rank if len(self.bandwidths) > 1 else 0]

    def packets(self, size: int) -> int:
        """The packets of a message of ``size`` bytes."""
        return max(1, -(-size // self.mtu))

    def wire(self, size: int) -> int:
        """The bytes of a message of ``size`` bytes on the wire, headers included."""
        return size + self.packets(size) * self.header


class JobScript:
    """The scripts of one job: its ranks, and the random numbers that they share."""

    def __init__(
        self,
        ranks: int,
        *,
        seed: int = 0,
        job: int = 0,
        variant: int = 0,
        iterations: int | None = None,
        pace: "Pace | None" = None,
        stop: Event | None = None,
        injection: Callable[[], Injection] = Injection,
        builder: bridge.ProgramBuilder | None = None,
    ) -> None:
        self.ranks = ranks
        """Number of ranks of the job."""
        self.pace = pace
        """Factors on its compute times under a power cap; None without effect."""
        self.iterations = iterations
        """Number of iterations after which it ends; None for never."""
        self.key = (seed, job, variant)
        """Seed, number of the job, and variant: what its random numbers depend on."""
        self._builder = bridge.ProgramBuilder(ranks) if builder is None else builder
        self._stop = stop
        self._injection = injection
        self._drawn: dict[str, Any] = {}
        self.communicators: dict[str, int] = {}
        """The names of communicators by kind, such as ``tensor_parallel``: a rank is in one of each kind at most."""

    @cached_property
    def injection(self) -> Injection:
        """Injection of its ranks; without a fabric, that of links of 100 Gbit/s."""
        return self._injection()

    def stream(self, purpose: Purpose) -> numpy.random.Generator:
        """The job's random stream for ``purpose``; that of variants depends on the variant too."""
        seed, job, variant = self.key
        return stream(seed, purpose, job, variant) if purpose is Purpose.VARIANT else stream(seed, purpose, job)

    def pattern_stream(self, name: str) -> numpy.random.Generator:
        """The job's random stream of this name, from its beginning."""
        seed, job, _ = self.key
        return stream(seed, Purpose.PATTERN, job, crc32(name.encode()))

    def drawn(self, name: str, draw: Callable[[numpy.random.Generator], _T]) -> _T:
        """Call ``draw`` with the random stream of this name: once, the same for every rank."""
        if name not in self._drawn:
            self._drawn[name] = draw(self.pattern_stream(name))
        value: _T = self._drawn[name]
        return value

    def __iter__(self) -> Iterator["Rank"]:
        for index in range(self.ranks):
            if self._stop is not None and self._stop.is_set():  # scripts of large jobs take a while to write
                raise CancelledError
            rank = Rank(self, index, self._builder)
            yield rank
            rank.check_end()

    def build(self) -> bridge.Program:
        """The finished program; raises ``ValueError`` if a loop is left open."""
        return self._builder.build()


class Rank(CollectiveCalls, OneSidedCalls, PersistentCalls):
    """One rank's script, written operation by operation."""

    def __init__(self, job: JobScript, index: int, builder: bridge.ProgramBuilder) -> None:
        super().__init__(index, builder)
        self.job = job
        """The job whose rank this is."""

    @property
    def ranks(self) -> int:
        """Number of ranks of the job."""
        return self.job.ranks

    def compute(self, picoseconds: int, *, memory_bound: float | None = None) -> None:
        """Works on the CPU for this long, at full frequency.

        ``memory_bound`` is the part of it that waits for memory, which a power cap does not slow down; without it, that
        of the workload.
        """
        pace = self.job.pace
        time = picoseconds if pace is None else pace.stretched(self.index, picoseconds, memory_bound)
        self._builder.compute(self.index, time)

    def send(self, to: int, size: int, *, tag: int = 0, comm: int = 0, synchronous: bool = False) -> None:
        """Sends ``size`` bytes and waits until the send is complete."""
        self._builder.send(self.index, to, size, tag, comm, synchronous)

    def recv(self, source: int | None, *, tag: int | None = None, comm: int = 0) -> None:
        """Receives from ``source`` (None: from any rank) with ``tag`` (None: any)."""
        self._builder.recv(self.index, source, tag, comm)

    def isend(self, to: int, size: int, *, tag: int = 0, comm: int = 0, synchronous: bool = False) -> Request:
        """Starts to send ``size`` bytes."""
        request = self._request()
        self._builder.isend(self.index, to, size, request, tag, comm, synchronous)
        return request

    def irecv(self, source: int | None, *, tag: int | None = None, comm: int = 0) -> Request:
        """Starts to receive from ``source`` (None: from any rank) with ``tag`` (None: any)."""
        request = self._request()
        self._builder.irecv(self.index, source, request, tag, comm)
        return request

    def datagram(self, to: int, size: int) -> None:
        """Sends a datagram: it is handed to the NIC at once, takes no CPU time and needs no receive."""
        self._builder.datagram(self.index, to, size)

    def probe(self, source: int | None, *, tag: int | None = None, comm: int = 0) -> None:
        """Waits until a message that matches could be received, and receives nothing."""
        self._builder.probe(self.index, source, tag, comm)

    def wait(self, request: Request) -> None:
        """Waits for one request. Raises ``ValueError`` if it is not under way; a persistent one need not be."""
        for number in self._close([request]):
            self._builder.wait(self.index, number)

    def wait_all(self, requests: Iterable[Request] | None = None) -> None:
        """Waits for these requests, or for every one under way. Raises ``ValueError`` as ``wait`` does."""
        waited = self._close(list(self._open if requests is None else requests))
        if waited:
            self._builder.wait_all(self.index, waited)

    def wait_any(self, requests: Iterable[Request] | None = None) -> None:
        """Waits until one of these requests, or of all under way, is complete: the first such in the list.

        Only the simulation knows which; all of them count as under way until ``wait`` or ``wait_all`` names them, and
        those that are over by then are not waited for again. Raises ``ValueError`` if one is not under way.
        """
        self._builder.wait_any(self.index, self._under_way(requests))

    def wait_some(self, requests: Iterable[Request] | None = None) -> None:
        """Waits like ``wait_any``; afterwards all that are complete by then are over."""
        self._builder.wait_some(self.index, self._under_way(requests))

    def comm_split(self, new: int, color: int | None, key: int = 0, *, comm: int = 0, name: str | None = None) -> None:
        """Splits ``comm`` by ``color`` (None: no member of any part); ``new`` is the handle of this rank's part.

        ``name`` is the part's name, as ``comm_set_name`` gives it.
        """
        self._builder.comm_split(self.index, new, color, key, comm)
        if name is not None and color is not None:
            self.comm_set_name(new, name)

    def comm_set_name(self, comm: int, name: str) -> None:
        """Gives a communicator a name, by which traffic classes select its messages. Every member gives it."""
        self._builder.comm_set_name(self.index, comm, name)

    def comm_dup(self, new: int, *, comm: int = 0) -> None:
        """Copies ``comm``; ``new`` names the copy. Every member of ``comm`` takes part."""
        self._builder.comm_dup(self.index, new, comm)

    def comm_create(self, new: int, members: Iterable[int], *, comm: int = 0) -> None:
        """Makes a communicator of ``members``, ranks in ``comm``, in their order; ``new`` names it.

        Every member of ``comm`` takes part and gives the same list; ranks that are not on it get no communicator.
        """
        self._builder.comm_create(self.index, new, list(members), comm)

    def communicator(self, kind: str, members: Sequence[int]) -> int:
        """Returns the communicator of this kind among ``members``, ranks of the job in order, one of which is this.

        It takes no messages: the members know each other. Those of one kind, such as the ``tensor_parallel`` groups of
        a job, are disjoint and have one name at all ranks, which ``job.communicators`` keeps. Traffic classes select
        them by kind.
        """
        known = self.job.communicators
        name = known.setdefault(kind, _FIRST_KIND + len(known))
        self._builder.comm_define(self.index, name, list(members))
        self.comm_set_name(name, kind)
        return name

    def comm_free(self, comm: int) -> None:
        """Frees a communicator; its number can be used again."""
        self._builder.comm_free(self.index, comm)

    def exchange(self, peers: Iterable[int], size: int, count: int = 1) -> None:
        """Sends ``count`` messages of ``size`` bytes to each peer, receives as many from each, and waits for all."""
        others = list(peers)
        for _ in range(count):
            for peer in others:
                self.irecv(peer)
        for _ in range(count):
            for peer in others:
                self.isend(peer, size)
        self.wait_all()

    def exchange_each(self, sources: list[int], targets: list[int], size: int) -> None:
        """Receives from each of ``sources`` and sends ``size`` bytes to each of ``targets`` at once, and waits for all.

        Both lists have one length; the message at place ``i`` has tag ``i``. Quicker to write than one by one.
        """
        first = self._next + 1 if self._open else 0
        self._builder.exchange(self.index, sources, targets, size, first)
        if self._open:  # numbers are given again once nothing is under way
            self._next = first + 2 * len(sources) - 1

    def begin_timing(self) -> None:
        """Begins the timed part of an iteration. Without it, an iteration is timed from the end of the one before."""
        self._builder.begin_timing(self.index)

    def mark_progress(self) -> None:
        """Marks the end of an iteration."""
        self._builder.mark_progress(self.index)

    def end_burst(self, length: int, pause: int) -> None:
        """Ends a burst that has lasted for ``length``, ps, and sleeps for ``pause``, ps, before the next begins.

        Rank 0 decides by its own clock and tells the others by a broadcast of four bytes. The first burst begins with
        the job. Every rank of the job takes part.
        """
        self._builder.end_burst(self.index, length)
        self._builder.pause(self.index, pause)

    @contextmanager
    def repeat(self, times: int | None = None) -> Iterator[None]:
        """Repeats what is written in its ``with`` block this many times, or for ever."""
        self._builder.repeat(self.index, times)
        yield
        self._builder.end(self.index)

    @contextmanager
    def each(self, times: Sequence[int]) -> Iterator[None]:
        """For each of these times: computes so long, ps, and does what is written in its ``with`` block.

        The same as the block written after each computation, but it is written, and kept in memory, once. Raises
        ``ValueError`` if a request is under way before or after the block: its number would be in use the next time.
        """
        self._refuse(self._open, "has requests under way at the beginning of a block for each time")
        pace = self.job.pace
        stretched = times if pace is None else [pace.stretched(self.index, time) for time in times]
        self._builder.each(self.index, list(stretched))
        yield
        self._refuse(self._open, "has requests under way at the end of a block for each time")
        self._builder.end(self.index)
