"""Load against latency and accepted throughput: open-loop load swept over a range, on several seeds."""

from fairlane.saturation.plan import OpenLoopOptions, Plan, loads_of, prepared
from fairlane.saturation.results import ACCEPTED_IN_FULL, Saturation, opened, sweep

__all__ = [
    "ACCEPTED_IN_FULL",
    "OpenLoopOptions",
    "Plan",
    "Saturation",
    "loads_of",
    "opened",
    "prepared",
    "sweep",
]
