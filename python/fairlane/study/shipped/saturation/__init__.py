"""Load against latency and accepted throughput: open-loop load swept over a range, on several seeds."""

from fairlane.study.shipped.saturation.plan import LoadSweep, loads_of
from fairlane.study.shipped.saturation.results import ACCEPTED_IN_FULL, Saturation

__all__ = ["ACCEPTED_IN_FULL", "LoadSweep", "Saturation", "loads_of"]
