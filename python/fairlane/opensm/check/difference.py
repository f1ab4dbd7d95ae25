"""What a check finds: differences, counts and notes."""

from collections.abc import Mapping
from dataclasses import dataclass

EXPORTED, OPENSM, SIMULATED = "exported files", "OpenSM", "ibsim"
"""What a difference can be due to."""


@dataclass(frozen=True)
class Difference:
    """A value that was read back and is another than was exported."""

    node: str
    """The host or switch."""
    port: str
    """The port's number; of a path its other end, of a forwarding table the destination."""
    what: str
    """What was read, as ``SL2VL, input port 3``."""
    expected: str
    found: str
    cause: str = OPENSM
    """Which of the exported files, OpenSM, one of its routing engines and ibsim it is due to."""
    effect: str = ""
    """The shares of a link that lanes have because of it, where they are others."""


@dataclass(frozen=True)
class Compared:
    """The result of one comparison."""

    counts: Mapping[str, int]
    """How many were compared, by what."""
    differences: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()
    """What the simulated subnet cannot hold, and what was compared only in part; one sentence each."""
