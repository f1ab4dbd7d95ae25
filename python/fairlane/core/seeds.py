"""Random streams by purpose: one seed, and a stream of its own for every purpose, job and variant.

A stream depends on the seed, its purpose and its indices only: adding a job, or another draw elsewhere, leaves all
others as they were. Streams are numpy's PCG64, seeded through ``SeedSequence`` with the spawn key (purpose, indices).
"""

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy

__all__ = ["LARGEST_SEED", "Purpose", "stream"]

LARGEST_SEED = 2**64 - 1
"""Seeds are kept in tables of 64 bits."""


class Purpose(IntEnum):
    """Uses of random numbers. A number, once given, is kept: it is part of every seed's meaning."""

    PLACEMENT = 1
    """Hosts of a job."""
    COMPUTE = 2
    """Division of compute time among a job's ranks."""
    PATTERN = 3
    """Communication patterns."""
    VARIANT = 4
    """Variations between two runs of one application."""
    SNAPSHOT = 5
    """Jobs on a machine at a snapshot that is simulated."""
    RAILS = 6
    """Adapter of its host that a process opens."""
    SOCKETS = 7
    """Variability of the sockets of a machine."""
    BACKGROUND = 8
    """Background jobs of a scenario."""
    FOLD = 10
    """Cross-validation folds of runs, and permutations of counters."""
    FAILURES = 11
    """Pairs of cables or switches that fail."""
    START = 12
    """Start of a job."""


def stream(seed: int, purpose: Purpose, *indices: int) -> "numpy.random.Generator":
    """The stream of ``purpose`` and ``indices`` (job, variant ...) of ``seed``."""
    from numpy.random import PCG64, Generator, SeedSequence

    return Generator(PCG64(SeedSequence(entropy=seed, spawn_key=(int(purpose), *indices))))
