"""Load against latency and accepted throughput: open-loop load swept over a range, on several seeds."""

from fairlane.study.shipped.saturation.results import ACCEPTED_IN_FULL, Saturation
from fairlane.study.shipped.saturation.study import LoadSweep, loads_of

__all__ = ["ACCEPTED_IN_FULL", "LoadSweep", "Saturation", "loads_of"]
