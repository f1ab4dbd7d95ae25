"""What a workload's program will be like, from the scripts of a few of its ranks: they are counted, not kept.

The first rank, the second, one of the middle and the last stand for all. A script that grows too long to be counted is
extrapolated from small values of the workload's whole numbers, as if its length were a product of them.
"""

from dataclasses import dataclass
from math import inf, log2
from typing import Any

from fairlane.workload.base import Workload
from fairlane.workload.builder import JobScript, Rank
from fairlane.workload.tally import Enough, Tally, Traffic

__all__ = ["Counted", "counted"]

LIMIT = 20_000
"""Operations of a rank's script that are counted; after that its length is extrapolated."""
SMALL = 4
"""What large numbers are replaced by to extrapolate, and twice that."""
MESSAGES = 64
"""Messages an iteration above which they are not written one by one: a script has as many times more."""
LARGE = 4096
"""Whole numbers above which a script is not even tried: it may take long before its first operation."""
_ELSEWHERE = frozenset({"variant", "distinct_iterations"})
"""Whole numbers of every workload on which the length of one iteration does not depend."""


@dataclass(frozen=True)
class Counted:
    """The program of a job."""

    operations: float
    """Operations of all ranks."""
    ranks: tuple[tuple[float, Traffic], ...]
    """What some ranks do in one iteration, and how many ranks each stands for."""


def counted(workload: Workload, ranks: int, iterations: int | None) -> Counted:
    """The program of a job of so many ranks and iterations."""
    offered = workload.offered()
    if offered is not None:  # generated while it is simulated: there is no script
        return Counted(float(ranks), ((float(ranks), Traffic({offered[1]: 1.0}, 1.0, 0.0, 1.0)),))
    stages = len(workload.imbalance.stages(workload.variant))
    total, found = 0.0, []
    for rank, weight in _chosen(ranks).items():
        one, _ = _script(workload, ranks, rank, 1, iterations)
        two, traffic = _script(workload, ranks, rank, 2, iterations)
        total += weight * max(0.0, one + (workload.distinct_iterations - 1) * (two - one)) * stages
        found.append((weight, traffic))
    return Counted(total, tuple(found))


def _chosen(ranks: int) -> dict[int, float]:
    """The ranks that are looked at, and how many each stands for: the ends for themselves."""
    chosen = sorted({0, min(1, ranks - 1), ranks // 2, ranks - 1})
    inner = [rank for rank in chosen if 0 < rank < ranks - 1]
    return {rank: (ranks - 2) / len(inner) if rank in inner else 1.0 for rank in chosen}


def _script(workload: Workload, ranks: int, rank: int, periods: int, iterations: int | None) -> tuple[float, Traffic]:
    """The length of a rank's script of this many periods, and what it sends in an iteration."""

    def at(**values: int) -> Tally | None:
        return _counted(workload.model_copy(update=values), ranks, rank, periods, iterations)

    messages = workload.messages_per_iteration
    if messages > MESSAGES:
        few, more = at(messages_per_iteration=SMALL), at(messages_per_iteration=2 * SMALL)
        if few and more:
            length = few.operations + (more.operations - few.operations) / SMALL * (messages - SMALL)
            return length, more.traffic.scaled(messages / (2 * SMALL) / max(1.0, more.traffic.iterations))
    elif max(_numbers(workload).values(), default=0) <= LARGE:
        tally = at()
        if tally:
            return float(tally.operations), tally.traffic.scaled(1 / max(1.0, tally.traffic.iterations))
    return _extrapolated(workload, ranks, rank, periods, iterations), Traffic()


def _counted(workload: Workload, ranks: int, rank: int, periods: int, iterations: int | None) -> Tally | None:
    """A rank's script, counted; None if it is too long."""
    tally: Any = Tally(ranks, LIMIT)
    job = JobScript(ranks, iterations=iterations, builder=tally)
    try:
        workload.write(Rank(job, rank, tally), [[1] * periods])
    except (Enough, MemoryError):
        return None
    except Exception:  # what is wrong with a user's own workload is reported when its program is written
        return None
    found: Tally = tally
    return found


def _numbers(workload: Workload) -> dict[str, int]:
    """The workload's whole numbers that are not small: what may make a script long."""
    found = workload.whole_numbers()
    return {name: value for name, value in found.items() if name not in _ELSEWHERE and value > 2 * SMALL}


def _extrapolated(workload: Workload, ranks: int, rank: int, periods: int, iterations: int | None) -> float:
    """The length of a script that is too long to be counted; at least what is counted."""
    numbers = _numbers(workload)

    def length(**values: int) -> float:
        given = workload.model_copy(update={**dict.fromkeys(numbers, SMALL), **values})
        tally = _counted(given, ranks, rank, periods, iterations)
        return inf if tally is None else float(tally.operations)

    found = base = length()
    if not 0 < base < inf:
        return float(LIMIT)
    for name, number in numbers.items():
        once, twice = length(**{name: 2 * SMALL}), length(**{name: 4 * SMALL})
        if not base < once < twice < inf:
            continue
        # Twice the number makes a script as much longer as before if its length grows with the logarithm.
        steps = (number - SMALL) / SMALL if twice - once > 1.5 * (once - base) else log2(number / SMALL)
        found *= 1 + steps * (once - base) / base
    return found
