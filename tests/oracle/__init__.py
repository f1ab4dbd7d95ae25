"""A slow simulator of the model in ``docs/model.md``, in the simplest code that follows the page.

It exists to check fairlane's fast engine event for event, and to be read: start with `case` (what goes in), then
`clock`, `network`, `arbiters` and `mpi` (what happens), then `outcome` (what comes out).
Times are integers of picoseconds, sizes are bytes, bandwidths are bits per second.
"""

from collections.abc import Callable

from .case import Case, Compute, Datagram, Fabric, Hop, Job, Link, Mark, Mpi, Network, Op, Qos, Recv, Send, Wait, ser
from .mpi import simulate
from .outcome import Departure, LinkTime, Outcome, PortCount, Progress

Engine = Callable[[Case], Outcome]
"""Simulates a case."""

__all__ = [
    "Case",
    "Compute",
    "Datagram",
    "Departure",
    "Engine",
    "Fabric",
    "Hop",
    "Job",
    "Link",
    "LinkTime",
    "Mark",
    "Mpi",
    "Network",
    "Op",
    "Outcome",
    "PortCount",
    "Progress",
    "Qos",
    "Recv",
    "Send",
    "Wait",
    "ser",
    "simulate",
]
