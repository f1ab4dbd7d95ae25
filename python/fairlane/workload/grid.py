"""Ranks in a grid, and who is whose neighbour in it."""

from collections.abc import Sequence

__all__ = ["grid_shape", "neighbours"]


def grid_shape(ranks: int, dimensions: int = 2) -> tuple[int, ...]:
    """The most cubic grid of exactly this many ranks, shorter sides first."""
    if dimensions == 1:
        return (ranks,)
    target = ranks ** (1 / dimensions)
    side = max(side for side in range(1, int(target + 1e-9) + 1) if ranks % side == 0)
    return tuple(sorted((side, *grid_shape(ranks // side, dimensions - 1))))


def neighbours(rank: int, shape: tuple[int, ...], offsets: Sequence[tuple[int, ...]]) -> list[int]:
    """The ranks at ``offsets`` from ``rank`` in a row-major grid without wraparound."""
    place: list[int] = []
    rest = rank
    for side in reversed(shape):
        rest, at = divmod(rest, side)
        place.insert(0, at)
    found = []
    for offset in offsets:
        there = [at + step for at, step in zip(place, offset, strict=True)]
        if all(0 <= at < side for at, side in zip(there, shape, strict=True)):
            number = 0
            for at, side in zip(there, shape, strict=True):
                number = number * side + at
            found.append(number)
    return found
