"""Estimates of a workload's program from the scripts of a few of its ranks: operations are counted, not kept.

The first rank, the second, one of the middle and the last represent all. A script that is too long to be counted is
extrapolated from small values of the workload's whole numbers, as if its length were a product of them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log2, sqrt
from typing import Any

from fairlane.model.workload.base import Workload
from fairlane.model.workload.builder import JobScript, Rank

LIMIT = 20_000
"""Operations of a rank's script that are counted; after that its length is extrapolated."""
SMALL = 4
"""Number that large numbers are replaced by to extrapolate, and twice that."""
MESSAGES = 64
"""Messages an iteration above which they are not written one by one: a script has as many times more."""
LARGE = 4096
"""Whole numbers above which a script is not even tried: it may take long before its first operation."""
_ELSEWHERE = frozenset({"variant", "distinct_iterations"})
"""Whole numbers of every workload on which the length of one iteration does not depend."""
_LOCAL = frozenset({"compute", "datagram", "request_free", "build", "begin_timing", "pause", "comm_set_name"})
"""Operations that end without another rank, besides those that are counted by themselves."""
_LONG = 2**19
"""Bytes above which an allreduce is taken to be done in parts."""


class Enough(Exception):
    """The script is longer than is counted."""


@dataclass
class Traffic:
    """Messages that a rank sends and receives."""

    messages: dict[float, float] = field(default_factory=dict)
    """Number of messages that it sends, by their bytes."""
    received: float = 0.0
    rounds: float = 0.0
    """Number of waits for messages, one latency each."""
    iterations: float = 0.0
    arriving: float = 0.0
    """Bytes that come to the busiest rank by one-sided operations, which it waits for."""
    waits_for_others: bool = False
    """Whether it does what ends only when another rank has done its part: a receive, a synchronous send, a fence."""

    @property
    def sent(self) -> float:
        """Messages that it sends."""
        return sum(self.messages.values())

    @property
    def bytes(self) -> float:
        """Bytes that it sends."""
        return sum(size * count for size, count in self.messages.items())

    def scaled(self, factor: float) -> "Traffic":
        """So many times as much, in as many iterations."""
        messages = {size: count * factor for size, count in self.messages.items()}
        return replace(self, messages=messages, received=self.received * factor, rounds=self.rounds * factor)


