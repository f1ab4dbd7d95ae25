"""Collectives as phases of messages, in the simplest code, for the algorithms that random cases use.

A phase of a rank is whom it receives from, what it sends to whom, and how many bytes it combines afterwards.
"""

from collections.abc import Iterator

Phase = tuple[list[int], list[tuple[int, int]], int]

#: Algorithms that are asked for by name, so that small numbers of ranks have the same.
NAMES = {"allgather": "ring", "alltoall": "scattered"}

#: How many distances, that of a rank to itself included, a phase of an alltoall has.
BATCH = 32


def phases(kind: str, rank: int, ranks: int, volume: int | tuple[int, ...], root: int) -> Iterator[Phase]:
    """The phases of one rank."""
    size = volume if isinstance(volume, int) else 0
    if ranks == 1:
        return
    match kind:
        case "barrier":
            distance = 1
            while distance < ranks:
                yield [(rank - distance) % ranks], [((rank + distance) % ranks, 0)], 0
                distance *= 2
        case "bcast" if size > 0:
            yield from bcast(rank, ranks, size, root)
        case "allreduce" if size > 0:
            yield from allreduce(rank, ranks, size)
        case "allgather" if size > 0:
            for _ in range(ranks - 1):
                yield [(rank - 1) % ranks], [((rank + 1) % ranks, size)], 0
        case "alltoall" if volume != 0:
            blocks = volume if isinstance(volume, tuple) else (size,) * ranks
            for batch in range(0, ranks, BATCH):
                others = range(max(1, batch), min(ranks, batch + BATCH))
                sends = [((rank - distance) % ranks, blocks[(rank - distance) % ranks]) for distance in others]
                yield [(rank + distance) % ranks for distance in others], sends, 0


def bcast(rank: int, ranks: int, size: int, root: int) -> Iterator[Phase]:
    """Down a binomial tree: a rank at position p, which counts from the root, has p without its last bit as parent."""
    position = (rank - root) % ranks
    last_bit = position & -position
    if position:
        yield [(root + position - last_bit) % ranks], [], 0
    distance = (last_bit or 1 << ranks.bit_length()) // 2
    while distance:
        if position + distance < ranks:
            yield [], [((root + position + distance) % ranks, size)], 0
        distance //= 2


def allreduce(rank: int, ranks: int, size: int) -> Iterator[Phase]:
    """Recursive doubling among a power of two; of the first pairs the even rank hands over and gets the result."""
    members = 1 << (ranks.bit_length() - 1)
    pairs = ranks - members
    if rank < 2 * pairs and rank % 2 == 0:
        yield [], [(rank + 1, size)], 0
        yield [rank + 1], [], 0
        return
    if rank < 2 * pairs:
        yield [rank - 1], [], size
    index = rank // 2 if rank < 2 * pairs else rank - pairs
    distance = 1
    while distance < members:
        other = index ^ distance
        partner = 2 * other + 1 if other < pairs else other + pairs
        yield [partner], [(partner, size)], size
        distance *= 2
    if rank < 2 * pairs:
        yield [], [(rank - 1, size)], 0
