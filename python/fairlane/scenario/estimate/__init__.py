"""How much memory and time a scenario will take, from its numbers, before anything of its size is allocated.

Memory is a sum of parts, each of which belongs to a key of the scenario; a scenario that needs more than it may have is
refused, and the largest parts are named. Time is a number of packet-hops times what one takes. Both are estimates: see
``docs/performance.md`` for how near they come.
"""

from fairlane.scenario.estimate.machine import machine_cores, machine_memory
from fairlane.scenario.estimate.parts import (
    Estimate,
    Part,
    bytes_text,
    estimate,
    fabric_parts,
    seconds_text,
    within_memory,
)
from fairlane.scenario.estimate.traffic import Path

__all__ = [
    "Estimate",
    "Part",
    "Path",
    "bytes_text",
    "estimate",
    "fabric_parts",
    "machine_cores",
    "machine_memory",
    "seconds_text",
    "within_memory",
]