class Tally:
    """A program builder that counts up to ``limit`` operations, then raises ``Enough``."""

    def __init__(self, ranks: int, limit: int) -> None:
        self.operations = 0.0
        self.traffic = Traffic()
        self._limit = limit
        self._ranks = {0: ranks, 1: 1}
        self._times = [1.0]

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Any other operation."""
        if name not in _LOCAL:
            self.traffic.waits_for_others = True
        return lambda *_, **__: self._count()

    def _count(self, operations: float = 1) -> None:
        self.operations += operations
        if self.operations > self._limit:
            raise Enough

    def _sends(self, size: float, count: float = 1.0) -> None:
        messages = self.traffic.messages
        messages[size] = messages.get(size, 0.0) + count * self._times[-1]

    def _waits(self, rounds: float = 1.0) -> None:
        self.traffic.rounds += rounds * self._times[-1]

    def repeat(self, _: int, times: int | None) -> None:
        """A loop; one without end is counted once."""
        self._times.append(self._times[-1] * (1.0 if times is None else float(times)))

    def each(self, _: int, times: Sequence[int]) -> None:
        """A computation for each time, five of which take as much as an operation; what follows is kept once."""
        self._count((len(times) + 4) / 5)
        self._times.append(self._times[-1] * len(times))

    def end(self, _: int) -> None:
        """The end of a loop."""
        self._times.pop()

    def mark_progress(self, _: int) -> None:
        """An iteration is over."""
        self._count()
        self.traffic.iterations += self._times[-1]

    def isend(
        self, _: int, __: int, size: int, request: int = 0, tag: int = 0, comm: int = 0, synchronous: bool = False
    ) -> None:
        """A message."""
        del request, tag, comm
        self._count()
        self._sends(size)
        self.traffic.waits_for_others |= synchronous

    def send(self, rank: int, to: int, size: int, tag: int = 0, comm: int = 0, synchronous: bool = False) -> None:
        """A message that is waited for."""
        self.isend(rank, to, size, 0, tag, comm, synchronous)
        self._waits()

    def irecv(self, *_: Any) -> None:
        """A message that comes."""
        self._count()
        self.traffic.waits_for_others = True
        self.traffic.received += self._times[-1]

    def recv(self, *given: Any) -> None:
        """A message that is waited for."""
        self.irecv(*given)
        self._waits()

    def wait(self, *_: Any) -> None:
        """A wait."""
        self._count()
        self._waits()

    wait_all = wait_any = wait_some = wait

    def exchange(self, _: int, sources: Sequence[int], targets: Sequence[int], size: int, *___: Any) -> None:
        """A message to each target, as many received, and a wait."""
        self._count(2 * len(targets) + 1)
        self._sends(size, len(targets))
        self.traffic.received += len(targets) * self._times[-1]
        self.traffic.waits_for_others |= bool(sources)
        self._waits()

    def rma(self, _: int, __: str, ___: int, ____: int, size: int, *_____: Any) -> None:
        """A message, and an answer."""
        self.traffic.waits_for_others = True
        self._count()
        self._sends(size)

    def comm_split(self, _: int, new: int, *__: Any) -> None:
        """The size of the parts is not known; the rows of a square grid are a guess."""
        self._count()
        self._ranks[new] = max(1, round(sqrt(self._ranks[0])))

    def comm_create(self, _: int, new: int, members: Sequence[int], *__: Any) -> None:
        """A communicator of so many."""
        self._count()
        self._ranks[new] = len(members)

    def comm_define(self, _: int, new: int, members: Sequence[int]) -> None:
        """A communicator of so many."""
        self._count()
        self._ranks[new] = len(members)

    def collective(self, _: int, kind: str, volume: int | list[int] = 0, comm: int = 0, *__: Any) -> None:
        """Its messages."""
        self._count()
        self.traffic.waits_for_others = True
        ranks = self._ranks.get(comm, self._ranks[0])
        block = float(volume) if isinstance(volume, int) else sum(volume) / max(1, len(volume))
        for size, count in _messages(kind, block, ranks):
            self._sends(size, count)
            self.traffic.received += count * self._times[-1]
        self._waits(float(max(1, (ranks - 1).bit_length())))

    def end_burst(self, rank: int, _: int) -> None:
        """A broadcast."""
        self.collective(rank, "bcast", 4)

    def icollective(self, rank: int, kind: str, _: int, volume: int | list[int] = 0, comm: int = 0, *__: Any) -> None:
        """As ``collective``."""
        self.collective(rank, kind, volume, comm)


def _messages(kind: str, block: float, ranks: int) -> Iterator[tuple[float, float]]:
    """About what one rank sends in a collective: bytes of a message and how many."""
    others, steps = float(ranks - 1), float((ranks - 1).bit_length())
    if kind in ("alltoall", "allgather", "reduce_scatter"):
        yield block, others
    elif kind in ("allreduce", "barrier", "scan"):
        yield (block / ranks, 2 * others) if block > _LONG else (block, steps)
    else:  # a tree, or one to or from the root
        yield block, others / ranks


@dataclass(frozen=True)
class Counted:
    """The program of a job."""

    operations: float
    """Operations of all ranks."""
    ranks: tuple[tuple[float, Traffic], ...]
    """Traffic of some ranks in one iteration, each with the number of ranks that it represents."""


_KNOWN: dict[tuple[object, ...], Counted] = {}
"""What ``counted`` has returned in this process: the runs of a study have few workloads, and each is counted once."""


def counted(workload: Workload, ranks: int, iterations: int | None) -> Counted:
    """The program of a job of so many ranks and iterations."""
    key = (type(workload), repr(workload), ranks, iterations)
    if key not in _KNOWN:
        _KNOWN[key] = _counted(workload, ranks, iterations)
    return _KNOWN[key]


def _counted(workload: Workload, ranks: int, iterations: int | None) -> Counted:
    offered = workload.offered()
    if offered is not None:  # generated while it is simulated: there is no script
        return Counted(float(ranks), ((float(ranks), Traffic({offered[1]: 1.0}, 1.0, 0.0, 1.0)),))
    stages = len(workload.imbalance.stages(workload.variant))
    total, weighted = 0.0, []
    for rank, weight in _chosen(ranks).items():
        operations, _ = _script(workload, ranks, rank, 1, iterations)
        two, traffic = _script(workload, ranks, rank, 2, iterations)
        total += weight * max(0.0, operations + (workload.distinct_iterations - 1) * (two - operations)) * stages
        weighted.append((weight, traffic))
    targets = workload.one_sided_targets()
    if targets is not None:
        arriving = sum(weight * traffic.bytes for weight, traffic in weighted) / targets
        weighted = [(weight, replace(traffic, arriving=arriving)) for weight, traffic in weighted]
    return Counted(total, tuple(weighted))


def _chosen(ranks: int) -> dict[int, float]:
    """The ranks that are counted, and how many each represents: the first and the last only themselves."""
    chosen = sorted({0, min(1, ranks - 1), ranks // 2, ranks - 1})
    inner = [rank for rank in chosen if 0 < rank < ranks - 1]
    return {rank: (ranks - 2) / len(inner) if rank in inner else 1.0 for rank in chosen}


def _script(workload: Workload, ranks: int, rank: int, periods: int, iterations: int | None) -> tuple[float, Traffic]:
    """The length of a rank's script of this many periods, and what it sends in an iteration."""

    def count(**values: int) -> Tally | None:
        """The script with other parameters, counted; None if it is too long."""
        tally = Tally(ranks, LIMIT)
        builder: Any = tally
        job = JobScript(ranks, iterations=iterations, builder=builder)
        try:
            workload.model_copy(update=values).write(Rank(job, rank, builder), [[1] * periods])
        except Exception:  # too long; or an error in a user's own workload, reported when its program is written
            return None
        return tally

    numbers_of_workload = workload.whole_numbers()
    numbers = {
        name: value for name, value in numbers_of_workload.items() if name not in _ELSEWHERE and value > 2 * SMALL
    }
    messages = workload.messages_per_iteration
    if messages > MESSAGES:
        few, more = count(messages_per_iteration=SMALL), count(messages_per_iteration=2 * SMALL)
        if few and more:
            length = few.operations + (more.operations - few.operations) / SMALL * (messages - SMALL)
            return length, more.traffic.scaled(messages / (2 * SMALL) / max(1.0, more.traffic.iterations))
    elif max(numbers.values(), default=0) <= LARGE:
        tally = count()
        if tally:
            return float(tally.operations), tally.traffic.scaled(1 / max(1.0, tally.traffic.iterations))
    return _extrapolated(numbers, count), Traffic()


def _extrapolated(numbers: Mapping[str, int], count: Callable[..., Tally | None]) -> float:
    """The length of a script that is too long to be counted; at least what is counted.

    ``numbers`` are the workload's whole numbers that are not small: what may make a script long.
    """

    def length(**values: int) -> float:
        tally = count(**{**dict.fromkeys(numbers, SMALL), **values})
        return inf if tally is None else float(tally.operations)

    total = base = length()
    if not 0 < base < inf:
        return float(LIMIT)
    for name, number in numbers.items():
        once, twice = length(**{name: 2 * SMALL}), length(**{name: 4 * SMALL})
        if not base < once < twice < inf:
            continue
        # Twice the number makes a script as much longer as before if its length grows with the logarithm.
        steps = (number - SMALL) / SMALL if twice - once > 1.5 * (once - base) else log2(number / SMALL)
        total *= 1 + steps * (once - base) / base
    return total
